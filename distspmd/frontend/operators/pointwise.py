"""Operators on elements, and constants."""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.operators.aten_registry import (
    OPERATORS,
    Operator,
    combine,
    comparison_type,
    fitting,
    number,
    operator,
    scale,
    shape_of,
    type_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, at
from distspmd.frontend.tensor_ir.kernels import Builder, operator_of, refuse

_ARITHMETIC = {
    **{name: name for name in ("add", "maximum", "minimum", "fmod", "exp", "exp2", "expm1", "log")},
    **{
        name: name
        for name in ("log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "tanh", "erf")
    },
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "floor", "ceil", "trunc")},
    **{
        name: name
        for name in ("sigmoid", "relu", "sign", "erfc", "lgamma", "logical_and", "logical_or")
    },
    **{name: name for name in ("logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")},
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "sub": "subtract",
    "mul": "multiply",
    "neg": "negative",
    "pow": "power",
}
"""Operations by the operators that they are; operands and result have the promoted type."""
_OF_COMPLEX = {
    *("add", "subtract", "multiply", "negative", "power", "exp", "log", "sqrt", "reciprocal"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
}
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_IDENTITIES = (
    *("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "_local_scalar_dense"),
    "copy_strided",
    *("positive", "detach_"),
)


def _arithmetic(name: str) -> Operator:
    def build(
        builder: Builder, node: fx.Node, *operands: Any, alpha: Any = None, **_: Any
    ) -> Value:
        dtype = type_of(node)
        if dtype.kind == "c" and name not in _OF_COMPLEX:
            raise refuse(node, [f"of complex numbers {', '.join(sorted(_OF_COMPLEX))}"])
        if alpha is not None and alpha != 1:
            operands = (operands[0], scale(operands[1], alpha, dtype))
        return combine(builder, node, operands, lambda *e: apply(name, *e, dtype=dtype), dtype)

    return build


def _comparison(name: str) -> Operator:
    def build(builder: Builder, node: fx.Node, *operands: Any) -> Value:
        dtype = comparison_type(operands, node)
        return combine(builder, node, operands, lambda *e: apply(name, *e), dtype)

    return build


for _operator, _name in _ARITHMETIC.items():
    OPERATORS[_operator] = _arithmetic(_name)
for _operator, _name in _COMPARISONS.items():
    OPERATORS[_operator] = _comparison(_name)


@operator("div")
def _div(
    builder: Builder, node: fx.Node, *operands: Any, rounding_mode: str | None = None
) -> Value:
    dtype = type_of(node)

    def build(x: Expression, y: Expression) -> Expression:
        if rounding_mode == "floor" and dtype.kind != "f":
            return _floor_div(x, y)
        quotient = apply("divide", x, y, dtype=dtype)
        if rounding_mode is None or dtype.kind != "f":
            return quotient
        return apply(rounding_mode, quotient)

    return combine(builder, node, operands, build, dtype)


def _floor_div(x: Expression, y: Expression) -> Expression:
    exact = apply("subtract", x, _remainder_of(x, y))
    return apply("divide", exact, y, dtype=x.dtype)


def _remainder_of(x: Expression, y: Expression) -> Expression:
    """What is left of a division that rounds down; it has the sign of the divisor."""
    rest = apply("fmod" if x.dtype.kind == "f" else "modulo", x, y)
    return apply("floored_rest", rest, y)


@operator("bitwise_left_shift", "__lshift__", "bitwise_right_shift", "__rshift__")
def _shift(builder: Builder, node: fx.Node, *operands: Any) -> Value:
    """Shifts by less than nothing, or by all bits, leave no bit but the sign, as in torch."""
    right = operator_of(node) in ("bitwise_right_shift", "__rshift__")
    name, dtype = "right_shift" if right else "left_shift", type_of(node)
    return combine(builder, node, operands, lambda *e: apply(name, *e), dtype)


@operator("remainder")
def _remainder(builder: Builder, node: fx.Node, *operands: Any) -> Value:
    return combine(builder, node, operands, _remainder_of, type_of(node))


@operator("floor_divide")
def _floor_divide(builder: Builder, node: fx.Node, *operands: Any) -> Value:
    found: Value = _div(builder, node, *operands, rounding_mode="floor")
    return found


@operator("round")
def _round(builder: Builder, node: fx.Node, x: Value, decimals: int = 0) -> Value:
    if decimals:
        raise refuse(node, ["round to whole numbers"])
    return combine(builder, node, [x], lambda e: apply("rint", e), x.dtype)


@operator("isnan")
def _isnan(builder: Builder, node: fx.Node, x: Value) -> Value:
    return combine(builder, node, [x], lambda e: apply("isnan", e), x.dtype)


@operator("isinf")
def _isinf(builder: Builder, node: fx.Node, x: Value) -> Value:
    """Beyond all numbers, in either direction; whole numbers never are."""
    if x.dtype.kind != "f":
        return Value(x.dims, number(False, type_of(node)), x.shape)
    size = apply("absolute", x.expression)
    return Value(x.dims, apply("equal", size, number(math.inf, x.dtype)), x.shape)


@operator("logical_not", "bitwise_not")
def _not(builder: Builder, node: fx.Node, x: Value) -> Value:
    dtype = type_of(node)
    name = "logical_not" if dtype.kind == "b" else "invert"
    return combine(builder, node, [x], lambda e: apply(name, e, dtype=dtype), x.dtype)


@operator(*_IDENTITIES)
def _identity(builder: Builder, node: fx.Node, x: Value, *_: Any, **__: Any) -> Value:
    return x


@operator("copy")
def _copy(builder: Builder, node: fx.Node, x: Value, y: Value, *_: Any) -> Value:
    return combine(builder, node, [y], lambda e: e, type_of(node))


@operator("_to_copy", "convert_element_type")
def _convert(builder: Builder, node: fx.Node, x: Value, *_: Any, **__: Any) -> Value:
    return combine(builder, node, [x], lambda e: e, type_of(node))


@operator("where")
def _where(builder: Builder, node: fx.Node, condition: Value, x: Any, y: Any) -> Value:
    dtype = type_of(node)
    shape = shape_of(node)
    chosen = [builder.spread(o, shape, node) if isinstance(o, Value) else o for o in (x, y)]
    tensors = [builder.spread(condition, shape, node), *(o for o in chosen if isinstance(o, Value))]

    def whole(c: Expression, *loaded: Expression) -> Expression:
        waiting = iter(loaded)
        branches = (
            cast(next(waiting), dtype) if isinstance(o, Value) else number(o, dtype) for o in chosen
        )
        return apply("where", c, *branches, dtype=dtype)

    return v.pointwise(whole, tensors, shape)


def _bound(plain: str, thorough: str, bound: Any) -> str:
    """The operation of a bound: a NaN among bounds wins, a plain number is none."""
    return thorough if isinstance(bound, Value) or bound != bound else plain


@operator("clamp")
def _clamp(builder: Builder, node: fx.Node, x: Value, low: Any = None, high: Any = None) -> Value:
    operands = [o for o in (x, low, high) if o is not None]
    dtype = type_of(node)

    def build(e: Expression, *ends: Expression) -> Expression:
        waiting = iter(ends)
        if low is not None:
            e = apply(_bound("at_least", "maximum", low), e, next(waiting))
        if high is not None:
            e = apply(_bound("at_most", "minimum", high), e, next(waiting))
        return e

    return combine(builder, node, operands, build, dtype)


@operator("full", "full_like", "new_full", "scalar_tensor", "zeros", "ones", "new_zeros")
@operator("new_empty_strided", "empty_strided", "empty_permuted")
@operator("new_ones", "empty", "empty_like", "new_empty", "zeros_like", "ones_like", "fill")
def _full(builder: Builder, node: fx.Node, *args: Any, **_: Any) -> Value:
    name = operator_of(node)
    filled = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "fill": 1}
    value = args[filled[name]] if name in filled else int("one" in name)
    dtype, shape = type_of(node), shape_of(node)
    if isinstance(value, Value):
        return combine(builder, node, [value], lambda e: e, dtype)
    return Value(v.new_variables(shape), fitting(node, value, dtype), shape)


@operator("arange")
def _arange(builder: Builder, node: fx.Node, *args: Any, **_: Any) -> Value:
    start, _end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    shape, dtype = shape_of(node), type_of(node)
    dims = v.new_variables(shape)
    place = cast(at(Index.of(dims[0])), dtype)
    if (start, step) != (0, 1):
        place = apply("add", number(start, dtype), number(step, dtype) * place)
    return Value(dims, place, shape)
