"""Modules of torch that ranks run together wherever they are called.

The class, its parameters and its state dictionary stay what they are. A partitioned training step
that calls such a module traces it as it is written, and has a schedule of its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from distspmd.errors import ArgumentError, describe
from distspmd.frontend.from_torch.partitioned import Partitioned, partitioned
from distspmd.frontend.from_torch.swapped_modules import runs_as_written
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import Entries, Holding


def module(
    target: Any = None,
    /,
    *,
    schedule: Entries | str | None = None,
    comm: Any = None,
    ranks: int | None = None,
    memory: int | str | None = None,
    search: bool = True,
    mesh: Mesh | Mapping[str, int] | None = None,
    arguments: Mapping[str, Holding] | None = None,
    arithmetic: str = "vector",
    device: str | None = None,
) -> Any:
    """Let all ranks run the forward pass of a module together, whenever it is called.

    ``@frontend.module`` above a class, with keywords in brackets or without, does so for all of its
    instances; ``frontend.module(instance, schedule=...)`` for one. ``instance.partitioned`` is what
    :func:`partitioned` makes of it, with the programs.

    Args:
        target: a class of modules, or a module.
        schedule, comm, ranks, memory, search, mesh, arguments, arithmetic, device: as
            :func:`partitioned` takes them.

    Returns:
        The same class or module, or a decorator.

    Raises:
        ArgumentError: neither of both.
    """
    options: dict[str, Any] = {"schedule": schedule, "comm": comm, "ranks": ranks}
    options |= {"memory": memory, "search": search, "mesh": mesh, "arguments": arguments}
    options |= {"arithmetic": arithmetic, "device": device}

    def decorate(target: Any) -> Any:
        if isinstance(target, nn.Module):
            kind = type(target)
            names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
            target.__class__ = _let_call(type(kind.__name__, (kind,), names), options)
            return target
        if isinstance(target, type) and issubclass(target, nn.Module):
            return _let_call(target, options)
        raise ArgumentError(
            f"frontend.module takes a class of torch.nn.Module, or one of its instances, but "
            f"{describe(target)} was given. Functions are for frontend.partitioned."
        )

    return decorate if target is None else decorate(target)


_MADE: weakref.WeakKeyDictionary[nn.Module, Partitioned] = weakref.WeakKeyDictionary()
"""What was made of modules at their first calls."""


def _let_call(kind: Any, options: Mapping[str, Any]) -> type[nn.Module]:
    """Let calls of instances of a class be those of all ranks."""
    as_written: Callable[..., Any] = kind.__call__

    def made(self: nn.Module) -> Partitioned:
        """What all ranks call."""
        if self not in _MADE:
            _MADE[self] = partitioned(self, **options)
        return _MADE[self]

    def call(self: nn.Module, *arguments: Any, **named: Any) -> Any:
        if runs_as_written():
            return as_written(self, *arguments, **named)
        return made(self)(*arguments, **named)

    kind.__call__ = call
    kind.partitioned = property(made)
    found: type[nn.Module] = kind
    return found
