"""``cmath``, and SciPy's older transforms."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np
import pytest
from scipy.fftpack import fft, fftfreq, ifft, rfft

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here


def of_complex_numbers(x):
    z = x[0] + 2j * x[1]
    size, angle = cmath.polar(z)
    return (
        *(cmath.exp(z), cmath.sqrt(-x[0]), cmath.log(z), cmath.phase(z), size, angle),
        *(cmath.rect(size, angle), cmath.atanh(z), cmath.isnan(z), cmath.log(z, 2)),
        *(cmath.acos(z), cmath.sin(z), cmath.exp(1j * cmath.pi), cmath.log10(z)),
    )


def transformed(x):
    return fft(x), ifft(fft(x)).real, fftfreq(len(x), 0.5)


def taken_by_a_handler(x):
    try:
        found = cmath.log(x[0] - x[0])
    except ValueError:
        found = 7j
    return found * x


PROGRAMS = [of_complex_numbers, transformed, taken_by_a_handler]


@pytest.mark.parametrize("function", PROGRAMS)
def test_complex_numbers_are_those_of_python(function: Any) -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x], ()))
    assert outcome.kind == "right", outcome.reason


@pytest.mark.usefixtures("unoptimised")
def test_what_lies_in_another_order_is_asked_of_scipy() -> None:
    def program(x: Any) -> Any:
        return rfft(x)

    found = run_here(Case("program", program, "", "", lambda _: [np.arange(5.0)], ()))
    assert found.kind == "right", found


def of_extreme_parts(a, b):
    return a * b, a / b


def test_products_and_quotients_of_infinities_are_those_of_numpy() -> None:
    parts = (1.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 0.25)
    numbers = np.array([complex(x, y) for x in parts for y in parts])
    a, b = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    found = run_here(Case("extreme", of_extreme_parts, "", "", lambda _: [a, b], ()))
    assert found.kind == "right", found
