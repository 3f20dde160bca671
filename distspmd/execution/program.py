"""Compiled programs on every rank: they check arguments, fill in what ranks differ in, and run.

Rank 0 compiles, with DaCe. The others receive records, and import neither DaCe nor SymPy: that
would take longer than all else of their start.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distspmd.codegen.build_record import Build
from distspmd.errors import (
    ArgumentError,
    DeviceError,
    DistSPMDError,
    ProgramValueError,
    listed,
)
from distspmd.execution.binding import Binding, binding_of
from distspmd.execution.builds import build_for
from distspmd.execution.executable import Executable, load_executable
from distspmd.execution.first_calls import FirstCalls
from distspmd.execution.listening import ANSWERS
from distspmd.execution.messages import MESSAGES
from distspmd.execution.passed import FirstCall
from distspmd.execution.resident_arguments import Residents
from distspmd.execution.signature import Signature
from distspmd.layouts.layout import Layout
from distspmd.lowering import Graphs, Lowering, RecordedMove, lowering_of
from distspmd.runtime.compilers.failures import generation_error
from distspmd.runtime.engine.collective_resource import Closing
from distspmd.runtime.engine.engine import Statistics
from distspmd.runtime.host.host_regions import NO_OBJECTS, KeptObjects
from distspmd.runtime.notices import warn
from distspmd.runtime.watch.agreement import Agreement, Call

if TYPE_CHECKING:
    from dace import SDFG


def compile_and_load(
    sdfg: SDFG | None, comm: Any, *, arithmetic: str = "vector", device: str | None = None
) -> Program:
    """Compile a lowered SDFG on rank 0, and load it on all ranks of a communicator.

    Arguments and errors are those of :func:`distspmd.compile`; other ranks may pass None.
    """
    agreement = Agreement.of(comm, COMPILES)
    with agreement.calling(COMPILES):
        agreement.check()
        return compile_together(agreement, sdfg, arithmetic, device)


COMPILES = Call.of("compile(...)")


@dataclass(frozen=True)
class Started:
    """A program that was compiled before, with the record of its lowering."""

    build: Build
    lowering: Lowering


def compile_together(
    agreement: Agreement,
    given: SDFG | Lowering | Started | None,
    arithmetic: str,
    device: str | None = None,
) -> Program:
    """The same in a call in which all ranks have met; the first alone looks at the SDFG."""
    record = given.lowering if isinstance(given, Started) else given
    lowered: Lowering | None = lowering_of(record)
    name = getattr(record, "name", None)
    asked = lowered.asked if lowered else None
    text = f"compile({name}), lowered with {dict(asked[0]) if asked else None}"
    agreement.compare(asked and (name, *asked), text, "compile different programs")

    def make() -> Made:
        if isinstance(given, Started):
            return given.build, given.lowering, None
        sdfg = given.sdfg if isinstance(given, Lowering) else given
        return *build_for(sdfg, agreement.ranks, arithmetic, device), binding_of(sdfg)

    return load_together(agreement, make, arithmetic, device)


Made = tuple[Build, Lowering, Binding | None]
"""A compiled program, the record of its lowering, and what it is bound to."""


def load_together(
    agreement: Agreement, make: Callable[[], Made], arithmetic: str, device: str | None = None
) -> Program:
    """Load what rank 0 makes, on all ranks, in a call in which they have met.

    What it raises, all ranks raise. They say alike for which arithmetic and device it is.
    """
    text = f"compile(..., arithmetic={arithmetic!r}{f', {device=}' if device else ''})"
    agreement.compare((arithmetic, device), text, "compile differently")
    if device and agreement.driver is not None:
        agreement.driver.check_devices(device)
    elif device:
        from distspmd.execution.device_executable import check_devices

        check_devices(agreement, device)
    made: tuple[Build, Lowering] | None = None
    binding: Binding | None = None
    error: Exception | None = None
    if agreement.rank == 0:
        try:
            built, lowering, binding = make()
            made = built, lowering
            if idle := lowering.idle_sentence(built.name, agreement.ranks):
                warn(idle)
        except DistSPMDError as problem:
            error = problem
        except Exception as problem:
            error = generation_error(problem)
    agreement.wait(error)
    if agreement.driver is not None:
        assert made is not None
        driven: Program = agreement.driver.load(*made, binding)
        return driven
    elsewhere = binding.elsewhere() if binding else None
    (built, lowering), elsewhere = agreement.bcast((made, elsewhere))
    program = Program(built, lowering, agreement.comm, binding or elsewhere)
    if made and made[1].sdfg is not None:
        program.graph = weakref.ref(made[1].sdfg)
    return program


class Program(Closing):
    """A lowered program that all ranks call together.

    ``program(x=x)`` takes arrays on rank 0 and returns the results there; other ranks call
    ``program()`` and get a :class:`distspmd.runtime.MissingResult`, which says where results are.
    What they pass is not looked at. Of arguments and results that are ``replicated`` or
    ``distributed`` (see :func:`distspmd.lower`), every rank passes and gets its own: all of it, or
    its tile in ``program.layout(name)``.
    """

    def __init__(
        self, built: Build, lowering: Lowering, comm: Any, binding: Binding | None = None
    ) -> None:
        self._agreement = Agreement.of(comm, COMPILES).hold()
        self.lowering, self.build = lowering, built
        self.graph: weakref.ref[SDFG] | None = None
        """The lowered SDFG on the rank that has made it, as long as somebody else has it."""
        self.comm = self._agreement.comm
        self.rank: int = comm.Get_rank()
        self._is_needed = self.rank < lowering.ranks
        self.signature = self._signature_of(built, lowering)
        self._agreement.programs += 1
        number, grids = self._agreement.programs, dict(lowering.asked[0])
        text = f"{self.signature.program}(...)"
        wording = f"{text}, program {number} of the communicator, lowered with {grids},"
        self._call = Call.of(text, built.library, number, wording=wording)
        self.binding = binding
        self.device = built.device
        """What was decided for a device, if the program runs on one."""
        self._executable = self._load(built, lowering)
        self._objects = NO_OBJECTS
        """Those of Python that the call that is being made returns."""
        self._first_call = FirstCall(self._agreement, self.signature)
        self._first_calls = self._timed()
        self.residents = self._keep()
        """What stays on the ranks between calls."""

    def _signature_of(self, built: Build, lowering: Lowering) -> Signature:
        """What this rank passes and gets."""
        return Signature.of(built, lowering, self.rank)

    def _load(self, built: Build, lowering: Lowering) -> Executable:
        """What runs the program."""
        return load_executable(built, lowering, self._agreement)

    def _timed(self) -> FirstCalls:
        """What times the first calls; those of a device, or of a driver's ranks, nobody times."""
        engine = None if self.device else self._executable.engine
        return FirstCalls(self.lowering, engine, self.comm)

    @property
    def fixed(self) -> Collection[str]:
        """Names of arguments for whose values the program was made."""
        return self.signature.call_form.fixed.keys()

    @property
    def transport(self) -> str:
        """How tiles move between devices: those of ``pulls, nccl, mpi, staged`` that plans use."""
        return str(self._executable.transport.name) if self.device else ""  # type: ignore[attr-defined]

    @property
    def transports(self) -> tuple[str, ...]:
        """How the tiles of each distributed memlet move between devices; empty without one."""
        return tuple(self._executable.transport.of_plans) if self.device else ()  # type: ignore[attr-defined]

    @property
    def piece_bytes(self) -> tuple[int, ...]:
        """Of each memlet, bytes of the pieces in which it passes through the host, or 0."""
        return tuple(self._executable.transport.portions) if self.device else ()  # type: ignore[attr-defined]

    @property
    def staged_because(self) -> str:
        """Why no tile goes from device to device; empty if some may."""
        return str(self._executable.transport.staged_because) if self.device else ""  # type: ignore[attr-defined]

    @property
    def pulls(self) -> int:
        """Moves so far in which this rank copied out of other ranks' devices, without the host."""
        return self._executable.pulls() if self.device else 0  # type: ignore[attr-defined]

    @property
    def device_messages(self) -> int:
        """Moves so far whose messages went between devices, without the host."""
        return self._executable.messages() if self.device else 0  # type: ignore[attr-defined]

    @property
    def staged_pieces(self) -> int:
        """Moves so far in which tiles went through pinned memory of the host in pieces."""
        return self._executable.in_pieces() if self.device else 0  # type: ignore[attr-defined]

    def _keep(self) -> Residents:
        """Storage of what stays on the ranks between calls: what the binding has, elsewhere."""
        known = self.signature.parameters
        mine = set(self.binding.names) if self.binding and self.rank == 0 else set()
        mine &= known.keys()
        alone = mine.intersection(self.binding.without_memory) if self.binding else set()
        held = self.lowering.argument_layouts.keys()
        told = sorted(mine & held), sorted(alone), sorted(alone - held)
        kept, alone, lost = self._agreement.bcast(told)
        self._refuse_lost(lost)
        layouts = {name: self.lowering.argument_layouts[name] for name in kept}
        dtypes = {name: known[name].dtype for name in kept}

        def new_tile(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
            return self._executable.new_tile(known[name].position, shape, dtype)

        found: Residents | None = None
        error: Exception | None = None
        try:
            found = Residents(self.comm, layouts, dtypes, new_tile, alone)
        except DeviceError as problem:
            error = problem
        if kept:
            self._agreement.check(error)
        assert found is not None
        return found

    def _refuse_lost(self, names: Collection[str]) -> None:
        """Refuse what rank 0 would have to hold but has no memory for."""
        if names:
            raise ArgumentError(
                f"{listed(sorted(names))}: no memory is behind these (their device is 'meta'), but "
                "rank 0 is to hold them. Lower the program with arguments=frontend.resident(sdfg, "
                "parameters='distributed'), or with a preset such as frontend.fsdp(4)."
            )

    def layout(self, name: str) -> Layout:
        """In which layout the caller holds an argument or a result.

        Raises:
            ArgumentError: the program has none of that name.
        """
        return self.signature.layout(name)

    def tile(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """What this rank passes for an argument, cut out of the whole array: a copy.

        Raises:
            ArgumentError: the program has none of that name, or the array has another shape.
        """
        return self.signature.tile(name, array)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program; on rank 0 with the arguments of the original program.

        A program on a device also takes arrays in its memory, which are used where they lie; if a
        rank passes one, its results are of that kind. It then takes ``stream=``, too: the program
        begins when what was queued on that stream is done. It has ended when the call returns.

        Returns:
            On rank 0 what the original program returns; on other ranks the same of
            :class:`distspmd.runtime.MissingResult`, which refuse any use and say where results are.
            Results that are replicated or distributed are returned on every rank that takes part.

        Raises:
            ArgumentError: on all ranks, before anything runs; on one, if the program is closed.
            ProgramError: on all ranks; what the program itself raises, with the source line.
            DisagreementError: on all ranks: they call different things, or one of them has ended.
        """
        outer = self._agreement.enter(self._call)
        try:
            return self._called(arguments, named)
        finally:
            self._agreement.leave(outer)

    def _called(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if not self._executable.is_open:
            raise self._closed()
        arrays, results, error = self.prepared(arguments, named)
        self._meet(error)
        return self._finished(arrays, results, arguments, named)

    @property
    def tells(self) -> bool:
        """Whether it prints, or may end with an error of its own."""
        return bool(self._executable.tells)

    @property
    def takes_arrays_alone(self) -> bool:
        """Whether a call depends on nothing but what is passed, and runs on processors."""
        plain = type(self) is Program and not self.device and not self.residents.layouts
        return plain and self.binding is None

    def prepared(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[dict[int, NDArray[Any]], list[Any], Exception | None]:
        """What a call runs on: arrays by their positions, and results; or what is wrong with it."""
        if not self._executable.is_open:
            return {}, [], self._closed()
        if not self.signature.takes_part:
            return {}, [], None
        try:
            return *self._arrays(arguments, named), None
        except (ArgumentError, DeviceError) as problem:
            return {}, [], problem
        except Exception as problem:  # all ranks must learn of it, whatever it is
            error = ArgumentError(
                f"{self.signature.program}: the arguments cannot be used: "
                f"{type(problem).__name__}: {problem}"
            )
            error.__cause__ = problem
            return {}, [], error

    def finished(
        self, arrays: dict[int, NDArray[Any]], results: list[Any], named: dict[str, Any]
    ) -> Any:
        """Run what is prepared, where all ranks have met for that; they do it together."""
        outer = self._agreement.enter(self._call)
        try:
            return self._finished(arrays, results, (), named)
        finally:
            self._agreement.leave(outer)

    def _finished(
        self,
        arrays: dict[int, NDArray[Any]],
        results: list[Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        self._first_call.compare(arguments, named)
        if self._first_calls.left:
            self._first_calls.run(lambda: self._run(arrays))
        else:
            self._run(arrays)
        if self.binding:
            self.binding.has_run()
        if not self.signature.results:
            return None
        results = self.signature.completed(results)
        if self.binding:
            return self.binding.returned(results)
        objects, self._objects = self._objects, NO_OBJECTS
        return self.signature.returned(
            results, self._executable.handing(arrays), objects.__getitem__
        )

    def _run(self, arrays: dict[int, NDArray[Any]]) -> None:
        """Run what this rank has of it."""
        if self._executable.tells:
            self._run_and_listen(arrays)
        elif self._is_needed:
            self._executable.run(arrays)

    def _meet(self, error: Exception | None) -> None:
        """Come together, and give the ranks what has changed in the live memory since."""
        residents = self.residents
        if not residents.layouts:
            self._agreement.meet(self._call.tag, error)
            return
        changed = [] if error else self._changed()
        met = self._agreement.meet(self._call.tag | (not changed), error)
        if met == self._call.tag:  # rank 0 has what the others have not
            residents.fresh -= set(self._agreement.bcast(changed))
        if residents.missing:
            residents.distribute(self.live())

    def _changed(self) -> list[str]:
        """What others than this program have written in the live memory, on rank 0."""
        if self.rank != 0 or not self.binding:
            return []
        changed = self.binding.changed(self.residents.layouts.keys())
        return sorted(self.residents.fresh.intersection(changed))

    def refresh(self) -> None:
        """Let the ranks hold the values that count; all ranks call it together.

        Raises:
            ArgumentError: nobody has values for some tensors.
        """
        if not self._executable.is_open:
            raise self._closed()
        self.residents.fresh -= set(self._agreement.bcast(self._changed()))
        if self.residents.missing:
            self.residents.distribute(self.live())

    def now_holds(self, names: Collection[str]) -> None:
        """Note that the ranks have been given values of some arguments; all ranks call it together.

        These count from now on, of others what was written in the live memory since.
        """
        self.residents.fresh -= set(self._agreement.bcast(self._changed()))
        self.residents.fresh.update(names)

    @property
    def holds_values(self) -> bool:
        """Whether the ranks hold values for it that may count; the same on all ranks."""
        return bool(self.residents.fresh)

    def on_each(self, work: Callable[..., None], *arguments: Any) -> None:
        """Let each process that holds a part of what is kept do something with its part.

        All ranks call it together.
        """
        work(self, *arguments)

    @property
    def place(self) -> int:
        """The rank whose part this process holds."""
        return self.rank

    def take_over(self, other: Program, pairs: Mapping[str, str] | None) -> None:
        """Begin with what the ranks hold for another program that is bound to the same tensors.

        All ranks call it together; the other one does so before it is called again.

        Args:
            other: which has not the values that count any more.
            pairs: on rank 0, names of arguments here, and there.
        """
        self.now_holds(())
        other.now_holds(())
        pairs = self._agreement.bcast(pairs)
        self.residents.take(other.residents, pairs, self.live(), other.live())
        self._changed()

    def _run_and_listen(self, arrays: dict[int, NDArray[Any]]) -> None:
        """Run a program that prints, or that may end with an error, which all ranks raise."""
        MESSAGES.prints, MESSAGES.error = self.rank == 0, None
        if self._is_needed:
            start = time.perf_counter()
            self._executable.run(arrays)
            MESSAGES.take_noted(self._executable.noted)
            if ANSWERS.seconds:
                ANSWERS.tell(self.signature.program, time.perf_counter() - start)
        objects = KeptObjects.of(self.signature.objects) if self.signature.objects else NO_OBJECTS
        error = MESSAGES.take_error()
        self._give_objects(objects, error)

    def _give_objects(self, objects: KeptObjects, error: Exception | None) -> None:
        """Give objects of Python that the first rank has kept to those that get them."""
        is_sent = self.signature.gives_objects_to_others
        sent = b""
        if is_sent and self.rank == 0 and error is None:
            try:
                sent = objects.packed(self.signature.program)
            except ProgramValueError as problem:
                error = problem
        self._agreement.meet(self._call.tag, error)
        if is_sent:
            sent = self._agreement.bcast(sent)
            objects = objects if self.rank == 0 else KeptObjects.unpacked(sent)
        self._objects = objects

    def _closed(self) -> ArgumentError:
        return ArgumentError(
            f"{self.signature.program} is closed: its memory and plans are freed. Call it before "
            "close(), or within the with block; or compile it again."
        )

    def _arrays(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[dict[int, NDArray[Any]], list[Any]]:
        """Arguments and results of a call by their positions, and the results in their order."""
        stream = None
        if self.device and "stream" in named and "stream" not in self.signature.parameters:
            named = dict(named)
            stream = named.pop("stream")
        is_plain = not arguments and not self.signature.call_form.has_other_names
        bound = named if is_plain else self.signature.bind(arguments, named)
        if self.rank > 0:
            bound = self.signature.of_this_rank(bound)
        if self.device:
            bound = self._executable.on_device(bound, stream)
        arrays = self.signature.check(self._completed(bound))
        if self.binding is None:
            self.signature.check_apart(arrays)
        passed = arrays
        if self.device and self.binding and not self.binding.is_on_device:
            kept = {self.signature.parameters[name].position for name in self.residents.tiles}
            passed = {at: array for at, array in arrays.items() if at not in kept}
        results = self._executable.new_results(self.signature, passed)
        for parameter, result in zip(self.signature.results, results, strict=True):
            if result is not None:
                arrays[parameter.position] = self._executable.memory_of(result)
        return arrays, results

    def _completed(self, given: dict[str, Any]) -> dict[str, Any]:
        """What the caller passed, as arrays, with what it need not pass."""
        if not self.binding:
            return given
        tiles = {n: p.shape for n, p in self.signature.parameters.items() if p.layout}
        arrays = {n: self.binding.given(n, value, tiles.get(n)) for n, value in given.items()}
        own = {**self.binding.arguments(), **self.residents.tiles}
        if self.device:
            own = self._executable.on_device(own, None)
        return {**own, **arrays}

    def live(self) -> Mapping[str, NDArray[Any]]:
        """Of what stays on the ranks, the memory behind it on rank 0."""
        if self.rank != 0 or not self.binding:
            return {}
        return self.binding.held(self.residents.layouts.keys())

    def collect(self) -> None:
        """Bring what stays on the ranks between calls to rank 0; all ranks call it together.

        That are parameters and states to which the program is bound and that ``arguments=`` of
        :func:`distspmd.lower` has distributed. Of replicated ones rank 0 always has the values.
        """
        if not self._executable.is_open:
            raise self._closed()
        self.now_holds(())  # and overwrites nothing that others have written there
        self.residents.collect(self.live())

    def distribute(self) -> None:
        """Let the next call begin with what rank 0 has now; all ranks call it together.

        The first call does so by itself, and later ones do where parameters or states to which the
        program is bound have been changed on rank 0 in a way that torch notes: in place, or by
        other tensors. What was written through ``.data`` or NumPy needs it.
        """
        self.residents.fresh &= self.residents.without_memory

    # -- what happened --------------------------------------------------------------------------

    def statistics(self) -> list[tuple[RecordedMove, Statistics]]:
        """Of each distributed memlet: time, calls and bytes received on this rank so far.

        The bytes are counted where they are carried, beside the fewest that any plan needs. First
        what is planned, then what is resolved at run time, then exchanges of rows, and library
        calls in which ranks talk.
        """
        if not self._executable.is_open:
            raise self._closed()
        engine, found = self._executable.engine, self.lowering
        return [
            *((m, engine.statistics(n)) for n, m in enumerate(found.memlets)),
            *((m, engine.fetch_statistics(n)) for n, m in enumerate(found.fetches)),
            *((m, engine.exchange_statistics(n)) for n, m in enumerate(found.row_exchanges)),
            *((t, engine.talk_statistics(n)) for n, t in enumerate(found.talks)),
        ]

    def _repr_html_(self) -> str:
        graph = self.graph and self.graph()
        return replace(self.lowering, graphs=graph and Graphs(graph))._repr_html_()

    def reset_statistics(self) -> None:
        """Count from zero again."""
        if not self._executable.is_open:
            raise self._closed()
        self._executable.engine.reset_statistics()

    def close(self) -> None:
        """Collect, and free the program's memory and communicators; all ranks call it together."""
        if not self._executable.is_open:
            return
        call = Call.of(f"{self.signature.program}.close()", self._call.tag)
        with self._agreement.calling(call):
            self._agreement.check()
            self.collect()
            self._executable.close()
        self._agreement.release()
