"""Sums, products and means of integers: NumPy adds them up in 64 bits, and means are floats.

DaCe (2.0.0b1) keeps the type of the operand: sums wrap, and a mean of integers is an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dace import SDFG, SDFGState, dtypes

from distspmd.dace_compat.numpy_parser import Tables, add_state, astype, original

_SIGNED = (dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32)
_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32)
_WIDE = {dtypes.int64, dtypes.uint64}


def _of_sum(dtype: Any) -> Any:
    """The type that NumPy adds and multiplies elements of a type in."""
    if dtype in _SIGNED:
        return dtypes.int64
    return dtypes.uint64 if dtype in _UNSIGNED else dtype


def _of_mean(dtype: Any) -> Any:
    is_integer = dtype in _WIDE or _of_sum(dtype) is not dtype
    return dtypes.float64 if is_integer else dtype


def _converted(
    visitor: Any, sdfg: SDFG, state: SDFGState, array: Any, wanted: Callable[[Any], Any]
) -> tuple[Any, SDFGState]:
    """An array in the type that is wanted, and the state to go on in."""
    container = sdfg.arrays.get(array) if isinstance(array, str) else None
    if container is None or wanted(container.dtype) is container.dtype:
        return array, state
    wide = astype(visitor, sdfg, state, array, wanted(container.dtype))
    return wide, add_state(visitor, "reduce_converted")


def _reducing(table: str, key: Any, wanted: Callable[[Any], Any]) -> Callable[..., Any]:
    """What DaCe does, on converted elements."""

    def reduce(
        visitor: Any, sdfg: SDFG, state: SDFGState, a: Any, *args: Any, **kwargs: Any
    ) -> Any:
        a, state = _converted(visitor, sdfg, state, a, wanted)
        return original(table, key)(visitor, sdfg, state, a, *args, **kwargs)

    return reduce


def _ufunc_reduce(
    visitor: Any,
    node: Any,
    sdfg: SDFG,
    state: SDFGState,
    name: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """``np.add.reduce`` and ``np.multiply.reduce``; others as at DaCe."""
    operands = list(args)
    if name in ("add", "multiply") and operands and not {"dtype", "out"} & kwargs.keys():
        operands[0], state = _converted(visitor, sdfg, state, operands[0], _of_sum)
    return original("_ufunc_rep", "reduce")(visitor, node, sdfg, state, name, operands, kwargs)


_METHODS = {"sum": _of_sum, "prod": _of_sum, "mean": _of_mean}
REDUCTIONS: Tables = {
    "_rep": {
        name: _reducing("_rep", name, wanted)
        for name, wanted in (("numpy.sum", _of_sum), ("sum", _of_sum), ("numpy.mean", _of_mean))
    },
    "_method_rep": {
        (kind, name): _reducing("_method_rep", (kind, name), wanted)
        for kind in ("Array", "Scalar", "View", "ArrayView")
        for name, wanted in _METHODS.items()
    },
    "_ufunc_rep": {"reduce": _ufunc_reduce},
}
"""What stands for DaCe's own, by its tables."""
