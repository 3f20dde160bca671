"""Names that get another list in a loop, whose content the run decides: ``level = following``.

The name has a list of its own for all iterations, which takes over the elements of the other one.
That is what Python does as long as no other name stands for either of them.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.last_values import names_read
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.list_forms import UNKNOWN, joined_form
from distspmd.frontend.from_numpy.lists.list_rooms import note_taken
from distspmd.frontend.from_numpy.lists.run_lists import (
    Facts,
    Known,
    RunList,
    columns_in,
    decided_by_run,
)
from distspmd.frontend.from_numpy.reader.bindings import is_written_first


def is_other_list(interpreter: Context, one: object, other: object) -> bool:
    """Whether two values are lists whose content the run decides.

    Raises:
        DecidedByRun: they are lists, and one of them is to be read as such.
    """
    if not all(isinstance(v, RunList | list | deque | set) for v in (one, other)):
        return False
    for value in (one, other):
        if not isinstance(value, RunList):
            decided_by_run(interpreter, value)
    return isinstance(one, RunList) and isinstance(other, RunList)


def are_run_lists(interpreter: Context, one: object, other: object) -> bool:
    """Whether one of two lists is one whose content the run decides, as both have to be then.

    Raises:
        DecidedByRun: the other one is to be read as such.
    """
    if not isinstance(one, RunList) and not isinstance(other, RunList):
        return False
    return is_other_list(interpreter, one, other)


def list_move(interpreter: Context, place: Any, now: Any) -> tuple[RunList, Any]:
    """The list of a loop, and the one whose elements it takes over behind an iteration."""
    is_other_list(interpreter, now, place)
    return place, now


def own_list(interpreter: Context, node: ast.For | ast.While, name: str, before: Any) -> RunList:
    """The list that a name has in all iterations: first with the elements that it had before.

    Raises:
        CannotRoll: another name stands for the same list, and could show a change of it.
    """
    tracer = interpreter.tracer
    every = [v for frame in tracer.frames for v in frame.variables.values()]
    names = [n for n, value in interpreter.variables.items() if value is before]
    count = sum(v is before for v in every)
    is_let_go = count == len(names) and all(_is_let_go(interpreter, node, n) for n in names)
    if count > 1 and not is_let_go:
        raise CannotRoll(f"{name!r} is another list after an iteration, and has another name too")
    with tracer.named(name):
        columns = lists.columns_of(tracer, before)
        found = lists.made_of_columns(interpreter, before.kind, before.form, columns, before.site)
    if isinstance(found.count, int):
        known = tracer.lists.noted.get(before.site, Facts())
        tracer.lists.noted[before.site] = replace(known, grows=True)
        raise Known
    return found


def _is_let_go(interpreter: Context, node: ast.For | ast.While, name: str) -> bool:
    """Whether nothing changes what a name stands for before a loop, ``a`` of ``a = b = [1]``.

    That is so where each iteration first binds the name, whatever else it does, and the function
    reads it in the loop only: what the name had before is then at most tested.
    """
    frame = interpreter.tracer.frames[-1]
    if frame.variables is not interpreter.variables:
        return False
    if frame.reads is None or frame.reads[name] != names_read(node)[name]:
        return False
    if isinstance(node, ast.For) and _is_in(node.target, name):
        return False
    first = next((statement for statement in node.body if _is_in(statement, name)), None)
    return (
        isinstance(first, ast.Assign)
        and not names_read(first)[name]
        and any(isinstance(t, ast.Name) and t.id == name for t in first.targets)
    )


def _is_in(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def move_lists(
    interpreter: Context, node: ast.For | ast.While, rebound: Sequence[tuple[RunList, RunList]]
) -> None:
    """Give lists the elements of others, all as if at once.

    Raises:
        CannotRoll: a name that stays in the next iteration stands for one of these.
    """
    tracer = interpreter.tracer
    ready = []
    for place, now in rebound:
        names = [n for n, value in interpreter.variables.items() if value is now]
        staying = [name for name in names if not is_written_first(node, name)]
        if len(staying) > 1:
            raise CannotRoll(f"{' and '.join(staying)} stand for one list after an iteration")
        if now.also and place.changed > place.depth:
            raise CannotRoll(f"{now.also!r} is a list with two names in the loop, and changes")
        place.also = place.also or now.also
        known = tracer.lists.noted.get(place.site, Facts())
        form = known.form if now.form is UNKNOWN else joined_form(tracer, known.form, now.form)
        tracer.lists.noted[place.site] = replace(known, form=form, grows=True)
        note_taken(tracer, place, now)
        if now.form is not UNKNOWN and joined_form(tracer, place.form, now.form) != place.form:
            raise Known
        copies = [tracer.stored_anew(c, "elements") for c in lists.columns_of(tracer, now)]
        copies = columns_in(place.form, now.form, copies)  # type: ignore[assignment]
        ready.append((place, copies))
    for place, copies in ready:
        list_changes.take_over(interpreter, place, copies)
