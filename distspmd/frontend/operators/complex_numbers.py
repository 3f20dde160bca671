"""Complex numbers: their parts, and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.expressions.operations import DType, real_part
from distspmd.frontend.operators.aten_registry import (
    INT64,
    combine,
    number,
    operator,
    shape_of,
    type_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder
from distspmd.frontend.tensor_ir.lines import run_on_lines


def _mapped(value: Value, build: Any) -> Value:
    return Value(value.dims, build(value.expression), value.shape)


@operator("_conj", "conj_physical", "_conj_physical")
def _conjugate(builder: Builder, node: fx.Node, x: Value | complex) -> Value | complex:
    if not isinstance(x, Value):  # a number of Python
        return x.conjugate()
    return _mapped(x, lambda e: apply("conjugate", e)) if x.dtype.kind == "c" else x


@operator("resolve_conj", "resolve_neg", "_neg_view")
def _resolved(builder: Builder, node: fx.Node, x: Value) -> Value:
    """What was a view of a conjugate has been computed here."""
    if "neg_view" in str(node.target):
        return _mapped(x, lambda e: apply("negative", e))
    return x


@operator("abs")
def _absolute(builder: Builder, node: fx.Node, x: Value) -> Value:
    dtype = type_of(node)
    if x.dtype.kind == "b":
        return x
    return _mapped(x, lambda e: apply("absolute", e, dtype=dtype))


@operator("sgn")
def _direction(builder: Builder, node: fx.Node, x: Value) -> Value:
    """A complex number of length 1, or zero; the sign of a real one."""
    dtype = type_of(node)
    if dtype.kind != "c":
        return _mapped(x, lambda e: apply("sign", e, dtype=dtype))

    def build(e: Expression) -> Expression:
        length = cast(apply("absolute", e, dtype=real_part([dtype])), dtype)
        nothing = number(0, dtype)
        quotient = apply("divide", e, length, dtype=dtype)
        return apply("where", apply("equal", e, nothing), nothing, quotient, dtype=dtype)

    return _mapped(builder.stored(x, node), build)


@operator("angle")
def _angle(builder: Builder, node: fx.Node, x: Value) -> Value:
    dtype = type_of(node)

    def build(e: Expression) -> Expression:
        if e.dtype.kind == "c":
            return apply("arctan2", apply("imag", e), apply("real", e), dtype=dtype)
        e = cast(e, dtype)
        turned = apply("less", e, number(0, dtype))
        plain = apply("where", turned, number(math.pi, dtype), number(0, dtype), dtype=dtype)
        return apply("where", apply("isnan", e), e, plain, dtype=dtype)

    return _mapped(x, build)


@operator("view_as_real", "view_as_real_copy", "_view_as_real")
def _as_real(builder: Builder, node: fx.Node, x: Value) -> Value:
    """Both parts along a last dimension."""
    (part,) = v.new_variables([2])
    is_real = apply("equal", cast(at(Index.of(part)), INT64), number(0, INT64))
    parts = apply("real", x.expression), apply("imag", x.expression)
    return Value((*x.dims, part), apply("where", is_real, *parts), (*x.shape, 2))


@operator("view_as_complex", "view_as_complex_copy")
def _as_complex(builder: Builder, node: fx.Node, x: Value) -> Value:
    x = builder.stored(x, node)
    parts = []
    for place in range(2):
        by: dict[Variable, Index] = dict.fromkeys(x.dim(len(x.shape) - 1), Index((), place))
        parts.append(v.substitute_indices(x.expression, by))
    return Value(x.dims[:-1], apply("from_parts", *parts), x.shape[:-1])


@operator("complex")
def _complex(builder: Builder, node: fx.Node, real: Value, imaginary: Value) -> Value:
    part = real_part([type_of(node)])
    return combine(builder, node, [real, imaginary], lambda a, b: apply("from_parts", a, b), part)


@operator("polar")
def _polar(builder: Builder, node: fx.Node, length: Value, angle: Value) -> Value:
    part = real_part([type_of(node)])

    def build(r: Expression, phi: Expression) -> Expression:
        x, y = (apply("multiply", r, apply(name, phi)) for name in ("cos", "sin"))
        return apply("from_parts", x, y)

    return combine(builder, node, [length, angle], build, part)


# -- Fourier transforms ---------------------------------------------------------------------------


def _scale(normalization: int, lengths: Sequence[int]) -> str:
    """The factor of a transform, in C++, of torch's number of its norm."""
    count = math.prod(lengths)
    return {0: "1.0", 1: f"1 / std::sqrt(double({count}))", 2: f"1 / double({count})"}[
        normalization
    ]


def _transformed(
    builder: Builder,
    node: fx.Node,
    x: Value,
    dims: Sequence[int],
    scale: str,
    forward: bool,
    dtype: DType,
) -> Value:
    """Complex numbers transformed along dimensions one after the other, each of which is whole."""
    x = _mapped(x, lambda e: cast(e, dtype))
    for d in dims:
        length = x.shape[d]
        code = (
            f"distspmd::fourier::complex_to_complex(_lines, _line0, {length}, _result0, {length}, "
            f"{str(not forward).lower()}, {scale});"
        )
        (x,) = run_on_lines(builder, node, [x], d, [(length, dtype)], code)
        scale = "1.0"
    return x


@operator("_fft_c2c")
def _complex_transform(
    builder: Builder, node: fx.Node, x: Value, dims: Sequence[int], norm: int, forward: bool
) -> Value:
    dims = [d % len(x.shape) for d in dims]
    scale = _scale(norm, [x.shape[d] for d in dims])
    return _transformed(builder, node, x, dims, scale, forward, type_of(node))


@operator("_fft_r2c")
def _real_transform(
    builder: Builder, node: fx.Node, x: Value, dims: Sequence[int], norm: int, half: bool
) -> Value:
    """Of real numbers; of what belongs together as conjugates one half, if that is wanted."""
    dtype = type_of(node)
    dims = [d % len(x.shape) for d in dims]
    scale = _scale(norm, [x.shape[d] for d in dims])
    if not half:
        return _transformed(builder, node, x, dims, scale, True, dtype)
    *others, last = dims
    length = x.shape[last]
    code = (
        f"distspmd::fourier::real_to_complex(_lines, _line0, {length}, _result0, {length}, "
        f"{scale});"
    )
    (found,) = run_on_lines(builder, node, [x], last, [(length // 2 + 1, dtype)], code)
    return _transformed(builder, node, found, others, "1.0", True, dtype)


@operator("_fft_c2r")
def _to_real(
    builder: Builder, node: fx.Node, x: Value, dims: Sequence[int], norm: int, length: int
) -> Value:
    """Real numbers of the half of what belongs together as conjugates."""
    dtype = type_of(node)
    *others, last = (d % len(x.shape) for d in dims)
    scale = _scale(norm, [shape_of(node)[d] for d in (*others, last)])
    x = _transformed(builder, node, x, others, "1.0", False, x.dtype)
    many = x.shape[last]
    code = (
        f"distspmd::fourier::complex_to_real(_lines, _line0, {many}, _result0, {length}, {scale});"
    )
    (found,) = run_on_lines(builder, node, [x], last, [(length, dtype)], code)
    return found
