"""Lists whose content the run decides, of which a branch leaves one or another under a name.

The name gets a list of its own, which takes over the elements of the one that the way has. That is
what Python does as long as no other name stands for either of the two, or nothing changes behind
the branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.list_forms import UNKNOWN, joined_form
from distspmd.frontend.from_numpy.lists.run_lists import (
    Facts,
    Known,
    RunList,
    columns_in,
    site_of,
)
from distspmd.frontend.tensor_ir.statements import Block


def join_lists(
    interpreter: Context,
    name: str,
    values: tuple[Any, Any],
    blocks: Sequence[Block],
    others: Sequence[Mapping[str, Any]],
) -> RunList | None:
    """One list for those of two ways; None where they have no common form, or other names.

    Args:
        interpreter: the reading.
        name: of the variable.
        values: at the ends of the two ways.
        blocks: the statements of the ways.
        others: all variables of each way but this one.
    """
    one, other = values
    if type(one) is not RunList or type(other) is not RunList or one.kind is not other.kind:
        return None
    tracer = interpreter.tracer
    outer = [frame.variables for frame in tracer.frames[:-1]]
    with_others = []
    for value, way in zip(values, others, strict=True):
        named = sum(each is value for each in _lists_in([*outer, way], tracer.program.made))
        is_named = named > name.startswith("entry_")
        if value.owner is not None or (is_named and not _can_stay(value, len(tracer.loops))):
            return None
        with_others += [value] if is_named else []
    found = _joined(interpreter, name, values, blocks)
    for each in (*with_others, found) if with_others else ():
        each.also = name
    return found


def _can_stay(own: RunList, loops: int) -> bool:
    """Whether no change of a list that was read before may come behind a branch in the run."""
    return own.depth >= loops or own.changed <= own.depth


def _lists_in(
    value: object, made: Mapping[int, Any], seen: set[int] | None = None
) -> Iterator[RunList]:
    """The lists that variables stand for, also as parts of lists and objects of the program."""
    seen = set() if seen is None else seen
    if isinstance(value, RunList):
        yield value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        for each in list(value.values()):
            yield from _lists_in(each, made, seen)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _lists_in(each, made, seen)
    elif hasattr(value, "__dict__") and id(vars(value)) in made:
        yield from _lists_in(vars(value), made, seen)


def _joined(
    interpreter: Context, name: str, values: Sequence[RunList], blocks: Sequence[Block]
) -> RunList:
    tracer = interpreter.tracer
    site = (*site_of(tracer, tracer.node), name, "joined")
    known = tracer.lists.noted.get(site, Facts())
    form = known.form
    for value in values:
        own = tracer.lists.noted.get(value.site, Facts()).form or value.form
        if own is not UNKNOWN:
            form = own if form is None else joined_form(tracer, form, own)
    tracer.lists.noted[site] = replace(known, form=form, grows=True)
    with tracer.named(name):
        found = lists.made_of(interpreter, site, values[0].kind, [])
    tracer.lists.noted[site] = replace(known, form=form, grows=True)
    rooms = [value.room for value in values]
    is_known = all(isinstance(room, int) for room in rooms)
    tracer.lists.needs[found.number] = max(rooms) if is_known else None
    if form is None:
        return found
    if joined_form(tracer, found.form, form) != found.form or found.form is UNKNOWN:
        raise Known
    for value, block in zip(values, blocks, strict=True):
        if value.form is UNKNOWN and tracer.lists.noted.get(value.site, Facts()).form is not None:
            raise Known
        if value.form is UNKNOWN:
            continue  # it is empty, as the list is
        with tracer.within(block):
            columns = lists.columns_of(tracer, value)
            copies = [tracer.stored_anew(column, "elements") for column in columns]
            taken = columns_in(found.form, value.form, copies)
            list_changes.take_over(interpreter, found, taken)
    return found
