"""Functions of NumPy that are written out in NumPy, and numbers that programs are made for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime.calls.form import call_form_of
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT


def places(x: Any) -> Any:
    t = np.outer(x, x)
    r, c = np.unravel_index(np.argmax(t), t.shape)
    t[np.diag_indices_from(t)] += 2
    t[np.triu_indices_from(t, 1)] = 0
    several = np.unravel_index(np.array([3, 7, 20]), (3, 7))
    whole = (np.array([1, 2]), x[:2].astype(int))
    return r, c, t, several, np.ravel_multi_index(whole, (3, 7))


def parts(x: Any) -> Any:
    t = np.outer(x, x)
    gone = (
        np.delete(x, 2),
        np.delete(t, -1, axis=1),
        np.delete(x, [1, 3]),
        np.delete(t, slice(2), 0),
    )
    more = np.insert(x, 2, 9), np.insert(x, 0, [1, 2]), np.resize(x, (3, 4))
    a, b, c = x.copy(), x.copy(), x.copy()
    np.copyto(a, 3.0, where=x > 4)
    np.putmask(b, b > 3, 0)
    np.place(c, c > 3, [10, 20])
    sums = np.add.reduceat(x, [0, 2, 5]), np.maximum.reduceat(x, [0, 3, 1])
    return gone, more, a, b, c, sums, np.delete(x, np.argmax(x))


def polynomials(x: Any) -> Any:
    fitted = np.polyfit(x, x**2 - 1, 2), np.polymul(x[:2], x[:3]), np.polyadd(x[:2], x[:3])
    return fitted, np.polyder(x), np.polyint(x), np.array_equiv(x, x[None])


def numbers(x: Any) -> Any:
    k = x.astype(int)
    bits = np.unpackbits(x.astype(np.uint8)), np.unpackbits(x.astype(np.uint8)[:, None], axis=1)
    spaced = np.logspace(0, x[1], 4), np.geomspace(1.0, x[0], 5)
    whole = np.gcd(k * 6, 4), np.lcm(k, 6), np.gcd(12, k[0])
    return np.sinc(x - 5), np.fix(-x / 2), np.isreal(x), spaced, whole, bits, np.atleast_3d(x)


def in_order(x: Any) -> Any:
    t, s = np.outer(x, x), 0.0
    for (i, j), v in np.ndenumerate(t):
        if i > j:
            s += v * i
    return s, np.apply_over_axes(np.sum, t, [0, 1])


def blurred(x: Any, sigma: Any) -> Any:
    radius = int(np.ceil(3 * sigma))
    along = np.arange(-radius, radius + 1)
    kernel = np.exp(-(along**2) / (2 * sigma**2))
    return np.convolve(x, kernel / kernel.sum(), mode="same")


def arranged(x: Any) -> Any:
    table = np.outer(x[:2], x[:2])
    blocks = np.block([x, x[:2]]), np.block([[table, table + 1], [table.T, np.eye(2)]])
    lines = np.block([[x], [x]]), np.block([1.0, x, 2.0]), np.block(x), np.block([[1.0, 2.0]])
    a = np.outer(x[:3], x)
    b = a[::-1] + 1
    crossed = np.cross(a, b, axis=0), np.cross(a, b.T, axisa=0), np.cross(a.T, b.T, axisc=0)
    crossed += np.cross(a[:, :2], a[:, 1:3]), np.cross(x[:2], a[:2], axisb=0)
    return blocks, lines, crossed, np.cross(a, b, 0, 0), np.cross(x[:3], x[1:4])


def places_in_slices(x: Any) -> Any:
    t = np.outer(x, x[::-1]) - 7
    pivots = np.zeros(7, np.int64)
    for i in range(2, 6):
        pivots[i] = i + np.argmax(np.abs(t[i:, i]))
    several = t[2:, 1:].argmax(axis=1), t[2:, 1:].argmin(axis=0), t[2:, 1:].argmax()
    return x[1:].argmax(), (x * x)[3:-1].argmin(), x[1::2].argmax(), several, pivots


PROGRAMS = [arranged, places, parts, polynomials, numbers, in_order, blurred]


def case_of(function: Callable[..., Any]) -> Case:
    values = np.array([5.0, 1, 4, 2, 8, 3, 9])
    more = (0.7,) if function is blurred else ()
    return Case(function.__name__, function, "", "", lambda _: (values.copy(), *more), ())


@pytest.mark.parametrize("function", PROGRAMS)
def test_plans_of_what_is_written_out_are_proved(function: Callable[..., Any]) -> None:
    found = on_paper(case_of(function))
    assert found.kind == RIGHT, found


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", PROGRAMS)
def test_what_is_written_out_gives_what_numpy_gives(function: Callable[..., Any]) -> None:
    found = run_here(case_of(function))
    assert found.kind == RIGHT, found


@pytest.mark.usefixtures("unoptimised")
def test_places_of_extremes_count_from_where_a_slice_begins() -> None:
    found = run_here(case_of(places_in_slices))
    assert found.kind == RIGHT, found


def test_errors_and_spaces_name_the_line_of_the_program() -> None:
    def program(x: Any) -> Any:
        return np.polynomial.polynomial.polyfit(x, x, 1, full=True)

    with pytest.raises(UnsupportedProgram, match="full=") as refused:
        numpy_program(program, np.ones(3))
    assert "test_written_out.py" in str(refused.value)


def test_a_number_that_a_length_depends_on_is_fixed() -> None:
    def in_rows(x: Any, part: Any) -> Any:
        return np.outer(x, x).reshape(int(10 * part), -1).sum(axis=1)

    assert call_form_of(numpy_program(in_rows, np.ones(7), 0.7)).fixed == {"part": 0.7}
    assert not call_form_of(numpy_program(blurred, np.ones(7), 0.7)).fixed  # the run finds it

    def scaled(x: Any, factor: Any) -> Any:
        return x * factor

    assert not call_form_of(numpy_program(scaled, np.ones(7), 0.7)).fixed
