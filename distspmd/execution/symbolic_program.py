"""Compiled programs of symbolic sizes: one program for each tuple of sizes, made at its first call.

All ranks make the same programs in the same order: rank 0 finds the sizes of a call in the shapes
of its arguments, and tells the others.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, CompilationError, DistSPMDError, ScheduleError
from distspmd.execution import program
from distspmd.execution.program import Program
from distspmd.layouts.layout import Layout
from distspmd.lowering import Lowering, RecordedMove
from distspmd.plans.heuristics import HEURISTICS
from distspmd.runtime.calls.form import call_form_of
from distspmd.runtime.engine.collective_resource import Closing
from distspmd.runtime.engine.engine import Statistics
from distspmd.runtime.watch.agreement import Agreement, Call

if TYPE_CHECKING:
    from distspmd.analysis.infer_sizes import Shape
    from distspmd.symbolic_lowering import SymbolicLowering

Sizes = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Signature:
    """What all ranks know of a program before its sizes."""

    name: str
    symbols: tuple[str, ...]
    ranks: int
    fixed: tuple[str, ...]


class SymbolicProgram(Closing):
    """A lowered program of symbolic sizes, that all ranks call together as any other.

    A call takes the sizes from the shapes on rank 0; a size that is in none is passed by name,
    ``program(x=x, N=100)``. The first call with some sizes lowers and compiles for them, unless the
    cache on disk has the program; :attr:`seconds` says how long each took.
    """

    def __init__(
        self,
        lowering: SymbolicLowering | None,
        comm: Any,
        arithmetic: str = "vector",
        device: str | None = None,
    ) -> None:
        self._agreement = Agreement.of(comm, program.COMPILES).hold()
        self.comm = self._agreement.comm
        self.rank: int = self._agreement.rank
        self._lowering, self._arithmetic, self._device = lowering, arithmetic, device
        self._closed = False
        signature: _Signature | None = None
        if lowering:
            self._shapes: dict[str, Shape] = lowering.shapes
            arguments = [name for name in lowering.sdfg.arg_names if name in lowering.sdfg.arrays]
            self._positional = arguments + [n for n in self._shapes if n not in arguments]
            fixed = tuple(call_form_of(lowering.sdfg).fixed)
            signature = _Signature(lowering.sdfg.name, lowering.symbols, lowering.ranks, fixed)
        shared: _Signature = self._agreement.bcast(signature)
        self._signature = shared
        if self.comm.Get_size() < shared.ranks:
            raise ScheduleError(
                f"the schedule of {shared.name!r} needs {shared.ranks} ranks, but the communicator "
                f"has {self.comm.Get_size()}. Start at least {shared.ranks} ranks (mpiexec -n "
                f"{shared.ranks}), or give fewer parts."
            )
        self._call = Call.of(f"{shared.name}(...)", "of symbolic sizes", shared.symbols)
        self._programs: OrderedDict[Sizes, Program] = OrderedDict()
        self.seconds: dict[Sizes, float] = {}
        """How long it took to lower, compile and load the program of each tuple of sizes."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program for the sizes of its arguments; see :meth:`Program.__call__`.

        Raises:
            ArgumentError: on all ranks, before anything runs.
            DisagreementError: on all ranks: they call different things, or one of them has ended.
        """
        error: Exception | None = None
        sizes: dict[str, int] = {}
        self._check_open()
        if self.rank == 0:
            try:
                sizes = self._sizes(arguments, named)
            except ArgumentError as problem:
                error = problem
        with self._agreement.calling(self._call):
            self._agreement.check(error)
            found = self._found(self._agreement.bcast(sizes))
            symbols = self._signature.symbols
            return found(*arguments, **{n: value for n, value in named.items() if n not in symbols})

    @property
    def fixed(self) -> tuple[str, ...]:
        """Names of arguments for whose values the program was made."""
        return self._signature.fixed

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError(
                f"{self._signature.name} is closed: its programs are freed. Call it before "
                "close(), or compile it again."
            )

    def at(self, **sizes: int) -> Program:
        """The program for some sizes; all ranks ask for it together."""
        self._check_open()
        call = Call.of(f"{self._signature.name}.at({sizes})", sorted(sizes.items()))
        with self._agreement.calling(call):
            self._agreement.check()
            return self._found(sizes)

    def _found(self, sizes: Mapping[str, int]) -> Program:
        key = tuple(sorted(sizes.items()))
        if key not in self._programs:
            self._programs[key] = self._made(sizes, key)
            if len(self._programs) > HEURISTICS.programs_kept:
                _, oldest = self._programs.popitem(last=False)
                oldest.close()
        self._programs.move_to_end(key)
        return self._programs[key]

    def _made(self, sizes: Mapping[str, int], key: Sizes) -> Program:
        start = time.perf_counter()
        lowering: Lowering | None = None
        error: Exception | None = None
        if self._lowering:
            try:
                lowering = self._lowering.at(**sizes)
            except DistSPMDError as problem:
                error = problem
            except Exception as problem:
                error = CompilationError(
                    f"{self._signature.name} cannot be lowered for {dict(key)}: "
                    f"{type(problem).__name__}: {problem}"
                )
                error.__cause__ = problem
        self._agreement.wait(error)
        made = program.compile_together(self._agreement, lowering, self._arithmetic, self._device)
        self.seconds[key] = time.perf_counter() - start
        return made

    def _sizes(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, int]:
        """The sizes of a call, on rank 0."""
        from distspmd.analysis.infer_sizes import infer

        symbols, name = self._signature.symbols, self._signature.name
        assert self._lowering, "rank 0 has it"
        named = call_form_of(self._lowering.sdfg).as_inside(named)
        bound = {**dict(zip(self._positional, arguments, strict=False)), **named}
        given = {n: bound[n] for n in symbols if n in bound}
        for symbol, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise ArgumentError(f"{name}: the size {symbol} is {value!r}; pass an integer.")
        if self._device:
            from distspmd.runtime.devices.views import stand_in

            bound = {data: stand_in(value) for data, value in bound.items()}
        found = {
            data: tuple(bound[data].shape)
            for data, shape in self._shapes.items()
            if isinstance(bound.get(data), np.ndarray) and not _is_scalar(shape)
        }
        return infer(name, symbols, self._shapes, found, {n: int(v) for n, v in given.items()})

    def layout(self, name: str, **sizes: int) -> Layout:
        """In which layout the caller holds an argument or a result, for some sizes."""
        return self.at(**sizes).layout(name)

    def tile(self, name: str, array: NDArray[Any], **sizes: int) -> NDArray[Any]:
        """What this rank passes for an argument, cut out of the whole array: a copy."""
        return self.at(**sizes).tile(name, array)

    # -- what happened --------------------------------------------------------------------------

    def statistics(self) -> list[tuple[RecordedMove, Statistics]]:
        """Of each distributed memlet of all programs: time, calls and bytes received so far."""
        return [each for made in self._programs.values() for each in made.statistics()]

    def reset_statistics(self) -> None:
        """Count from zero again."""
        for made in self._programs.values():
            made.reset_statistics()

    def close(self) -> None:
        """Free all programs; all ranks call it together."""
        if self._closed:
            return
        self._closed = True
        for made in self._programs.values():
            made.close()
        self._programs.clear()
        self._agreement.release()


def _is_scalar(shape: Shape) -> bool:
    """Whether a caller may pass a number for an argument of this shape."""
    return bool(math.prod(shape) == 1)
