"""Numbers that an operator writes into tensors, which torch refuses where they do not fit the type.

On tensors without data torch does not look at them, and what does not fit would become infinite.
"""

from __future__ import annotations

import math

import torch
from torch import fx

from distspmd.errors import UnsupportedProgram

_CONVERTS = frozenset(
    {
        *("masked_fill", "masked_fill_", "fill", "fill_", "full", "full_like", "new_full"),
        *("constant_pad_nd", "clamp", "clamp_", "scatter", "scatter_", "index_fill"),
        *("index_fill_",),
    }
)
"""Operators that convert a number to the type of the tensor; others compute with it."""


def check_numbers(graph: fx.Graph) -> None:
    """See to it that numbers fit the tensors into which operators write them.

    Raises:
        UnsupportedProgram: one that does not, with the operator and the path of the module.
    """
    for node in graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        name = node.target._schema.name.partition("::")[2]
        made = node.meta.get("val")
        if name not in _CONVERTS or not isinstance(made, torch.Tensor):
            continue
        for parameter, value in zip(node.target._schema.arguments, node.args, strict=False):
            is_number = "number" in str(parameter.type) and isinstance(value, int | float)
            if is_number and not _fits(value, made.dtype):
                where = node.meta.get("custom", {}).get("path") or "of the step itself"
                raise UnsupportedProgram(
                    f"{name} in the module {where!r} writes {value:g} into a tensor of "
                    f"{made.dtype}, whose numbers end at {_largest(made.dtype):g}; torch refuses "
                    "that, too. Write torch.finfo(x.dtype).min, or float('-inf')."
                )


def _largest(dtype: torch.dtype) -> float:
    return (torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype).max


def _fits(value: float, dtype: torch.dtype) -> bool:
    """Whether torch converts a number to a type; infinite ones it does, and wraps negative ones."""
    if dtype == torch.bool or dtype.is_complex or not math.isfinite(value):
        return True
    if not dtype.is_floating_point and isinstance(value, float):
        return True  # of which it takes the whole part
    largest = _largest(dtype)
    return -largest - (not dtype.is_floating_point) <= value <= largest
