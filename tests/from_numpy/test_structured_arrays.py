"""Arrays with fields: an array for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def reaction(x):
    n = 12
    z = np.zeros((n + 2, n + 2), [("U", np.double), ("V", np.double)])
    u_all, v_all = z["U"], z["V"]
    u, v = u_all[1:-1, 1:-1], v_all[1:-1, 1:-1]
    u[...] = 1.0
    u_all[4:8, 4:8] = 0.5
    v_all[4:8, 4:8] = x[0]
    for _ in range(3):
        spread = u_all[:-2, 1:-1] + u_all[2:, 1:-1] + u_all[1:-1, :-2] + u_all[1:-1, 2:] - 4 * u
        used = u * v * v
        u += 0.16 * spread - used
        v += used - 0.1 * v
    return z["U"], z["V"]


def particles(x):
    p = np.zeros(4, dtype=[("position", float, 2), ("mass", float), ("id", int)])
    p["mass"] = x
    p["id"] = np.arange(4)
    p["position"][:, 0] = x
    for _ in range(3):
        p["position"] += 0.5 * p["mass"][:, None]
        p["position"][0] -= 1.0
    first = p[0]
    p[3] = ([7.0, 8.0], 9.0, 10)
    return p["position"], p["mass"], p["id"], len(p), p.shape, first["mass"], p.size


def known_rows(x):
    rows = np.array([(1, 2.5), (3, 4.5)], dtype=[("n", "i4"), ("y", "f8")])
    again = rows.copy()
    again["y"] += x[0]
    rows["n"][1] = 7
    return rows["n"], rows["y"], again["n"], again["y"], rows[["n", "y"]]["y"].sum(), rows[1][0]


@pytest.mark.parametrize("function", [reaction, particles, known_rows])
def test_fields_are_those_of_numpy(function: Any) -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x], ()))
    assert outcome.kind == "right", outcome.reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.zeros(3, [("a", float)]), "StructuredArray"),
        (lambda x: np.zeros(3, [("a", float)])[1:]["a"], "take it of each field"),
        (lambda x: np.zeros(3, [("a", "U5")])["a"], "an array of the type <U5"),
        (lambda x: np.zeros(3, [("a", float)]) + 1, "StructuredArray"),
        (lambda x: np.sort(np.zeros(3, [("a", float)])), "StructuredArray"),
    ],
)
def test_what_is_not_covered_is_refused(call: Any, message: str) -> None:
    def program(x: Any) -> Any:
        return call(x)

    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(program, np.ones(3))
