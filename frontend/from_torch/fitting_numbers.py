"""Numbers that operators write into tensors of 16 bits, which torch refuses where they do not fit.

On tensors without data torch does not look at them, and what does not fit would become infinite,
for programs compute such tensors in single precision. Of other types the operators themselves know
(:func:`distspmd.frontend.operators.aten_registry.fitting`).
"""

from __future__ import annotations

import math

import torch
from torch import fx

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.operators.aten_registry import HALVES

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
        if name not in _CONVERTS or getattr(made, "dtype", None) not in HALVES:
            continue
        largest = torch.finfo(made.dtype).max
        for parameter, value in zip(node.target._schema.arguments, node.args, strict=False):
            is_number = "number" in str(parameter.type) and isinstance(value, int | float)
            if is_number and math.isfinite(value) and abs(value) > largest:
                where = node.meta.get("custom", {}).get("path") or "of the step itself"
                raise UnsupportedProgram(
                    f"{name} in the module {where!r} writes {value:g} into a tensor of "
                    f"{made.dtype}, whose numbers end at {largest:g}; torch refuses "
                    "that, too. Write torch.finfo(x.dtype).min, or float('-inf')."
                )
