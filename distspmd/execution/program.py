"""Compiled programs on every rank: they check arguments, fill in what ranks differ in, and run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from dace import SDFG
from numpy.typing import NDArray

from distspmd.codegen.build import Argument, Build, build
from distspmd.codegen.user_reductions import addresses_of, functions_of
from distspmd.errors import ArgumentError, CompilationError, DistSPMDError, ScheduleError
from distspmd.execution import tile_storage
from distspmd.execution.binding import Binding, binding_of
from distspmd.execution.resident_arguments import Residents
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import ATTRIBUTE, Lowering, PlannedMemlet
from distspmd.nodes.distributed_memlet import CONTEXT
from distspmd.runtime.collective_resource import Closing
from distspmd.runtime.engine import Engine, Statistics
from distspmd.runtime.errors_together import Agreement, wait_quietly
from distspmd.runtime.shared_memory import Node


def compile(sdfg: SDFG | None, comm: Any, *, arithmetic: str = "vector") -> Program:
    """Compile a lowered SDFG on rank 0, and load it on all ranks of a communicator.

    Args:
        sdfg: what :func:`distspmd.lower` lowered; ranks other than 0 may pass None.
        comm: an mpi4py communicator with at least ``lowering.ranks`` ranks; it is duplicated.
        arithmetic: of loops that the compiler vectorises. ``"vector"``: functions such as ``exp``
            come from the vector library, with errors of up to 4 units in the last place; not if
            ``"strict"``; ``"fast"``: sums may be taken in another order. Deterministic is strict.

    Raises:
        ScheduleError: the SDFG is not lowered, or its grids need more ranks.
        CompilationError: on all ranks, with the compiler's message.
        ToolchainError: on all ranks, if the compiler or the BLAS is missing.
    """
    if not hasattr(comm, "Dup"):
        raise ArgumentError(
            f"compile needs a communicator of mpi4py, but {comm!r} was given. Pass MPI.COMM_WORLD."
        )
    comm = comm.Dup()
    made: tuple[Build, Lowering] | None = None
    error: Exception | None = None
    if comm.Get_rank() == 0:
        try:
            made = build_for(sdfg, comm.Get_size(), arithmetic)
        except DistSPMDError as problem:
            error = problem
        except Exception as problem:
            error = CompilationError(f"code generation failed: {type(problem).__name__}: {problem}")
            error.__cause__ = problem
    wait_quietly(comm)
    Agreement(comm).check(error)
    binding = binding_of(sdfg) if comm.Get_rank() == 0 else None
    elsewhere = binding.elsewhere() if binding else None
    (built, lowering), elsewhere = comm.bcast((made, elsewhere), root=0)
    return Program(built, lowering, comm, binding or elsewhere)


def build_for(sdfg: SDFG | None, ranks: int, arithmetic: str = "vector") -> tuple[Build, Lowering]:
    """Compile a lowered SDFG for a number of ranks; with the record of its lowering.

    Raises:
        ScheduleError: the SDFG is not lowered, or its grids need more ranks.
        ArgumentError: an unknown kind of arithmetic.
        CompilationError: with the compiler's message.
        ToolchainError: the compiler or the BLAS is missing.
    """
    lowering: Lowering | None = getattr(sdfg, ATTRIBUTE, None)
    if sdfg is None or lowering is None:
        raise ScheduleError(
            f"{getattr(sdfg, 'name', sdfg)!r} is not a lowered SDFG. "
            "Call distspmd.lower(sdfg, schedule) in the same process, and pass the SDFG."
        )
    if ranks < lowering.ranks:
        largest = max(lowering.spaces, key=lambda space: space.mesh.size)
        raise ScheduleError(
            f"the schedule gives the space {largest.name!r} the parts {largest.parts}, "
            f"{largest.mesh.size} ranks, but the communicator has {ranks}. Start at least "
            f"{lowering.ranks} ranks (mpiexec -n {lowering.ranks}), or give fewer parts."
        )
    return build(sdfg, lowering, ranks, arithmetic), lowering


@dataclass(frozen=True)
class _Parameter:
    """An argument of the user's program, and where it goes in the call."""

    argument: Argument
    position: int
    scalar: bool
    written: bool
    dtype: np.dtype
    shape: tuple[int, ...]
    """Of what this rank passes or gets: the whole array, or its tile."""
    here: bool
    """Whether this rank passes or gets it."""


