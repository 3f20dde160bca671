"""What the ranks do for the driver: functions that all of them call, with the server first.

What a function returns on the first rank goes to the driver. Errors of ours are the same on all
ranks, as in any program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distspmd.codegen.build_record import Build
from distspmd.driver.memory import Place
from distspmd.errors import ProgramValueError
from distspmd.execution.program import Program
from distspmd.execution.signature import Parameter
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import Lowering
from distspmd.runtime.calls.missing_result import MissingResult
from distspmd.runtime.engine.engine import Statistics
from distspmd.runtime.host.host_regions import KeptObjects
from distspmd.runtime.watch.agreement import Agreement

if TYPE_CHECKING:
    from distspmd.driver.serve import Server

HERE = -1
"""In the place of a segment: the array stays on the ranks, and its number follows."""
_KNOWN = 64
"""So many forms of calls are kept for each program."""


@dataclass
class ServedBinding:
    """Stands on the ranks for what a program is bound to in the driver.

    Attributes:
        names: arguments that the caller does not pass.
        without_memory: those of them without memory in the driver.
        is_on_device: never; the driver's memory is of the host.
        live: on the first rank, what stands for live memory.
    """

    names: Collection[str]
    without_memory: Collection[str]
    is_on_device: bool = False
    live: dict[str, NDArray[Any]] = field(default_factory=dict)

    def held(self, names: Collection[str]) -> Mapping[str, NDArray[Any]]:
        """Some of the live memory, as far as the driver has passed it."""
        return {name: self.live[name] for name in names if name in self.live}

    def changed(self, names: Collection[str]) -> Collection[str]:
        """The driver tells of changes by itself."""
        return ()

    def elsewhere(self) -> ServedBinding:
        """Itself, which all ranks have been sent."""
        return self

    def arguments(self) -> Mapping[str, NDArray[Any]]:
        """The driver passes all of them."""
        return {}

    def has_run(self) -> None:
        """The driver notes it."""

    def given(self, name: str, value: Any, tile: tuple[int, ...] | None = None) -> Any:
        """What the driver passed."""
        return value

    def returned(self, results: Sequence[NDArray[Any] | MissingResult]) -> Any:
        """The driver has the results already."""
        return None


class ServedProgram(Program):
    """A program as a rank runs it for the driver: arrays come by their positions."""

    def __init__(
        self, built: Build, lowering: Lowering, comm: Any, binding: ServedBinding | None
    ) -> None:
        super().__init__(built, lowering, comm, binding)
        every = (*self.signature.parameters.values(), *self.signature.results)
        self.by_position: dict[int, Parameter] = {p.position: p for p in every}
        self.known: dict[bytes, dict[int, Any]] = {}
        self.stays: dict[int, Any] = {}
        """Tiles that stay on this rank between calls, by position."""
        self.objects = KeptObjects().packed("")
        """Those of Python that the last call has returned."""
        self._note_tiles()

    def _note_tiles(self) -> None:
        own = {n: t for n, t in self.residents.tiles.items() if n in self.signature.parameters}
        own = self._executable.on_device(dict(own), None) if self.device else own
        self.stays = {self.signature.parameters[name].position: tile for name, tile in own.items()}

    def run(self, arrays: dict[int, Any]) -> None:
        """One call, with what this rank has of arguments and results."""
        outer = self._agreement.enter(self._call)
        try:
            self._agreement.meet(self._call.tag)
            if self._executable.tells:
                self._run_and_listen(arrays)
            elif self._is_needed:
                self._executable.run(arrays)
        finally:
            self._agreement.leave(outer)

    def _give_objects(self, objects: KeptObjects, error: Exception | None) -> None:
        """Keep objects of Python for the driver, which gets them from the first rank."""
        if self.rank == 0 and error is None and objects:
            try:
                self.objects = objects.packed(self.signature.program)
            except ProgramValueError as problem:
                error = problem
        self._agreement.meet(self._call.tag, error)

    def take_tiles(self) -> None:
        """Others may have taken the place of those that stay here."""
        self._note_tiles()
        self.known.clear()


def call_program(server: Server, message: bytes) -> None:
    """Run a program, with arrays in common memory and in tiles."""
    words = np.frombuffer(message, np.int64)
    program: ServedProgram = server.programs[int(words[1])]
    arrays = program.known.get(message)
    if arrays is None:
        has_tiles = bool((words[3::3] == HERE).any())
        arrays = _arrays_of(server, program, words[2:].reshape(-1, 3).tolist())
        if not has_tiles:
            if len(program.known) >= _KNOWN:
                program.known.clear()
            program.known[message] = arrays
    program.run(arrays)


def _arrays_of(
    server: Server, program: ServedProgram, rows: Sequence[Sequence[int]]
) -> dict[int, Any]:
    found = dict(program.stays)
    for position, segment, offset in rows:
        parameter = program.by_position[position]
        if segment == HERE:
            if parameter.is_here:
                if offset not in server.tiles:  # a result
                    server.tiles[offset] = np.empty(parameter.shape, parameter.dtype)
                found[position] = server.tiles[offset].reshape(parameter.shape)
        elif server.rank == 0:
            memory = server.segments[segment]
            found[position] = memory.array(offset, parameter.shape, parameter.dtype)
        elif parameter.is_here and position not in found:  # a result that the first rank hands out
            found[position] = np.empty(parameter.shape, parameter.dtype)
    return found


# -- programs -----------------------------------------------------------------------------------


def load(
    server: Server, number: int, built: Build, lowering: Lowering, binding: ServedBinding | None
) -> dict[str, Any]:
    """Load a compiled program under a number; what is known of it from then on."""
    program = ServedProgram(built, lowering, server.comm, binding)
    server.programs[number] = program
    kinds = ("transport", "transports", "piece_bytes", "staged_because")
    return {name: getattr(program, name) for name in kinds}


def close(server: Server, number: int) -> None:
    """Free a program."""
    server.programs.pop(number).close()


def ask(server: Server, number: int, name: str) -> Any:
    """A number of the first rank's program, such as ``pulls``."""
    return getattr(server.programs[number], name)


