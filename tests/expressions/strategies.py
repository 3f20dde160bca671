"""Random expressions of real and of whole arguments, and values for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from distspmd.expressions.ir import Argument, Constant, Expression, IndexValue, apply, cast
from distspmd.expressions.operations import OPERATIONS, DType

REAL, WHOLE, TRUTH = (np.dtype(t) for t in (np.float64, np.int64, bool))
NAMES = "xyz"
PLACE = {"i": np.int64(3), "j": np.int64(-2)}
"""Values of the variables of indices."""

SMOOTH = (
    *("exp", "expm1", "sin", "cos", "tanh", "arctan", "erf", "sigmoid", "negative", "add"),
    *("subtract", "multiply", "arcsinh", "arctan2"),
)
KINKED = (
    *("absolute", "relu", "maximum", "minimum", "at_least", "at_most", "floor"),
    *("ceil", "trunc", "rint", "sign", "remainder", "fmod"),
)
OF_WHOLE = (
    *("add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("invert", "maximum", "minimum", "left_shift", "right_shift", "absolute", "sign"),
)
TESTS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_extreme")


def _applied(name: str, inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    arguments = [inner] * OPERATIONS[name].arity
    return st.tuples(*arguments).map(lambda found: apply(name, *found))


def _chosen(
    test: st.SearchStrategy[Expression], inner: st.SearchStrategy[Expression]
) -> st.SearchStrategy[Expression]:
    return st.tuples(test, inner, inner).map(lambda found: apply("where", *found))


def _of(
    dtype: DType, numbers: st.SearchStrategy[float], names: tuple[str, ...]
) -> st.SearchStrategy[Expression]:
    leaves = st.one_of(
        st.sampled_from(NAMES).map(lambda name: Argument(name, dtype)),
        numbers.map(lambda value: Constant(value, dtype)),
        st.integers(-3, 3).map(lambda n: cast(IndexValue((("i", n), ("j", 1)), 2), dtype)),
    )

    def extended(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        tests = st.sampled_from(TESTS).flatmap(lambda name: _applied(name, inner))
        operations = st.sampled_from(names).flatmap(lambda name: _applied(name, inner))
        shared = inner.map(lambda e: apply("multiply", e, e))
        return st.one_of(operations, _chosen(tests, inner), shared)

    return st.recursive(leaves, extended, max_leaves=10)


def smooth() -> st.SearchStrategy[Expression]:
    """Expressions whose derivative is their slope almost everywhere."""
    return _of(REAL, st.sampled_from([0.5, 2.0, -1.5, 3.0]), SMOOTH)


def real() -> st.SearchStrategy[Expression]:
    """Expressions of real numbers, with steps and kinks."""
    return _of(REAL, st.sampled_from([0.0, 0.5, 2.0, -1.5]), (*SMOOTH, *KINKED))


def whole() -> st.SearchStrategy[Expression]:
    """Expressions of whole numbers."""
    return _of(WHOLE, st.integers(-5, 70), OF_WHOLE)


def drawn(dtype: DType, seed: int, names: str = NAMES) -> dict[str, Any]:
    """Values of arguments; none is a whole 0, by which C++ cannot divide."""
    rng = np.random.default_rng(seed)
    if dtype == WHOLE:
        return {name: rng.integers(1, 40, 1) * rng.choice([-1, 1], 1) for name in names}
    return {name: rng.uniform(-2, 2, 1) for name in names}


def arguments(name: str, dtype: DType) -> list[Argument]:
    """An argument for each of an operation."""
    return [Argument("xyzuvw"[n], dtype) for n in range(OPERATIONS[name].arity)]