class Program(Closing):
    """A lowered program that all ranks call together.

    ``program(x=x)`` takes arrays on rank 0 and returns the results there; other ranks call
    ``program()`` and get None. What they pass is not looked at. Of arguments and results that are
    ``replicated`` or ``distributed`` (see :func:`distspmd.lower`), every rank passes and gets its
    own: all of it, or its tile in ``program.layout(name)``.
    """

    def __init__(
        self, built: Build, lowering: Lowering, comm: Any, binding: Binding | None = None
    ) -> None:
        self.lowering = lowering
        self._binding = binding
        self.comm = comm
        self.rank: int = comm.Get_rank()
        self._build = built
        self._agreement = Agreement(comm)
        self._handle: int | None = None
        library = self._load()
        functions = addresses_of(library, functions_of(lowering.memlets))
        plans = [tile_storage.named(memlet, lowering, self.rank) for memlet in lowering.memlets]
        fetches = [tile_storage.fetch(memlet, lowering, self.rank) for memlet in lowering.fetches]
        self._engine = Engine(comm, plans, fetches, functions)
        self._node: Node | None = None
        self._tiles = self._lend_tiles()
        self._prepare_arguments()

    def _load(self) -> ctypes.CDLL:
        error: Exception | None = None
        name = self._build.name
        try:
            library = ctypes.CDLL(self._build.library)
            self._run = library[f"__program_{name}"]
            self._init = library[f"__dace_init_{name}"]
            self._exit = library[f"__dace_exit_{name}"]
        except OSError as problem:
            error = CompilationError(
                f"cannot load the compiled program {self._build.library}: {problem}. "
                "All ranks need to see the cache folder: "
                "set DISTSPMD_CACHE to a folder that all nodes share."
            )
        self._agreement.check(error)
        self._init.restype = ctypes.c_void_p
        self._exit.argtypes = [ctypes.c_void_p]
        return library

    def _lend_tiles(self) -> dict[str, NDArray[Any]]:
        """Storage of the tiles, in memory that the ranks of a node share: they pull out of it."""
        lent = [
            argument for argument in self._build.arguments if argument.name in self._build.tiles
        ]
        if not lent:
            return {}
        node = self._node = Node(self.comm)
        storage = node.allocate_all([(a.shape, np.dtype(a.dtype)) for a in lent])
        tiles = {argument.name: tile for argument, tile in zip(lent, storage, strict=True)}
        pairs = []
        for memlet, ends in zip(self.lowering.memlets, self._build.ends, strict=True):
            plan, held = memlet.solution.plan, (memlet.source_tiles, memlet.target_tiles)
            pairs.append(
                [
                    tile_storage.part(tiles[end], within, layout.box(self.rank), self.rank)
                    if end in tiles and within
                    else None
                    for end, within, layout in zip(ends, held, plan.buffers[:2], strict=True)
                ]
            )
        self._engine.share(node, pairs, self.lowering.machine)
        return tiles

    def _prepare_arguments(self) -> None:
        values = {**self.lowering.symbol_values(self.rank), CONTEXT: self._engine.context or 0}
        self._nothing = np.zeros(64, np.uint8)  # what a rank without a tile points at
        nothing = self._nothing.ctypes.data
        self._parameters: dict[str, _Parameter] = {}
        self._results: list[_Parameter] = []
        types: list[Any] = [ctypes.c_void_p]
        call: list[int] = [0]
        for position, argument in enumerate(self._build.arguments, start=1):
            if argument.name in values:
                types.append(_ctype(argument))
                call.append(values[argument.name])
                continue
            types.append(ctypes.c_void_p)
            if argument.name in self._tiles:
                call.append(self._tiles[argument.name].ctypes.data)
                continue
            call.append(nothing)
            parameter = self._parameter(argument, position)
            if argument.name.startswith("__return"):
                self._results.append(parameter)
            else:
                self._parameters[argument.name] = parameter
        self._results.sort(key=lambda p: (len(p.argument.name), p.argument.name))
        self._takes_part = self.rank == 0 or any(
            parameter.here for parameter in (*self._parameters.values(), *self._results)
        )
        self._single = [p.argument.name for p in self._results] == ["__return"]
        self._residents = self._keep()
        self._run.argtypes = types
        self._run.restype = None
        self._call = call
        self._init.argtypes = [ctypes.c_int64] * len(self._build.initial)
        call[0] = self._handle = self._init(*(values[name] for name in self._build.initial))

    def _keep(self) -> Residents:
        """Storage of what stays on the ranks between calls: what the binding has, elsewhere."""
        mine = set(self._binding.names) if self._binding and self.rank == 0 else set()
        kept = self.comm.bcast(sorted(mine & self.lowering.held.keys() & self._parameters.keys()))
        layouts = {name: self.lowering.held[name] for name in kept}
        return Residents(self.comm, layouts, {n: self._parameters[n].dtype for n in kept})

    def _parameter(self, argument: Argument, position: int) -> _Parameter:
        held = self.lowering.held.get(argument.name)
        return _Parameter(
            argument,
            position,
            argument.name in self.lowering.scalars,
            argument.name in self.lowering.written,
            np.dtype(argument.dtype),
            argument.shape if held is None else intervals.shape(held.box(self.rank)),
            self.rank == 0 if held is None else self.rank < held.ranks,
        )

    def layout(self, name: str) -> Layout:
        """In which layout the caller holds an argument or a result.

        Raises:
            ArgumentError: the program has none of that name.
        """
        known = {p.argument.name: p for p in (*self._parameters.values(), *self._results)}
        if name not in known:
            raise ArgumentError(
                f"{self._build.name} has no argument or result {name!r}; it has "
                f"{', '.join(known) or 'none'}."
            )
        return self.lowering.held.get(name) or Layout.root(known[name].argument.shape)

    def tile(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """What this rank passes for an argument, cut out of the whole array: a copy.

        Raises:
            ArgumentError: the program has none of that name, or the array has another shape.
        """
        layout = self.layout(name)
        if np.shape(array) != layout.extents:
            raise ArgumentError(
                f"{self._build.name}: {name!r} has the shape {list(layout.extents)}, but the "
                f"array given to cut a tile from has {list(np.shape(array))}."
            )
        return np.array(array[intervals.slices(layout.box(self.rank))], order="C")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program; on rank 0 with the arguments of the original program.

        Returns:
            On rank 0 what the original program returns; None on other ranks. Results that are
            replicated or distributed are returned on every rank that takes part: ranks beyond all
            grids get None, as do those that hold no part of a distributed result.

        Raises:
            ArgumentError: on all ranks, before anything runs.
        """
        error: Exception | None = None
        results: list[NDArray[Any] | None] = []
        kept: list[NDArray[Any]] = []
        if self._takes_part:
            try:
                bound = self._bind(arguments, named) if arguments else named
                bound = self._completed(bound)  # it keeps what is made for this call
                self._fill(bound, kept)
                results = self._allocate()
            except ArgumentError as problem:
                error = problem
            except Exception as problem:  # all ranks must learn of it, whatever it is
                error = ArgumentError(
                    f"{self._build.name}: the arguments cannot be used: "
                    f"{type(problem).__name__}: {problem}"
                )
                error.__cause__ = problem
        self._agreement.check(error)
        if self._residents.layouts and not self._residents.current:
            self._residents.distribute(self._live())
        if self.rank < self.lowering.ranks:
            self._run(*self._call)
        if all(result is None for result in results):
            return None
        if self._binding:
            return self._binding.returned(results)
        return results[0] if self._single else tuple(results)

    def _completed(self, given: dict[str, Any]) -> dict[str, Any]:
        """What the caller passed, as arrays, with what it need not pass."""
        if not self._binding:
            return given
        tiles = {n: p.shape for n, p in self._parameters.items() if n in self.lowering.held}
        arrays = {n: self._binding.given(n, value, tiles.get(n)) for n, value in given.items()}
        return {**self._binding.arguments(), **self._residents.tiles, **arrays}

    def _live(self) -> Mapping[str, NDArray[Any]]:
        """Of what stays on the ranks, the memory behind it on rank 0."""
        if self.rank != 0 or not self._binding:
            return {}
        return self._binding.held(self._residents.layouts.keys())

    def collect(self) -> None:
        """Bring what stays on the ranks between calls to rank 0; all ranks call it together.

        That are parameters and states to which the program is bound and that ``arguments=`` of
        :func:`distspmd.lower` has distributed. Of replicated ones rank 0 always has the values.
        """
        if self._residents.current:
            self._residents.collect(self._live())

    def distribute(self) -> None:
        """Let the next call begin with what rank 0 has now; all ranks call it together.

        The first call does so by itself. Later ones need it where parameters or states to which the
        program is bound have been changed on rank 0.
        """
        self._residents.current = False

    def _allocate(self) -> list[NDArray[Any] | None]:
        """New arrays for the results, with their addresses in the call."""
        results: list[NDArray[Any] | None] = []
        for parameter in self._results:
            if not parameter.here:
                results.append(None)
                continue
            result = np.empty(parameter.shape, parameter.dtype)
            self._call[parameter.position] = result.ctypes.data
            results.append(result)
        return results

    def _bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Give positional arguments their names."""
        names = self._build.positional
        if len(arguments) > len(names):
            raise ArgumentError(
                f"{self._build.name} takes {len(names)} arguments ({', '.join(names)}), but "
                f"{len(arguments)} were given."
            )
        bound = dict(zip(names, arguments, strict=False))
        twice = [name for name in bound if name in named]
        if twice:
            raise ArgumentError(f"{self._build.name}: the argument {twice[0]!r} is given twice.")
        return {**bound, **named}

    def _fill(self, bound: Mapping[str, Any], kept: list[NDArray[Any]]) -> None:
        """Check the arguments and put their addresses into the call."""
        for name, parameter in self._parameters.items():
            if not parameter.here:
                continue
            if name not in bound:
                self._refuse_missing(name)
            value = bound[name]
            if parameter.scalar:
                value = self._scalar(name, parameter, value)
                kept.append(value)
            elif (
                not isinstance(value, np.ndarray)
                or value.dtype != parameter.dtype
                or value.shape != parameter.shape
                or not value.flags.c_contiguous
                or (parameter.written and not value.flags.writeable)
            ):
                self._refuse(name, parameter, value)
            self._call[parameter.position] = value.ctypes.data
        if self.rank == 0 and len(bound) > len(self._parameters):
            unknown = [
                n for n in bound if n not in self._parameters and n not in self._build.positional
            ]
            if unknown:
                raise ArgumentError(
                    f"{self._build.name} has no argument {unknown[0]!r}; it has "
                    f"{', '.join(self._build.positional) or 'none'}."
                )

    def _scalar(self, name: str, parameter: _Parameter, value: Any) -> NDArray[Any]:
        array = np.asarray(value)
        if array.size != 1 or not np.can_cast(array.dtype, parameter.dtype, "same_kind"):
            raise ArgumentError(
                f"{self._build.name}: the argument {name!r} is a scalar of {parameter.dtype}, but "
                f"{_describe(value)} was given."
            )
        converted = array.astype(parameter.dtype).reshape(1)
        if parameter.dtype.kind in "iu" and converted[0] != array.reshape(1)[0]:
            least, most = np.iinfo(parameter.dtype).min, np.iinfo(parameter.dtype).max
            raise ArgumentError(
                f"{self._build.name}: the argument {name!r} is a scalar of {parameter.dtype}, from "
                f"{least} to {most}, but {_describe(value)} was given."
            )
        return converted

    def _refuse_missing(self, name: str) -> None:
        missing = self._parameters[name]
        raise ArgumentError(
            f"{self._build.name}: the argument {name!r} is missing on rank {self.rank}; "
            f"pass {name}=<{missing.dtype}{list(missing.shape)}>."
        )

    def _refuse(self, name: str, parameter: _Parameter, value: Any) -> None:
        wanted = f"{parameter.dtype}{list(parameter.shape)}"
        start = f"{self._build.name}: the argument {name!r} must be {wanted}"
        if name in self.lowering.held:
            start += f" on rank {self.rank}, its part of {self.lowering.held[name]}"
        if not isinstance(value, np.ndarray):
            raise ArgumentError(f"{start}, but {_describe(value)} was given. Pass a NumPy array.")
        if value.dtype != parameter.dtype:
            raise ArgumentError(
                f"{start}, but it has the type {value.dtype}. "
                f"Pass {name}.astype('{parameter.dtype}')."
            )
        if value.shape != parameter.shape:
            raise ArgumentError(f"{start}, but it has the shape {list(value.shape)}.")
        if value.flags.c_contiguous:
            raise ArgumentError(
                f"{start} that can be written, because the program writes it, but it is read-only. "
                f"Pass {name}.copy()."
            )
        raise ArgumentError(
            f"{start}, C-contiguous, but it has the strides {value.strides} (bytes). Pass "
            f"np.ascontiguousarray({name})."
        )

    # -- what happened --------------------------------------------------------------------------

    def statistics(self) -> list[tuple[PlannedMemlet, Statistics]]:
        """Of each distributed memlet: time, calls and bytes received on this rank so far.

        Those that are planned come first, then those that are resolved at run time.
        """
        planned = [
            (memlet, self._engine.statistics(number))
            for number, memlet in enumerate(self.lowering.memlets)
        ]
        return planned + [
            (memlet, self._engine.fetch_statistics(number))
            for number, memlet in enumerate(self.lowering.fetches)
        ]

    def reset_statistics(self) -> None:
        """Count from zero again."""
        self._engine.reset_statistics()

    def close(self) -> None:
        """Collect, and free the program's memory and communicators; all ranks call it together."""
        if self._handle is not None:
            self.collect()
            self._free_tiles()
            self._engine.close()
            self._tiles.clear()
            if self._node is not None:
                self._node.close()
            self.comm.Free()

    def _free_tiles(self) -> None:
        self._exit(self._handle)
        self._handle = None

    def __del__(self) -> None:
        # The communicators stay: freeing them needs all ranks at once.
        if getattr(self, "_handle", None) is not None:
            self._free_tiles()


def _ctype(argument: Argument) -> Any:
    return np.ctypeslib.as_ctypes_type(np.dtype(argument.dtype))


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}{list(value.shape)}"
    return f"{value!r} ({type(value).__name__})" if len(repr(value)) < 60 else type(value).__name__
