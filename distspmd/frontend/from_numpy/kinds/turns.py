"""Values of a loop that is written out: each is what stands there when its turn comes.

A list may grow, shrink and change while a loop goes through it, as in Python; a dictionary, a set
or a deque may not get another length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from dataclasses import dataclass
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.ranges import Enumerated, Zipped, by_index, static_values
from distspmd.frontend.tensor_ir.whole_numbers import add

END = object()
"""What stands behind the last value."""


@dataclass(frozen=True, eq=False)
class Turns:
    """What is iterated over, from one place on.

    Attributes:
        at: the value at a place, or :data:`END`.
        place: of the next value.
    """

    at: Callable[[int], Any]
    place: int = 0

    def rest(self) -> Iterator[tuple[Any, Turns]]:
        """Each value with what follows it, as it is when it is asked for."""
        turns = self
        while (value := turns.at(turns.place)) is not END:
            turns = Turns(self.at, turns.place + 1)
            yield value, turns


def of_known(values: list[Any]) -> Turns:
    """The values of a list that the program does not have."""
    return Turns(lambda place: values[place] if place < len(values) else END)


def turns_of(run: Context, over: object) -> Turns:
    """What a loop over something goes through."""
    if isinstance(over, list):
        return of_known(over)
    if isinstance(over, Enumerated):
        inner = turns_of(run, over.values)
        return Turns(lambda place: _numbered(over, place, inner.at(place)))
    if isinstance(over, Zipped):
        parts = [turns_of(run, part) for part in over.values]
        return Turns(lambda place: _beside(parts, place))
    if isinstance(over, dict | set | frozenset | deque | KeysView | ValuesView | ItemsView):
        return _of_one_length(run, over)
    counted = by_index(run, over)
    if counted is not None and isinstance(counted[0], int):
        length, value_of = counted
        return Turns(lambda place: value_of(place) if place < length else END)
    return of_known(list(static_values(run, over)))


def _numbered(over: Enumerated, place: int, value: object) -> Any:
    return END if value is END else (add(over.start, place), value)


def _beside(parts: list[Turns], place: int) -> Any:
    found = []
    for part in parts:
        value = part.at(place)
        if value is END:
            return END
        found.append(value)
    return tuple(found) if parts else END


def _of_one_length(run: Context, over: Any) -> Turns:
    """The values of a dictionary, set or deque, which keeps its length."""
    first = list(over)
    kind = "dictionary" if not isinstance(over, set | deque) else type(over).__name__
    told = "deque mutated" if kind == "deque" else f"{kind} changed size"

    def at(place: int) -> Any:
        if len(over) != len(first):
            run.tracer.fail(RuntimeError(f"{told} during iteration"))
        if place >= len(first):
            return END
        if isinstance(over, ValuesView | ItemsView):  # a value may have been bound anew
            return next(value for n, value in enumerate(over) if n == place)
        return over[place] if isinstance(over, deque) else first[place]

    return Turns(at)
