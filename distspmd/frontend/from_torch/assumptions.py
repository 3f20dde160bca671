"""What a trace took from the caller's objects besides tensors, and whether it still holds.

A traced program has the numbers and switches in it that it met: whether a module trains, the weight
decay, a coefficient in a global variable. Each call compares them with the live objects. Learning
rates are arguments (see :class:`distspmd.frontend.from_torch.slots.Slot`) and may change.
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from distspmd.errors import ArgumentError
from distspmd.frontend.from_torch.closures import Closed, functions_of, variables_of
from distspmd.frontend.from_torch.optimizers import BY_SCHEDULERS, varying_settings
from distspmd.frontend.from_torch.run_time_numbers import Guard
from distspmd.frontend.from_torch.scalers import SETTINGS
from distspmd.frontend.from_torch.slots import Gradients

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_HOOKS = (*("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),)
_ADVICE = "Trace the function again, or keep a program for each of the two."


class Assumptions:
    """Values that a program has in it, by what the caller calls them."""

    def __init__(
        self,
        closed: Closed,
        function: Callable[..., Any],
        varying: Collection[str] = (),
        guards: Sequence[Guard] = (),
        gradients: Gradients = Gradients(),  # noqa: B008 - it does not change
    ) -> None:
        self.closed, self.function, self.varying = closed, function, varying
        self.gradients = gradients
        self._guards = guards
        self._read = {
            (name, number): {key for key, _ in varying_settings(group, varying)}
            for name, optimizer in closed.optimizers.items()
            for number, group in enumerate(optimizer.param_groups)
        }
        self._functions = [(f, _names_read(f.__code__)) for f in functions_of(function, closed)]
        self._modules = [
            (f"of the module {'.'.join(filter(None, [root, path]))!r}", module)
            for root, top in closed.modules.items()
            for path, module in top.named_modules()
        ]
        self._known = dict(self._values())

    @property
    def decided(self) -> list[str]:
        """What code has decided by numbers that change from call to call."""
        return [said for said, _, _ in self._guards]

    def check(self) -> None:
        """Compare with the live objects.

        Raises:
            ArgumentError: something changed that the program does not read again.
        """
        for name, before, after in self.changes():
            raise ArgumentError(
                f"{name} was {before} when the function was traced, and is {after} now; the "
                f"program does not read it again. {_ADVICE}"
            )

    def changes(self) -> Iterator[tuple[str, Any, Any]]:
        """What is not as it was: what the caller calls it, as it was, and as it is."""
        now = dict(self._values())
        if now != self._known:
            for name in dict.fromkeys([*self._known, *now]):
                before, after = (each.get(name, _Absent()) for each in (self._known, now))
                if before is not after and not same(before, after):
                    yield name, before, after
        for said, holds, outcome in self._guards:
            if holds() != outcome:
                yield f"whether {said}", outcome, not outcome

    def facts(self) -> dict[str, Any]:
        """What another process can compare: values, and checksums of the code that was traced."""
        codes = {
            f"the code of {f.__qualname__}()": checksum_of(f.__code__) for f, _ in self._functions
        }
        plain = {name: value for name, value in self._known.items() if _is_plain(value)}
        return {**plain, **codes}

    def changed_settings(self) -> set[str]:
        """Numbers of optimizers that are others now, by their keys in a parameter group."""
        changed = {name for name, _, _ in self.changes()}
        return {
            key
            for optimizer, live in self.closed.optimizers.items()
            for number, group in enumerate(live.param_groups)
            for key in group
            if f"{key!r} {_group(number, optimizer)}" in changed
        }

    def _values(self) -> Iterator[tuple[str, Any]]:
        yield from self._of_modules()
        for name, fetch in self.closed.outside.items():
            tensor = fetch()
            yield f"the shape of {name!r}", tuple(getattr(tensor, "shape", ()))
            yield f"the type of {name!r}", getattr(tensor, "dtype", type(tensor).__name__)
        yield from self._of_optimizers()
        for function, read in self._functions:
            for name, value in variables_of(function):
                if name in read and isinstance(value, _PLAIN):
                    yield f"the variable {name!r} of {function.__name__}()", value

    def _of_modules(self) -> Iterator[tuple[str, Any]]:
        for where, module in self._modules:
            yield from _of_module(module, where)
        for name, tensor in self.closed.parameters.items():
            get = self.closed.outside.get(name)
            if get is None:
                owner, key = self.closed.owners[name]
                live = owner._parameters.get(key)
            else:
                live = get()
            yield f"the parameter {name!r}", _Identity(live)
            yield f"requires_grad of {name!r}", tensor.requires_grad
            if name in self.gradients.asked:
                yield f"the gradient of {name!r}", "missing" if tensor.grad is None else "there"
            hooks = [*(tensor._backward_hooks or {}).values()]
            hooks += [*(getattr(tensor, "_post_accumulate_grad_hooks", None) or {}).values()]
            yield f"the hooks of {name!r}", tuple(map(_Identity, hooks))

    def _of_optimizers(self) -> Iterator[tuple[str, Any]]:
        for name, optimizer in self.closed.optimizers.items():
            yield f"the parameter groups of {name!r}", len(optimizer.param_groups)
            for number, group in enumerate(optimizer.param_groups):
                where = _group(number, name)
                yield f"the parameters {where}", tuple(map(_Identity, group["params"]))
                read = self._read.get((name, number), ())
                for key, value in group.items():
                    if key not in ("params", "lr", *BY_SCHEDULERS, *read) and _is_plain(value):
                        yield f"{key!r} {where}", _as_it_is(value)
        for name, scaler in self.closed.scalers.items():
            for key in SETTINGS:
                if hasattr(scaler, key):  # one that is disabled has no more
                    yield f"{key.strip('_')!r} of the scaler {name!r}", getattr(scaler, key)


def _group(number: int, optimizer: str) -> str:
    return f"of group {number} of the optimizer {optimizer!r}"


def _of_module(module: nn.Module, where: str) -> Iterator[tuple[str, Any]]:
    for key, value in vars(module).items():
        if not key.startswith("_") and _is_plain(value):
            yield f"{key!r} {where}", _as_it_is(value)
    for key in _HOOKS:
        hooks = getattr(module, key, None)
        yield f"{key.strip('_')} {where}", tuple(map(_Identity, (hooks or {}).values()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(isinstance(each, _PLAIN) for each in value)
    return isinstance(value, _PLAIN)


def _as_it_is(value: Any) -> Any:
    """A value that stays: a list may be changed in place."""
    return tuple(value) if isinstance(value, list) else value


def same(before: Any, after: Any) -> bool:
    """Whether two values are one, also if they are not a number."""
    return bool(before == after) or (before != before and after != after)


class _Absent:
    def __str__(self) -> str:
        return "missing"


class _Identity:
    """An object that may be another of the same value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        if isinstance(self.value, torch.Tensor):
            return f"the tensor at {id(self.value):#x}"
        return getattr(self.value, "__name__", type(self.value).__name__)


