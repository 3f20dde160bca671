"""Modules while a function is traced: traced tensors stand in for theirs.

Afterwards all is as it was. What a forward pass leaves in attributes of modules (maps of attention
that somebody looks at) is forgotten, unless a later call would read it, which no program could.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.closures import Closed
from distspmd.frontend.from_torch.run_time_numbers import Number

STANDS_FOR = "_stands_for_a_parameter"
"""An attribute of what a traced function sees in place of a parameter of the caller."""

Kept = tuple[dict[str, Any], dict[str, Any]]
"""Attributes of a module, and what was in them."""


@dataclass
class Left:
    """What a run of the function leaves in attributes of modules.

    Attributes:
        found: the attributes of a module, the key of one, and its value.
    """

    found: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list)

    def note(self, kept: Sequence[Kept]) -> None:
        """Take what is another tensor, or another number, than it was."""
        self.found = [
            (attributes, key, value)
            for attributes, contents in kept
            for key, value in attributes.items()
            if key not in _OF_EVERY_MODULE and _is_left(contents.get(key, (None, None))[1], value)
        ]

    def put(self) -> None:
        """Let modules have what a run has left, other tensors of the same shapes."""
        for attributes, key, value in self.found:
            attributes[key] = pytree.tree_map(_like, value)

    def check(self, first: fx.Graph, second: fx.Graph) -> None:
        """Compare the first call with one that finds what it has left.

        Raises:
            UnsupportedProgram: the second call does something else.
        """
        if _steps(first) != _steps(second):
            names = ", ".join(sorted({repr(key) for _, key, _ in self.found}))
            raise UnsupportedProgram(
                f"the function keeps {names} in attributes of modules, and does something else "
                "where it finds them at the next call. A program does the same at each call: let "
                "what is carried on be a buffer (register_buffer) that is there from the start, "
                "or pass it, and return what follows."
            )


def _is_left(before: Any, now: Any) -> bool:
    if type(now) in (int, float) and type(before) in (int, float):
        return bool(now != before)
    mine = [leaf for leaf in pytree.tree_leaves(now) if isinstance(leaf, torch.Tensor | Number)]
    theirs = {id(leaf) for leaf in pytree.tree_leaves(before)}
    return any(id(leaf) not in theirs for leaf in mine)


def _like(leaf: Any) -> Any:
    if isinstance(leaf, Number):
        return Number(_like(leaf.tensor), None, leaf.name, leaf.guards)
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return torch.empty(leaf.shape, dtype=leaf.dtype)


def _steps(graph: fx.Graph) -> list[Any]:
    """The operators of a graph with numbers and shapes, but for those that nobody uses."""
    used: set[fx.Node] = set()
    found = []
    for node in reversed(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        works = node.op == "output" or (schema is not None and schema.is_mutable)
        if node in used or works:
            used.update(node.all_input_nodes)
            shape = getattr(node.meta.get("val"), "shape", None)
            name = str(node.target) if node.op == "call_function" else node.op
            plain = fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val") is None)
            found.append((name, shape, repr(plain)))
    return found


_AS_WRITTEN: list[None] = []


def runs_as_written() -> bool:
    """Whether functions of torch run as they are written, so that modules are no programs."""
    return bool(_AS_WRITTEN)


@contextlib.contextmanager
def running_as_written() -> Iterator[None]:
    """Where a function is traced, or run by torch."""
    _AS_WRITTEN.append(None)
    try:
        yield
    finally:
        _AS_WRITTEN.pop()


@contextlib.contextmanager
def swapped_modules(
    closed: Closed, traced: dict[str, torch.Tensor], left: Left
) -> Iterator[dict[int, torch.Tensor]]:
    """Traced tensors in all modules; what stands for each of the caller's, by its identity.

    Args:
        closed: has the modules.
        traced: what stands in, by names.
        left: what an earlier run has left in modules; gets what this one leaves.
    """
    swapped: dict[int, torch.Tensor] = {}
    for name, tensor in closed.parameters.items():
        mine = traced[name].detach()
        if tensor.requires_grad:
            mine.requires_grad_()
            _take_hooks(tensor, mine)
        mine.grad = traced.get(f"{name}.grad")
        setattr(mine, STANDS_FOR, True)
        swapped[id(tensor)] = mine
    swapped |= {id(tensor): traced[name] for name, tensor in closed.buffers.items()}
    before: list[tuple[dict[str, Any], dict[str, Any]]] = []
    kept = [_attributes(module) for module in closed.all_modules()]
    for module in closed.all_modules():
        for table in (module._parameters, module._buffers):
            before.append((table, dict(table)))
            own: Any = {k: swapped[id(t)] for k, t in table.items() if t is not None}
            table.update(own)
    left.put()
    try:
        with running_as_written():
            yield swapped
        left.note(kept)
    finally:
        for table, content in before:
            table.clear()
            table.update(content)
        for attributes, contents in kept:
            _restore(attributes, contents)


_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_HOOKS = frozenset(key for key in _OF_EVERY_MODULE if "hooks" in key)
_CONTAINERS = (dict, OrderedDict, list)


def _attributes(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes that a class gives its modules, which may be caches, and what is in them.

    Hooks belong to them: a module that enters some at its first call, and notes that it has, would
    enter them twice if only the note were forgotten.
    """
    own = {k: x for k, x in vars(module).items() if k in _HOOKS or k not in _OF_EVERY_MODULE}
    return vars(module), {k: (x, x.copy() if type(x) in _CONTAINERS else x) for k, x in own.items()}


def _restore(attributes: dict[str, Any], contents: dict[str, Any]) -> None:
    """Forget what a traced forward pass has kept: no traced tensor may remain in a module."""
    for key in [k for k in attributes if k not in contents and k not in _OF_EVERY_MODULE]:
        del attributes[key]
    for key, (value, content) in contents.items():
        attributes[key] = value
        if type(value) is list:
            value[:] = content
        elif type(value) in _CONTAINERS:
            value.clear()
            value.update(content)


def _take_hooks(tensor: torch.Tensor, traced: torch.Tensor) -> None:
    """Let the caller's hooks of a parameter run on what stands for it."""
    for hook in (tensor._backward_hooks or {}).values():
        traced.register_hook(hook)
    for hook in (getattr(tensor, "_post_accumulate_grad_hooks", None) or {}).values():
        traced.register_post_accumulate_grad_hook(hook)
