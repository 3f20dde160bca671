"""Grids of slices of which the run decides the ends, and places of the largest complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def neighbourhoods(x):
    total = 0
    for i in range(3):
        first, last = max(i - 1, 0), min(i + 2, 3)
        places = np.dstack(np.mgrid[first:last, 0:2])
        total = total + places.sum()
    return total + x


def grids(x):
    n = int(x[3])
    a, b = np.mgrid[0:n, 1:3:0.5]
    c, d = np.ogrid[:n, 0:1:3j]
    return a, b, c, d, np.mgrid[1:n]


def places_of_complex(x):
    z = x + 1j * x[::-1]
    tied = np.where(x > 0.5, 2.0, x) + 1j * x
    table = np.stack([z, tied, np.where(x > 1, np.nan, z)])
    return (
        *(np.argmax(z), np.argmin(tied), tied.argmax(), np.argmax(table, axis=1)),
        *(np.argmin(table, axis=0), np.argmax(table, axis=1, keepdims=True), np.argmax(table)),
    )


@pytest.mark.parametrize("function", [neighbourhoods, grids, places_of_complex])
def test_grids_and_places_are_those_of_numpy(function: Any) -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x], ()))
    assert outcome.kind == "right", outcome.reason
