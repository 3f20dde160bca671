"""Images between their elements, ranks of neighbours and masks, beside ``scipy.ndimage``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.library import image_places, ranks_of_neighbours
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

ndimage = pytest.importorskip("scipy.ndimage")
RNG = np.random.default_rng(0)
IMAGE = RNG.random((7, 9))
PLACES = RNG.random((2, 20)) * np.array([[10], [12]]) - 1.5
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
CORNER = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]])


def assert_same(found: Any, wanted: Any) -> None:
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror"])
@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("map_coordinates", (PLACES,)),
        ("zoom", ((2, 1.5),)),
        ("shift", ((0.5, -1.3),)),
        ("rotate", (33,)),
        ("rotate", (90,)),
        ("affine_transform", ([[1, 0.2], [0.1, 0.9]], [0.31, 0.12])),
    ],
)
def test_images_between_elements_are_those_of_scipy(
    name: str, given: tuple[Any, ...], order: int, mode: str
) -> None:
    found = getattr(image_places, name)(IMAGE, *given, order=order, mode=mode)
    assert_same(found, getattr(ndimage, name)(IMAGE, *given, order=order, mode=mode))


@pytest.mark.parametrize(
    ("name", "given", "options"),
    [
        ("median_filter", (3,), {}),
        ("median_filter", ((2, 4),), {"mode": "nearest"}),
        ("percentile_filter", (30,), {"size": 3}),
        ("rank_filter", (-2,), {"footprint": CROSS}),
        ("generic_filter", (np.ptp,), {"size": 3, "mode": "constant"}),
        ("generic_filter", (np.mean,), {"footprint": CROSS}),
        ("center_of_mass", (), {}),
    ],
)
def test_ranks_of_neighbours_are_those_of_scipy(name: str, given: Any, options: Any) -> None:
    found = getattr(ranks_of_neighbours, name)(IMAGE, *given, **options)
    assert_same(found, getattr(ndimage, name)(IMAGE, *given, **options))


@pytest.mark.parametrize("options", [{}, {"iterations": 2}, {"structure": CORNER}])
@pytest.mark.parametrize("name", ["erosion", "dilation", "opening", "closing"])
def test_masks_are_those_of_scipy(name: str, options: Any) -> None:
    found = getattr(ranks_of_neighbours, f"binary_{name}")(IMAGE > 0.4, **options)
    assert_same(found, getattr(ndimage, f"binary_{name}")(IMAGE > 0.4, **options))


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
