"""Comparisons as NumPy makes them: exact between signed and unsigned integers, and any of Python's.

C++ would take a negative number for a large one beside an unsigned number of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, number

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
COMPARISONS = frozenset(_MIRRORED)
"""The names of the functions."""


def comparison(name: str) -> Callable[[Expression, Expression], Expression]:
    """A comparison; complex numbers are compared by their real parts first, as NumPy does."""

    def build(a: Expression, b: Expression) -> Expression:
        kinds = a.dtype.kind + b.dtype.kind
        if kinds == "iu" and b.dtype.itemsize == 8:
            return _of_signs(name, a, b)
        if kinds == "ui" and a.dtype.itemsize == 8:
            return _of_signs(_MIRRORED[name], b, a)
        if "c" in kinds and name not in ("equal", "not_equal"):
            return _of_complex(name, a, b)
        return apply(name, a, b)

    return build


def _of_signs(name: str, signed: Expression, unsigned: Expression) -> Expression:
    """A number that may be negative, compared with one of 64 bits that may not."""
    found = apply(name, cast(signed, unsigned.dtype), unsigned)
    is_negative = apply("less", signed, number(0, signed.dtype))
    if name in ("less", "less_equal", "not_equal"):
        return apply("logical_or", is_negative, found)
    return apply("logical_and", apply("logical_not", is_negative), found)


def _of_complex(name: str, a: Expression, b: Expression) -> Expression:
    strict = {"less_equal": "less", "greater_equal": "greater"}.get(name, name)
    real = np.empty(0, a.dtype).real.dtype
    reals, imaginary = ([apply(p, x, dtype=real) for x in (a, b)] for p in ("real", "imag"))
    apart = apply(strict, *reals)
    for part in imaginary:
        is_nan = apply("not_equal", part, part)
        apart = apply("logical_and", apart, apply("logical_not", is_nan))
    alike = apply("logical_and", apply("equal", *reals), apply(name, *imaginary))
    return apply("logical_or", apart, alike)


def known_comparison(
    ufunc: np.ufunc, operands: Sequence[Any], tensors: Sequence[Tensor]
) -> bool | None:
    """What holds of all elements, compared with a number that their type cannot be; else None."""
    if ufunc.__name__ not in COMPARISONS:
        return None
    for place, value in enumerate(operands):
        other = tensors[1 - place]
        if type(value) is not int or other.weak is not None or other.dtype.kind not in "iu":
            continue
        most = np.iinfo(other.dtype)
        if not most.min <= value <= most.max:
            sign = 1 if value > 0 else -1
            return bool(ufunc(0, sign) if place else ufunc(sign, 0))
    return None


HALF = np.dtype(np.float16)
_NAMES = """
    array asarray asanyarray ascontiguousarray copy astype view zeros_like ones_like empty_like
    full_like full reshape ravel flatten transpose swapaxes moveaxis flip fliplr flipud rot90 roll
    squeeze expand_dims concatenate concat stack vstack hstack dstack column_stack split
    array_split tile repeat broadcast_to atleast_1d atleast_2d atleast_3d take diagonal diag
    triu tril meshgrid shape ndim size len float int bool item tolist fill where abs
    sum mean max min amax amin argmax argmin any all prod std var dot matmul inner outer sort
    argsort clip diff nonzero count_nonzero cumsum print format str repr range list tuple
    enumerate zip isinstance type result_type dtype real imag round around array_equal
"""
_COVERED = frozenset(_NAMES.split())


def refuse_uncovered(tracer: Tracer, name: Any, arguments: Iterable[Any]) -> None:
    """Refuse a function of numbers of 16 bits that has no code for them.

    Raises:
        Refusal: the function is none of those that move, compare, add up or multiply.
    """
    if str(name) not in _COVERED and any(map(_has_halves, arguments)):
        tracer.refuse(f"{name} of float16 is not covered; convert before: x.astype(np.float32)")


def _has_halves(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_halves, value))
    return isinstance(value, Tensor) and value.dtype == HALF
