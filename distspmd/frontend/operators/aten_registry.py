"""The table of operators of ATen, and the parts of which their meanings consist."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils import _pytree as pytree

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Constant, Expression, Load, Operation, apply, cast
from distspmd.expressions.operations import DType
from distspmd.frontend.registered_operators import line_to_register, registered_operators
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable
from distspmd.frontend.tensor_ir.kernels import VIEWS, Builder, called, operator_of, refuse

Operator = Callable[..., Any]
OPERATORS: dict[str, Operator] = {}

TYPES: dict[torch.dtype, DType] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.int64: np.dtype(np.int64),
    torch.int32: np.dtype(np.int32),
    torch.bool: np.dtype(bool),
    torch.int8: np.dtype(np.int8),
    torch.uint8: np.dtype(np.uint8),
    torch.int16: np.dtype(np.int16),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
    torch.bfloat16: np.dtype(np.float32),
    torch.float16: np.dtype(np.float32),
}
"""NumPy's types of torch's, in which programs compute."""
HALVES = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
"""Types whose numbers are stored in 16 bits, and rounded behind each operator."""
INT64, FLOAT64 = TYPES[torch.int64], TYPES[torch.float64]

REGISTERED = "distspmd::registered"
"""The row of the table for all operators that users have registered."""
_IGNORED = ("_record_function_enter_new", "_record_function_exit")


def evaluate(builder: Builder, node: fx.Node) -> Any:
    """The value of a call in a graph, whose arguments have values.

    Raises:
        UnsupportedProgram: the operator is not covered.
    """
    name = operator_of(node)
    if name in _IGNORED:
        return None
    known = OPERATORS.get(REGISTERED if name in registered_operators() else name)
    if known is None:
        raise _unknown(node)
    args, kwargs = fx.node.map_arg(
        (node.args, dict(node.kwargs)), lambda argument: builder.values[argument]
    )
    try:
        found = known(builder, node, *args, **kwargs)
    except v.Crossing:
        found = _of_copies(builder, node, known, args, kwargs)
    if name not in VIEWS:
        found = _rounded(found, node.meta.get("val"))
    return builder.settled(found, node)


def _unknown(node: fx.Node) -> UnsupportedProgram:
    """The error for an operator that is not in the table."""
    target, name = node.target, operator_of(node)
    if name.startswith("auto_functionalized"):
        return UnsupportedProgram(
            f"{called(node, node.args[0])} writes into its arguments. Let it return new tensors: "
            "torch.library.custom_op(..., mutates_args=()), and register what it computes."
        )
    if isinstance(target, torch._ops.OpOverload) and "::" in name:
        parameters = [argument.name for argument in target._schema.arguments]
        return UnsupportedProgram(
            f"{called(node)} is a custom one, of which nothing is known. Say what it computes: "
            f"{line_to_register(name, parameters)}."
        )
    return refuse(node, sorted(n for n in OPERATORS if not n.startswith("_") and "::" not in n))


def _rounded(found: Any, example: Any) -> Any:
    """What an operator gives, rounded where torch rounds it: it computes in float32."""
    if isinstance(found, list | tuple) and isinstance(example, list | tuple):
        pairs = zip(found, example, strict=False)
        return type(found)(_rounded(one, own) for one, own in pairs)
    if not isinstance(found, Value) or getattr(example, "dtype", None) not in HALVES:
        return found
    half = HALVES[example.dtype]
    return loaded(stored_as(found, half), half)


def stored_as(value: Value, half: str) -> Value:
    """Numbers as the 16 bits of a type."""
    inner = value.expression
    if isinstance(inner, Operation) and inner.name == f"{half}_value":
        return Value(value.dims, inner.arguments[0], value.shape)
    bits = apply(f"{half}_bits", cast(inner, TYPES[torch.float32]))
    return Value(value.dims, bits, value.shape)


def loaded(value: Value, half: str) -> Value:
    """The numbers of 16 bits of a type."""
    return Value(value.dims, apply(f"{half}_value", value.expression), value.shape)


def _of_copies(
    builder: Builder, node: fx.Node, known: Operator, args: Any, kwargs: dict[str, Any]
) -> Any:
    """The value of a call on copies of operands, of few elements if that does, or of all."""
    leaves, form = pytree.tree_flatten((args, kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Value)]
    places.sort(key=lambda n: math.prod(leaves[n].shape))
    for chosen in [*([n] for n in places), places]:
        tried = [
            builder.unsplit(leaf, node) if n in chosen else leaf for n, leaf in enumerate(leaves)
        ]
        own, named = pytree.tree_unflatten(tried, form)
        with contextlib.suppress(v.Crossing):
            return known(builder, node, *own, **named)
    raise UnsupportedProgram(
        f"{called(node)} groups dimensions of its operands in ways that do not go together."
    )


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register what operators mean."""

    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def shape_of(node: fx.Node) -> tuple[int, ...]:
    """Shape of a node's value."""
    return tuple(int(n) for n in node.meta["val"].shape)


