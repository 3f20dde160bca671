"""What is known of a loop while it is read, and of each variable that it carries."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distspmd.frontend.from_numpy.run_lists import RunList
from distspmd.frontend.from_numpy.syntax.links import Alias
from distspmd.frontend.from_numpy.syntax.variables import ABSENT


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


@dataclass
class Loop:
    """A loop that is being read.

    Attributes:
        node: its syntax.
        stops: flags that end it.
        kinds: of the variables that it carries, where an earlier reading has found them.
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
    kinds: dict[str, Any] = field(default_factory=dict)
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

    def carried_names(self) -> set[Any]:
        """The variables that have places."""
        return {one.key for one in self.carried if one.value is not ABSENT}

    def may_set(self) -> set[tuple[int, Any]]:
        """Identity and key of the entries that the body may set."""
        found = {(id(holder), key) for holder, key, _ in self.entries}
        for values in self.lists.values():
            found |= {(id(values), n) for n in range(-len(values), len(values))}
        return found