def statistics(server: Server, number: int) -> list[Statistics]:
    """Of each movement what all ranks have received, and the longest time of one."""
    own = [counted for _, counted in server.programs[number].statistics()]
    every: list[list[Statistics]] = server.comm.allgather(own)
    return [
        Statistics(
            max(each.seconds for each in counted),
            max(each.calls for each in counted),
            *(
                sum(getattr(each, name) for each in counted)
                for name in ("received_bytes", "asked_bytes", "least_bytes")
            ),
        )
        for counted in zip(*every, strict=True)
    ]


def take_objects(server: Server, number: int) -> bytes:
    """The objects of Python that the last call of a program has returned; they are forgotten."""
    program: ServedProgram = server.programs[number]
    found, program.objects = program.objects, KeptObjects().packed("")
    return found


def reset_statistics(server: Server, number: int) -> None:
    """Count from zero again."""
    server.programs[number].reset_statistics()


def check_devices(server: Server, device: str) -> None:
    """See to it that all ranks can run on a device."""
    from distspmd.execution.device_executable import check_devices

    check_devices(Agreement.of(server.comm), device)


def on_program(
    server: Server, number: int, work: Callable[..., None], arguments: Sequence[Any]
) -> None:
    """Do something with what this rank holds for a program."""
    work(server.programs[number], *arguments)


# -- what stays on the ranks between calls ------------------------------------------------------


def refresh(server: Server, number: int, changed: Sequence[str], live: Mapping[str, Place]) -> None:
    """Let the ranks hold the values that count, of which the driver has passed the changed ones."""
    program: ServedProgram = server.programs[number]
    program.residents.fresh -= set(changed)
    if program.residents.missing:
        program.residents.distribute(_live_arrays(server, program, live))


def now_holds(server: Server, number: int, changed: Sequence[str], names: Collection[str]) -> None:
    """Note that the ranks have been given values of some arguments."""
    held = server.programs[number].residents
    held.fresh -= set(changed)
    held.fresh.update(names)


def collect(server: Server, number: int, live: Mapping[str, Place]) -> None:
    """Bring what stays on the ranks to places of the driver."""
    program: ServedProgram = server.programs[number]
    program.residents.collect(_live_arrays(server, program, live), live.keys())


