"""Images, their neighbours and masks by ``scipy.ndimage``, and functions of each value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

ndimage = pytest.importorskip("scipy.ndimage")


def images(a, p):
    places = np.array([[0.5, 1.2, 9.0], [1.0, 2.2, p]])
    between = ndimage.map_coordinates(a, places, order=1), ndimage.center_of_mass(a)
    return between, ndimage.median_filter(a[:2], size=3), ndimage.binary_erosion(a > 0.5)


def more_images(a, p):
    return (
        (ndimage.zoom(a, 2, order=1), ndimage.shift(a, (0.5, p)), ndimage.rotate(a, 30)),
        (ndimage.map_coordinates(a, a[None, 0] * np.ones((2, 1)), mode="nearest"),),
        ndimage.generic_filter(a, lambda v: v.max() * p, size=3),
        (ndimage.binary_closing(a > 0.5), ndimage.percentile_filter(a, 30, size=(1, 3))),
    )


def each_value(a, p):
    sums = np.vectorize(lambda v: v.sum() * p, signature="(n)->()")
    lines = np.vectorize(lambda v, t: v * t, signature="(n),()->(n)")
    of_table = np.vectorize(lambda t, c: t * c[0] + c[1], excluded=[1])
    by_name = np.vectorize(lambda t, c=2.0: t * c if t > 0.5 else c)
    return sums(a), lines(a, a[:, 0]), of_table(a, [1.0, p]), by_name(a, c=p), by_name(a, c=a)


CASES = [
    Case(f.__name__, f, "own", "", lambda rng: (rng.random((5, 5)), 1.5), ())
    for f in (images, each_value, more_images)
]


@pytest.mark.parametrize(
    "case",
    [*CASES[:2], pytest.param(CASES[2], marks=pytest.mark.slow)],
    ids=lambda case: case.name,
)
def test_programs_take_neighbours(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == RIGHT, outcome


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_programs_take_neighbours(case: Case) -> None:
    outcome = run_here(case)
    assert outcome.kind == RIGHT, outcome


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("has not 1 inputs", lambda x: np.vectorize(lambda v: v, signature="(n),(n)->(n)")(x)),
    ],
    ids=["signature"],
)
def test_what_is_not_covered_is_said(said: str, program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, np.ones((3, 3)))
