"""A program is read until it is known what its tables and lists hold.

What a reading finds of that ends it, and the next one begins with it: which tables change, and of
which lists the run decides the content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dace import SDFG

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_numpy.arrays.states import UNROLLED
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import DrawsBefore, TableChanges
from distspmd.frontend.from_numpy.lists.list_rooms import settle
from distspmd.frontend.from_numpy.lists.run_lists import DecidedByRun, Facts, Known

SHORT = 32
"""Iterations of a loop that is written out, at most, for the sake of lists that it changes. Of a
longer one the run decides what they hold, so that it stays a loop."""

_READINGS = 20
"""How often a program is read, at most, after the last list was found whose content it decides, or
whose length."""

_UNSETTLED = (
    "{}: what its lists hold is not known: some are read that get no elements before; write arrays"
)

_ENDLESS = (
    "{}: what the list holds that is made here is decided by the run, in a way that is not "
    "understood; write an array"
)


@dataclass
class KnownFacts:
    """What a reading begins with.

    Attributes:
        changing: numbers of tables that change.
        lists: those whose content the run decides, by the places that make them.
        written_out: iterations of a loop, at most, that is written out for the sake of its lists.
        drawing: modules whose generators are made at the beginning.
    """

    changing: set[int] = field(default_factory=set)
    lists: dict[Any, Facts] = field(default_factory=dict)
    written_out: int = SHORT
    drawing: set[str] = field(default_factory=set)

    def told(self) -> tuple[int, int]:
        """How many lists have a content that the run decides, and how many of these a length."""
        return len(self.lists), sum(facts.grows for facts in self.lists.values())


class Reading(Protocol):
    """Reads a function once."""

    function: Callable[..., Any]
    tracer: Tracer

    def sdfg(self, examples: Sequence[Any], sizes: Mapping[str, Any]) -> SDFG:
        """The SDFG of the function."""


def settled(
    reading: Callable[[KnownFacts], Reading], examples: Sequence[Any], sizes: Mapping[str, Any]
) -> SDFG:
    """The SDFG of a function.

    What is refused with lists of the run, for the sake of which loops of known lengths stayed such,
    is read with these loops written out: more is covered of lists that are known.

    Args:
        reading: makes a new one of what is known.
        examples: arguments.
        sizes: of the program, and arguments by name.

    Raises:
        UnsupportedProgram: something that is not covered.
    """
    facts = KnownFacts()
    has_kept_loops = False

    def read() -> SDFG:
        nonlocal has_kept_loops
        found: SDFG | None = None
        readings = 0
        while found is None:
            next_ = reading(facts)
            before = facts.told()
            found = _read(next_, facts, examples, sizes, is_last=readings > _READINGS)
            has_kept_loops |= next_.tracer.lists.keeps_loop
            readings = readings + 1 if facts.told() == before else 0
        return found

    try:
        return read()
    except UnsupportedProgram:
        if not has_kept_loops:
            raise
    facts = KnownFacts(written_out=UNROLLED)
    return read()


def _read(
    reading: Reading,
    facts: KnownFacts,
    examples: Sequence[Any],
    sizes: Mapping[str, Any],
    *,
    is_last: bool,
) -> SDFG | None:
    """The SDFG of a function; None if it is to be read again, since more is known of it now.

    Args:
        reading: of the function.
        facts: what is known, to which more is added.
        examples: arguments.
        sizes: of the program, and arguments by name.
        is_last: whether it is not read again for what lists hold.
    """
    known = facts.lists
    try:
        found = reading.sdfg(examples, sizes)
        more = settle(reading.tracer)
        if (more and is_last) or (reading.tracer.lists.has_left_out and not more):
            raise UnsupportedProgram(_UNSETTLED.format(reading.function.__name__))
        known.update(more)
        return None if more else found
    except DecidedByRun as problem:
        of_list = replace(known.get(problem.site, Facts()), grows=problem.site in known)
        if known.get(problem.site) == of_list:  # which the next reading would say again
            place = f"{Path(problem.site[0]).name}:{problem.site[2]}"
            raise UnsupportedProgram(_ENDLESS.format(place)) from None
        known[problem.site] = of_list
        return None
    except (UnsupportedProgram, Known) as problem:
        more = settle(reading.tracer)
        if not more or is_last:
            if isinstance(problem, Known):
                raise UnsupportedProgram(_UNSETTLED.format(reading.function.__name__)) from None
            raise
        known.update(more)
        return None
    except TableChanges as table:
        facts.changing.add(table.number)
        return None
    except DrawsBefore as found_late:
        facts.drawing.add(found_late.module)
        return None
