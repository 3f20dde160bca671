"""What binds a program to live tensors, where it is saved; and a saved program bound again.

A file has no modules and no functions: names, shapes and types of the tensors, what the program has
in it besides, and which code it was traced from. What is bound is compared with that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, SavedError, describe
from distspmd.frontend.from_torch.arguments import (
    BOUND,
    ArrayBinding,
    MemoryBinding,
    memory_of,
)
from distspmd.frontend.from_torch.assumptions import same
from distspmd.frontend.from_torch.slots import Gradients, Slot
from distspmd.frontend.from_torch.trace import traced_before
from distspmd.lowering import Lowering
from distspmd.saved.programs import bind_lowering, carried_binding


@dataclass(frozen=True)
class SavedTensors:
    """A binding without the live objects.

    Attributes:
        name: of the function, in messages.
        known: what a binding has besides the live objects.
        live: the name of the slot behind each argument.
        shapes: of these tensors, by the names of the slots.
        types: likewise.
        gradients: what becomes of them.
        without_memory: arguments whose tensors were on the device ``meta``.
        varying: settings of optimizers that the program reads at each call.
        facts: what else of the caller's is in the program, in words.
        arrays: of slots whose tensors no module has.
        gives_arrays: whether results are arrays of NumPy.
    """

    name: str
    known: Mapping[str, Any]
    live: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, torch.dtype]
    gradients: Gradients
    without_memory: Sequence[str]
    varying: Sequence[str]
    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    gives_arrays: bool

    @classmethod
    def of(cls, binding: MemoryBinding, all_arrays: bool) -> SavedTensors:
        """What is saved of a binding.

        Args:
            binding: to live tensors.
            all_arrays: whether with the values of all tensors.

        Raises:
            SavedError: the program is made for values that no later process can compare.
        """
        assumed = binding.assumptions
        if assumed is not None and (assumed.decided or assumed.closed.outside):
            what = (*assumed.decided, *assumed.closed.outside)[0]
            raise SavedError(
                f"the program cannot be saved: it was made for {what}, which no other process has. "
                "Put tensors into a module, and decide by what a module or an argument has."
            )
        slots = {name: (slot, slot.fetch()) for name, slot in binding.live.items()}
        return cls(
            getattr(getattr(assumed, "function", None), "__qualname__", "the module"),
            {name: getattr(binding, name) for name in BOUND},
            {name: slot.name for name, (slot, _) in slots.items()},
            {slot.name: tuple(tensor.shape) for slot, tensor in slots.values()},
            {slot.name: tensor.dtype for slot, tensor in slots.values()},
            getattr(assumed, "gradients", Gradients()),
            sorted(binding.without_memory),
            sorted(getattr(assumed, "varying", ())),
            {} if assumed is None or all_arrays else assumed.facts(),
            {
                slot.name: memory_of(slot.name, tensor)
                for slot, tensor in slots.values()
                if all_arrays or slot.kind == "constant"
            },
            all_arrays,
        )

    def bound(self) -> MemoryBinding:
        """The binding, where the file has all values.

        Raises:
            ArgumentError: the program works on a module of the caller.
        """
        if not set(self.live.values()) <= self.arrays.keys():
            raise ArgumentError(
                f"the saved program works on the tensors of a module of {self.name!r}, which are "
                "not in the file. Say which these are now: frontend.bind(lowering, function), with "
                "the same step or module as before."
            )
        return self._with({})

    def bound_to(self, function: Callable[..., Any]) -> MemoryBinding:
        """The binding to the tensors that a function closes over.

        Raises:
            ArgumentError: it closes over other ones, or its code is another one.
        """
        slots, assumptions = traced_before(function, self.varying, self.gradients)
        by_name = {slot.name: slot for slot in slots}
        for name in (name for name in self.live.values() if name not in self.arrays):
            if name not in by_name:
                raise ArgumentError(
                    f"the saved program works on {name!r}, but what was given has no tensor of "
                    f"that name; it has {', '.join(by_name) or 'none'}."
                )
            tensor = by_name[name].fetch()
            here, saved = (tuple(tensor.shape), tensor.dtype), (self.shapes[name], self.types[name])
            if here != saved:
                raise ArgumentError(
                    f"{name!r} is of {here[1]}{list(here[0])}, but the saved program was made for "
                    f"{saved[1]}{list(saved[0])}. Lower it again."
                )
        facts = assumptions.facts()
        for said in dict.fromkeys([*self.facts, *facts]):
            before, now = self.facts.get(said), facts.get(said)
            if not same(before, now):
                raise ArgumentError(
                    f"the saved program was made where {said} was {describe(before)}, and it is "
                    f"{describe(now)} now. Lower it again."
                )
        return self._with(by_name, assumptions)

    def _with(self, slots: Mapping[str, Slot], assumptions: Any = None) -> MemoryBinding:
        own = {
            name: Slot(name, functools.partial(_itself, torch.from_numpy(array)), "constant")
            for name, array in self.arrays.items()
        }
        kind = ArrayBinding if self.gives_arrays else MemoryBinding
        return kind(
            {container: {**slots, **own}[name] for container, name in self.live.items()},
            **self.known,
            assumptions=assumptions,
            without_memory=self.without_memory,
        )


def bind(lowering: Lowering, function: Callable[..., Any]) -> Lowering:
    """Let a lowered program that was read from a file work on live modules and optimizers.

    Args:
        lowering: what :func:`distspmd.load` returned.
        function: the training step, or the module, as it was when the program was lowered.

    Raises:
        ArgumentError: it has other tensors, settings or code, or the program is bound to none.
    """
    function = function.forward if isinstance(function, torch.nn.Module) else function
    saved = carried_binding(lowering)
    if not isinstance(saved, SavedTensors):
        raise ArgumentError(
            "bind takes a program that was traced from a module or a step of PyTorch, saved, and "
            "read by distspmd.load; this one needs no module."
        )
    bind_lowering(lowering, saved.bound_to(function))
    return lowering


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
