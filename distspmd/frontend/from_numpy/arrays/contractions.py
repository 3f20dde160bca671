"""Expressions as contractions: the letters of indices, and the windows that they run over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from string import ascii_letters
from typing import Any

import numpy as np
import sympy
from dace import SDFG, SDFGState, dtypes

from distspmd.dace_compat.numpy_parser import Tables, add_state, astype, original
from distspmd.expressions.ir import Argument, Expression, IndexValue, Load, Operation, parts
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.elements import substitute
from distspmd.frontend.from_numpy.arrays.lengths import neutral_outside
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, make_view, number
from distspmd.frontend.tensor_ir.statements import Length, Window
from distspmd.frontend.tensor_ir.whole_numbers import subtract

LETTER = "__letter_"
"""How symbols begin whose last character is the letter that they are to have."""


def letters_of(names: Sequence[str]) -> dict[str, str]:
    """Letters of symbols: those that they ask for, or free ones."""
    found = {n: n[-1] for n in names if n.startswith(LETTER)}
    free = iter(x for x in ascii_letters if x not in found.values())
    return {n: found.get(n) or next(free) for n in names}


class NoWindow(Exception):
    """A load is no window of a container: it is stored first."""


def window_of(
    load: Load,
    lengths: Mapping[str, Length],
    letters: Mapping[str, str],
    counted: Collection[str] = (),
) -> tuple[str, Window]:
    """The letters of a load, and the window that they run over.

    Args:
        load: at indices.
        lengths: of the indices, by name.
        letters: of the indices, by name.
        counted: indices whose values are computed with: a node counts them in the whole container,
            so their windows begin where it does.

    Raises:
        NoWindow: the elements are no window, or one that begins elsewhere.
    """
    term, first, extents = "", [], []
    for index in load.index:
        if not isinstance(index, int | sympy.Basic):
            raise NoWindow
        own = [s for s in sympy.sympify(index).free_symbols if s.name in lengths]
        if not own:
            term += "()"
            first.append(index)
            extents.append(1)
            continue
        if len(own) > 1:
            raise NoWindow
        (variable,) = own
        rest = subtract(index, variable)
        if isinstance(rest, sympy.Basic) and variable in rest.free_symbols:
            raise NoWindow
        if letters[variable.name] in term or (variable.name in counted and rest != 0):
            raise NoWindow
        term += letters[variable.name]
        first.append(rest)
        extents.append(lengths[variable.name])
    return term, Window(load.array, tuple(first), tuple(extents))


def counted_in(expression: Expression) -> set[str]:
    """Indices whose values an expression computes with."""
    return {v for p in parts(expression) if isinstance(p, IndexValue) for v, _ in p.terms}


def is_product(expression: Expression, count: int) -> bool:
    """Whether a contraction's expression is the product of its two operands."""
    return (
        count == 2
        and isinstance(expression, Operation)
        and expression.name == "multiply"
        and all(
            isinstance(a, Argument) and a.dtype == expression.dtype for a in expression.arguments
        )
        and expression.arguments[0] != expression.arguments[1]
    )


def neutral_element(operation: str, dtype: DType) -> Any:
    """The number that changes no sum, maximum or minimum of a type."""
    if operation == "sum":
        return 0
    if dtype.kind == "f":
        return -np.inf if operation == "max" else np.inf
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    if info is None:
        return operation == "min"
    return info.min if operation == "max" else info.max


def contract_known(
    tracer: Any,
    kept: Sequence[tuple[sympy.Symbol, Length]],
    gone: Sequence[tuple[sympy.Symbol, Length]],
    expression: Expression,
    operation: str,
    name: str | None,
) -> View:
    """Reduce over lengths that data decide, neutral beyond them; or over no elements."""
    every = (*kept, *gone)
    by = [s for s, _ in every]
    neutral = number(neutral_element(operation, expression.dtype), expression.dtype)
    if any(n == 0 for _, n in gone):
        nothing = Tensor(tuple(n for _, n in kept), expression.dtype, lambda _: neutral)
        stored: View = tracer.stored_anew(nothing, name or tracer.target or "reduced")
        return stored
    tensor = Tensor(
        tuple(n for _, n in every),
        expression.dtype,
        lambda index: substitute(expression, dict(zip(by, index, strict=True))),
    )
    room = [tracer.capacity(n) for _, n in every]
    padded = tracer.stored_anew(
        neutral_outside(tensor, room, lambda _: neutral, tracer.known.bounds), "operand"
    )
    known = list(zip(by, room, strict=True))
    found = tracer.contract(
        known[: len(kept)], known[len(kept) :], padded.element(tuple(by)), operation, name
    )
    return make_view(found.container, [n for _, n in kept], found.place)


_SIGNED = (dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32)
_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32)
_WIDE = {dtypes.int64, dtypes.uint64}


def _of_sum(dtype: object) -> Any:
    """The type that NumPy adds and multiplies elements of a type in."""
    if dtype in _SIGNED:
        return dtypes.int64
    return dtypes.uint64 if dtype in _UNSIGNED else dtype


def _of_mean(dtype: object) -> Any:
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


def _reducing(table: str, key: object, wanted: Callable[[Any], Any]) -> Callable[..., Any]:
    """What DaCe does, on converted elements."""

    def reduce(
        visitor: object, sdfg: SDFG, state: SDFGState, a: object, *args: object, **kwargs: object
    ) -> Any:
        a, state = _converted(visitor, sdfg, state, a, wanted)
        return original(table, key)(visitor, sdfg, state, a, *args, **kwargs)

    return reduce


def _ufunc_reduce(
    visitor: object,
    node: object,
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
