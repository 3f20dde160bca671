"""Programs that an earlier process has made of the same function: found without tracing it.

An entry of the cache has the record of the lowering, and where the compiled library is. Its key has
all that the program is made from: the function and what it leads to
(:mod:`distspmd.frontend.from_torch.fingerprints`), the call, the schedule, and the compiler.
"""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from distspmd.cache.entries import ensure_entry, find_entry
from distspmd.cache.own_text import own_text
from distspmd.codegen.build import compiler_options
from distspmd.codegen.build_record import Build
from distspmd.frontend.from_torch.arguments import BOUND, MemoryBinding
from distspmd.frontend.from_torch.closures import Closed, closed_over
from distspmd.frontend.from_torch.fingerprints import (
    Fingerprint,
    NotKnown,
    checksum,
    held_by,
    replaced_in_torch,
    surroundings,
    texts,
)
from distspmd.frontend.from_torch.scalers import scaler_tensors
from distspmd.frontend.from_torch.slots import Gradients, Slot
from distspmd.frontend.from_torch.trace import traced_before
from distspmd.frontend.registered_operators import registered_operators
from distspmd.lowering import Lowering
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.launch.attendance import lasting_settings

_KIND, _FILE = "steps", "step.pickle"
_VARIANTS = 16
"""So many entries of one key are kept, which differ in the modules that were imported."""


@dataclass
class _Record:
    """What an entry has.

    Attributes:
        lowering: the record of it, without the SDFG.
        program: the key of the compiled program in the cache.
        bound: what a binding has besides the live objects.
        live: the name of the slot behind each argument.
        without_memory: arguments whose tensors are on the device ``meta``.
        gradients: what becomes of them.
        constants: tensors that the function makes of numbers.
        texts: the files of all modules that were imported then, and their checksums.
        held: checksums of what libraries held when the trace began, by their modules.
    """

    lowering: Lowering
    program: str
    bound: Mapping[str, Any]
    live: Mapping[str, str]
    without_memory: Sequence[str]
    gradients: Gradients
    constants: Mapping[str, torch.Tensor]
    texts: Mapping[str, tuple[str, str]]
    held: Mapping[str, str]

    def is_as_it_was(self, held: Mapping[str, str]) -> bool:
        """Whether modules have the text that they had, and hold what they held."""
        here = self.held.keys() & held.keys()
        return all(self.held[n] == held[n] for n in here) and all(
            _has_text(name, *text) for name, text in self.texts.items()
        )


@dataclass
class KeptProgram:
    """The entry of a call, whether it is there or not.

    Attributes:
        function: of tensors, as it is traced.
        varying: settings of optimizers that the program reads at each call.
        key: of all that the program is made from; empty where that cannot be told.
        reason: why not.
    """

    function: Callable[..., Any]
    varying: Collection[str]
    key: str = ""
    reason: str = ""
    _held: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        inputs: Sequence[torch.Tensor],
        varying: Collection[str],
        *call: Any,
        device: str | None,
    ) -> KeptProgram:
        """The entry of a function of tensors.

        Args:
            function, inputs, varying: as they are traced; values of inputs do not matter.
            call: what else decides the program.
            device: programs of devices are not kept.
        """
        found = cls(function, sorted(varying))
        try:
            if device:
                raise NotKnown("it runs on a device")
            found.key, packages = _key(function, inputs, sorted(varying), call)
            found._held = held_by(packages)
        except NotKnown as problem:
            found.reason = str(problem)
        except RecursionError:
            found.reason = "what the function leads to is nested too deep"
        return found

    def find(self) -> tuple[Build, Lowering, MemoryBinding] | None:
        """The program, bound to the live objects, if it is there and nothing has changed."""
        for number in range(_VARIANTS if self.key else 0):
            folder = find_entry(_KIND, f"{self.key}-{number}")
            if folder is None:
                return None
            record: _Record = pickle.loads((folder / _FILE).read_bytes())
            library = find_entry("programs", record.program)
            if library is not None and record.is_as_it_was(self._held):
                return Build.load(library), record.lowering, self._bound(record)
        return None

    def _bound(self, record: _Record) -> MemoryBinding:
        """What binds a program to the live objects."""
        slots, assumptions = traced_before(self.function, self.varying, record.gradients)
        by_name = {slot.name: slot for slot in slots}
        for name, tensor in record.constants.items():
            by_name[name] = Slot(name, functools.partial(_itself, tensor), "constant")
        return MemoryBinding(
            {container: by_name[name] for container, name in record.live.items()},
            **record.bound,
            assumptions=assumptions,
            without_memory=record.without_memory,
        )

    def keep(self, built: Build, lowering: Lowering, binding: MemoryBinding) -> None:
        """Let later processes find a program that was made, if it can be told from others."""
        if not self.key or binding.assumptions is None:
            return
        if binding.assumptions.decided:
            self.reason = f"code decided by {binding.assumptions.decided[0]}"
            return
        if binding.assumptions.closed.outside:
            first = next(iter(binding.assumptions.closed.outside))
            self.reason = f"it uses a tensor that is in no module: {first}"
            return
        live = binding.live
        try:
            record = _Record(
                lowering,
                Path(built.library).parts[-3],
                {name: getattr(binding, name) for name in BOUND},
                {container: slot.name for container, slot in live.items()},
                list(binding.without_memory),
                binding.assumptions.gradients,
                {slot.name: slot.fetch() for slot in live.values() if slot.kind == "constant"},
                texts(),
                self._held,
            )
            content = pickle.dumps(record)
        except (NotKnown, pickle.PicklingError, TypeError, AttributeError) as problem:
            self.reason = str(problem)
            return

        def make(folder: Path) -> list[str]:
            (folder / _FILE).write_bytes(content)
            return [_FILE]

        for number in range(_VARIANTS):
            if find_entry(_KIND, f"{self.key}-{number}") is None:
                ensure_entry(_KIND, f"{self.key}-{number}", make)
                return
        self.reason = "modules of it have changed too often"


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _has_text(module: str, file: str, text: str) -> bool:
    """Whether a module has the text that it had, imported or not."""
    try:
        return checksum(Path(getattr(sys.modules.get(module), "__file__", None) or file)) == text
    except NotKnown:
        return False


def _key(
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    varying: Sequence[str],
    call: Sequence[Any],
) -> tuple[str, set[str]]:
    """The key of a call, and the libraries that the function leads to."""
    closed = closed_over(function)
    given = {id(tensor): f"input {number}" for number, tensor in enumerate(inputs)}
    found = Fingerprint({**given, **_tensors(closed)})
    outside = (
        *(surroundings(), sys.path, own_text(), lasting_settings(), str(toolchain.find_compiler())),
        *(str(toolchain.find_blas()), list(map(str, compiler_options()))),
        *(Machine.measured(), HEURISTICS),
    )
    gradients = [name for name, each in closed.parameters.items() if each.grad is not None]
    operators = dict(sorted(registered_operators().items()))
    for value in (outside, call, varying, gradients, replaced_in_torch(), operators, function):
        found.add(value)
    return found.hexdigest()[:32], found.packages


def _tensors(closed: Closed) -> dict[int, str]:
    """Names of the tensors that the program reads at each call, by their identity."""
    found = {id(t): name for name, t in {**closed.parameters, **closed.buffers}.items()}
    for name, optimizer in closed.optimizers.items():
        for place, state in enumerate(optimizer.state.values()):
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    found[id(value)] = f"{name}, {place}, {key}"
    for name, scaler, attribute in scaler_tensors(closed):
        found[id(getattr(scaler, attribute))] = name
    return found
