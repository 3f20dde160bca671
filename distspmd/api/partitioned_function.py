"""The decorator: a NumPy function that ranks call together, made anew where a call needs that."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

import distspmd
from distspmd.api import steps
from distspmd.errors import ArgumentError, DistSPMDError, UnsupportedProgram
from distspmd.execution.call_keys import (
    comparable,
    is_all_code,
    kind_of,
    value_of,
    what_is_new,
)
from distspmd.execution.program import Program, Started
from distspmd.execution.symbolic_program import SymbolicProgram
from distspmd.frontend.from_numpy.reader.sources import globals_of
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.placement.argument_layouts import is_tile
from distspmd.plans.machine import Machine
from distspmd.plans.solver import Solver
from distspmd.runtime.calls.form import bound_by_name, call_form_of, given_of
from distspmd.runtime.launch.driver_ranks import Driven, OnRanks, default_comm, started
from distspmd.runtime.notices import notice
from distspmd.runtime.watch.agreement import Agreement, Call
from distspmd.schedule import Entries, Holding, as_entries

if TYPE_CHECKING:
    from dace import SDFG

    from distspmd.analysis.iteration_spaces import IterationSpaces
    from distspmd.explanation import Explanation
    from distspmd.frontend.from_numpy.reader.outside_values import Seen
    from distspmd.symbolic_lowering import SymbolicLowering


def program(
    function: Callable[..., Any] | None = None,
    *,
    schedule: Entries | str | os.PathLike[str] | None = None,
    ranks: int | None = None,
    memory: int | str | None = None,
    search: bool = True,
    mesh: Mesh | Mapping[str, int] | None = None,
    arguments: Mapping[str, Holding] | None = None,
    results: Holding | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
    arithmetic: str = "vector",
    device: str | None = None,
    host: str = "tell",
    comm: Any = None,
) -> Any:
    """Make a NumPy function one that all ranks of a communicator call together.

    ``@distspmd.program(schedule={"hidden": (4, 1, 1)})`` above a function, or ``@distspmd.program``
    alone: then the best schedule is searched for, once for all processes, and a line says what was
    found. The keywords are those of :func:`lower` and :func:`compile`, and:

    Args:
        function: what is decorated; also a ``@dace.program``.
        ranks: of a search; those of the communicator where there is no schedule.
        comm: an mpi4py communicator, or ranks that :func:`distspmd.ranks` has started; where left
            out, the ranks that are started when it is called, or ``MPI.COMM_WORLD``.

    Returns:
        A :class:`PartitionedFunction`, or a decorator that makes one.
    """
    entries = None if schedule is None and mesh is None else as_entries(schedule, mesh)
    options = {
        "ranks": ranks,
        "memory": memory,
        "search": search,
        "arguments": arguments,
        "results": results,
        "solvers": solvers,
        "machine": machine,
        "deterministic": deterministic,
        "fuse": fuse,
        "host": host,
    }

    def decorate(function: Callable[..., Any]) -> PartitionedFunction:
        return PartitionedFunction(function, entries, options, arithmetic, comm, device)

    return decorate if function is None else decorate(function)


class PartitionedFunction(steps.Decorated):
    """A NumPy function that ranks run together; made by :func:`program`.

    All ranks call it. The first call with arguments of some shapes and types parses, lowers and
    compiles the function for them; later ones find the compiled program. Rank 0 passes the
    arguments, and gets what the function returns; other ranks pass nothing, or the same, unless
    ``arguments=`` says that they hold something. An argument that is ``"distributed"`` is a tile,
    so that its shape has to be in the function's annotations. A symbol that the function reads and
    that no shape determines is passed by its name, ``steps(x, T=100)``.

    Attributes:
        function: the function itself.
        schedule: as :func:`lower` takes it; None where it is searched for.
        device: as :func:`compile` takes it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        schedule: Entries | None,
        options: Mapping[str, Any],
        arithmetic: str,
        comm: Any,
        device: str | None = None,
    ) -> None:
        self.function = function
        self.schedule = schedule
        self._options, self._arithmetic = dict(options), arithmetic
        self.device = device
        self._comm = comm
        self._called_on: Any = None
        self._agreement: Agreement | None = None
        self._call: Call | None = None
        self._signature = inspect.signature(_python_function(function))
        self._programs: dict[Any, Program | SymbolicProgram] = {}
        self._fixed: set[str] = set()
        self._seen, self._held = list[Any](), list[Any]()
        self._unchanging: Seen | None = None
        self._again: dict[Any, _Again] = {}
        self._last: _Again | None = None
        every = self._signature.parameters.values()
        is_plain = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in every)
        self._names = tuple(p.name for p in every) if is_plain else ("*",)
        self.__name__ = getattr(function, "__name__", _python_function(function).__name__)
        functools.update_wrapper(self, _python_function(function))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the function on all ranks, which get what :class:`distspmd.execution.Program` says.

        Raises:
            ArgumentError: on all ranks, before anything runs.
            DisagreementError: on all ranks: they call different functions, or the same one with
                other schedules, or one of them has ended.
            ScheduleError, UnsupportedProgram, NoSolver, CompilationError: on all ranks, at the
                first call for some shapes and types.
        """
        if _INSTEAD:
            return _INSTEAD[-1](self, self._bind(arguments, named, partial=False))
        agreement, call = self._ranks()
        if agreement.driver is not None:  # threads wait for each other there
            with agreement.calling(call):
                return self._called_by_key(agreement, arguments, named, have_met=False)
        outer = agreement.enter(call)
        try:
            again = self._like_before(agreement, arguments, named)
            if again is not None:
                passed = again.passed(arguments, named)
                arrays, results, error = again.program.prepared((), passed)
                state = call.tag if error else call.tag | again.number
                if agreement.meet(state) == state != call.tag:
                    return again.program.finished(arrays, results, passed)
            return self._called_by_key(agreement, arguments, named, have_met=again is not None)
        finally:
            agreement.leave(outer)

    def _called_by_key(
        self,
        agreement: Agreement,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        *,
        have_met: bool,
    ) -> Any:
        """Find the program by all that it depends on, or make it, and run it.

        Args:
            agreement: of the ranks.
            arguments: in their order.
            named: by name.
            have_met: whether the ranks have met for the call, and nothing is wrong with it.
        """
        stream = {}
        if "stream" in named and "stream" not in self._signature.parameters and self._on_device():
            named = dict(named)
            stream["stream"] = named.pop("stream")
        key, error, given = None, None, dict(named)
        first = agreement.rank == 0
        try:
            given = self._bind(arguments, named, partial=not first)
            key = self._key(given) if first else None
        except ArgumentError as problem:
            error = problem
        if not have_met:
            agreement.check(error)
        key = agreement.bcast(key)
        found = self._programs.get(key)
        if found is None:
            start = time.perf_counter()
            found = self._make(agreement, given)
            key = agreement.bcast(self._key(given) if first else None)
            if first and (again := what_is_new(key, list(self._programs), len(given))):
                seconds = time.perf_counter() - start
                notice(f"{self.__name__}: made again {again}, in {seconds:.1f} s")
            self._programs[key], self._held = found, [*self._held, *self._seen]
        passed = given_of(self._signature, given)  # the key has what programs are made for
        fixed = found.fixed
        result = found(**{n: v for n, v in passed.items() if n not in fixed}, **stream)
        self._remember(agreement, key, found, arguments, named)
        return result

    def _like_before(
        self, agreement: Agreement, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> _Again | None:
        """What a call before it ran, if this one is like it; elsewhere than on rank 0 the last."""
        last = self._last
        if last is None or (agreement.rank and not arguments and not named):
            return last
        kinds = self._kinds(arguments, named)
        if kinds is None or agreement.rank:
            return last if kinds else None
        found = self._again.get(kinds)
        if found is None or (found is not last and agreement.ranks > 1):
            return None
        return found if found.seen is not None and found.seen.is_the_same() else None

    def _remember(
        self,
        agreement: Agreement,
        key: Any,
        found: Program | SymbolicProgram,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        """Let calls like this one be known by the kinds of their arguments."""
        self._last = None
        if not isinstance(found, Program) or not found.takes_arrays_alone:
            return
        if agreement.driver is not None:
            return
        seen, number = self._unchanging, list(self._programs).index(key) + 1
        self._last = _Again(number, found, self._names, found.fixed, seen)
        kinds = self._kinds(arguments, named)
        if kinds is not None and agreement.rank == 0:
            self._again[kinds] = self._last

    def _kinds(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What tells arrays and numbers apart; None where something else is passed, or less."""
        names = self._names
        if len(arguments) + len(named) != len(names):
            return None
        values = arguments
        if named:
            rest = names[len(arguments) :]
            if named.keys() != {*rest}:
                return None
            values = (*arguments, *(named[name] for name in rest))
        found: list[Any] = []
        for name, value in zip(names, values, strict=True):
            kind = type(value)
            if kind is np.ndarray:
                found.append((value.dtype, value.shape))
            elif kind in _NUMBERS:
                found.append((kind, repr(value)) if name in self._fixed else kind)
            else:
                return None
        return tuple(found)

    def _on_device(self) -> bool:
        return bool(self.device or os.environ.get("DISTSPMD_DEVICE"))

    def _without_devices(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Arguments, where those that lie elsewhere are told by arrays of their form."""
        given = {n: v.stand_in() if isinstance(v, OnRanks) else v for n, v in given.items()}
        if not self._on_device():
            return given
        from distspmd.runtime.devices.views import stand_in

        return {name: stand_in(value) for name, value in given.items()}

    def lower(self, *examples: Any, **named: Any) -> Lowering | SymbolicLowering:
        """All decisions for arguments like these; without any, as the annotations say."""
        options = {**self._options, **self._ranks_of_search()}
        stay = _on_ranks(self._bind(examples, named, partial=True))
        if stay:  # they are taken where they lie
            held = options["arguments"] or {}
            options["arguments"] = {**dict.fromkeys(stay, "distributed"), **held}
        return steps.lower(self._parse(examples, named), self.schedule, **options)

    def explain(self, *examples: Any, **named: Any) -> Explanation:
        """What moves for arguments like these, by which plan and over which others."""
        return distspmd.explain(self.lower(*examples, **named))

    def spaces(self, *examples: Any, **named: Any) -> IterationSpaces:
        """What the schedule can name, for arguments like these."""
        return steps.iteration_spaces(self._parse(examples, named))

    def close(self) -> None:
        """Free all compiled programs; all ranks call it together."""
        for compiled in self._programs.values():
            compiled.close()
        self._forget()
        if self._agreement is not None:
            self._agreement.release()
            self._agreement = None

    def _forget(self) -> None:
        """Find no program that was made any more."""
        self._programs.clear()
        self._again.clear()
        self._last = None

    def _ranks_of_search(self) -> dict[str, int]:
        """The ranks of the communicator, where a schedule is searched for and no others are."""
        options = self._options
        if self.schedule is not None or not options["search"] or options["ranks"] is not None:
            return {}
        comm = self._comm or self._called_on or started()
        return {} if comm is None else {"ranks": comm.Get_size()}

    def _ranks(self) -> tuple[Agreement, Call]:
        comm = default_comm() if self._comm is None else self._comm
        if comm is not self._called_on:  # what was made for ranks that are gone ended with them
            self._forget()
            self._agreement, self._called_on = None, comm
        if self._agreement is None or self._call is None:
            self._call = Call.of(
                f"{self.__name__}(...)",
                comparable(self.schedule),
                comparable(self._options),
                self._arithmetic,
                self.device,
                wording=f"{self.__name__}(...), {self._asked},",
            )
            self._agreement = Agreement.of(comm, self._call).hold()
        return self._agreement, self._call

    @property
    def options(self) -> Mapping[str, Any]:
        """The keywords of :func:`lower` that its decorator was given."""
        return self._options

    @property
    def _asked(self) -> str:
        if self.schedule is None:
            return "searched for" if self._options["search"] else "with search=False"
        return f"with the schedule {self.schedule}"

    def _make(self, agreement: Agreement, given: Mapping[str, Any]) -> Program | SymbolicProgram:
        key: str | None = None
        is_kept = False

        def lowered() -> Lowering | SymbolicLowering | Started:
            nonlocal key, is_kept
            from distspmd.api import kept_starts  # which the first rank alone needs

            key = self._key_of_start(agreement, given)
            if key is not None and (kept := kept_starts.find(key)) is not None:
                self._note_fixed(kept.lowering.call_form.fixed)
                is_kept = True
                return kept
            try:
                with self._called_with(given):
                    lowering = self.lower(**given)
            except DistSPMDError:
                raise
            except Exception as problem:
                if isinstance(error := getattr(problem, "error", None), Exception):
                    raise error from None  # the function's own, in its first call
                raise UnsupportedProgram(
                    f"{self.__name__} cannot be lowered: {type(problem).__name__}: {problem}"
                ) from problem
            self._note_fixed(call_form_of(lowering.sdfg).fixed)
            return lowering

        found = steps.compile(
            lowered, agreement.comm, arithmetic=self._arithmetic, device=self.device
        )
        if key is not None and type(found) is Program and not is_kept:
            from distspmd.api import kept_starts

            kept_starts.keep(key, found)
        return found

    def _note_fixed(self, names: Iterable[str]) -> None:
        """Note arguments for whose values a program was made."""
        if not self._fixed.issuperset(names):
            self._again.clear()  # by numbers that did not decide code so far
            self._fixed.update(names)

    def _key_of_start(self, agreement: Agreement, given: Mapping[str, Any]) -> str | None:
        """Under which what is made for a call is kept for other processes; None where it is not."""
        if not isinstance(self.function, FunctionType):
            return None
        is_plain = self.schedule is None or type(self.schedule) is dict
        if agreement.driver is not None or self._on_device() or not is_plain:
            return None
        from distspmd.api import kept_starts

        options = [self.schedule, self._options, self._arithmetic]
        return kept_starts.key_of(self.function, given, options, agreement.comm)

    @contextmanager
    def _called_with(self, given: Mapping[str, Any]) -> Iterator[None]:
        """Read the function for a call; its arguments are not all here where ranks hold some."""
        held = self._options["arguments"] or {}
        is_elsewhere = _on_ranks(given) or self._on_device() or any(map(is_tile, held.values()))
        if is_elsewhere:
            yield
            return
        from distspmd.frontend.from_numpy.host.hosting import of_a_call

        own = {n: v for n, v in given.items() if n in self._signature.parameters}
        with of_a_call(_python_function(self.function), own):
            yield

    def _parse(self, examples: Sequence[Any], named: Mapping[str, Any]) -> SDFG:
        given = self._without_devices(self._bind(examples, named, partial=True))
        held = self._options["arguments"] or {}
        is_whole = isinstance(self._comm or started(), Driven)  # tiles are the ranks' own affair
        tiles = {n for n, kind in held.items() if is_tile(kind) and not is_whole}
        shown = {name: value for name, value in given.items() if name not in tiles}
        return steps.parse_source(self.function, shown, self._options["host"])

    def _bind(
        self, arguments: Sequence[Any], named: Mapping[str, Any], partial: bool
    ) -> dict[str, Any]:
        """Arguments and sizes by name, with the function's defaults where it is called in full."""
        sizes = {
            name: value
            for name, value in named.items()
            if name not in self._signature.parameters and self._is_size(name)
        }
        try:
            others = {name: value for name, value in named.items() if name not in sizes}
            bound = bound_by_name(self._signature, arguments, others, partial=partial)
        except TypeError as problem:
            raise ArgumentError(
                f"{self.__name__}{self._signature} was called with other arguments: {problem}."
            ) from None
        if not partial:
            bound.apply_defaults()
        return {**bound.arguments, **sizes}

    def _is_size(self, name: str) -> bool:
        """Whether a name is that of a symbol of DaCe's that the function sees."""
        if "dace" not in sys.modules:
            return False  # nobody can have made one
        from dace import symbol

        seen = globals_of(inspect.unwrap(_python_function(self.function)))
        return any(isinstance(value, symbol) and value.name == name for value in seen.values())

    def _key(self, given: Mapping[str, Any]) -> Any:
        """What tells calls apart that need programs of their own."""
        from distspmd.frontend.from_numpy.reader.outside_values import look_outside

        values = sorted(self._without_devices(given).items())
        roots = [_python_function(self.function), *(v for _, v in values if is_all_code(v))]
        outside, look = look_outside(roots)
        self._seen, self._unchanging = look.held, look.seen_alone
        of_values = (self._key_of(*value) for value in values)
        return (*outside, *of_values, *_on_ranks(given))

    def _key_of(self, name: str, value: Any) -> Any:
        """Of an argument or size; with its value where a program is made for that."""
        decides_code = name in self._fixed or name not in self._signature.parameters
        from distspmd.frontend.from_numpy.reader.outside_values import is_seen_whole

        kind = type(value).__qualname__ if is_seen_whole(value) else kind_of(value)
        return name, kind, value_of(value) if decides_code else None


@dataclass(frozen=True, eq=False)
class _Again:
    """A program that has run, by which calls like that one find it at once.

    Attributes:
        number: of the program, from 1 on; the same on all ranks.
        program: that is called.
        names: of the parameters of the function.
        fixed: those for whose values it was made.
        seen: what the function sees from outside, on rank 0; None where that may change.
    """

    number: int
    program: Program
    names: tuple[str, ...]
    fixed: Collection[str]
    seen: Seen | None

    def passed(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the program."""
        given = dict(zip(self.names, arguments, strict=False))
        given.update(named)
        for name in self.fixed:
            given.pop(name, None)
        return given


_NUMBERS = frozenset([bool, int, float, complex])

Instead = Callable[[PartitionedFunction, Mapping[str, Any]], Any]
_INSTEAD: list[Instead] = []


@contextmanager
def called_instead(call: Instead) -> Iterator[None]:
    """Let something else be done where decorated functions are called with some arguments."""
    _INSTEAD.append(call)
    try:
        yield
    finally:
        _INSTEAD.remove(call)


def _on_ranks(given: Mapping[str, Any]) -> list[str]:
    """Names of arguments that stay on the ranks of a driver."""
    return [name for name, value in given.items() if isinstance(value, OnRanks)]


def _python_function(function: Any) -> Callable[..., Any]:
    python: Callable[..., Any] = getattr(function, "f", function)
    return python