def element_type(dtype: torch.dtype) -> DType:
    """NumPy's type of one of torch.

    Raises:
        UnsupportedProgram: programs have no such elements.
    """
    if dtype not in TYPES:
        known = ", ".join(str(each).removeprefix("torch.") for each in TYPES)
        raise UnsupportedProgram(f"elements of the type {dtype} are not covered; {known} are.")
    return TYPES[dtype]


def type_of(node: fx.Node) -> DType:
    """Type of a node's value."""
    return element_type(node.meta["val"].dtype)


def number(value: Any, dtype: DType) -> Constant:
    """A number of Python as a constant of a type."""
    if dtype.kind == "b":
        return Constant(bool(value), dtype)
    kinds: dict[str, Any] = {"f": float, "c": complex}
    return Constant(kinds.get(dtype.kind, int)(value), dtype)


def fitting(node: fx.Node, value: Any, dtype: DType) -> Constant:
    """A number of Python that elements get, as a constant; torch refuses those out of range.

    Raises:
        UnsupportedProgram: the type has no such number; infinities and NaN are of each real type.
    """
    if dtype.kind == "f":
        fits = not math.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)
    elif dtype.kind in "iu":
        whole = np.iinfo(dtype)
        least = -int(whole.max) if dtype.kind == "u" else int(whole.min)
        fits = math.isfinite(value) and least <= value <= int(whole.max)
    else:
        fits = True
    if not fits:
        raise UnsupportedProgram(
            f"{called(node)} is given the number {value}, which elements of the type {dtype} do "
            "not have, as torch says where it runs. Give the type: torch.full(.., dtype=...)."
        )
    return number(value, dtype)


def combine(
    builder: Builder,
    node: fx.Node,
    operands: Sequence[Any],
    build: Callable[..., Expression],
    dtype: DType,
) -> Value:
    """A pointwise operator: operands are converted, and broadcast to the node's shape."""
    shape = shape_of(node)
    tensors = [
        builder.spread(operand, shape, node) if isinstance(operand, Value) else operand
        for operand in operands
    ]

    def whole(*loaded: Expression) -> Expression:
        waiting = iter(loaded)
        return build(
            *(
                cast(next(waiting), dtype) if isinstance(t, Value) else number(t, dtype)
                for t in tensors
            )
        )

    return v.pointwise(whole, [t for t in tensors if isinstance(t, Value)], shape)


def comparison_type(operands: Sequence[Any], node: fx.Node) -> DType:
    """The type in which operands are compared: that of torch, of the tensors' fake values."""
    fakes = [
        argument.meta["val"] if isinstance(argument, fx.Node) else argument
        for argument in node.args[: len(operands)]
    ]
    a, b = fakes
    return element_type(torch.result_type(a, b))  # type: ignore[arg-type]


def scale(operand: Any, by: Any, dtype: DType) -> Any:
    """An operand times a number, or times a value of one element."""
    if not isinstance(operand, Value):
        return operand * by
    if not isinstance(by, Value):
        factor: Expression = number(by, dtype)
    else:
        factor = cast(by.expression, dtype)
    scaled = apply("multiply", cast(operand.expression, dtype), factor, dtype=dtype)
    return Value(operand.dims, scaled, operand.shape)


def element_within(
    value: Value, dims: Sequence[tuple[Variable, ...]], moved: Mapping[int, Index]
) -> Expression:
    """An element of a stored value at other indices, which are kept inside of it.

    Args:
        value: a whole one (:meth:`Builder.whole`); its moved dimensions are not split from now on.
        dims: variables of the other dimensions.
        moved: index in each of the other dimensions.
    """
    by: dict[Variable, Index] = {}
    ends: dict[Variable, Index] = {}
    for d, own in enumerate(value.dims):
        if d not in moved and own:
            by |= v.align_groups(dims[d], own)
        elif own:
            variable, *others = value.dim(d)
            if others:
                raise v.Crossing(
                    f"a dimension of {list(value.shape)} that is viewed in groups elsewhere is "
                    "padded, or joined with others of other lengths."
                )
            variable.extent.find().solid = True
            ends[variable] = replace(moved[d], within=value.shape[d])
    found = value.expression
    assert isinstance(found, Load)
    index = [
        ends[i.terms[0][0]] if i.terms and i.terms[0][0] in ends else i.substitute(by)
        for i in found.index
    ]
    return v.element(found.array, index)
