"""Functions of torch that do the same with each tensor of a list, as calls for each tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

PREFIX = "_foreach_"


def for_each(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What ``torch._foreach_add(a, b, alpha=2)`` and its like give."""
    name = func.__name__.removeprefix(PREFIX)
    length = len(next(each for each in args if _is_list(each)))
    results = []
    for number in range(length):
        own = [each[number] if _is_list(each) else each for each in args]
        named = {k: each[number] if _is_list(each) else each for k, each in kwargs.items()}
        results.append(_function(name)(*_with_weight(name, own), **named))
    return None if name.endswith("_") else results


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _function(name: str) -> Callable[..., Any]:
    where: Any
    if name == "norm":
        name, where = "vector_norm", torch.linalg
    else:
        where = torch.Tensor if hasattr(torch.Tensor, name) else torch
    found: Callable[..., Any] = getattr(where, name)
    return found


def _with_weight(name: str, own: list[Any]) -> list[Any]:
    """The weight of a mean is of the type of what it weighs."""
    if name in ("lerp", "lerp_") and len(own) > 2 and isinstance(own[2], torch.Tensor):
        own[2] = own[2].to(own[0].dtype)
    return own
