"""What a loop carries from one iteration to the next.

A variable that a loop changes gets one container, or one symbol, which all iterations share.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.kinds import is_whole
from distspmd.frontend.from_numpy.syntax.bindings import bound_names, is_written_first
from distspmd.frontend.from_numpy.syntax.sharing import is_own, references
from distspmd.frontend.from_numpy.syntax.variables import ABSENT, alike, readable
from distspmd.frontend.from_numpy.tracer import Tracer
from distspmd.frontend.from_numpy.transcript import CannotRoll
from distspmd.frontend.from_numpy.values import INT64, Tensor, View, view_of
from distspmd.frontend.tensor_ir.statements import Container, SetSymbol, loads_of
from distspmd.frontend.tensor_ir.whole_numbers import Whole, same, symbol

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


class ReadAgain(Exception):
    """A loop is read again, with another kind of a variable that it carries."""

    def __init__(self, name: str, kind: Any) -> None:
        super().__init__(name)
        self.name, self.kind = name, kind


# -- what loops carry -----------------------------------------------------------------------------


@dataclass
class Carried:
    """A variable at the head of a loop.

    Attributes:
        name: of the variable.
        value: what it stands for in the loop.
        before: what it stood for before.
    """

    name: str
    value: Any
    before: Any


def enter_loop(
    interpreter: Interpreter, node: ast.For | ast.While, kinds: dict[str, Any]
) -> list[Carried]:
    """Give the variables that a loop may change a place that all iterations share."""
    carried: list[Carried] = []
    body_names = bound_names(node)
    for name in sorted(body_names):
        if name not in interpreter.variables or kinds.get(name) == "free":
            continue
        before = interpreter.variables[name]
        value = _place(interpreter, name, before, kinds)
        if value is ABSENT:
            continue
        interpreter.variables[name] = value
        carried.append(Carried(name, value, before))
    return carried


def _place(interpreter: Interpreter, name: str, before: Any, kinds: dict[str, Any]) -> Any:
    tracer, kind = interpreter.tracer, kinds.get(name)
    if kind is None and (is_whole(before)):
        found = tracer.unique(readable(name))
        tracer.bounds[found] = (None, None)
        tracer.add(SetSymbol(found, sympy.sympify(before), INT64))
        return symbol(found)
    if isinstance(before, tuple) and any(_carries(v) for v in before):
        return tuple(
            _place(interpreter, f"{name}_{n}", v, kinds) if _carries(v) else v
            for n, v in enumerate(before)
        )
    if not _carries(before):
        return ABSENT
    tensor = tracer.tensor(before)
    if tensor.mask is not None:
        raise CannotRoll(f"{name!r} is a choice by a mask")
    if isinstance(before, View) and kind is None:
        return before
    dtype, weak = kind if isinstance(kind, tuple) else (tensor.dtype, tensor.weak)
    view = view_of(tracer.container(readable(name), tensor.shape, dtype))
    view.weak = weak
    tracer.write(view, tensor)
    return view


def _carries(value: Any) -> bool:
    return isinstance(
        value, bool | int | float | complex | np.generic | sympy.Basic | Tensor | np.ndarray
    )


def _part_shared(
    interpreter: Interpreter, carried: Sequence[Carried], kinds: dict[str, Any]
) -> None:
    """Give variables that stood for one array, and that the loop binds anew, places of their own.

    Raises:
        ReadAgain: there is one such.
    """
    for one in carried:
        place = one.value
        if not isinstance(place, View) or one.name in kinds:
            continue
        others = [c for c in carried if c is not one and isinstance(c.value, View)]
        if any(c.value.container is place.container for c in others):
            now = interpreter.variables.get(one.name, ABSENT)
            if not alike(place, now):
                raise ReadAgain(one.name, (place.dtype, place.weak))


def leave_loop(
    interpreter: Interpreter,
    node: ast.For | ast.While,
    carried: Sequence[Carried],
    kinds: dict[str, Any],
    stops: Sequence[str],
) -> tuple[str | None, list[Any]]:
    """Write what the variables stand for at the end of an iteration to their places."""
    tracer = interpreter.tracer
    _part_shared(interpreter, carried, kinds)
    moves: list[tuple[Any, Any]] = []
    for one in carried:
        now = interpreter.variables.get(one.name, ABSENT)
        if now is ABSENT:
            continue
        try:
            _moves(interpreter, one.name, one.value, now, moves, kinds, one.before)
        except ReadAgain:
            if is_written_first(node, one.name) and one.name not in stops:
                raise ReadAgain(one.name, "free") from None
            raise
    _move_tensors(tracer, [(place, now) for place, now in moves if isinstance(place, View)])
    _move_symbols(tracer, [(place, now) for place, now in moves if isinstance(place, sympy.Symbol)])
    return _ends(interpreter, carried, stops)


def _move_tensors(tracer: Tracer, tensors: Sequence[tuple[View, Tensor]]) -> None:
    """Write values to places, all as if at once."""
    places = {place.container for place, _ in tensors}
    ready: list[tuple[View, Tensor]] = []
    for place, now in tensors:
        if len(tensors) > 1 and isinstance(now, Tensor) and _reads(now, places - {place.container}):
            now = tracer.stored_anew(now, "next")
        ready.append((place, now))
    for place, now in ready:
        tracer.assign(place, now)


def _move_symbols(tracer: Tracer, symbols: Sequence[tuple[sympy.Symbol, Whole]]) -> None:
    """Set symbols, all as if at once."""
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


def _ends(
    interpreter: Interpreter, carried: Sequence[Carried], stops: Sequence[str]
) -> tuple[str | None, list[Any]]:
    """The condition that no flag is set, and the statements that come before the loop for it."""
    tracer = interpreter.tracer
    conditions: list[str] = []
    before_it: list[Any] = []
    for stop in stops:
        flag = interpreter.variables.get(stop, False)
        known = interpreter.truth(flag)
        if known is True:
            raise CannotRoll("the loop ends in its first iteration")
        if known is None:
            place = next(c.value for c in carried if c.name == stop)
            assert isinstance(place, View)
            name = tracer.unique(f"{readable(stop)}_value")
            tracer.add(SetSymbol(name, place.element(()), np.dtype(bool)))
            before_it.append(SetSymbol(name, "False", np.dtype(bool)))
            conditions.append(name)
    return " and ".join(f"(not {c})" for c in conditions) or None, before_it


def _moves(
    interpreter: Interpreter,
    name: str,
    place: Any,
    now: Any,
    moves: list[Any],
    kinds: Any,
    before: Any,
) -> None:
    tracer = interpreter.tracer
    if isinstance(place, tuple):
        if not isinstance(now, tuple) or len(now) != len(place):
            raise CannotRoll(f"{name!r} changes its length in the loop")
        for n, (p, v, b) in enumerate(zip(place, now, before, strict=True)):
            if isinstance(p, sympy.Symbol | View):
                _moves(interpreter, f"{name}_{n}", p, v, moves, kinds, b)
            elif not alike(p, v):
                raise CannotRoll(f"{name!r} changes in the loop")
        return
    if alike(place, now):
        return
    if isinstance(place, sympy.Symbol):
        moves.append((place, _next_whole(tracer, name, now)))
        return
    assert isinstance(place, View)
    moves.append((place, _next_tensor(tracer, name, place, now, kinds.get(name), before)))


def _next_whole(tracer: Tracer, name: str, now: Any) -> Whole:
    """The next value of a symbol that a loop carries.

    Raises:
        ReadAgain: it is another number: the loop carries a container.
        CannotRoll: it is none.
    """
    if is_whole(now):
        whole: Whole = now
        return whole
    if isinstance(now, Tensor) and now.ndim == 0 and now.weak is int:
        return tracer.as_whole(now)
    scalar = isinstance(now, Tensor) and now.ndim == 0
    if scalar or isinstance(now, float | complex | np.generic):
        tensor = tracer.tensor(now)
        raise ReadAgain(name, (np.result_type(tensor.dtype, INT64), tensor.weak))
    raise CannotRoll(f"{name!r} is no number any more in the loop")


def _next_tensor(
    tracer: Tracer, name: str, place: View, now: Any, kind: Any, before: Any
) -> Tensor:
    """The next value of a container that a loop carries.

    Raises:
        ReadAgain: it needs a container of its own, or of another type.
        CannotRoll: it is no array, or has another shape.
    """
    if not _carries(now):
        raise CannotRoll(f"{name!r} is no array or number any more in the loop")
    tensor = tracer.tensor(now)
    if tensor.mask is not None:
        raise CannotRoll(f"{name!r} is a choice by a mask")
    if len(tensor.shape) != len(place.shape) or not all(
        same(a, b) for a, b in zip(tensor.shape, place.shape, strict=True)
    ):
        if kind != "shape":
            raise ReadAgain(name, "shape")
        raise CannotRoll(f"{name!r} changes its shape in the loop")
    joined = np.result_type(tensor.dtype, place.dtype)
    if kind is None and not _is_free(tracer, place, before):
        raise ReadAgain(name, (joined, place.weak if place.weak is tensor.weak else None))
    if tensor.weak is None and place.weak is not None and kind is None:
        raise ReadAgain(name, (joined, None))
    if joined != place.dtype:
        raise ReadAgain(name, (joined, tensor.weak))
    return tensor


def _is_free(tracer: Tracer, place: View, before: Any) -> bool:
    """Whether iterations may write to the container that a variable had before the loop."""
    return before is not place or (
        place.is_whole
        and not place.container.is_argument
        and references(tracer, place.container) == 0
        and is_own(tracer, place.container)
    )


def _reads(tensor: Tensor, containers: set[Container]) -> bool:
    index = tuple(symbol(f"__probe{d}") for d in range(tensor.ndim))
    return any(load.array in containers for load in loads_of(tensor.element(index)))


def after_loop(interpreter: Interpreter, carried: Sequence[Carried]) -> None:
    """After the loop variables stand for their places."""
    for one in carried:
        interpreter.variables[one.name] = one.value
