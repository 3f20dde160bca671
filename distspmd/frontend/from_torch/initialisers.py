"""What initialises modules and optimizers, noted on tensors without memory."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from distspmd.errors import UnsupportedProgram, listed
from distspmd.frontend.from_torch.arguments import MemoryBinding
from distspmd.frontend.from_torch.closures import Closed
from distspmd.frontend.from_torch.first_values import Recipe, Tape
from distspmd.frontend.from_torch.optimizers import make_state

How = Tape | Callable[[], Any] | None
"""What initialises modules: what was noted while they were made, a function, or their methods."""
_METHODS = ("reset_parameters", "_reset_parameters")
_MARK = "_is_hf_initialized"
"""With which transformers marks tensors that its initialisers leave alone."""


@contextlib.contextmanager
def deferred() -> Iterator[Tape]:
    """Modules that are made within have no memory, and what initialises them is noted.

    ::

        with frontend.deferred() as values:
            module = Model(...)
        ...
        frontend.initialize(program, values)
    """
    tape = Tape()
    with torch.device("meta"), noting(tape):
        yield tape


@contextlib.contextmanager
def noting(tape: Tape) -> Iterator[None]:
    """Let a tape note what initialises tensors, also where torch does nothing without memory."""
    module: Any = nn.init
    before = module._no_grad_trunc_normal_
    module._no_grad_trunc_normal_ = _truncated_normal
    try:
        with _SeeminglyInMemory(), tape:
            yield
    finally:
        module._no_grad_trunc_normal_ = before


class _SeeminglyInMemory(TorchFunctionMode):
    """Lets initialisers such as ``orthogonal_`` run, which ask whether there is memory."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Deny that a tensor has no memory."""
        return False if func == _IS_META else func(*args, **(kwargs or {}))


_IS_META = torch.Tensor.is_meta.__get__  # type: ignore[attr-defined]


def _truncated_normal(
    tensor: torch.Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> torch.Tensor:
    """Normal numbers between two bounds, without drawing those beyond again: by their quantiles."""
    low, high = (math.erf((bound - mean) / std / math.sqrt(2)) for bound in (a, b))
    with torch.no_grad():
        tensor.uniform_(low, high).erfinv_()
        return tensor.mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


def recipes_of(binding: MemoryBinding, names: Sequence[str], how: How) -> dict[str, Recipe]:
    """How to compute the first values of some arguments of a program, all without memory.

    Raises:
        UnsupportedProgram: nobody initialises one.
    """
    if not names:
        return {}
    assert binding.assumptions is not None
    closed = binding.assumptions.closed
    tape = how if isinstance(how, Tape) else Tape()
    if not isinstance(how, Tape):
        with noting(tape), torch.no_grad(), _unmarked(closed):
            if how is None:
                initialise(closed)
            else:
                how()
    with tape:
        others = {**first_states(closed), **_gradients(closed)}
    found, lost = {}, []
    for container in names:
        slot = binding.live[container]
        tensor = others.get(slot.name) if slot.kind != "parameter" else slot.fetch()
        recipe = tape.recipe(tensor, slot.name) if tensor is not None else None
        if recipe is None:
            lost.append(slot.name)
        else:
            found[container] = recipe
    if lost:
        raise UnsupportedProgram(
            f"nobody initialises {listed(lost)}. Give the module a method reset_parameters(), make "
            "it in `with frontend.deferred() as values:` and call frontend.initialize(program, "
            "values), or load it: frontend.load(program, path)."
        )
    return found


def initialise(closed: Closed) -> None:
    """Call the methods of all modules that initialise them."""
    for root in closed.modules.values():
        for module in reversed([*root.modules()]):
            for name in _METHODS:
                method = getattr(module, name, None)
                if callable(method):
                    method()
        _apply(root, None)


def _apply(module: nn.Module, outer: Callable[[nn.Module], Any] | None) -> None:
    """Call ``_init_weights`` of the innermost module that has it, for each module in it."""
    own = getattr(module, "_init_weights", None)
    function = own if callable(own) else outer
    for inner in module.children():
        _apply(inner, function)
    if function is not None:
        function(module)


@contextlib.contextmanager
def _unmarked(closed: Closed) -> Iterator[None]:
    tensors = [*closed.parameters.values(), *closed.buffers.values()]
    marked = [(t, getattr(t, _MARK)) for t in tensors if hasattr(t, _MARK)]
    for tensor, _ in marked:
        delattr(tensor, _MARK)
    try:
        yield
    finally:
        for tensor, value in marked:
            setattr(tensor, _MARK, value)


def first_states(closed: Closed) -> dict[str, torch.Tensor]:
    """The states that optimizers have before their first step, made anew."""
    found = {}
    for name, optimizer in closed.optimizers.items():
        kind = type(optimizer)
        known = inspect.signature(kind.__init__).parameters
        settings = {key: value for key, value in optimizer.defaults.items() if key in known}
        try:
            fresh: Any = kind([dict(group) for group in optimizer.param_groups], **settings)
        except Exception as problem:
            raise UnsupportedProgram(
                f"the optimizer {name!r} cannot be made again, to see how its states begin: "
                f"{type(problem).__name__}: {problem}"
            ) from problem
        make_state(fresh)
        for tensor, state in fresh.state.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    found[f"{closed.names[id(tensor)]}.{key}"] = value
    return found


def _gradients(closed: Closed) -> dict[str, torch.Tensor]:
    return {
        f"{name}.grad": torch.zeros_like(tensor)
        for name, tensor in closed.parameters.items()
        if tensor.is_meta and tensor.requires_grad
    }
