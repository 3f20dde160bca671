"""Dictionaries and objects that a loop binds anew in each iteration, with the same parts.

``state = {"x": ..., "t": ...}`` and ``state = State(x, t)`` are carried part by part: the variable
stands for one dictionary, or object, in all iterations, of which each part has a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.kinds.variables import ABSENT
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.mutation import is_reached

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.kinds.carried_variables import Carried

RECORD = "record"
"""The kind of a variable that is a dictionary, or an object, and is carried part by part."""


def has_parts(value: object) -> bool:
    """Whether a value is a dictionary of Python, or an object of a user's class."""
    if type(value) is dict:
        return True
    return objects.is_own(value) and not isinstance(value, tuple | list | dict)


def parts_of(value: object) -> dict[Any, Any]:
    """The entries of a dictionary, or the attributes of an object."""
    return value if isinstance(value, dict) else vars(value)


def have_one_form(one: object, other: object) -> bool:
    """Whether two values are dictionaries, or objects of one class, with the same parts."""
    if type(one) is not type(other) or not has_parts(one) or one is other:
        return False
    return list(parts_of(one)) == list(parts_of(other))


def record_place(tracer: Tracer, name: str, before: object, place_of: Any) -> Any:
    """A dictionary or an object whose parts are places.

    Args:
        tracer: the reading.
        name: of the variable.
        before: what it stands for before the loop.
        place_of: of the name and the value of a part, its place; :data:`ABSENT` where it stays.
    """
    places = {}
    for key, value in parts_of(before).items():
        place = place_of(f"{name}_{key}", value)
        places[key] = value if place is ABSENT else place
    made: Any = {} if isinstance(before, dict) else object.__new__(type(before))
    parts_of(made).update(places)
    if not isinstance(made, dict) and id(vars(before)) in tracer.program.made:
        tracer.program.made[id(vars(made))] = made
    tracer.links.ambiguous[id(parts_of(made))] = (parts_of(made), name)
    return made


def record_of(value: object, part_of: Callable[[Any], Any]) -> Any:
    """A dictionary or an object like another one, with other parts."""
    made: Any = {} if isinstance(value, dict) else object.__new__(type(value))
    parts_of(made).update({key: part_of(part) for key, part in parts_of(value).items()})
    return made


def _records(carried: Iterable[Carried]) -> list[Carried]:
    return [one for one in carried if has_parts(one.value)]


def note_shared_records(tracer: Tracer, carried: Iterable[Carried]) -> None:
    """Note which records have several names at the end of an iteration, or before the loop."""
    for one in _records(carried):
        roots: list[Mapping[Any, Any]] = [frame.variables for frame in tracer.frames]
        roots = [{k: v for k, v in r.items() if r is not one.holder or k != one.key} for r in roots]
        if any(is_reached(tracer, roots, value) for value in (one.now, one.before)):
            one.is_shared = True


def free_records(tracer: Tracer, carried: Iterable[Carried]) -> None:
    """Let the program change records behind the loop that have no other names."""
    for one in _records(carried):
        if not one.is_shared:
            tracer.links.ambiguous.pop(id(parts_of(one.value)), None)
