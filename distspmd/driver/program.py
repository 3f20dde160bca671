"""A compiled program as the driver has it: it checks arguments here, and runs on the ranks."""

from __future__ import annotations

from array import array as array_of_words
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distspmd.codegen.build_record import Build
from distspmd.driver import serve, served
from distspmd.driver.handle import Handle
from distspmd.driver.memory import Place
from distspmd.errors import ArgumentError
from distspmd.execution.first_calls import FirstCalls
from distspmd.execution.program import Program
from distspmd.execution.signature import Parameter, Signature
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import Lowering, RecordedMove
from distspmd.runtime.engine.engine import Statistics
from distspmd.runtime.host.host_regions import KeptObjects

if TYPE_CHECKING:
    from distspmd.driver.ranks import Ranks

_KIND = int.from_bytes(serve.CALL, "little")


class DrivenProgram(Program):
    """A program that the ranks run for this process, which passes and gets whole arrays.

    What is called on ranks together in other modes is called here once.
    """

    _executable: DrivenExecutable  # type: ignore[assignment]  # it has what a program asks for
    residents: Held  # type: ignore[assignment]

    def __init__(self, built: Build, lowering: Lowering, ranks: Ranks, binding: Any) -> None:
        self.ranks, self.number = ranks, ranks.new_number()
        self._built = built
        super().__init__(built, lowering, ranks, binding)
        form = lowering.call_form
        plain = replace(
            lowering, call_form=replace(form, returned=form.objects or None, fixed={}, parts={})
        )
        own = None
        if self.binding is not None:
            names = sorted(self.residents.layouts), sorted(self.residents.without_memory)
            own = served.ServedBinding(*names)
        told = ranks.together(served.load, self.number, built, plain, own)
        self._executable.told = told

    def _signature_of(self, built: Build, lowering: Lowering) -> Signature:
        """Arguments and results are whole here, however the ranks hold them."""
        found = Signature.of(built, lowering, 0)

        def as_whole(parameter: Parameter) -> Parameter:
            return replace(parameter, shape=parameter.extents, layout=None, is_here=True)

        return replace(
            found,
            parameters={name: as_whole(p) for name, p in found.parameters.items()},
            results=[as_whole(p) for p in found.results],
        )

    def _load(self, built: Build, lowering: Lowering) -> Any:
        return DrivenExecutable(self, lowering)

    def _timed(self) -> FirstCalls:
        return FirstCalls(self.lowering, None, None)  # the ranks time their own calls

    def layout(self, name: str) -> Layout:
        """In which layout the ranks hold an argument or a result."""
        return self.lowering.argument_layouts.get(name) or super().layout(name)

    def tile(self, name: str, array: NDArray[Any]) -> Any:
        """An argument in tiles on the ranks, as the program takes it."""
        return self.ranks.place(array, self.layout(name))

    # -- calls ----------------------------------------------------------------------------------

    def _called(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        with self.ranks.lock:
            return super()._called(arguments, named)

    def _completed(self, given: dict[str, Any]) -> dict[str, Any]:
        found = super()._completed(given)
        for name in self.residents.without_memory:
            found.setdefault(name, STAYS)
        return found

    def _meet(self, error: Exception | None) -> None:
        self._agreement.check(error)
        held = self.residents
        if held.layouts:
            changed = self._changed()
            held.fresh -= set(changed)
            if changed or held.missing:
                self._refresh(changed)

    def _changed(self) -> list[str]:
        if not self.binding:
            return []
        changed = self.binding.changed(self.residents.layouts.keys())
        self.residents.passed -= set(changed)
        return sorted(self.residents.fresh.intersection(changed))

    def refresh(self) -> None:
        """Let the ranks hold the values that count."""
        self._meet(None)

    def _refresh(self, changed: Collection[str]) -> None:
        held = self.residents
        live = {n: a for n, a in self.live().items() if n in held.missing}
        places = {}
        for name, array in live.items():
            places[name] = self._executable.pass_on(self.signature.parameters[name].position, array)
            held.passed.add(name)
        self.ranks.together(served.refresh, self.number, list(changed), places)
        held.fresh.update(held.layouts)

    def now_holds(self, names: Collection[str]) -> None:
        """Note that the ranks have been given values of some arguments."""
        changed = self._changed()
        self.residents.fresh -= set(changed)
        self.residents.fresh.update(names)
        if changed or names:
            self.ranks.together(served.now_holds, self.number, changed, list(names))

    def on_each(self, work: Callable[..., None], *arguments: Any) -> None:
        """Let this process do something with the live memory, and the ranks with their parts."""
        work(self, *arguments)
        self.ranks.together(served.on_program, self.number, work, arguments)
        self.residents.passed.clear()

    def take_objects(self, objects: KeptObjects) -> None:
        """Note what the call that is being made returns of objects of Python."""
        self._objects = objects

    @property
    def place(self) -> int:
        """None: it holds the live memory."""
        return -1

    def take_over(self, other: Program, pairs: Mapping[str, str] | None) -> None:
        """Begin with what the ranks hold for another program that is bound to the same tensors."""
        assert isinstance(other, DrivenProgram)
        pairs = pairs or {}
        self.now_holds(())
        changed = other._changed()
        other.residents.fresh -= set(changed)
        alike = {
            theirs
            for mine, theirs in pairs.items()
            if self.residents.layouts.get(mine) == other.residents.layouts.get(theirs)
        }
        its = {
            name: array
            for name, array in other.live().items()
            if name not in alike and not other.residents.is_live(name)
        }
        places = {name: other._executable.room(name, array) for name, array in its.items()}
        given = self.number, other.number, dict(pairs), list(changed), places
        mine_fresh, its_fresh, brought = self.ranks.together(served.take_over, *given)
        for name in brought & its.keys():
            other._executable.bring(places[name], its[name])
        self.residents.fresh, other.residents.fresh = set(mine_fresh), set(its_fresh)
        self._changed()

    def collect(self) -> None:
        """Bring what stays on the ranks between calls to this process."""
        if not self._executable.is_open:
            raise self._closed()
        held = self.residents
        if held.layouts:
            self.now_holds(())  # and overwrites nothing that others have written here
        wanted = {
            name: array
            for name, array in self.live().items()
            if name in held.fresh and not held.is_live(name)
        }
        if wanted:
            places = {name: self._executable.room(name, array) for name, array in wanted.items()}
            self.ranks.together(served.collect, self.number, places)
            for name, array in wanted.items():
                self._executable.bring(places[name], array)

    def _keep(self) -> Any:
        known = self.signature.parameters
        names = set(self.binding.names).intersection(known) if self.binding else set()
        alone = names.intersection(self.binding.without_memory) if self.binding else set()
        self._refuse_lost(alone - self.lowering.argument_layouts.keys())
        layouts = {
            n: self.lowering.argument_layouts[n]
            for n in sorted(names & self.lowering.argument_layouts.keys())
        }
        return Held(layouts, frozenset(alone))

    # -- what happened --------------------------------------------------------------------------

    def statistics(self) -> list[tuple[RecordedMove, Statistics]]:
        """Of each distributed memlet, what all ranks together have received so far."""
        if not self._executable.is_open:
            raise self._closed()
        found = self.lowering
        every: tuple[RecordedMove, ...] = (
            *found.memlets,
            *found.fetches,
        )
        every = (*every, *found.row_exchanges, *found.talks)
        return list(zip(every, self.ranks.together(served.statistics, self.number), strict=True))

    def reset_statistics(self) -> None:
        """Count from zero again."""
        if not self._executable.is_open:
            raise self._closed()
        self.ranks.together(served.reset_statistics, self.number)

    def close(self) -> None:
        """Collect, and free the program on the ranks; nothing is left to free without them."""
        if self._executable.is_open:
            if self.ranks.is_there:
                self.collect()
                self.ranks.together(served.close, self.number)
            self._executable.close()


class Stays:
    """Stands for an argument that only the ranks have."""

    base = None
    nbytes = 0

    def misfit(self, dtype: np.dtype[Any], shape: tuple[int, ...], is_written: bool) -> str:
        """It fits."""
        return ""


STAYS = Stays()


class Held:
    """What the driver knows of what stays on the ranks.

    Attributes:
        layouts: by name, in which layout it stays.
        without_memory: names of what has no memory in this process.
        fresh: names of those of which the ranks have the values that count.
        passed: names of those whose place on the first rank has the values of this process.
        tiles: none are here.
    """

    def __init__(self, layouts: Mapping[str, Layout], without_memory: frozenset[str]) -> None:
        self.layouts, self.without_memory = layouts, without_memory
        self.fresh: set[str] = set()
        self.passed: set[str] = set()
        self.tiles: dict[str, NDArray[Any]] = {}

    def is_live(self, name: str) -> bool:
        """Whether the first rank works with all of it."""
        layout = self.layouts[name]
        return name not in self.without_memory and layout.box(0) == intervals.whole(layout.extents)

    @property
    def missing(self) -> list[str]:
        """Those that the ranks have yet to be given."""
        return [name for name in self.layouts if name not in self.fresh]


class DrivenExecutable:
    """What a program asks of its executable, by messages.

    Attributes:
        tells: never; what a program prints or raises comes as such.
        told: what the ranks know of the program.
    """

    tells = False
    told: Mapping[str, Any]

    def __init__(self, program: DrivenProgram, lowering: Lowering) -> None:
        self._program, self._ranks = program, program.ranks
        self.is_open = True
        self._text = f"{program.signature.program}(...)"
        held = lowering.argument_layouts
        signature = program.signature
        every = (*signature.parameters.values(), *signature.results)
        self._held = {p.position: held[p.name] for p in every if p.name in held}
        self._by_position = {p.position: p for p in every}
        self._lent: list[Handle] = []
        """Arguments that are in tiles for one call."""
        self._rooms: dict[int, NDArray[Any]] = {}
        """By position of an argument, memory that the first rank sees."""
        self._places: dict[int, Place] = {}

    @cached_property
    def _is_shared(self) -> bool:
        return self._ranks.is_shared

    # -- arrays ---------------------------------------------------------------------------------

    def on_device(self, bound: dict[str, Any], stream: Any) -> dict[str, Any]:
        """Arguments come from the host."""
        if stream is not None:
            raise ArgumentError(
                f"{self._program.signature.program}: stream= is of a device of this process, but "
                "the program runs on ranks of their own. Leave it out."
            )
        return bound

    def new_results(self, signature: Signature, arrays: Mapping[int, Any]) -> list[Any]:
        """New arrays for results; those that stay on the ranks are handles."""
        return [self._new(parameter) for parameter in signature.results]

    def _new(self, parameter: Parameter) -> Any:
        layout = self._held.get(parameter.position)
        if layout is None or is_whole(layout):  # the first rank has all of it
            return self._ranks.memory_for(parameter.shape, parameter.dtype)
        number = self._ranks.new_number()
        return Handle(self._ranks, number, parameter.shape, parameter.dtype, layout)

    def handing(self, arrays: Mapping[int, Any]) -> Callable[[Any], Any]:
        """What the caller gets for a result: itself."""
        return lambda result: result

    def memory_of(self, result: Any) -> Any:
        """What :meth:`run` takes for a new array of a result."""
        return result

    # -- calls ----------------------------------------------------------------------------------

    def run(self, arrays: Mapping[int, Any]) -> None:
        """Run the program on the ranks."""
        program = self._program
        words = array_of_words("q", (_KIND, program.number))
        back: list[tuple[int, Any]] = []
        after: list[Callable[[], None]] = []
        parameters, kept = self._by_position, program.residents.layouts
        for position, array in arrays.items():
            parameter = parameters[position]
            if kept and parameter.name in kept:
                if program.residents.is_live(parameter.name):
                    words.extend((position, *self._kept(parameter, array, back)))
            elif self._held and position in self._held and not self._is_here(parameter):
                words.extend((position, served.HERE, self._on_ranks(parameter, array, after)))
            else:
                words.extend((position, *self._whole(parameter, array, back, after)))
        self._ranks.ask(words.tobytes(), self._text)
        if program.signature.objects:
            sent = self._ranks.together(served.take_objects, program.number)
            program.take_objects(KeptObjects.unpacked(sent))
        for position, array in back:
            self._fetch(position, array)
        for action in after:
            action()
        if self._lent:
            self._lent.clear()

    def _is_here(self, parameter: Parameter) -> bool:
        """Whether the caller gets a result from the first rank alone, though others have it too."""
        is_result = parameter.name.startswith("__return")
        return is_result and is_whole(self._held[parameter.position])

    def _kept(self, parameter: Parameter, array: Any, back: list[tuple[int, Any]]) -> Place:
        """The place of what stays on the first rank as a whole, with the values of this process."""
        held = self._program.residents
        if parameter.name not in held.passed:
            self.pass_on(parameter.position, array)
            held.passed.add(parameter.name)
        if parameter.is_written:
            back.append((parameter.position, array))
        return self._places[parameter.position]

    def _whole(
        self,
        parameter: Parameter,
        array: Any,
        back: list[tuple[int, Any]],
        after: list[Callable[[], None]],
    ) -> Place:
        """The place of an argument or a result that the first rank has as a whole."""
        ranks, position = self._ranks, parameter.position
        is_result = parameter.name.startswith("__return")
        if isinstance(array, Handle):
            place = self._place(parameter)
            ranks.gather(array, place)
            if parameter.is_written:
                after.append(lambda: ranks.scatter_into(place, array))
            return place
        place_found = ranks.memory.find(array) if array.nbytes else None
        if place_found is not None:
            if not self._is_shared:
                if not is_result:
                    ranks.put(place_found, array.nbytes)
                if is_result or parameter.is_written:
                    after.append(lambda: ranks.get(place_found, array.nbytes))
            return place_found
        place = self.pass_on(position, array)
        if parameter.is_written:
            back.append((position, array))
        return place

    def _on_ranks(self, parameter: Parameter, array: Any, after: list[Callable[[], None]]) -> int:
        """The number of an argument or a result in tiles."""
        layout = self._held[parameter.position]
        if not isinstance(array, Handle):
            lies = self._ranks.place(array, layout)
            if parameter.is_written:
                after.append(lambda: self._ranks.fetch(lies, array))
            self._lent.append(lies)
            return lies.number
        if array.layout != layout:
            self._ranks.rearrange(array, layout)
        return array.number

    # -- memory ---------------------------------------------------------------------------------

    def _place(self, parameter: Parameter) -> Place:
        position = parameter.position
        if position not in self._rooms:
            room = self._ranks.memory_for(parameter.shape, parameter.dtype)
            self._rooms[position] = room
            found = self._ranks.memory.find(room) if room.nbytes else Place(0, 0)
            assert found is not None
            self._places[position] = found
        return self._places[position]

    def pass_on(self, position: int, array: NDArray[Any]) -> Place:
        """Give the first rank an array of this process."""
        place = self._places.get(position) or self._place(self._by_position[position])
        room = self._rooms[position]
        room[...] = array if array.shape == room.shape else array.reshape(room.shape)
        if not self._is_shared:
            self._ranks.put(place, room.nbytes)
        return place

    def _fetch(self, position: int, array: NDArray[Any]) -> None:
        room = self._rooms[position]
        self._ranks.get(self._places[position], room.nbytes)
        np.copyto(array, room.reshape(array.shape), casting="no")

    def room(self, name: str, array: NDArray[Any]) -> Place:
        """A place for an argument, where the first rank may put it."""
        return self._place(self._program.signature.parameters[name])

    def bring(self, place: Place, array: NDArray[Any]) -> None:
        """Take what the first rank has put to a place into an array of this process."""
        room = self._ranks.memory.array(place, array.shape, array.dtype)
        self._ranks.get(place, array.nbytes)
        np.copyto(array, room, casting="no")

    def close(self) -> None:
        """Give the memory back."""
        self.is_open = False
        self._rooms.clear()
        self._places.clear()

    # -- what a program on devices tells --------------------------------------------------------

    def pulls(self) -> int:
        """As of :class:`Program`, of the first rank; so are the others."""
        return int(self._ranks.together(served.ask, self._program.number, "pulls"))

    def messages(self) -> int:
        """Moves whose messages went between devices."""
        return int(self._ranks.together(served.ask, self._program.number, "device_messages"))

    def in_pieces(self) -> int:
        """Moves in which tiles went through the host in pieces."""
        return int(self._ranks.together(served.ask, self._program.number, "staged_pieces"))


def is_whole(layout: Layout) -> bool:
    """Whether the first rank has all of it, so that the driver passes and gets it as such."""
    return layout.box(0) == intervals.whole(layout.extents)
