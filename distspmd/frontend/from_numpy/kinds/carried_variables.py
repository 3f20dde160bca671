"""What is known of a loop while it is read, and of each variable that it carries."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.images import Alias
from distspmd.frontend.from_numpy.arrays.kinds import is_whole
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View
from distspmd.frontend.from_numpy.kinds.first_arrays import bind_in_place
from distspmd.frontend.from_numpy.kinds.nests import Kinds
from distspmd.frontend.from_numpy.kinds.variables import ABSENT, OneOf
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.tensor_ir.statements import Container, SetSymbol, loads_of
from distspmd.frontend.tensor_ir.whole_numbers import Whole, symbol


@dataclass
class Carried:
    """A variable at the head of a loop, or an entry of a list or dictionary.

    Attributes:
        holder: the variables, the list or the dictionary.
        key: its name in the variables, or what the entry is found by.
        name: how the program calls it.
        value: what it stands for in the loop; :data:`ABSENT` where it has to stay what it is.
        before: what it stood for before.
        is_shared: whether it is a dictionary or an object that has other names, too.
    """

    holder: Any
    key: Any
    name: str
    value: Any
    before: Any
    is_shared: bool = False

    @property
    def now(self) -> Any:
        """What it stands for now."""
        try:
            return self.holder[self.key]
        except LookupError:
            return ABSENT


@dataclass(frozen=True, eq=False)
class First:
    """The kind of a variable that is None before a loop, and a value or None in it.

    Attributes:
        value: what it is at the head, with a value of the same kind for all readings.
    """

    value: Any


@dataclass
class Loop:
    """A loop that is being read.

    Attributes:
        node: its syntax.
        stops: flags that end it.
        known: the kinds that earlier readings have found, by the kinds at its entry.
        kinds: of the variables that it carries, where an earlier reading has found them.
        at_entry: the kinds of these before it.
        news: the kinds that this reading has found.
        entries: of lists and dictionaries that it carries: holder, key and name.
        lists: those that variables stand for in it, which it carries whole.
        carried: what it carries.
        known_before: symbols that the program had before it.
        firsts: first values of variables that it binds in some iterations only.
        rebound: lists whose content the run decides, with those whose names they get.
        missing: variables that it reads where nothing that has been read has bound them.
        set_at_first: what is None before it, and not behind the first iteration.
        surely_set: of these, what is not None behind any later one.
        links: arrays that are one at times, and that it writes in place.
        names_before: of containers, before it.
        one_behind: arrays that may be one behind it.
    """

    node: ast.For | ast.While
    stops: Sequence[str]
    known: Kinds = field(default_factory=Kinds)
    kinds: dict[str, Any] = field(default_factory=dict)
    at_entry: dict[str, Any] = field(default_factory=dict)
    news: dict[str, Any] = field(default_factory=dict)
    entries: list[tuple[Any, Any, str]] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    carried: list[Carried] = field(default_factory=list)
    known_before: frozenset[str] = frozenset()
    firsts: dict[str, Any] = field(default_factory=dict)
    rebound: list[tuple[RunList, RunList]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    set_at_first: set[str] = field(default_factory=set)
    surely_set: set[str] = field(default_factory=set)
    links: list[tuple[str, Any]] = field(default_factory=list)
    one_behind: list[Alias] = field(default_factory=list)
    names_before: set[str] = field(default_factory=set)

    def kind_of(self, name: str, before: object) -> Any:
        """The kind of a variable, if one was found; it was something before the loop."""
        entry = self.at_entry[name] = _kind_at_entry(before)
        kind = self.known.found.get((name, entry))
        if isinstance(kind, First):
            self.firsts.setdefault(name, kind.value)
        elif kind is not None:
            self.kinds.setdefault(name, kind)
        return self.kinds.get(name)

    def learn(self) -> None:
        """Let the next reading begin with the kinds that this one has found.

        Raises:
            CannotRoll: this one began with them.
        """
        for name, kind in self.news.items():
            if isinstance(kind, First):
                self.begin_with(name, kind.value)
                self.known.found[name, type(None)] = kind
                continue
            if self.kinds.get(name) == kind:
                raise CannotRoll(f"{name!r} changes its kind in the loop")
            self.kinds[name] = kind
            self.known.found[name, self.at_entry.get(name)] = kind
        self.news.clear()

    @property
    def may_assume(self) -> bool:
        """Whether what was found holds, however the loop is read: numbers of another type, None.

        A loop that needs other places of arrays may turn out to be none, or to end otherwise.
        """
        return all(
            isinstance(kind, First)
            or (isinstance(kind, tuple) and not isinstance(self.at_entry.get(name), _Array))
            for name, kind in self.news.items()
        )

    def begin_with(self, name: str, first: object) -> None:
        """Carry a variable from a first value.

        Raises:
            CannotRoll: it has another kind now.
        """
        if name in self.firsts:
            raise CannotRoll(f"{name!r} changes its kind in the loop")
        self.firsts[name] = first

    def carried_names(self) -> set[Any]:
        """The variables that have places."""
        return {one.key for one in self.carried if one.value is not ABSENT}

    def may_set(self) -> set[tuple[int, Any]]:
        """Identity and key of the entries that the body may set."""
        found = {(id(holder), key) for holder, key, _ in self.entries}
        for values in self.lists.values():
            found |= {(id(values), n) for n in range(-len(values), len(values))}
        return found


@dataclass(frozen=True)
class _Array:
    """The kind of an array at the entry of a loop."""

    shape: str
    of_numbers: tuple[Any, ...]


def _kind_at_entry(value: object) -> Any:
    """What the kind that a loop needs for a variable depends on, of its value before the loop."""
    if isinstance(value, Tensor):
        own = value.container.name if isinstance(value, View) else None
        is_typed, is_masked = value.run_type is not None, value.mask is not None
        of_numbers = own, str(value.dtype), value.weak, is_typed, is_masked
        return _Array(str(value.shape), of_numbers) if value.ndim else of_numbers
    if is_whole(value):
        return "whole"
    if isinstance(value, OneOf):
        return tuple(map(_kind_at_entry, value.values))
    if isinstance(value, tuple | list):
        return type(value), *map(_kind_at_entry, value)
    return type(value)


def move_tensors(tracer: Tracer, tensors: Sequence[tuple[View, Tensor]]) -> None:
    """Write values to places, all as if at once."""
    places = {place.container for place, _ in tensors}
    ready: list[tuple[View, Tensor]] = []
    for place, now in tensors:
        if len(tensors) > 1 and isinstance(now, Tensor) and _reads(now, places - {place.container}):
            now = tracer.stored_anew(now, "next")
        ready.append((place, now))
    for place, now in ready:
        bind_in_place(tracer, place, now)


def move_symbols(tracer: Tracer, symbols: Sequence[tuple[sympy.Symbol, Whole]]) -> None:
    """Set symbols, all as if at once."""
    symbols = [(place, now) for place, now in symbols if now is not place]
    names = {place for place, _ in symbols}
    if any(sympy.sympify(now).free_symbols & (names - {place}) for place, now in symbols):
        fresh = []
        for place, now in symbols:
            other = tracer.unique(f"{place.name}_next")
            tracer.add(SetSymbol(other, sympy.sympify(now), INT64))
            fresh.append((place, symbol(other)))
        symbols = fresh
    for place, now in symbols:
        tracer.add(SetSymbol(place.name, sympy.sympify(now), INT64))


def _reads(tensor: Tensor, containers: set[Container]) -> bool:
    index = tuple(symbol(f"__probe{d}") for d in range(tensor.ndim))
    return any(load.array in containers for load in loads_of(tensor.element(index)))
