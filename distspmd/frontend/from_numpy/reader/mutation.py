"""Lists, dictionaries and sets that a program changes, in loops, branches and maps.

They are Python's own objects while a program is read. What changes one of them in a loop that stays
a loop, or by a condition that is known at run time only, would happen once, when the program is
read. So whoever changes one says so first, by :func:`before_change`, and the blocks around decide:
a loop carries the entry, or is unrolled; a branch keeps both contents; a map refuses.
"""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from distspmd.frontend.from_numpy.arrays.states import refill
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import OneOf
from distspmd.frontend.from_numpy.lists.list_forms import RowOfRun
from distspmd.frontend.from_numpy.lists.run_lists import decided_by_run, has_names

MUTABLE = (list, dict, set, deque)
"""Types of what a program may change beside arrays."""

_READING = {
    *("copy", "count", "index", "get", "items", "keys", "values", "union", "intersection"),
    *("difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint", "elements"),
    *("most_common", "total", "fromkeys", "maxlen", "default_factory"),
}


class Around(Enum):
    """What is around a change."""

    LOOP = auto()
    BRANCH = auto()
    MAP = auto()


class CarryEntry(Exception):
    """A loop is read again, which has to carry an entry of a list or dictionary."""

    def __init__(self, journal: Journal, holder: Any, key: Any) -> None:
        super().__init__(key)
        self.journal, self.holder, self.key = journal, holder, key


@dataclass(eq=False)
class Journal:
    """What becomes of the lists and dictionaries from before a block while it is read.

    Attributes:
        around: what the block is.
        roots: the variables at its head.
        made: objects that the program has made, by the identity of their dictionaries.
        entries: identity and key of the entries that a loop carries.
        old: what was changed, with its contents before, by identity.
    """

    around: Around
    roots: Sequence[Any]
    made: Mapping[int, Any] = field(default_factory=dict)
    entries: set[tuple[int, Any]] = field(default_factory=set)
    old: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _known: dict[int, str] | None = None

    def name_of(self, value: object) -> str | None:
        """How the program calls a list or dictionary from before the block; None for others."""
        if self._known is None:
            self._known = _reached(self.roots, self.made)
        return self._known.get(id(value))

    def keep(self, value: object) -> None:
        """Keep the contents of what is about to change."""
        self.old.setdefault(id(value), (value, copy.copy(value)))

    def take_back(self) -> dict[int, tuple[Any, Any]]:
        """The contents now of what has changed, which then has its old contents again."""
        found = {}
        for identity, (value, contents) in self.old.items():
            found[identity] = value, copy.copy(value)
            refill(value, contents)
        return found


def _reached(roots: Sequence[Any], made: Mapping[int, Any]) -> dict[int, str]:
    """What lists and dictionaries variables reach, with a name of each."""
    found: dict[int, str] = {}
    objects = {id(value) for value in made.values()}
    waiting = [(name, v) for variables in roots for name, v in variables.items()]
    while waiting:
        name, value = waiting.pop()
        if id(value) in objects:
            value = vars(value)
        if isinstance(value, OneOf):
            waiting += [(f"{name}[{n}]", each) for n, each in enumerate(value.values)]
        if not isinstance(value, (*MUTABLE, tuple)) or id(value) in found:
            continue
        found[id(value)] = name
        if isinstance(value, dict):
            if "__builtins__" not in value:
                waiting += [(f"{name}[{k!r}]", v) for k, v in value.items()]
        else:
            waiting += [(f"{name}[{n}]", v) for n, v in enumerate(value)]
    return found


def is_reached(tracer: Tracer, roots: Sequence[Any], value: object) -> bool:
    """Whether variables reach a list, a dictionary or an object."""
    content = value if isinstance(value, MUTABLE) else vars(value)
    return id(content) in _reached(roots, tracer.program.made)


@contextmanager
def watched(
    tracer: Tracer, around: Around, entries: set[tuple[int, Any]] | None = None
) -> Iterator[Journal]:
    """Watch what becomes of lists and dictionaries in a block; an exception puts them back."""
    roots = [dict(frame.variables) for frame in tracer.frames]
    journal = Journal(around, roots, tracer.program.made, entries or set())
    tracer.journals.append(journal)
    try:
        yield journal
    except BaseException:
        journal.take_back()
        raise
    finally:
        tracer.journals.remove(journal)


