"""Universal functions of exponents, bits and neighbours, written out; and Bessel's first one."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import powers
from distspmd.frontend.from_numpy.library.bessel import I0_LARGE, I0_SMALL, chebyshev
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.written_out import written_out


@written_out(np.ldexp)
def _ldexp(x1: object, x2: Any) -> Any:
    if np.asarray(x1).dtype.kind != "f":
        raise NotImplementedError("np.ldexp of whole numbers, which may be of the type float16")
    half = np.clip(x2, -2200, 2200) // 2
    rest = np.clip(x2, -2200, 2200) - half
    kind = np.result_type(np.asarray(x1).dtype, np.float32)
    one = np.exp2(half * 1.0).astype(kind)
    return np.asarray(x1).astype(kind) * one * np.exp2(rest * 1.0).astype(kind)


@written_out(np.frexp)
def _frexp(x: object) -> Any:
    kind = np.result_type(np.asarray(x).dtype, np.float32)
    value = np.asarray(x).astype(np.float64)
    size = np.abs(value)
    plain = np.isfinite(value) & (size > 0)
    tiny = plain & (size < 1e-300)
    inside = np.where(plain, size, 1.0) * np.where(tiny, 2.0**200, 1.0)
    power = np.floor(np.log2(inside)) + 1.0
    part = inside * np.exp2(-np.floor(power / 2.0)) * np.exp2(np.floor(power / 2.0) - power)
    power = power + np.where(part >= 1.0, 1.0, np.where(part < 0.5, -1.0, 0.0))
    part = part * np.where(part >= 1.0, 0.5, np.where(part < 0.5, 2.0, 1.0))
    power = np.where(plain, power - np.where(tiny, 200.0, 0.0), 0.0)
    return np.where(plain, np.copysign(part, value), value).astype(kind), power.astype(np.int32)


@written_out(np.modf)
def _modf(x: Any) -> Any:
    whole = np.trunc(x)
    rest = np.where(np.isinf(whole), 0.0, x - whole).astype(whole.dtype)
    return np.copysign(rest, whole), whole


@written_out(np.spacing)
def _spacing(x: Any) -> Any:
    value = np.nextafter(np.abs(x), np.asarray(np.inf).astype(np.abs(x).dtype)) - np.abs(x)
    return np.copysign(value, x)


@written_out(np.bitwise_count)
def _bitwise_count(x: Any) -> Any:
    bits = np.abs(x).astype(np.uint64)
    one, two, four = np.uint64(1), np.uint64(2), np.uint64(4)
    bits = bits - ((bits >> one) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> two) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> four)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((bits * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint8)


@written_out(np.matvec)
def _matvec(x1: Any, x2: Any) -> Any:
    return np.matmul(x1, x2[..., np.newaxis])[..., 0]


@written_out(np.vecmat)
def _vecmat(x1: Any, x2: Any) -> Any:
    return np.matmul(np.conj(x1)[..., np.newaxis, :], x2)[..., 0, :]


@written_out(np.i0)
def _i0(x: object) -> Any:
    value = np.abs(np.asarray(x) + 0.0)
    near = np.minimum(value, 8.0)
    far = np.maximum(value, 8.0)
    small = np.exp(near) * chebyshev(near / 2.0 - 2.0, I0_SMALL)
    large = np.exp(far) * chebyshev(32.0 / far - 2.0, I0_LARGE) / np.sqrt(far)
    return np.where(value <= 8.0, small, large)


@function(builtins.pow)
def _pow(run: Context, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return run.binary(ast.Pow(), base, exp)
    numbers = {"base": base, "exponent": exp, "modulus": mod}
    for value in numbers.values():
        is_whole = isinstance(value, int | sympy.Expr) or (
            isinstance(value, Tensor) and value.ndim == 0 and value.dtype.kind in "iub"
        )
        if not is_whole:
            run.tracer.refuse(
                f"TypeError: pow() with a third argument takes integers, not {told(value)}"
            )
    if all(isinstance(value, int) for value in numbers.values()):
        try:
            return pow(base, exp, mod)
        except ValueError as problem:
            run.tracer.refuse(f"ValueError: {problem}")
    return run.run_function(powers.power, numbers)
