"""Operators that take the elements along a dimension in order: scans, sorts, and the k largest."""

from __future__ import annotations

from typing import Any

from torch import fx

from distspmd.expressions.ir import cast
from distspmd.frontend.operators.aten_registry import (
    INT64,
    Operator,
    number,
    operator,
    type_of,
)
from distspmd.frontend.operators.views import strided_part
from distspmd.frontend.tensor_ir.indices import Value
from distspmd.frontend.tensor_ir.kernels import Builder
from distspmd.frontend.tensor_ir.lines import run_on_lines

_SCANS = {
    "cumsum": "a + b",
    "cumprod": "a * b",
    "logcumsumexp": "a == b && std::isinf(a) ? a "
    ": (a < b ? b : a) + std::log1p(std::exp(-std::abs(a - b)))",
}
"""What a scan does with what it has and the next element, in C++."""


def _scan(code: str) -> Operator:
    def build(builder: Builder, node: fx.Node, x: Value, dim: int, **_: Any) -> Value:
        dtype = type_of(node)
        x = Value(x.dims, cast(x.expression, dtype), x.shape)
        if not x.shape:
            return x
        dim %= len(x.shape)
        length = x.shape[dim]
        scan = (
            f"distspmd::lines::scan(_line0, _result0, {length}, "
            f"[](auto a, auto b) {{ return {code}; }});"
        )
        (found,) = run_on_lines(builder, node, [x], dim, [(length, dtype)], scan)
        return found

    return build


for _name, _code in _SCANS.items():
    operator(_name)(_scan(_code))


def _with_places(
    builder: Builder, node: fx.Node, x: Value, dim: int, function: str, last: str
) -> list[Value]:
    """Elements and their places, by a function of lines with one argument behind the length."""
    if not x.shape:
        return [x, Value((), number(0, INT64), ())]
    dim %= len(x.shape)
    length = x.shape[dim]
    code = f"distspmd::lines::{function}(_line0, _result0, _result1, {length}, {last});"
    return run_on_lines(builder, node, [x], dim, [(length, x.dtype), (length, INT64)], code)


@operator("cummax", "cummin")
def _running_extreme(builder: Builder, node: fx.Node, x: Value, dim: int) -> list[Value]:
    sign = "<" if "cummin" in str(node.target) else ">"
    not_worse = f"[](auto a, auto b) {{ return a {sign}= b; }}"
    return _with_places(builder, node, x, dim, "running", not_worse)


@operator("sort")
def _sort(
    builder: Builder,
    node: fx.Node,
    x: Value,
    *args: Any,
    dim: int = -1,
    descending: bool = False,
    stable: bool | None = None,
) -> list[Value]:
    """The elements in order, equal ones in theirs, and their places; NaN is the largest."""
    if len(node.target._schema.arguments) == 4 and args:  # type: ignore[union-attr]
        args = args[1:]  # whether it is stable
    given = dict(zip(("dim", "descending"), args, strict=False))
    dim, descending = given.get("dim", dim), given.get("descending", descending)
    return _ordered(builder, node, x, dim, bool(descending))


def _ordered(builder: Builder, node: fx.Node, x: Value, dim: int, descending: bool) -> list[Value]:
    return _with_places(builder, node, x, dim, "in_order", str(descending).lower())


@operator("topk")
def _topk(
    builder: Builder,
    node: fx.Node,
    x: Value,
    k: int,
    dim: int = -1,
    largest: bool = True,
    in_order: bool = True,
) -> list[Value]:
    if not x.shape:
        return _ordered(builder, node, x, dim, largest)
    dim %= len(x.shape)
    return [
        strided_part(found, dim, 0, k, grouped=False)
        for found in _ordered(builder, node, x, dim, largest)
    ]


@operator("kthvalue")
def _kthvalue(
    builder: Builder, node: fx.Node, x: Value, k: int, dim: int = -1, keep: bool = False
) -> list[Value]:
    return _one_in_order(builder, node, x, k - 1, dim, keep)


def _one_in_order(
    builder: Builder, node: fx.Node, x: Value, place: int, dim: int, keep: bool
) -> list[Value]:
    found = _ordered(builder, node, x, dim, False)
    if not x.shape:
        return found
    dim %= len(x.shape)
    parts = [strided_part(part, dim, place, 1, grouped=False) for part in found]
    if keep:
        return parts
    left = [d for d in range(len(x.shape)) if d != dim]
    return [
        Value(tuple(p.dims[d] for d in left), p.expression, tuple(p.shape[d] for d in left))
        for p in parts
    ]
