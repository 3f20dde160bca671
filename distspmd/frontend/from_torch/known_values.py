"""Values of tensors that are known while a function is traced, for no argument decides them.

A mask of the diagonal is one, or a buffer that says which nodes of a graph are for training. Where
such a value would decide a shape or a branch, what the function has traced so far is computed for
it. A value that comes from a buffer is an assumption of the program, which each call compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.functional_utils import from_fun
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils._python_dispatch import _disable_current_modes

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.assumptions import origin_of
from distspmd.frontend.from_torch.run_time_numbers import Guards
from distspmd.frontend.from_torch.slots import Slot

SHAPES = ("nonzero", "argwhere", "unique", "bincount", "masked_select", "repeat_interleave")
"""Functions whose results have shapes that values decide."""
_OF_SIZES = ("pad", "view", "reshape", "expand", "repeat", "zeros", "ones", "full", "empty")
"""Functions in whose sequences tensors without dimensions are sizes."""
_MOST = 1 << 16
"""Elements of a value that becomes a constant."""


class KnownValues:
    """What is known of the tensors of a trace.

    Args:
        slots: tensors behind the first placeholders.
        fixed: those that no optimizer changes, by their names.
        guards: takes the values that were looked at.
    """

    def __init__(
        self, slots: Sequence[Slot], fixed: Mapping[str, torch.Tensor], guards: Guards
    ) -> None:
        self._slots, self._fixed, self._guards = slots, fixed, guards
        self._looked_at: set[str] = set()

    def of(self, tensor: Any) -> torch.Tensor | None:
        """The value of a tensor; None where an argument or a parameter decides it."""
        mode = get_proxy_mode()
        if mode is None or not isinstance(tensor, torch.Tensor) or tensor.numel() > _MOST:
            return None
        tracer: Any = mode.tracer
        proxy: Any = get_proxy_slot(_pure(tensor), tracer, None, lambda found: found.proxy)
        if proxy is None:
            return None
        before = _ancestors(proxy.node)
        if before is None:
            return _certain(proxy.node)
        live = self._live(proxy.node.graph, before)
        if live is None:
            return None
        with _disable_current_modes(), torch.no_grad():
            found = _computed(before, live, tracer.root)
        return found if isinstance(found, torch.Tensor) else None

    def is_argument(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has the values of an argument, whose range each call looks at."""
        mode = get_proxy_mode()
        if mode is None:
            return False
        proxy: Any = get_proxy_slot(_pure(tensor), mode.tracer, None, lambda found: found.proxy)
        source = None if proxy is None else origin_of(proxy.node, None)[0]
        if source is None:
            return False
        placeholders = [node for node in source.graph.nodes if node.op == "placeholder"]
        return placeholders.index(source) >= len(self._slots)

    def counted(self, x: torch.Tensor, least: int) -> torch.Tensor | None:
        """How often each number occurs in an argument, below the least length of the result."""
        if least <= 0 or not self.is_argument(x):
            return None
        counts = torch.zeros(least, dtype=torch.int64)
        return counts.scatter_add(0, x.long(), torch.ones_like(x, dtype=torch.int64))

    def _live(self, graph: fx.Graph, nodes: Sequence[fx.Node]) -> dict[fx.Node, Any] | None:
        """The tensors behind the placeholders among some nodes; None if one is not fixed."""
        first = [node for node in graph.nodes if node.op == "placeholder"]
        slots = dict(zip(first, self._slots, strict=False))
        found = {}
        for node in nodes:
            if node.op != "placeholder":
                continue
            slot = slots.get(node)
            tensor = self._fixed.get(slot.name) if slot else None
            if slot is None or tensor is None or tensor.is_meta:
                return None
            found[node] = _copy(tensor)
            self._look_at(slot, found[node])
        return found

    def _look_at(self, slot: Slot, value: torch.Tensor) -> None:
        if slot.name in self._looked_at:
            return
        self._looked_at.add(slot.name)
        fetch: Callable[[], torch.Tensor] = slot.fetch

        def holds() -> bool:
            return bool(torch.equal(fetch(), value))

        self._guards.append((f"{slot.name!r} has the values that it had", holds, True))

    def check_written(self, written: Sequence[str]) -> None:
        """Refuse a function that looks at what it changes.

        Raises:
            UnsupportedProgram: it does.
        """
        for name in written:
            if name in self._looked_at:
                raise UnsupportedProgram(
                    f"the values of {name!r} decide what the function does, and it changes them: "
                    "each call would be another program. Write it without: torch.where for a "
                    "choice, masks for a shape."
                )

    def indices(self, index: Any) -> Any:
        """An index, with numbers in place of masks that are known."""
        if isinstance(index, tuple):
            found: list[Any] = []
            for each in index:
                known = self.indices(each)
                several = isinstance(known, tuple) and not isinstance(each, tuple)
                found += known if several else [known]
            return tuple(found)
        if isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.ndim:
            value = self.of(index)
            if value is not None:
                with _disable_current_modes():
                    places = [each.tolist() for each in value.nonzero(as_tuple=True)]
                made = tuple(torch.tensor(each, dtype=torch.long) for each in places)
                return made if len(made) > 1 else made[0]
        return index

    def numbers(self, value: Any, inside: bool = False) -> Any:
        """An argument, with numbers in place of tensors without dimensions in its sequences."""
        if type(value) in (tuple, list):
            return type(value)(self.numbers(each, inside=True) for each in value)
        if type(value) is dict:
            return {key: self.numbers(each) for key, each in value.items()}
        if inside and isinstance(value, torch.Tensor) and not value.ndim:
            known = None if value.is_floating_point() else self.of(value)
            return value if known is None else known.item()
        return value

    def arguments(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of a function of torch, with numbers in place of tensors that are known."""
        if name == "__getitem__":
            return (args[0], self.indices(args[1])), kwargs
        if name in _OF_SIZES:
            return self.numbers(args), self.numbers(kwargs)
        return args, kwargs

    def called(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result of a function whose arguments are all known; None where one is not."""
        values = [self.of(each) if isinstance(each, torch.Tensor) else each for each in args]
        if any(v is None and a is not None for v, a in zip(values, args, strict=True)):
            return None
        with _disable_current_modes():
            found = func(*values, **kwargs)
            several = isinstance(found, tuple)
            told = [(x.tolist(), x.dtype, x.shape) for x in (found if several else (found,))]
        made = tuple(torch.tensor(x, dtype=dtype).reshape(shape) for x, dtype, shape in told)
        return made if several else made[0]


def _pure(tensor: torch.Tensor) -> Any:
    """What is traced behind a tensor that can be written."""
    if not torch._is_functional_tensor(tensor):
        return from_fun(tensor)
    torch._sync(tensor)  # type: ignore[attr-defined]
    return torch._from_functional_tensor(tensor)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes():
        return tensor.detach().clone()


def _ancestors(last: fx.Node) -> list[fx.Node] | None:
    """All nodes that a node is computed from, in order; None where one of them was written to."""
    found, waiting = {last}, [last]
    while waiting:
        for node in waiting.pop().all_input_nodes:
            if node not in found:
                found.add(node)
                waiting.append(node)
    for node in found:
        if any(_writes(user) for user in node.users) or _is_random(node):
            return None
    return [node for node in last.graph.nodes if node in found]


def _certain(node: fx.Node) -> torch.Tensor | None:
    """Whether a random number from 0 to 1 is less than one that is out of this range."""
    if str(node.target) != "aten.lt.Scalar" or isinstance(node.args[1], fx.Node):
        return None
    drawn, most = node.args
    if str(getattr(drawn, "target", "")) != "aten.rand.default" or 0 < float(most) < 1:  # type: ignore[arg-type]
        return None
    with _disable_current_modes():
        return torch.full(node.meta["val"].shape, float(most) >= 1)  # type: ignore[arg-type]


def _writes(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


def _is_random(node: fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _computed(nodes: Sequence[fx.Node], live: Mapping[fx.Node, Any], root: Any) -> Any:
    values: dict[fx.Node, Any] = dict(live)
    for node in nodes:
        if node.op == "get_attr":
            held = getattr(root, str(node.target))
            held = getattr(held, "constant", held)
            if not isinstance(held, torch.Tensor):
                return None
            values[node] = held
        elif node.op == "call_function":
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
            values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    return values[nodes[-1]]
