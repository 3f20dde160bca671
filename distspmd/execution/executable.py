"""The compiled program on a rank: its library, the engine of its plans, storage of its tiles."""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.codegen.build_record import Build
from distspmd.codegen.entry import entry_of
from distspmd.codegen.reduction_symbols import addresses_of, collect_lambdas
from distspmd.errors import CompilationError
from distspmd.execution import tile_storage
from distspmd.execution.listening import ANSWERS
from distspmd.execution.messages import MESSAGES, noted_by, runs_of
from distspmd.execution.signature import Signature
from distspmd.lowering import CONTEXT, Lowering
from distspmd.plans.encoding import Storage
from distspmd.plans.plan import Plan
from distspmd.plans.request_encoding import Fetch
from distspmd.runtime.engine.arrays import address
from distspmd.runtime.engine.engine import Engine
from distspmd.runtime.shared_memory.windows import SharedNode
from distspmd.runtime.watch.agreement import Agreement

PlanAndStorages = tuple[str, Plan, tuple[Storage, Storage]]
"""A plan as the engine takes it."""


class Executable:
    """A loaded program, ready to be called; all ranks of the communicator make it together.

    Attributes:
        call: the table that the compiled program gets, by position: its handle, addresses of the
            values of symbols, of tiles, and of the user's arrays, which each run fills in.
        engine: runs the plans.
        tells: whether the program prints, or may end with an error of its own.
        checked: where it notes an index that is out of range; None if it checks none.

    Raises:
        CompilationError: on all ranks; one of them cannot load the library.
    """

    def __init__(self, built: Build, lowering: Lowering, agreement: Agreement) -> None:
        self._handle: int | None = None
        rank, comm = agreement.rank, agreement.comm
        library = self._library = self._load(built, agreement)
        functions = addresses_of(library, collect_lambdas(lowering.memlets))
        plans = [tile_storage.resolve_memlet(memlet, lowering, rank) for memlet in lowering.memlets]
        fetches = [
            tile_storage.resolve_fetch(memlet, lowering, rank) for memlet in lowering.fetches
        ]
        self.engine = Engine(
            comm, plans, fetches, functions, lowering.row_exchanges, lowering.talks
        )
        self._node: SharedNode | None = None
        self._tiles = self._lend_tiles(built, lowering, comm)
        context = self._context(plans, fetches)
        values = {**lowering.symbol_values(rank), CONTEXT: context}
        self._nothing = np.zeros(64, np.uint8)  # what a rank without a tile points at
        self._numbers = {
            argument.name: np.array(values[argument.name], argument.dtype)
            for argument in built.arguments
            if argument.name in values
        }
        held = {**self._tiles, **self._numbers}
        self.call = (ctypes.c_void_p * (1 + len(built.arguments)))()
        for position, argument in enumerate(built.arguments, 1):
            self.call[position] = held.get(argument.name, self._nothing).ctypes.data
        self._run.argtypes = [ctypes.c_void_p]
        self._run.restype = None
        self._init.argtypes = [ctypes.c_int64] * len(built.initial)
        self.call[0] = self._handle = self._init(*(values[name] for name in built.initial))

    def _context(self, plans: Sequence[PlanAndStorages], fetches: Sequence[Fetch]) -> int:
        """What the program calls when data move."""
        return self.engine.context or 0

    def _load(self, built: Build, agreement: Agreement) -> ctypes.CDLL:
        error: Exception | None = None
        try:
            library = ctypes.CDLL(built.library)
            _keep_threads(library)
            self._run = library[entry_of(built.name)]
            self._init = library[f"__dace_init_{built.name}"]
            self._exit = library[f"__dace_exit_{built.name}"]
            self.noted, self._runs = noted_by(library), runs_of(library)
            asks, tells = ANSWERS.listen(library), MESSAGES.listen(library)
            self.tells = asks or tells or self.noted is not None
        except OSError as problem:
            error = CompilationError(
                f"cannot load the compiled program {built.library}: {problem}. "
                "All ranks need to see the cache folder: "
                "set DISTSPMD_CACHE to a folder that all nodes share."
            )
        agreement.check(error)
        self._init.restype = ctypes.c_void_p
        self._exit.argtypes = [ctypes.c_void_p]
        return library

    def _lend_tiles(self, built: Build, lowering: Lowering, comm: Any) -> dict[str, NDArray[Any]]:
        """Storage of the tiles, in memory that the ranks of a node share: they copy out of it."""
        rank = comm.Get_rank()
        lent = [argument for argument in built.arguments if argument.name in built.tiles]
        if not lent:
            return {}
        node = self._node = SharedNode(comm)
        storage = node.allocate_all([(a.shape, np.dtype(a.dtype)) for a in lent])
        tiles = {argument.name: tile for argument, tile in zip(lent, storage, strict=True)}
        pairs = []
        for memlet, ends in zip(lowering.memlets, built.ends, strict=True):
            plan, held = memlet.solution.plan, (memlet.source_tiles, memlet.target_tiles)
            pairs.append(
                [
                    tile_storage.part_of_tile(tiles[end], within, layout.box(rank), rank)
                    if end in tiles and within
                    else None
                    for end, within, layout in zip(ends, held, plan.buffers[:2], strict=True)
                ]
            )
        self.engine.share(node, pairs, lowering.machine)
        return tiles

    @property
    def is_open(self) -> bool:
        """Whether it can be called."""
        return self._handle is not None

    def run(self, arrays: Mapping[int, NDArray[Any]]) -> None:
        """Call the compiled function with the user's arrays, by their positions."""
        call = self.call
        for position, array in arrays.items():
            call[position] = address(array)
        if self._runs is not None:
            self._runs.value += 1
        self._run(call)

    def on_device(self, bound: dict[str, Any], stream: Any) -> dict[str, Any]:
        """Arguments, with those for which the program does not leave its device as such."""
        return bound

    def new_results(self, signature: Signature, arrays: Mapping[int, Any]) -> list[Any]:
        """New arrays for the results that this rank gets, for a call with some arguments."""
        return signature.allocate()

    def new_tile(self, position: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Zeros for an argument that stays on the rank between calls, by its position."""
        return np.zeros(shape, dtype)

    def handing(self, arrays: Mapping[int, Any]) -> Callable[[Any], Any]:
        """What the caller of a call with some arrays gets for a result."""
        return lambda result: result

    def memory_of(self, result: Any) -> Any:
        """What :meth:`run` takes for a new array of a result."""
        return result

    def close(self) -> None:
        """Free memory and communicators; all ranks call it together."""
        if self.is_open:
            self._free()
            self.engine.close()
            self._tiles.clear()
            if self._node is not None:
                self._node.close()
            self._unload()

    def _unload(self) -> None:
        """Give the library back: the system unmaps it with the last program that has it."""
        self.noted = self._runs = None
        del self._run, self._init, self._exit
        _ctypes.dlclose(self._library._handle)

    def _free(self) -> None:
        self._exit(self._handle)
        self._handle = None

    def __del__(self) -> None:
        # The communicators stay: freeing them needs all ranks at once.
        if getattr(self, "_handle", None) is not None:
            self._free()


def _keep_threads(library: ctypes.CDLL) -> None:
    """Keep the OpenMP that a program is linked with loaded, also behind its last program.

    Its threads wait in its code for more work; a process in which that is unmapped crashes.
    """
    with contextlib.suppress(AttributeError):  # a program without OpenMP
        function = ctypes.cast(library.omp_get_max_threads, ctypes.c_void_p)
        found = (ctypes.c_void_p * 4)()  # a Dl_info, which begins with the name of the file
        if ctypes.CDLL(None).dladdr(function, found) and found[0]:
            ctypes.CDLL(os.fsdecode(ctypes.string_at(found[0])))  # which nobody closes


def load_executable(built: Build, lowering: Lowering, agreement: Agreement) -> Executable:
    """The executable of a build, for the host or for a device."""
    if built.device is None:
        return Executable(built, lowering, agreement)
    from distspmd.execution.device_executable import DeviceExecutable

    return DeviceExecutable(built, lowering, agreement)
