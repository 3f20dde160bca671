"""How loops carry what may be None, or unbound: a flag, and a place of the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, told
from distspmd.frontend.from_numpy.arrays.values import INT64, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.absence import (
    flag_of,
    may_be_none,
    may_be_unbound,
    value_of,
)
from distspmd.frontend.from_numpy.kinds.carried_variables import Loop
from distspmd.frontend.from_numpy.kinds.variables import ABSENT, UNBOUND, OneOf, alike, readable
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import symbol


def place_choice(run: Context, name: str, before: OneOf, place: Callable[[Any], Any]) -> OneOf:
    """What stands in a loop for a value that may be absent.

    Args:
        run: the reading.
        name: of the value.
        before: what it is before the loop.
        place: of a value, what stands for it in the loop; ABSENT where it stays what it is.
    """
    which = run.tracer.unique(f"{readable(name)}_which")
    run.tracer.known.bounds[which] = (0, 1)
    inner = value_of(before)
    values = (next(value for value in before.values if value is not inner), inner)
    run.tracer.add(SetSymbol(which, flag_of(before, values[0]), INT64))
    places = map(place, values)
    kept = [v if p is ABSENT else p for v, p in zip(values, places, strict=True)]
    return OneOf(before.reason, symbol(which), (kept[0], kept[1]))


def move_choice(
    name: str, place: OneOf, now: Any, moves: list[tuple[Any, Any]]
) -> list[tuple[Any, Any]]:
    """Add what the flags are next to what a loop moves; give the values' places and next values.

    Raises:
        CannotRoll: the value has no place, and changes.
    """
    absent, inner = place.values
    moves.append((place.which, flag_of(now, absent)))
    if now is absent:
        return []
    is_choice = may_be_unbound(now) if absent is UNBOUND else may_be_none(now)
    value = value_of(now) if is_choice else now
    if isinstance(inner, _PLACES):
        return [(inner, value)]
    if not alike(inner, value):
        raise CannotRoll(f"{name!r} is {told(inner)} or {told(value)} in the loop")
    return []


_PLACES = sympy.Symbol | View | tuple | list | OneOf


def note_set_at_first(loop: Loop) -> None:
    """Note what is None before a loop, and never behind its first iteration."""
    for one in loop.carried:
        now = one.now
        if one.value is ABSENT and one.before is None and not (now is None or may_be_none(now)):
            loop.set_at_first.add(one.name)


def note_surely_set(loop: Loop, body: Block) -> None:
    """Note what of that is not None behind any later iteration.

    Args:
        loop: that carries it, at the end of an iteration.
        body: the statements of an iteration.
    """
    for one in loop.carried:
        if one.name in loop.set_at_first and isinstance(one.value, OneOf):
            flag = flag_of(one.now, one.value.values[0])
            if _stays_set(body, flag, one.value.which):
                loop.surely_set.add(one.name)


def _stays_set(body: Block, flag: object, before: sympy.Symbol) -> bool:
    """Whether a flag is 0, or what it was at the head, on all ways."""
    seen: set[Any] = set()
    waiting = [sympy.sympify(flag)]
    every = list(_symbols_set(body))
    while waiting:
        value = waiting.pop()
        if value in (0, before) or value in seen:
            continue
        seen.add(value)
        found = [each.value for each in every if value.is_Symbol and each.name == value.name]
        if not found:
            return False
        waiting += map(sympy.sympify, found)
    return True


def _symbols_set(block: Block) -> Iterator[SetSymbol]:
    for statement in block.statements:
        if isinstance(statement, SetSymbol):
            yield statement
        for inner in statement.blocks():
            yield from _symbols_set(inner)
