"""Who shares containers and elements: variables that see them, and iterations that meet in them."""

from __future__ import annotations

import ast
import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MethodType
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.comparisons import refuse_uncovered
from distspmd.frontend.from_numpy.arrays.images import Alias, Image
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Demanded, Tensor, View
from distspmd.frontend.from_numpy.kinds.variables import OneOf
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader.frames import Frame
from distspmd.frontend.from_numpy.reader.jumps import RESULT
from distspmd.frontend.tensor_ir.statements import Container, loads_of
from distspmd.frontend.tensor_ir.whole_numbers import is_linear, same, symbol

# -- what is known of containers ------------------------------------------------------------------


def references(
    tracer: Tracer,
    container: Container,
    own: Mapping[str, Any] | None = None,
    *,
    returned: bool = True,
) -> int:
    """How many variables, and values that generators gave, see a container.

    Args:
        tracer: has the functions.
        container: that is seen.
        own: variables of the innermost function, where they are not those that it has now.
        returned: whether what functions return counts, too. What runs in a function runs where it
            has not returned so far.
    """
    *outer, last = [frame.variables if returned else unreturned(frame) for frame in tracer.frames]
    given = [{"": f.yielded.values} for f in tracer.frames if f.yielded is not None]
    every = [*outer, last if own is None else own, *given]
    looked_at = {id(frame) for frame in tracer.frames}
    return sum(
        _sees(value, container, looked_at) for variables in every for value in variables.values()
    )


def is_seen(
    tracer: Tracer,
    container: Container,
    way: Mapping[str, Any] | None = None,
    *,
    returned: bool = True,
) -> bool:
    """Whether somebody sees a container beside the variable that is looked at."""
    is_outer = container.is_argument or container.is_of_others
    return is_outer or references(tracer, container, way, returned=returned) > 0


def stored_image(tracer: Tracer, value: Tensor, name: str | None = None) -> View:
    """A tensor in a container; of an image whose array others see, writes will follow."""
    first = len(tracer.program.block.statements)
    found = tracer.stored_anew(value, name)
    if isinstance(value, Image) and is_seen(tracer, value.base.container):
        tracer.links.followed.update(tracer.program.block.statements[first:])
        called = name or found.container.name
        tracer.links.aliases.append(Alias(called, found, value.base, None, follows=value.follows))
    return found


def unreturned(frame: Frame) -> Mapping[str, Any]:
    """The variables of a function in a run in which it has not returned so far."""
    if RESULT not in frame.variables or not frame.ends_at_return:
        return frame.variables
    return {name: value for name, value in frame.variables.items() if name != RESULT}


def before_bound_within(tracer: Tracer, name: str) -> None:
    """Let what a name stands for stay before an expression binds it, whose other parts may see it.

    Raises:
        Refusal: the run may pass over it.
    """
    if tracer.guarded:
        tracer.refuse(
            f"{name!r} is bound in a part of an expression that the run may pass over; "
            "bind it in a statement before"
        )
    value = getattr(tracer.frames[-1].statement, "value", None)
    names = ast.walk(value) if isinstance(value, ast.expr) else ()
    if sum(isinstance(part, ast.Name) and part.id == name for part in names) > 1:
        tracer.frames[-1].variables.pop(name, None)


def _sees(value: object, container: Container, looked_at: set[int]) -> int:
    """How often a value sees a container.

    Args:
        value: of a variable, or a part of one.
        container: that is seen.
        looked_at: identities of functions, objects and iterators that are not looked into again.
    """
    if isinstance(value, View):
        return int(value.container is container)
    if isinstance(value, Demanded):
        return 0
    if isinstance(value, Tensor):
        index = tuple(symbol(f"__probe{d}") for d in range(value.ndim))
        return int(any(load.array is container for load in loads_of(value.element(index))))
    if isinstance(value, RunList):
        return sum(column.container is container for column in value.columns)
    if value is None or isinstance(value, _WITHOUT) or id(value) in looked_at:
        return 0
    parts: Any = ()
    if isinstance(value, list | tuple | deque | set):
        parts = value if len(value) < 1000 else ()
    elif isinstance(value, dict):
        parts = value.values() if len(value) < 1000 and "__builtins__" not in value else ()
    else:
        looked_at.add(id(value))
        parts = _held_by(value)
    return sum(_sees(part, container, looked_at) for part in parts)


