"""How loops carry what may be None, or unbound: a flag, and a place of the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy

from distspmd.frontend.from_numpy.syntax.absence import (
    flag_of,
    may_be_none,
    may_be_unbound,
    value_of,
)
from distspmd.frontend.from_numpy.syntax.variables import (
    ABSENT,
    UNBOUND,
    OneOf,
    alike,
    readable,
)
from distspmd.frontend.from_numpy.transcript import CannotRoll, told
from distspmd.frontend.from_numpy.values import INT64, View
from distspmd.frontend.tensor_ir.statements import SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import symbol

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


def place_choice(run: Interpreter, name: str, before: OneOf, place: Callable[[Any], Any]) -> OneOf:
    """What stands in a loop for a value that may be absent.

    Args:
        run: the reading.
        name: of the value.
        before: what it is before the loop.
        place: of a value, what stands for it in the loop; ABSENT where it stays what it is.
    """
    inner = value_of(before)
    absent = next(value for value in before.values if value is not inner)
    which = run.tracer.unique(f"{readable(name)}_which")
    run.tracer.bounds[which] = (0, 1)
    run.tracer.add(SetSymbol(which, flag_of(before, absent), INT64))
    found = place(inner)
    return OneOf(before.reason, symbol(which), (absent, inner if found is ABSENT else found))


def move_choice(
    name: str, place: OneOf, now: Any, moves: list[tuple[Any, Any]]
) -> tuple[Any, Any] | None:
    """Add what the flag is next to what a loop moves; give the value's place and next value.

    Raises:
        CannotRoll: the value has no place, and changes.
    """
    absent, inner = place.values
    moves.append((place.which, flag_of(now, absent)))
    if now is absent:
        return None
    is_choice = may_be_unbound(now) if absent is UNBOUND else may_be_none(now)
    value = value_of(now) if is_choice else now
    if isinstance(inner, sympy.Symbol | View | tuple | list | OneOf):
        return inner, value
    if not alike(inner, value):
        raise CannotRoll(f"{name!r} is {told(inner)} or {told(value)} in the loop")
    return None