def checksum_of(code: types.CodeType) -> str:
    """A checksum of what code does, wherever it stands."""
    parts = [code.co_code, code.co_names, code.co_varnames, code.co_freevars]
    for constant in code.co_consts:
        is_code = isinstance(constant, types.CodeType)
        parts.append(checksum_of(constant) if is_code else repr(constant))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _names_read(code: types.CodeType) -> set[str]:
    """Variables that a function reads, not attributes that are called the same."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST")
    found = {i.argval for i in dis.get_instructions(code) if i.opname.startswith(loads)}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names_read(constant)
    return found


# -- indices ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexRange:
    """What the values of an argument may be, because they are indices.

    Attributes:
        extent: of the dimension that they index; they are less than that.
        ignored: a value that stands for none, as in a cross-entropy.
        operator: what they are indices of.
        least: the least of them: 0, or less where negative ones count from the end.
    """

    extent: int
    ignored: int | None
    operator: str
    least: int = 0

    def check(self, name: str, values: Any) -> None:
        """Compare the values of an argument.

        Raises:
            ArgumentError: one is out of range.
        """
        if values.size == 0 or values.dtype.kind not in "iu":
            return
        if values.min() >= self.least and values.max() < self.extent:
            return
        wrong = (values < self.least) | (values >= self.extent)
        if self.ignored is not None:
            wrong &= values != self.ignored
        if wrong.any():
            skipped = "" if self.ignored is None else f", or {self.ignored}"
            raise ArgumentError(
                f"the argument {name!r} has the value {values[wrong].flat[0]}, but {self.operator} "
                f"takes indices from {self.least} to {self.extent - 1}{skipped}."
            )


_INDEXED = {
    "aten.embedding.default": (0, 1, lambda args: 0),
    "aten.gather.default": (0, 2, lambda args: args[1]),
    "aten.scatter_add.default": (0, 2, lambda args: args[1]),
    "aten.scatter.src": (0, 2, lambda args: args[1]),
    "aten.scatter.value": (0, 2, lambda args: args[1]),
    "aten.index_select.default": (0, 2, lambda args: args[1]),
}
"""Of each operator: which argument is indexed, by which, along which dimension."""

_VIEWS = (
    *("view", "reshape", "_unsafe_view", "squeeze", "unsqueeze", "expand", "slice", "select"),
    *("permute", "transpose", "clone", "alias", "detach", "_to_copy", "convert_element_type", "t"),
)


def index_ranges(graph: fx.Graph) -> Mapping[fx.Node, list[IndexRange]]:
    """Ranges of the placeholders whose values are indices as they come.

    Indices that the program computes are not among them.
    """
    found: dict[fx.Node, list[IndexRange]] = {}
    nodes: list[Any] = list(graph.nodes)
    for node in nodes:
        if str(node.target) in _INDEXED_BY_LISTS:
            _add_lists(node, found)
        if str(node.target) not in _INDEXED:
            continue
        indexed, by, dimension = _INDEXED[str(node.target)]
        source, ignored = origin_of(node.args[by], None)
        if source is not None:
            extent = int(node.args[indexed].meta["val"].shape[dimension(node.args)])
            name = str(node.target).split(".")[1]
            each = IndexRange(extent, ignored, name)
            if each not in found.setdefault(source, []):
                found[source].append(each)
    return found


_INDEXED_BY_LISTS = (
    *("aten.index.Tensor", "aten.index_put.default", "aten._unsafe_index.Tensor"),
    *("aten._unsafe_index_put.default",),
)
"""Operators with an index, or none, for each of the first dimensions."""


def _add_lists(node: fx.Node, found: dict[fx.Node, list[IndexRange]]) -> None:
    """Add the ranges of what are indices in a list."""
    tensor, indices = node.args[:2]
    for dimension, index in enumerate(indices):  # type: ignore[arg-type]
        source, ignored = origin_of(index, None)
        if source is not None:
            extent = int(tensor.meta["val"].shape[dimension])  # type: ignore[union-attr]
            each = IndexRange(extent, ignored, "index", -extent)
            if each not in found.setdefault(source, []):
                found[source].append(each)


def origin_of(node: Any, ignored: int | None) -> tuple[fx.Node | None, int | None]:
    """The placeholder whose values a node has, but for one value that is replaced, with that."""
    if not isinstance(node, fx.Node):
        return None, None
    arguments: Any = node.args
    if node.op == "placeholder":
        return node, ignored
    name = str(node.target).split(".")[1] if str(node.target).startswith("aten.") else ""
    name = name or getattr(node.target, "__name__", "")
    if name in _VIEWS:
        return origin_of(arguments[0], ignored)
    if name == "where":
        chosen, value, _ = arguments
        test = str(getattr(chosen, "target", ""))
        if test == "aten.ne.Scalar":
            return origin_of(value, int(chosen.args[1]))
    return None, None