def take_over(
    server: Server,
    number: int,
    other: int,
    pairs: Mapping[str, str],
    changed: Sequence[str],
    live: Mapping[str, Place],
) -> tuple[set[str], set[str], set[str]]:
    """Let a program begin with what the ranks hold for another one.

    Returns:
        Names of which each of both has the values that count, and those that were brought to the
        places of the other one.
    """
    mine: ServedProgram = server.programs[number]
    theirs: ServedProgram = server.programs[other]
    theirs.residents.fresh -= set(changed)
    before = set(theirs.residents.fresh)
    its = _live_arrays(server, theirs, live)
    mine.residents.take(theirs.residents, pairs, {}, its)
    mine.take_tiles()
    moved = {pairs[name] for name in mine.residents.fresh if name in pairs}
    return mine.residents.fresh, theirs.residents.fresh, before - moved - theirs.residents.fresh


def _live_arrays(
    server: Server, program: ServedProgram, live: Mapping[str, Place]
) -> dict[str, NDArray[Any]]:
    if server.rank:
        return {}
    found = {}
    for name, place in live.items():
        layout = program.residents.layouts[name]
        dtype = program.signature.parameters[name].dtype
        found[name] = server.segments[place.segment].array(place.offset, layout.extents, dtype)
    return found


# -- arrays that stay on the ranks --------------------------------------------------------------


def move(
    server: Server,
    number: int,
    source: Layout,
    new: int,
    target: Layout,
    dtype: np.dtype[Any],
    options: tuple[Any, ...] = (None, None, None),
) -> None:
    """Bring an array that the ranks hold into another layout, under another number."""
    from distspmd.runtime.redistribution.redistribute import redistribute

    solver, most, machine = options
    tile, out = server.tiles.get(number), server.tiles.get(new)
    chosen = {"solver": solver, "max_memory": most, "machine": machine}
    made = redistribute(server.comm, tile, source, target, out=out, dtype=dtype, **chosen)
    if made is not None:
        server.tiles[new] = made


def scatter(server: Server, place: Place, new: int, target: Layout, dtype: np.dtype[Any]) -> None:
    """Give the ranks an array of the driver, in a layout."""
    from distspmd.runtime.redistribution.redistribute import redistribute

    root = Layout.root(target.extents)
    whole = None
    if server.rank == 0:
        whole = server.segments[place.segment].array(place.offset, target.extents, dtype)
    out = server.tiles.get(new)
    made = redistribute(server.comm, whole, root, target, out=out, dtype=dtype)
    if made is not None:
        server.tiles[new] = made


def gather(
    server: Server,
    number: int,
    source: Layout,
    place: Place,
    dtype: np.dtype[Any],
    box: intervals.Box | None = None,
) -> None:
    """Bring an array that the ranks hold, or a box of it, to a place of the driver."""
    from distspmd.runtime.redistribution.redistribute import redistribute

    tile = server.tiles.get(number)
    if box is not None:
        source, tile = _cut(source, tile, server.rank, box)
    root = Layout.root(source.extents)
    out = None
    if server.rank == 0:
        out = server.segments[place.segment].array(place.offset, source.extents, dtype)
    redistribute(server.comm, tile, source, root, out=out, dtype=dtype)


def _cut(
    source: Layout, tile: NDArray[Any] | None, rank: int, box: intervals.Box
) -> tuple[Layout, NDArray[Any] | None]:
    """The layout of a box of an array, and the part of a tile that lies in it."""
    extents = intervals.shape(box)
    parts = [intervals.intersect(own, box) for own in source.boxes]
    shifted = [
        tuple((low - begin, high - begin) for (low, high), (begin, _) in zip(p, box, strict=True))
        if not intervals.is_empty(p)
        else intervals.empty(len(box))
        for p in parts
    ]
    layout = Layout.of_boxes(source.mesh, extents, shifted)
    if tile is None or rank >= len(parts) or intervals.is_empty(parts[rank]):
        return layout, None
    own = source.box(rank)
    within = tuple(
        slice(low - begin, high - begin)
        for (low, high), (begin, _) in zip(parts[rank], own, strict=True)
    )
    return layout, tile[within]


def forget(server: Server, numbers: Sequence[int]) -> None:
    """Free arrays that the driver has no more."""
    for number in numbers:
        server.tiles.pop(number, None)
