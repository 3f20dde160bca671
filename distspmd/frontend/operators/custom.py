"""Custom operators: those that a user has registered, with a function of NumPy arrays for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import fx
from torch.utils import _pytree as pytree

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.operators.aten_registry import (
    HALVES,
    REGISTERED,
    TYPES,
    element_type,
    operator,
)
from distspmd.frontend.registered_operators import Body, bound_to, read_body
from distspmd.frontend.tensor_ir.functions import call_function
from distspmd.frontend.tensor_ir.indices import Value
from distspmd.frontend.tensor_ir.kernels import Builder, called, operator_of

_BODIES: WeakValueDictionary[str, Body] = WeakValueDictionary()
_LIBRARY = torch.library.Library("distspmd", "DEF")
_LIBRARY.define("body(str key, Tensor[] inputs) -> Tensor[]")


@operator(REGISTERED)
def _registered(builder: Builder, node: fx.Node, *args: Any, **kwargs: Any) -> Any:
    """What a custom operator of torch computes, of which a function is registered."""
    try:
        bound = bound_to(operator_of(node), *_with_defaults(node, args, kwargs))
        leaves, form = pytree.tree_flatten(bound)
        examples = pytree.tree_unflatten(map(example_of, leaves), form)
        body = read_body(operator_of(node), examples)
        check_results(body, node.meta["val"], "the operator itself in torch (register_fake)")
    except UnsupportedProgram as error:
        raise UnsupportedProgram(f"{called(node)}: {error}") from error
    operands = [leaf for leaf in leaves if isinstance(leaf, Value)]
    return called_body(builder, node, body, operands)


def run_body(body: Body, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What a function gives, while its caller, which keeps it, is traced."""
    key = str(id(body))
    _BODIES[key] = body
    found: list[torch.Tensor] = torch.ops.distspmd.body(key, list(inputs))
    return found


@torch.library.register_fake("distspmd::body", lib=_LIBRARY)
def _without_data(key: str, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    types = {dtype: each for each, dtype in reversed(TYPES.items()) if each not in HALVES}
    return [torch.empty(shape, dtype=types[dtype]) for _, shape, dtype in _BODIES[key].results]


@operator("distspmd::body")
def _body(builder: Builder, node: fx.Node, key: str, inputs: Sequence[Value]) -> Any:
    return called_body(builder, node, _BODIES[key], inputs)


def called_body(builder: Builder, node: fx.Node, body: Body, operands: Sequence[Value]) -> Any:
    """The results of a function, in the form that a node's value has."""
    pairs = [*zip(body.inputs, operands, strict=True)]
    found = call_function(builder, node, body.sdfg, pairs, body.results)
    return found[0] if isinstance(node.meta["val"], torch.Tensor) else found


def _with_defaults(
    node: fx.Node, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """All arguments of an operator, those too that a call leaves out."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    by_place, by_name = [*args], dict(kwargs)
    for argument in target._schema.arguments[len(args) :]:
        if argument.name in kwargs:
            continue
        if argument.kwarg_only or len(by_name) > len(kwargs):
            by_name[argument.name] = argument.default_value
        else:
            by_place.append(argument.default_value)
    return by_place, by_name


def example_of(leaf: Any) -> Any:
    """What a function is read for in place of an argument of an operator."""
    if isinstance(leaf, Value | torch.Tensor):
        dtype = leaf.dtype if isinstance(leaf, Value) else element_type(leaf.dtype)
        return np.broadcast_to(np.zeros((), dtype), tuple(leaf.shape))
    return element_type(leaf) if isinstance(leaf, torch.dtype) else leaf


def check_results(body: Body, wanted: Any, who: str) -> None:
    """Whether a function gives what else is known of its results.

    Raises:
        UnsupportedProgram: it does not; the message says both.
    """
    expected = [
        (tuple(map(int, each.shape)), element_type(each.dtype))
        for each in pytree.tree_leaves(wanted)
        if isinstance(each, torch.Tensor)
    ]
    given = [(shape, dtype) for _, shape, dtype in body.results]
    if given != expected:
        raise UnsupportedProgram(
            f"the function that is registered for it returns {_told(given)}, but {who} says "
            f"{_told(expected)}. One of them is wrong."
        )


def _told(results: Sequence[tuple[Sequence[int], np.dtype[Any]]]) -> str:
    return ", ".join(f"{dtype}{[*shape]}" for shape, dtype in results) or "nothing"
