"""Operators on elements, and constants."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from distspmd.frontend.operators.aten_registry import (
    OPERATORS,
    Operator,
    cast,
    combine,
    number,
    operator,
    promoted,
    scaled,
    shape_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import At, Call, Expression, Index, Value
from distspmd.frontend.tensor_ir.kernels import Builder, operator_of, refuse

# name -> (C++, work); operands and result have the promoted type
_ARITHMETIC: dict[str, tuple[str, int]] = {
    "add": ("({0} + {1})", 1),
    "sub": ("({0} - {1})", 1),
    "mul": ("({0} * {1})", 1),
    "maximum": ("(({0} > {1} || {0} != {0}) ? {0} : {1})", 1),
    "minimum": ("(({0} < {1} || {0} != {0}) ? {0} : {1})", 1),
    "pow": ("std::pow({0}, {1})", 20),
    "fmod": ("std::fmod({0}, {1})", 10),
    "atan2": ("std::atan2({0}, {1})", 20),
    "bitwise_and": ("({0} & {1})", 1),
    "bitwise_or": ("({0} | {1})", 1),
    "bitwise_xor": ("({0} ^ {1})", 1),
    "logical_and": ("({0} && {1})", 1),
    "logical_or": ("({0} || {1})", 1),
    "logical_xor": ("({0} != {1})", 1),
    "neg": ("(-{0})", 1),
    "abs": ("std::abs({0})", 1),
    "exp": ("std::exp({0})", 15),
    "exp2": ("std::exp2({0})", 15),
    "expm1": ("std::expm1({0})", 15),
    "log": ("std::log({0})", 15),
    "log1p": ("std::log1p({0})", 15),
    "log2": ("std::log2({0})", 15),
    "sqrt": ("std::sqrt({0})", 5),
    "rsqrt": ("(1 / std::sqrt({0}))", 8),
    "reciprocal": ("(1 / {0})", 4),
    "tanh": ("std::tanh({0})", 20),
    "erf": ("std::erf({0})", 20),
    "sin": ("std::sin({0})", 15),
    "cos": ("std::cos({0})", 15),
    "tan": ("std::tan({0})", 20),
    "asin": ("std::asin({0})", 20),
    "acos": ("std::acos({0})", 20),
    "atan": ("std::atan({0})", 20),
    "sinh": ("std::sinh({0})", 20),
    "cosh": ("std::cosh({0})", 20),
    "asinh": ("std::asinh({0})", 20),
    "acosh": ("std::acosh({0})", 20),
    "atanh": ("std::atanh({0})", 20),
    "floor": ("std::floor({0})", 2),
    "ceil": ("std::ceil({0})", 2),
    "trunc": ("std::trunc({0})", 2),
    "sigmoid": ("(1 / (1 + std::exp(-{0})))", 20),
    "relu": ("({0} < 0 ? 0 * {0} : {0})", 1),
    "sign": ("(({0} > 0) - ({0} < 0))", 2),
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_IDENTITIES = (
    *("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "_local_scalar_dense"),
    *("_conj", "positive", "detach_"),
)


def _arithmetic(text: str, work: int) -> Operator:
    def build(
        builder: Builder, node: fx.Node, *operands: Any, alpha: Any = None, **_: Any
    ) -> Value:
        dtype = node.meta["val"].dtype
        if alpha is not None and alpha != 1:
            operands = (operands[0], scaled(operands[1], alpha, dtype))
        return combine(builder, node, operands, lambda *e: Call(text, e, dtype, work), dtype)

    return build


def _comparison(sign: str) -> Operator:
    def build(builder: Builder, node: fx.Node, *operands: Any) -> Value:
        dtype = promoted(operands, node)
        text = f"({{0}} {sign} {{1}})"
        return combine(builder, node, operands, lambda *e: Call(text, e, torch.bool, 1), dtype)

    return build


for _name, (_text, _work) in _ARITHMETIC.items():
    OPERATORS[_name] = _arithmetic(_text, _work)
for _name, _sign in _COMPARISONS.items():
    OPERATORS[_name] = _comparison(_sign)


@operator("div")
def _div(
    builder: Builder, node: fx.Node, *operands: Any, rounding_mode: str | None = None
) -> Value:
    dtype = node.meta["val"].dtype

    def build(x: Expression, y: Expression) -> Expression:
        if rounding_mode is not None and not dtype.is_floating_point:
            return _floor_div(x, y) if rounding_mode == "floor" else Call(_OVER, (x, y), dtype, 4)
        quotient = Call(_OVER, (x, y), dtype, 4)
        if rounding_mode is None:
            return quotient
        return Call(f"std::{rounding_mode}({{0}})", (quotient,), dtype, 2)

    return combine(builder, node, operands, build, dtype)


_OVER = "({0} / {1})"


def _floor_div(x: Expression, y: Expression) -> Expression:
    rest = _remainder_of(x, y)
    return Call("(({0} - {1}) / {2})", (x, rest, y), x.dtype, 5)


def _remainder_of(x: Expression, y: Expression) -> Expression:
    """What is left of a division that rounds down; it has the sign of the divisor."""
    modulo = "std::fmod({0}, {1})" if x.dtype.is_floating_point else "({0} % {1})"
    rest = Call(modulo, (x, y), x.dtype, 10)
    text = "(({0} != 0 && ({0} < 0) != ({1} < 0)) ? {0} + {1} : {0})"
    return Call(text, (rest, y), x.dtype, 3)


@operator("bitwise_left_shift", "__lshift__", "bitwise_right_shift", "__rshift__")
def _shift(builder: Builder, node: fx.Node, *operands: Any) -> Value:
    """Shifts by less than nothing, or by all bits, leave no bit but the sign, as in torch."""
    dtype = node.meta["val"].dtype
    bits = torch.iinfo(dtype).bits
    outside = f"({{1}} < 0 || {{1}} >= {bits})"
    text = f"({outside} ? 0 : {{0}} << {{1}})"
    if operator_of(node) in ("bitwise_right_shift", "__rshift__"):
        text = f"({{0}} >> ({outside} ? {max(bits - 1, 31)} : {{1}}))"  # of an int at least
    return combine(builder, node, operands, lambda *e: Call(text, e, dtype, 3), dtype)


@operator("remainder")
def _remainder(builder: Builder, node: fx.Node, *operands: Any) -> Value:
    return combine(builder, node, operands, _remainder_of, node.meta["val"].dtype)


@operator("floor_divide")
def _floor_divide(builder: Builder, node: fx.Node, *operands: Any) -> Value:
    found: Value = _div(builder, node, *operands, rounding_mode="floor")
    return found


@operator("round")
def _round(builder: Builder, node: fx.Node, x: Value, decimals: int = 0) -> Value:
    if decimals:
        raise refuse(node, ["round to whole numbers"])
    dtype = x.dtype
    return combine(builder, node, [x], lambda e: Call("std::nearbyint({0})", (e,), dtype, 2), dtype)


@operator("isnan")
def _isnan(builder: Builder, node: fx.Node, x: Value) -> Value:
    test = lambda e: Call("({0} != {0})", (e,), torch.bool, 1)  # noqa: E731
    return combine(builder, node, [x], test, x.dtype)


@operator("logical_not", "bitwise_not")
def _not(builder: Builder, node: fx.Node, x: Value) -> Value:
    sign = "!" if node.meta["val"].dtype == torch.bool else "~"
    dtype = x.dtype
    return combine(
        builder, node, [x], lambda e: Call(f"({sign}{{0}})", (e,), node.meta["val"].dtype, 1), dtype
    )


@operator(*_IDENTITIES)
def _identity(builder: Builder, node: fx.Node, x: Value, **_: Any) -> Value:
    return x


@operator("copy")
def _copy(builder: Builder, node: fx.Node, x: Value, y: Value, *_: Any) -> Value:
    return combine(builder, node, [y], lambda e: e, node.meta["val"].dtype)


@operator("_to_copy", "convert_element_type")
def _convert(builder: Builder, node: fx.Node, x: Value, *_: Any, **__: Any) -> Value:
    return combine(builder, node, [x], lambda e: e, node.meta["val"].dtype)


@operator("where")
def _where(builder: Builder, node: fx.Node, condition: Value, x: Any, y: Any) -> Value:
    dtype = node.meta["val"].dtype
    shape = shape_of(node)
    chosen = [builder.spread(o, shape, node) if isinstance(o, Value) else o for o in (x, y)]
    tensors = [builder.spread(condition, shape, node), *(o for o in chosen if isinstance(o, Value))]

    def whole(c: Expression, *loaded: Expression) -> Expression:
        waiting = iter(loaded)
        branches = (
            cast(next(waiting), dtype) if isinstance(o, Value) else number(o, dtype) for o in chosen
        )
        return Call("({0} ? {1} : {2})", (c, *branches), dtype, 1)

    return v.pointwise(whole, tensors, shape)


@operator("clamp")
def _clamp(builder: Builder, node: fx.Node, x: Value, low: Any = None, high: Any = None) -> Value:
    operands = [o for o in (x, low, high) if o is not None]
    dtype = node.meta["val"].dtype

    def build(e: Expression, *ends: Expression) -> Expression:
        waiting = iter(ends)
        if low is not None:
            e = Call("({0} < {1} ? {1} : {0})", (e, next(waiting)), dtype, 1)
        if high is not None:
            e = Call("({0} > {1} ? {1} : {0})", (e, next(waiting)), dtype, 1)
        return e

    return combine(builder, node, operands, build, dtype)


@operator("full", "full_like", "new_full", "scalar_tensor", "zeros", "ones", "new_zeros")
@operator("new_empty_strided", "empty_strided", "empty_permuted")
@operator("new_ones", "empty", "empty_like", "new_empty", "zeros_like", "ones_like", "fill")
def _full(builder: Builder, node: fx.Node, *args: Any, **_: Any) -> Value:
    name = operator_of(node)
    filled = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "fill": 1}
    value = args[filled[name]] if name in filled else int("one" in name)
    dtype, shape = node.meta["val"].dtype, shape_of(node)
    if isinstance(value, Value):
        return combine(builder, node, [value], lambda e: e, dtype)
    return Value(v.fresh(shape), number(value, dtype), shape)


@operator("arange")
def _arange(builder: Builder, node: fx.Node, *args: Any, **_: Any) -> Value:
    start, _end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    shape, dtype = shape_of(node), node.meta["val"].dtype
    dims = v.fresh(shape)
    at = cast(At(Index.of(dims[0])), dtype)
    if (start, step) != (0, 1):
        terms = (at, number(start, dtype), number(step, dtype))
        at = Call("({1} + {2} * {0})", terms, dtype, 2)
    return Value(dims, at, shape)
