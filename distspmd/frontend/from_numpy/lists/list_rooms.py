"""How much room lists need whose content the run decides, and what readings find of them.

A list has room for what it is made with, for what loops of known lengths can add, and for what it
takes over from others. A reading begins with the rooms that the one before has found.
"""

from __future__ import annotations

from dataclasses import replace

import sympy

from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.lists.run_lists import Facts, RunList, Site
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import add, direction, multiply, simplified

LEAST_ROOM = 1024
"""Elements that a list has room for whose growth has no bound, and as many as all arrays among
the arguments have."""
MOST_ROOM = 1 << 20
"""Elements beyond these, of a list that nested loops let grow, are given no room before the run."""
_RAISES = 3
"""Readings that raise a room for lists of others, which a loop may make of the list itself."""


def note_growth(tracer: Tracer, own: RunList, count: Length = 1) -> None:
    """Keep that the length of a list changes, by so many elements at most each time."""
    known = tracer.lists.noted.get(own.site, Facts())
    tracer.lists.noted[own.site] = replace(known, grows=True)
    note_need(tracer, own, count)


def note_need(tracer: Tracer, own: RunList, count: Length | None) -> None:
    """Keep that a list needs room for so many more elements at most each time; None if unknown."""
    need: Length | None = None if count is None else _most(tracer, count)
    for length in tracer.loops[own.depth :]:
        need = None if need is None or length is None else multiply(need, length)
    before = tracer.lists.needs.get(own.number, 0)
    tracer.lists.needs[own.number] = None if need is None or before is None else add(before, need)


def note_taken(tracer: Tracer, own: RunList, other: RunList) -> None:
    """Keep that a list takes over the elements of another one."""
    known = tracer.lists.noted.get(own.site, Facts())
    room = other.room if other.is_bounded and known.taken is not None else None
    taken = None if room is None else _largest(known.taken, room)
    tracer.lists.noted[own.site] = replace(known, taken=taken)


def _most(tracer: Tracer, length: Length) -> Length | None:
    """The most that a length can be, over sizes of the program; None where that is not known."""
    try:
        found = tracer.capacity(length)
    except CannotRoll:
        return None
    for _ in range(8):
        if isinstance(found, int):
            return max(0, found)
        inner = [s for s in found.free_symbols if s.name in tracer.known.bounds]
        if not inner:
            return found
        for each in inner:
            way = direction(found, each, tracer.known.bounds)
            end = None if way is None else tracer.known.bounds[each.name][way > 0]
            if end is None:
                return None
            found = simplified(sympy.expand(found).xreplace({each: sympy.sympify(end)}))
            if isinstance(found, int):
                break
    return None


def loop_length(tracer: Tracer, length: Length) -> Length | None:
    """The most iterations of a loop; None where that is not known."""
    return _most(tracer, length)


def settle(tracer: Tracer) -> dict[Site, Facts]:
    """What a reading has found of lists, for the next one; empty if it is what it began with."""
    found: dict[Site, Facts] = {}
    for site, facts in tracer.lists.noted.items():
        known = tracer.lists.known_lists.get(site, Facts())
        form = known.form if facts.form is None else facts.form
        found[site] = replace(known, form=form, grows=facts.grows or known.grows)
    for number, need in tracer.lists.needs.items():
        own = tracer.lists.handles[number]
        known = found.get(own.site) or tracer.lists.known_lists.get(own.site, Facts())
        room = None if need is None else _largest(known.room, add(own.first_count, need))
        found[own.site] = replace(known, room=room)
    for site, facts in tracer.lists.noted.items():
        before = tracer.lists.known_lists.get(site, Facts())
        found[site] = _with_taken(before, found[site], facts.taken)
    return {
        site: facts for site, facts in found.items() if tracer.lists.known_lists.get(site) != facts
    }


def _with_taken(before: Facts, found: Facts, taken: Length | None) -> Facts:
    """Facts with room for elements of other lists; without a bound where it rises ever more."""
    if taken == 0:
        return found
    room = None if taken is None else _largest(found.room, taken)
    if room == before.room:
        return replace(found, room=room)
    raises = before.raises + 1
    return replace(found, room=room if raises <= _RAISES else None, raises=raises)


def _largest(one: Length | None, other: Length) -> Length | None:
    """The larger one of two rooms; None where it is too large, or the first one is."""
    if one is None or one == other:
        return one
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other) if max(one, other) <= MOST_ROOM else None
    return other if one == 0 else sympy.Max(sympy.sympify(one), sympy.sympify(other))
