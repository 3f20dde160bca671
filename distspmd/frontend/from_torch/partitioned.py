"""Functions of torch that are called as before, and run on all ranks.

A program is made at the first call with some shapes, and kept. So is one for each way in which the
modules and optimizers stand: training or not, frozen or not. Whatever the ranks hold between calls
goes from program to program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from distspmd import pipeline
from distspmd.errors import ArgumentError, DistSPMDError, NothingSplit, UnsupportedProgram
from distspmd.execution.binding import binding_of
from distspmd.execution.builds import build_for
from distspmd.execution.call_keys import comparable
from distspmd.execution.passed import Passed, compare
from distspmd.execution.program import Made, Program, load_together
from distspmd.frontend.from_torch.api import input_names, traced_program
from distspmd.frontend.from_torch.arguments import MemoryBinding
from distspmd.frontend.from_torch.kept_programs import KeptProgram
from distspmd.frontend.from_torch.optimizers import FirstStepDiffers
from distspmd.frontend.from_torch.swapped_modules import running_as_written
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.plans.heuristics import HEURISTICS
from distspmd.runtime.calls.missing_result import missing_result
from distspmd.runtime.engine.collective_resource import Closing
from distspmd.runtime.launch.driver_ranks import default_comm
from distspmd.runtime.notices import notice, warn
from distspmd.runtime.watch.agreement import Agreement, Call
from distspmd.schedule import Entries, Holding, Schedule, as_entries
from distspmd.scheduling.search import Options, lower_searched

if TYPE_CHECKING:
    from dace import SDFG

_ADVICE = (
    "Pass the whole batch on rank 0, that of all ranks together and without a DistributedSampler, "
    "and nothing on the others: `train(x, y) if rank == 0 else train()`. Or pass the same on all."
)
_NEW = -1
"""The number of a program that is still to be made."""


@dataclass
class _Made:
    """A program, and on rank 0 for which calls it was made."""

    program: Program
    key: Any = None
    binding: MemoryBinding | None = None

    def fits(self, key: Any) -> bool:
        """Whether a call may use it, for what it assumes still holds."""
        if self.key != key or self.binding is None:
            return False
        assumptions = self.binding.assumptions
        return assumptions is None or next(assumptions.changes(), None) is None


def partitioned(
    function: Callable[..., Any] | nn.Module | None,
    schedule: Entries | str | None = None,
    comm: Any = None,
    *,
    ranks: int | None = None,
    memory: int | str | None = None,
    search: bool = True,
    mesh: Mesh | Mapping[str, int] | None = None,
    arguments: Mapping[str, Holding] | None = None,
    arithmetic: str = "vector",
    device: str | None = None,
) -> Partitioned:
    """A training step or a module that is called as before, by all ranks together.

    It is traced, lowered and compiled at the first call with some shapes, and again where a module
    or an optimizer stands otherwise than before: another batch, ``eval()``, frozen parameters.
    What the ranks hold between calls goes from program to program.

    Args:
        function: as it is; ranks other than 0 may pass None.
        schedule: as :func:`distspmd.lower` takes it, for instance a preset. Without any the best
            one is searched for; then each rank holds all parameters and states.
        comm: a communicator of mpi4py, or ranks that :func:`distspmd.ranks` has started; those that
            were started by default, or all ranks of MPI.
        ranks, memory, search: of a search, as :func:`distspmd.lower` takes them; for all ranks of
            the communicator where there is no schedule.
        mesh, arguments: as :func:`distspmd.lower` takes them.
        arithmetic, device: as :func:`distspmd.compile` takes them.

    Raises:
        ArgumentError: a class was given, or options of a search, where there is none.
    """
    if isinstance(function, type):
        raise ArgumentError(
            f"partitioned takes a function or a module, but the class {function.__name__!r} was "
            "given. Write @frontend.module above the class, or partition one of its instances."
        )
    comm = default_comm() if comm is None else comm
    wanted = _wanted(schedule, comm, ranks, memory, search)
    entries = as_entries(schedule, mesh)
    if wanted is not None and schedule is None:
        entries = Schedule(held={"parameters": "replicated", "states": "replicated"})
    options = dict(arguments or {})
    return Partitioned(function, entries, comm, options, arithmetic, device, wanted)


def _wanted(
    schedule: Any, comm: Any, ranks: int | None, memory: int | str | None, search: bool
) -> Options | None:
    """What a search is asked for; None for none."""
    if search and (schedule is None or ranks is not None):
        alone = ranks is None and memory is None and comm.Get_size() == 1
        return None if alone else Options(comm.Get_size() if ranks is None else ranks, memory)
    if ranks is not None or memory is not None:
        raise ArgumentError(
            "partitioned: ranks= and memory= are of a search. Leave schedule= and search= out, or "
            "write ranks= beside a schedule that leaves something open."
        )
    return None


class Partitioned(Closing):
    """A training step or a module that all ranks call together.

    :func:`partitioned` makes it. Rank 0 passes what the function takes: tensors, in tuples, lists
    and dictionaries, and numbers, which become part of the program. The other ranks pass nothing,
    or the same, and get what says where results are.

    Attributes:
        programs: those that are kept, the last that was used at the end.
        found: how many programs an earlier process had made, so that nothing was traced; on rank 0.
        not_kept: why later processes will not find the last one that was made; empty if they will.
    """

    def __init__(
        self,
        function: Callable[..., Any] | nn.Module | None,
        schedule: Entries,
        comm: Any,
        arguments: Mapping[str, Holding],
        arithmetic: str,
        device: str | None,
        wanted: Options | None = None,
    ) -> None:
        self.function = function
        self._entries, self._options, self._wanted = schedule, arguments, wanted
        self._arithmetic, self._device = arithmetic, device
        self._agreement = Agreement.of(comm).hold()
        name = getattr(function, "__name__", type(function).__name__)
        self.name: str = self._agreement.bcast(name)
        how = f"partitioned with {schedule}" if wanted is None else "whose schedule is searched for"
        asked = comparable(self._options), comparable(wanted)
        self._call = Call.of(f"{self.name}(...)", *asked, wording=f"{self.name}(...), {how},")
        self._made: list[_Made] = []
        self._waiting: list[Callable[[Program], None]] = []
        self._varying: set[str] = set()
        self._eager = False
        self.found, self.not_kept = 0, ""
        _ALL.setdefault(self._agreement, []).append(self)

    @property
    def programs(self) -> list[Program]:
        """What has been made and is kept, the last that was used at the end."""
        return [made.program for made in self._made]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the function on all ranks.

        Returns:
            What the function returns, on rank 0; elsewhere what says so as soon as it is used.

        Raises:
            ArgumentError: on all ranks, before anything runs.
            DisagreementError: on all ranks: they call different things, or one of them has ended.
            ScheduleError, UnsupportedProgram, NoSolver, CompilationError: on all ranks, at the
                first call of its kind.
        """
        agreement = self._agreement
        with agreement.calling(self._call):
            error: Exception | None = None
            given: Given | None = None
            number = _NEW
            if agreement.rank == 0:
                try:
                    given = Given.of(self.function, arguments, named)
                    number = self._find(given)
                except DistSPMDError as problem:
                    error = problem
            agreement.check(error)
            number = agreement.bcast(number)
            if number == _NEW:
                compare(agreement, self.name, _passed((arguments, named)), _ADVICE)
            if number == _NEW and not self._make(given):
                return self._run_in_torch(arguments, named)
            made = self._made.pop(-1 if number == _NEW else number)
            self._made.append(made)
            self._take_over(made)
            while self._waiting:
                self._waiting.pop(0)(made.program)
            result = made.program(*given.tensors) if given else made.program()
            return given.linked(result, self.name) if given else result

    def when_made(self, action: Callable[[Program], None]) -> None:
        """Do something with the program that was used last, or with the first, once it is made.

        All ranks call it together.
        """
        if not self._made:
            self._waiting.append(action)
            return
        self._take_over(self._made[-1])
        action(self._made[-1].program)

    def collect(self) -> None:
        """Bring parameters and states to the live objects on rank 0; all ranks call it together."""
        for program in self.programs:
            program.collect()

    def close(self) -> None:
        """Collect, and free all programs; all ranks call it together."""
        for program in self.programs:
            program.close()
        self._made.clear()
        siblings = _ALL.get(self._agreement, [])
        if self in siblings:
            siblings.remove(self)
            self._agreement.release()

    # -- programs -------------------------------------------------------------------------------

    def _find(self, given: Given) -> int:
        """The program for a call, by its number."""
        for number, made in enumerate(self._made):
            if made.fits(given.key):
                return number
        for made in self._made:
            if made.key == given.key and made.binding and made.binding.assumptions:
                self._varying |= made.binding.assumptions.changed_settings()
        return _NEW

    def _make(self, given: Given | None) -> bool:
        """Make a program for a call, as the last one; False if torch shall run it itself."""
        agreement = self._agreement
        in_torch = False
        make: Callable[[], Made] = _nothing
        error: DistSPMDError | None = None
        if given is not None:
            try:
                make = self._program(given)
            except FirstStepDiffers as problem:
                in_torch, error = not self._eager, problem if self._eager else None
                self._eager = True
            except DistSPMDError as problem:
                error = problem
            except Exception as problem:
                error = UnsupportedProgram(
                    f"{self.name} cannot be lowered: {type(problem).__name__}: {problem}"
                )
                error.__cause__ = problem
        agreement.wait(error)
        if agreement.bcast(in_torch):
            return False
        program = load_together(agreement, make, self._arithmetic, self._device)
        binding = program.binding if given is not None else None
        assert binding is None or isinstance(binding, MemoryBinding)
        self._made.append(_Made(program, given and given.key, binding))
        if len(self._made) > HEURISTICS.programs_kept:
            self._made.pop(0).program.close()
        return True

    def _program(self, given: Given) -> Callable[[], Made]:
        """What makes the program of a call: one that is kept, or a trace that is lowered."""
        ranks = self._agreement.ranks
        asked = (self.name, self._entries, self._options, self._arithmetic, ranks, self._wanted)
        decided = (*asked, given.key, given.strides)
        called = given.function, given.tensors, self._varying
        kept = KeptProgram.of(*called, *decided, device=self._device)
        found = kept.find()
        if found is not None:
            self.found += 1
            for sentence in found[1].warned:
                warn(sentence)
            if self._wanted is not None:
                notice(f"{self.name}: by an earlier process. {found[1].remarks[-1]}")
            return lambda: found
        sdfg = given.traced(self.name, self._varying)
        lowered = self._lower(sdfg).sdfg

        def make() -> Made:
            built, lowering = build_for(lowered, ranks, self._arithmetic, self._device)
            binding = binding_of(lowered)
            assert isinstance(binding, MemoryBinding)
            kept.keep(built, lowering, binding)
            self.not_kept = kept.reason
            return built, lowering, binding

        return make

    def _lower(self, sdfg: SDFG) -> Lowering:
        """Lower the program of a call; one that patterns do not split, all ranks compute alike."""
        if self._wanted is not None:
            return lower_searched(sdfg, self._entries, self._wanted, arguments=self._options)
        try:
            return pipeline.lower_numbers(sdfg, self._entries, arguments=self._options)
        except NothingSplit as problem:
            warn(f"{self.name}: {problem} All ranks compute all of it.")
            held = Schedule(held=getattr(self._entries, "held", {}))
            return pipeline.lower_numbers(sdfg, held, arguments=self._options)

    def _run_in_torch(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The first step of an optimizer, where no other one does what it does."""
        for each in _ALL[self._agreement]:
            each.collect()
        error: Exception | None = None
        result: Any = missing_result(self.name, "on rank 0", 1)
        if self._agreement.rank == 0:
            try:
                assert self.function is not None
                with running_as_written():
                    result = self.function(*arguments, **named)
            except Exception as problem:
                error = problem
        self._agreement.wait(error)
        return pytree.tree_map(
            lambda leaf: leaf.detach() if isinstance(leaf, torch.Tensor) else leaf, result
        )

    def _take_over(self, made: _Made) -> None:
        """Let a program begin with what others have of the same tensors."""
        for sibling in _ALL[self._agreement]:
            for other in sibling._made:
                if other is not made and other.program.holds_values:
                    pairs = _pairs(made.binding, other.binding)
                    made.program.take_over(other.program, pairs)


def _passed(arguments: Any) -> dict[str, Passed | None]:
    """What a rank passes, by the places of tensors."""
    leaves = pytree.tree_leaves(arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return {f"tensor {number}": Passed.of(tensor) for number, tensor in enumerate(tensors)}


def _nothing() -> Made:
    raise AssertionError("only rank 0 makes programs")


_ALL: dict[Agreement, list[Partitioned]] = {}
"""By the ranks that they run on; in the order in which they were made, which all ranks share."""


@dataclass
class Given:
    """A call on rank 0.

    Attributes:
        function: of the tensors alone.
        inner: what is called.
        tensors: all that the call passes.
        names: of these, in the program.
        key: what tells calls apart that need programs of their own.
    """

    function: Callable[..., Any]
    inner: Callable[..., Any] | nn.Module
    tensors: list[torch.Tensor]
    names: list[str]
    key: Any

    @classmethod
    def of(cls, inner: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Given:
        """Take a call apart.

        Raises:
            ArgumentError: nothing to call, or something that no program takes.
        """
        if not callable(inner):
            raise ArgumentError(
                f"partitioned: rank 0 needs a function or a module, but {inner!r} was given."
            )
        leaves, structure = pytree.tree_flatten((arguments, dict(named)))
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor | bool | int | float | str | None):
                raise ArgumentError(
                    f"the function is called with a {type(leaf).__name__}; pass tensors, numbers, "
                    "texts, and tuples, lists and dictionaries of them. Let the function close "
                    "over all else."
                )

        def flat(*tensors: torch.Tensor) -> Any:
            filled = list(leaves)
            for place, tensor in zip(places, tensors, strict=True):
                filled[place] = tensor
            given, by_name = pytree.tree_unflatten(filled, structure)
            return inner(*given, **by_name)

        tensors = [leaves[place] for place in places]
        kinds = [
            (tuple(leaf.shape), leaf.dtype, leaf.requires_grad)
            if isinstance(leaf, torch.Tensor)
            else (type(leaf), leaf)
            for leaf in leaves
        ]
        names = input_names(inner, arguments, named, len(tensors))
        return cls(flat, inner, tensors, names, (structure, kinds))

    def traced(self, title: str, varying: set[str]) -> Any:
        """The program of the call, as an SDFG."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._is_module):
            return traced_program(self.function, self.tensors, self.names, title, varying)

    def linked(self, result: Any, name: str) -> Any:
        """The result of a module, whose gradients are asked for in vain, with a sentence."""
        if not self._is_module or not torch.is_grad_enabled():
            return result
        assert isinstance(self.inner, nn.Module)
        sources = [*self.tensors, *self.inner.parameters()]
        sources = [each for each in sources if each.requires_grad]

        def link(leaf: Any) -> Any:
            is_smooth = isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point
            return _Linked.apply(leaf, name, *sources) if is_smooth and sources else leaf

        return pytree.tree_map(link, result)

    @property
    def strides(self) -> list[tuple[int, ...]]:
        """Of the tensors."""
        return [tensor.stride() for tensor in self.tensors]

    @property
    def _is_module(self) -> bool:
        return isinstance(self.inner, nn.Module)


class _Linked(torch.autograd.Function):
    """A result of a program, as torch sees it: of all that needs gradients."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, name: str, *sources: torch.Tensor) -> torch.Tensor:
        """The result itself."""
        ctx.name = name
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Refused: ranks have run the forward pass as one program, which keeps nothing for it."""
        raise UnsupportedProgram(
            f"backward(): ranks have run the forward pass of {ctx.name} as a program, which keeps "
            "nothing for a backward pass. Put the loss and backward() into a function that calls "
            f"the module, and partition that: def step(x, y): loss = criterion({ctx.name}(x), y); "
            "loss.backward(); return loss. Or call the module in torch.no_grad()."
        )


def _pairs(mine: MemoryBinding | None, theirs: MemoryBinding | None) -> dict[str, str] | None:
    """Arguments of two programs that are the same tensor; None on ranks that do not know."""
    if mine is None or theirs is None:
        return None
    by_tensor = {id(tensor): name for name, tensor in _lasting(theirs)}
    return {name: by_tensor[id(t)] for name, t in _lasting(mine) if id(t) in by_tensor}


def _lasting(binding: MemoryBinding) -> list[tuple[str, torch.Tensor]]:
    """The live tensors of a program, but for gradients that are only made for a call."""
    tensors = [(name, binding.live[name].mark()[0]) for name in binding.names]
    return [(name, tensor) for name, tensor in tensors if tensor is not None]
