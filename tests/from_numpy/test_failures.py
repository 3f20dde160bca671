"""Numbers that Python refuses while a program runs, where NumPy computes inf, nan or 0."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.reader import interpreter


def quotient(x, a: float):
    return x / (1.0 / a)


def of_whole_numbers(x, a: float):
    n = int(a)
    return x[7 // n] + x[7 % n]


def remainder(x, a: float):
    return x * (1.5 % a)


def in_a_loop(x, a: float):
    total = 0.0
    for i in range(4):
        total = total + x[i] / 2
        total += 1.0 / (a - i)
    return total


def of_a_loop(x, a: float):
    total = a
    for i in range(3):
        total += 1 / i
    return x * total


def in_a_map(x, a: float):
    y = np.zeros(4)
    for i in distspmd.map[0:4]:
        own = float(x[i])
        y[i] = a / own
    return y


def in_a_branch_of_a_map(x, a: float):
    y = np.zeros(4)
    for i in distspmd.map[0:4]:
        own = float(x[i])
        if x[i] > 0.5:
            y[i] = a / (own - 1.0)
        else:
            y[i] = 1.0 / (own - 0.5)
    return y


def chosen(x, a: float):
    y = 1.0 / a if a > 0 else -1.0
    z = a != 0 and 1 / a > 3
    return x * y, z


def power(x, a: float):
    return x * a**-1.5


def fraction(x, a: float):
    return x * a**0.5


def root(x, a: float):
    return x * math.sqrt(a)


def root_of_elements(x, a: float):
    return math.sqrt(x[0]) + math.log(x[1] + a)


def exponential(x, a: float):
    return x * math.exp(a)


def whole(x, a: float):
    return x * int(a * 2)


def whole_of_elements(x, a: float):
    return x * int(x[0] * a)


def growing(x, a: float):
    return x * a**200 * 1e-300


def modular(x, a: float):
    return x * pow(3, 5, int(a)) + pow(int(a), 20, 1_000_003)


def caught(x, a: float):
    try:
        y = 1.0 / a
    except ZeroDivisionError:
        y = -1.0
    return x * y


def of_numpy(x, a: float):
    return x / a, x[0] / x[1], np.divide(1.0, a), np.float64(1) / a, np.sqrt(a - 2), 1 / x[2]


QUICK = (quotient, modular, in_a_loop, root_of_elements, exponential, whole_of_elements)
X = np.array([1.0, 0.25, 0.75, 0.125])
CASES: list[tuple[Any, Any, Any]] = [  # a program, a number at which it works, one at which not
    (quotient, 2.0, 0.0),
    (of_whole_numbers, 3.0, 0.5),
    (remainder, 2.0, 0.0),
    (in_a_loop, 0.5, 2.0),
    (of_a_loop, None, 1.0),
    (power, 2.0, 0.0),
    (root, 2.0, -1.0),
    (root_of_elements, 1.0, -0.25),
    (exponential, 2.0, 1000.0),
    (whole, 2.0, np.nan),
    (whole_of_elements, 5.5, np.inf),
    (growing, 30.0, 100.0),
    (modular, -7.0, 0.0),
]


def compiled(program: Any, a: float) -> Any:
    sdfg = numpy_program(program, X, a)
    sdfg = distspmd.lower(sdfg, {}).sdfg
    return distspmd.compile(sdfg, MPI.COMM_WORLD)


@pytest.mark.parametrize(
    ("program", "good", "bad"),
    [pytest.param(*c, marks=[] if c[0] in QUICK else pytest.mark.slow) for c in CASES],
    ids=[program.__name__ for program, *_ in CASES],
)
def test_what_python_raises_is_raised(program: Any, good: Any, bad: float) -> None:
    ready = compiled(program, bad)
    with pytest.raises((ZeroDivisionError, ValueError, OverflowError)) as wanted:
        program(X, bad)
    with pytest.raises(wanted.type, match=r"test_failures|line \d+ of the program") as found:
        ready(x=X, a=bad)
    assert isinstance(found.value, distspmd.errors.ProgramError)
    if good is not None:
        np.testing.assert_allclose(ready(x=X, a=good), program(X, good))


def test_divisions_of_maps_end_the_program_where_they_happen() -> None:
    ready = compiled(in_a_map, 1.0)
    np.testing.assert_allclose(ready(x=X, a=2.0), in_a_map(X, 2.0))
    with pytest.raises(ZeroDivisionError):
        ready(x=np.array([1.0, 0.0, 1.0, 1.0]), a=1.0)


@pytest.mark.parametrize(("x", "fails"), [((2, 0, 3, 0.25), False), ((2, 0, 1, 0), True)])
def test_only_the_branch_that_runs_may_fail(x: Any, fails: bool) -> None:
    ready, x = compiled(in_a_branch_of_a_map, 1.0), np.array(x, dtype=float)
    if fails:
        with pytest.raises(ZeroDivisionError):
            ready(x=x, a=1.0)
    else:
        np.testing.assert_allclose(ready(x=x, a=1.0), in_a_branch_of_a_map(x, 1.0))


def test_what_is_not_chosen_fails_not() -> None:
    ready = compiled(chosen, 1.0)
    for a in (0.0, 2.0, 0.25):
        for one, other in zip(ready(x=X, a=a), chosen(X, a), strict=True):
            np.testing.assert_allclose(one, other)


def test_a_handler_takes_a_division_by_zero() -> None:
    ready = compiled(caught, 1.0)
    for a in (0.0, 4.0):
        np.testing.assert_allclose(ready(x=X, a=a), caught(X, a))


def test_a_negative_number_to_a_fraction_is_no_real_number() -> None:
    ready = compiled(fraction, 1.0)
    np.testing.assert_allclose(ready(x=X, a=4.0), X * 2)
    with pytest.raises(ValueError, match="in Python it is complex"):
        ready(x=X, a=-4.0)


def test_numbers_of_numpy_are_divided_as_numpy_does() -> None:
    ready, x = compiled(of_numpy, 1.0), np.array([1.0, 0.0, 0.0, 2.0])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        wanted = of_numpy(x, 0.0)
        found = ready(x=x, a=0.0)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_division_of_sizes_by_what_may_be_zero_is_refused_in_maps() -> None:
    def program(x):
        for i in distspmd.map[0:4]:
            x[i] = 8 // i

    with pytest.raises(UnsupportedProgram, match="which may be zero, in a parallel map"):
        numpy_program(program, X)


def types_of_numpy(x, a: float):
    return x * np.sqrt(a), x * np.add(a, 1.0), x * a, x * math.sqrt(a), x * round(a, 1)


def test_universal_functions_make_numbers_of_numpy_of_those_of_python() -> None:
    single = X.astype(np.float32)
    sdfg = numpy_program(types_of_numpy, single, 2.0)
    wanted = [each.dtype for each in types_of_numpy(single, 2.0)]
    assert wanted == [
        np.dtype(sdfg.arrays[f"__return_{n}"].dtype.as_numpy_dtype()) for n in range(5)
    ]


def cubed(x: Any) -> Any:
    return x**3


def test_a_fault_of_the_reader_itself_is_not_told_as_one_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = Path(interpreter.__file__)
    within: dict[str, Any] = {}
    exec(compile("def binary(*_):\n    return forgotten", file, "exec"), within)
    monkeypatch.setattr(interpreter, "binary", within["binary"])
    told = (
        rf"test_failures.py:\d+: a fault within distspmd \(NameError: .*'forgotten'.*{file.name}:2"
    )
    with pytest.raises(UnsupportedProgram, match=told):
        numpy_program(cubed, np.ones(3), host="refuse")
