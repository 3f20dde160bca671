"""Types and shapes of results are NumPy's, whatever types and numbers meet; nothing is compiled."""

from __future__ import annotations

import operator
import typing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime.calls.form import call_form_of

KINDS = "?bhilBHILfdFD"
SHAPES = [(3,), (2, 3), (1, 3), (2, 1), ()]
OPERATORS: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift),
    *(operator.lt, operator.ge, operator.eq, operator.ne),
    *(np.maximum, np.arctan2, np.hypot, np.logaddexp, np.fmin, np.logical_xor, np.copysign),
]
REDUCTIONS: list[Callable[..., Any]] = [
    *(np.sum, np.prod, np.mean, np.max, np.min, np.any, np.all, np.std, np.argmax, np.cumsum)
]
arrays = st.builds(
    lambda kind, shape: np.ones(shape, kind), st.sampled_from(KINDS), st.sampled_from(SHAPES)
)
numbers = st.sampled_from([True, 0, 3, -2, 300, 2.5, 1j, np.int8(3), np.float32(2), np.uint64(7)])


def described(function: Callable[..., Any], *examples: Any) -> tuple[Any, Any]:
    """Type and shape of a program's result; what it refuses is no result."""
    sdfg = numpy_program(function, *examples, host="refuse")
    container = sdfg.arrays["__return"]
    shape = tuple(map(int, container.shape))
    return np.dtype(container.dtype.as_numpy_dtype()), shape


def check(function: Callable[..., Any], *examples: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = np.asarray(function(*examples))
        except (TypeError, ValueError, OverflowError):
            with pytest.raises(UnsupportedProgram):
                numpy_program(function, *examples, host="refuse")
            return
        try:
            dtype, shape = described(function, *examples)
        except UnsupportedProgram:
            return
    assert dtype == wanted.dtype
    assert shape == wanted.shape or (shape == (1,) and wanted.shape == ())


@given(st.sampled_from(OPERATORS), arrays, arrays)
def test_operations_of_arrays_have_the_types_of_numpy(op: Any, a: Any, b: Any) -> None:
    def program(a, b):
        return op(a, b)

    check(program, a, b)


@given(st.sampled_from(OPERATORS), arrays, numbers, st.booleans())
def test_numbers_of_python_take_the_types_of_arrays(
    op: Any, a: Any, number: Any, first: bool
) -> None:
    def program(a):
        return op(number, a) if first else op(a, number)

    check(program, a)


@given(st.sampled_from(REDUCTIONS), arrays, st.sampled_from([None, 0, -1]))
def test_reductions_have_the_types_of_numpy(reduce: Any, a: Any, axis: Any) -> None:
    def program(a):
        return reduce(a, axis=axis)

    check(program, a)


def keywords(x, *, scale=2.0, offset: int = 1, **rest):
    return x * scale + offset + len(rest)


def test_arguments_may_have_names_alone_and_defaults() -> None:
    single = np.ones(3, np.float32)
    assert described(keywords, single) == (np.float32, (3,))
    sdfg = numpy_program(keywords, single, scale=np.float64(3))
    assert np.dtype(sdfg.arrays["__return"].dtype.as_numpy_dtype()) == np.float64


def test_functions_of_numpy_give_no_numbers_of_python() -> None:
    def of_numbers(x):
        a = float(x[0])
        chosen = np.where(a > 0, a, 1.0)
        found = (
            chosen,
            np.select([a > 0], [a], 1.0),
            np.clip(a, 0, 1),
            np.dot(a, 2.0),
            np.isclose(a, 1),
        )
        return chosen * x, np.clip(a, 0, 1) + x, np.angle(complex(a, 2)) * x, *found

    x = np.ones(3, np.float32)
    arrays = numpy_program(of_numbers, x).arrays
    wanted = of_numbers(x)
    for n, value in enumerate(wanted):
        assert np.dtype(arrays[f"__return_{n}"].dtype.as_numpy_dtype()) == np.asarray(value).dtype
    assert wanted[0].dtype == np.float64  # a number of Python would leave it float32
    form = call_form_of(numpy_program(of_numbers, x)).returned
    assert form is None or not any(part.is_python for part in form)


def test_a_negative_count_leaves_out_the_last_bits() -> None:
    def bits(x):
        return np.unpackbits(x, axis=1, count=-3)

    assert described(bits, np.ones((3, 1), np.uint8)) == (np.dtype(np.uint8), (3, 5))


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [(typing.Iterable, 1), (typing.Sequence, 0), ((list, np.ndarray), 1), (typing.Mapping, 0)],
)
def test_isinstance_takes_kinds_that_are_no_classes(kinds: Any, wanted: int) -> None:
    def asks(x):
        return np.zeros((2 if isinstance(x, kinds) else 1, 3)) + x

    assert described(asks, np.ones(3))[1] == (1 + wanted, 3)
    assert asks(np.ones(3)).shape == (1 + wanted, 3)