_WITHOUT = (bool, int, float, complex, str, bytes, range, type, np.generic, np.ndarray)
"""Types of which no value sees a container."""


def _held_by(value: object) -> Iterable[Any]:
    """What a function, an object or an iterator of a program keeps for later."""
    if isinstance(value, OneOf):
        return value.values
    if isinstance(value, Iterator):
        return gc.get_referents(value)
    if isinstance(value, MethodType):
        return (value.__self__,)
    if isinstance(value, Frame):
        known = value.variables.items()
        return [each for name, each in known if value.outside.get(name) is not each]
    kind = type(value)
    is_ours = kind.__module__.startswith("distspmd.frontend") and not isinstance(value, Tracer)
    is_users = kind.__module__.split(".")[0] not in sys.stdlib_module_names
    is_users = is_users or kind.__module__ == "__main__"
    if hasattr(value, "__dict__") and (is_ours or (is_users and not callable(value))):
        return tuple(vars(value).values())
    return ()


def is_own(tracer: Tracer, container: Container) -> bool:
    """Whether a container belongs to the innermost scope, so that it can be written again."""
    return not tracer.map.own or container.name in tracer.map.own[-1]


def reads_in_place(tracer: Tracer, old: View, value: Tensor) -> bool:
    """Whether each element of a value reads an old one at its own place alone."""
    index = tuple(symbol(f"__probe{d}") for d in range(value.ndim))
    place = old.at(index)
    return all(
        load.array is not old.container
        or all(
            isinstance(a, int | sympy.Basic) and isinstance(b, int | sympy.Basic) and same(a, b)
            for a, b in zip(load.index, place, strict=True)
        )
        for load in loads_of(value.element(index))
    )


CONFLICTS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "add",
    ast.Mult: "multiply",
    ast.Div: "multiply",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}


def conflict_of(tracer: Tracer, old: View, op: ast.operator) -> str | None:
    """How iterations of maps around combine what they add to one element; None: none meet."""
    parameters = tracer.parallel_above(old.container)
    if not parameters:
        return None
    index = tuple(symbol(f"__probe{d}") for d in range(old.ndim))
    if not collide(old.at(index), parameters):
        return None
    refuse_uncovered(tracer, "what iterations of a map add up in one element", [old])
    return without_order(tracer, op)


def without_order(tracer: Tracer, op: ast.operator) -> str:
    """The operation by which iterations in any order combine values in one element.

    Raises:
        Refusal: their order matters.
    """
    if type(op) not in CONFLICTS:
        tracer.refuse(
            f"iterations of a map change one element by {type(op).__name__}: only +, -, *, /, "
            "&, |, ^ have no order"
        )
    return CONFLICTS[type(op)]


def collide(place: Sequence[Any], parameters: Sequence[str]) -> bool:
    """Whether iterations over parameters may meet in one element."""
    alone = set()
    for index in place:
        if isinstance(index, sympy.Basic):
            own = [s.name for s in index.free_symbols if s.name in parameters]
            if len(own) == 1 and is_linear(index, symbol(own[0])):
                alone.add(own[0])
    return not set(parameters) <= alone


def combined_with(tracer: Tracer, old: View, op: ast.operator, value: object) -> Tensor:
    """What is combined with an element: of ``-=`` and ``/=`` the inverse of the value."""
    tensor = inverse_of(tracer, op, tracer.tensor(value))
    return tracer.broadcast(tensor, old.shape)


def inverse_of(tracer: Tracer, op: ast.operator, value: Tensor) -> Tensor:
    """What is added for ``-=``, and multiplied for ``/=``; else the value itself."""
    if isinstance(op, ast.Sub):
        return combine(tracer, np.negative, [value])
    if isinstance(op, ast.Div):
        return combine(tracer, np.divide, [1.0, value])
    return value