def before_change(run: Context, value: object, *keys: object) -> None:
    """Say that a list, dictionary or set is about to change.

    Args:
        run: the reading.
        value: what changes.
        keys: the one entry that gets another value; none where more changes.

    Raises:
        CannotRoll: a loop that stays one cannot do that.
        CarryEntry: a loop has to carry the entry.
    """
    tracer = run.tracer
    _check_changeable(run, value)
    for journal in tracer.journals:
        name = journal.name_of(value)
        if name is None:
            continue
        if journal.around is Around.BRANCH:
            journal.keep(value)
        elif journal.around is Around.MAP:
            if tracer.map.straight is not None:
                tracer.map.straight.leave()
            tracer.refuse(f"{name!r} is changed in a map, whose iterations have no order")
        elif not keys or not _has(value, keys[0]):
            raise CannotRoll(f"{name!r} is changed in the loop", value)
        elif (id(value), keys[0]) not in journal.entries:
            raise CarryEntry(journal, value, keys[0])


def _check_changeable(run: Context, value: object) -> None:
    """Refuse changes that others would have to see, or that would outlive the program."""
    tracer = run.tracer
    if isinstance(value, RowOfRun) or id(value) in tracer.lists.given:
        tracer.refuse(
            "a list that is an element of a list whose content the run decides is changed; put "
            "another one in its place, l[i] = [...]"
        )
    if id(value) in tracer.links.ambiguous:
        tracer.refuse(
            f"a list, dictionary or object is changed that may be the one that "
            f"{tracer.links.ambiguous[id(value)][1]!r} stands for, as the run decides; make a copy "
            "where it gets its name, if the other shall not change"
        )
    if isinstance(value, MUTABLE) and is_outside(run, value):
        tracer.refuse(
            "a list, dictionary or set from outside of the program is changed: the change would be "
            "made once, when the program is read. Make it inside, or return the value"
        )


def before_missing(run: Context, value: dict[Any, Any], key: object) -> None:
    """Say that a dictionary is about to get an entry since it is asked for one that it has not.

    Raises:
        CannotRoll: a loop that stays one cannot do that.
    """
    if isinstance(value, defaultdict) and key not in value:
        before_change(run, value)


def is_outside(run: Context, value: object) -> bool:
    """Whether a list is one of a module's or a class's, so that it outlives the program."""
    outside = [frame.outside for frame in run.tracer.frames]
    for made in run.tracer.program.made.values():
        outside += [vars(kind) for kind in type(made).__mro__]
    return any(each is value for known in outside for each in known.values())


def _has(value: Any, key: Any) -> bool:
    try:
        if isinstance(value, dict):
            return key in value
        value[key]
    except (LookupError, TypeError):
        return False
    return not isinstance(key, slice)


def may_change(value: object, method: str) -> bool:
    """Whether a method of Python's own objects changes them."""
    return isinstance(value, MUTABLE) and method not in _READING and not method.startswith("__")


def join_contents(
    run: Context,
    first: dict[int, tuple[Any, Any]],
    second: dict[int, tuple[Any, Any]],
    join: Any,
) -> None:
    """Give what two ways changed differently the contents of both, by entry.

    Args:
        run: the reading.
        first: contents after the one way of what it changed.
        second: the same of the other.
        join: what gives a value that is one of two, by the way that was taken.

    Raises:
        Refusal: there is another number of entries, or there are other keys.
    """
    for identity in {**first, **second}:
        value = (first.get(identity) or second[identity])[0]
        before = copy.copy(value)  # what it holds on a way that does not change it
        one = first.get(identity, (value, before))[1]
        other = second.get(identity, (value, before))[1]
        if isinstance(value, dict) and one.keys() == other.keys():
            joined: Any = {k: join(f"entry_{k}", one[k], other[k]) for k in one}
        elif isinstance(value, list | deque) and len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            joined = [join(f"entry_{n}", a, b) for n, (a, b) in pairs]
        elif one == other:
            joined = one
        else:
            if not isinstance(value, dict) or not has_names([*one, *other]):
                decided_by_run(run, value)
            run.tracer.refuse(
                f"a {type(value).__name__} has {len(one)} or {len(other)} entries, or other ones, "
                "by a condition that is known at run time only"
            )
        refill(value, joined)
