"""Programs as their authors write them: where small habits of Python and NumPy meet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.array([0.5, 0.2, 0.9, 0.4, 0.1])


def _checked(func: Any) -> Any:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper


def _of_arrays(func: Any) -> Any:
    @functools.wraps(func)
    def wrapper(a: Any, b: Any = 0.5, **kwargs: Any) -> Any:
        return func(np.asanyarray(a, dtype=float), b, **kwargs)

    return wrapper


@_checked
@_of_arrays
def under_wrappers_of_fewer_arguments(a, b=0.5, scale=2.0, offset=False):
    return a * scale + (b if offset else 0)


def lengths_by_rounding(x):
    half = np.round(x.shape[0] / 2.0)
    rest = np.around(np.prod(x.shape) - half)
    places = np.hstack((np.arange(half), np.arange(-rest, 0)))
    return places / np.max([len(x), 2]), np.zeros(np.sum([1, 2]))


def lengths_by_rounding_below(x):
    return np.zeros(int(np.linalg.norm([3, 4]))) + np.round(2.567, 1), x[
        : int(np.median([1, 2, 3]))
    ]


def tuples_within_brackets(x):
    both = np.stack([x, 2 * x], axis=1)
    low = np.where(both[:, 0] < 0.3)
    both[low, 1] *= -1
    return both, both[(0, 2), 1], both[((1, 1),)], both[(0, 1), (1, 0)]


class _Told:
    def __init__(self, x):
        self.x = x

    def told(self):
        if len(self.x) > 100:
            raise ValueError(
                f"""There are {len(self.x)} values. Take
fewer of them."""
            )
        return self.x + 1


def texts_of_several_lines(x):
    return _Told(x).told()


def last_of_a_search(x):
    best = -np.inf
    found = np.zeros(len(x) + 1)
    k = -1
    for i in range(len(x)):
        while k >= 0:
            best = x[i] * 2 + k
            if best > found[k]:
                break
            k -= 1
        k += 1
        found[k] = best
    return found, best


def ranges_that_the_run_ends(x):
    length = np.sqrt(x @ x)
    places = np.arange(0.0, length + length / 4, length / 4).reshape(5, 1)
    return places, np.arange(np.amin(x), np.amax(x), 0.13), np.arange(x.max(), x.min(), 0.5)


@pytest.mark.parametrize(
    "program",
    [
        ranges_that_the_run_ends,
        under_wrappers_of_fewer_arguments,
        lengths_by_rounding,
        lengths_by_rounding_below,
        tuples_within_brackets,
        texts_of_several_lines,
        last_of_a_search,
    ],
    ids=lambda f: f.__name__,
)
def test_what_authors_write_is_what_numpy_computes(program: Callable[..., Any]) -> None:
    case = Case(program.__name__, program, "own", "", lambda rng: (X.copy(),), ())
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome


def test_wrappers_get_what_the_caller_gives_alone() -> None:
    program = under_wrappers_of_fewer_arguments
    case = Case("given", program, "own", "", lambda rng: {"a": X, "offset": True}, ())
    assert on_paper(case).kind == "right"


class _Pile:
    def __init__(self, heights):
        self.heights = heights

    def fall(self):
        for i in range(len(self.heights)):
            if self.heights[i] > 3:
                self.topple(i)

    def topple(self, i):
        self.heights[i] -= 2
        self.fall()


def _falls(x):
    pile = _Pile(x)
    pile.fall()
    return pile.heights


def test_methods_that_call_each_other_without_an_end_are_refused_in_words() -> None:
    with pytest.raises(UnsupportedProgram, match=r"deep|calls itself") as refused:
        numpy_program(_falls, X)
    assert "AsLoop" not in str(refused.value)


def test_ranges_of_numbers_that_are_given_have_lengths_that_are_known() -> None:
    def program(end, step):
        times = np.arange(0, end, step)
        found = np.zeros(len(times))
        for n in range(1, len(times)):
            found[n] = found[n - 1] + step * np.cos(times[n])
        return times, found

    sdfg = numpy_program(program, 1.0, 0.1)
    assert [tuple(sdfg.arrays[f"__return_{n}"].shape) for n in range(2)] == [(10,), (10,)]


def test_shifts_that_are_given_in_an_array_roll() -> None:
    def program(f, steps):
        for k in range(len(steps)):
            f[k] = np.roll(f[k], steps[k], axis=(1, 0))
        flat = np.roll(f[0], steps[0, 1])
        for k in range(3):
            flat = np.roll(flat, 2 * k - 3, axis=k % 2)
        return f, flat

    def inputs(rng):
        return rng.random((3, 4, 5)), np.array([[1, -2], [0, 7], [-9, 3]])

    outcome = on_paper(Case("rolls", program, "own", "", inputs, ()))
    assert outcome.kind == "right", outcome
