"""Numbers that operators write into tensors of 16 bits, which torch refuses where they do not fit.

On tensors without data torch does not look at them, and what does not fit would become infinite,
for programs compute such tensors in single precision. Of other types the operators themselves know
(:func:`distspmd.frontend.operators.aten_registry.fitting`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx import traceback as fx_traceback

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
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            _check(node.target, node.args, node.meta.get("val"), node.meta)


def checked(
    operator: torch._ops.OpOverload, decomposition: Callable[..., Any]
) -> Callable[..., Any]:
    """A decomposition that looks at the numbers that its operator is given, as above."""
    if _name(operator) not in _CONVERTS:
        return decomposition

    @functools.wraps(decomposition)
    def run(*args: Any, **kwargs: Any) -> Any:
        made = decomposition(*args, **kwargs)
        _check(operator, args, made, fx_traceback.current_meta)
        return made

    return run


def _name(operator: torch._ops.OpOverload) -> str:
    return operator._schema.name.partition("::")[2]


def _check(
    operator: torch._ops.OpOverload, args: Sequence[Any], made: Any, meta: Mapping[str, Any]
) -> None:
    name = _name(operator)
    if name not in _CONVERTS or getattr(made, "dtype", None) not in HALVES:
        return
    largest = torch.finfo(made.dtype).max
    for parameter, value in zip(operator._schema.arguments, args, strict=False):
        is_number = "number" in str(parameter.type) and isinstance(value, int | float)
        if is_number and math.isfinite(value) and abs(value) > largest:
            where = meta.get("custom", {}).get("path") or "of the step itself"
            raise UnsupportedProgram(
                f"{name} in the module {where!r} writes {value:g} into a tensor of "
                f"{made.dtype}, whose numbers end at {largest:g}; torch refuses "
                "that, too. Write torch.finfo(x.dtype).min, or float('-inf')."
            )
