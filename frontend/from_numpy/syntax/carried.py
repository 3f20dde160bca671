"""What a loop carries from one iteration to the next.

A variable that a loop changes gets one container, or one symbol, which all iterations share.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import sympy

from distspmd.frontend.from_numpy import run_types
from distspmd.frontend.from_numpy.choosing import chosen
from distspmd.frontend.from_numpy.kinds import is_whole, joined_type, joined_weak
from distspmd.frontend.from_numpy.run_lists import RunList
from distspmd.frontend.from_numpy.syntax.absence import may_be_none, value_of
from distspmd.frontend.from_numpy.syntax.bindings import bound_names, is_written_first
from distspmd.frontend.from_numpy.syntax.bound_at_times import (
    FIXED,
    BoundAtTimes,
    carry_absent,
    carry_missing,
)
from distspmd.frontend.from_numpy.syntax.carried_choices import (
    move_choice,
    note_set_at_first,
    note_surely_set,
)
from distspmd.frontend.from_numpy.syntax.carried_lists import is_other_list, move_lists
from distspmd.frontend.from_numpy.syntax.carried_places import is_carried, place_of
from distspmd.frontend.from_numpy.syntax.first_arrays import (
    is_free,
    refuse_lost_writes,
)
from distspmd.frontend.from_numpy.syntax.last_values import has_one_type, keep_last
from distspmd.frontend.from_numpy.syntax.moves import move_symbols, move_tensors
from distspmd.frontend.from_numpy.syntax.mutation import Around, CarryEntry, refill, watched
from distspmd.frontend.from_numpy.syntax.variables import (
    ABSENT,
    OneOf,
    Saved,
    alike,
    one_of,
    readable,
    see_the_same,
)
from distspmd.frontend.from_numpy.syntax.varying import (
    ReadAgain,
    Varying,
    moves_of,
    next_varying,
    refuse_shape,
)
from distspmd.frontend.from_numpy.tracer import Tracer
from distspmd.frontend.from_numpy.transcript import CannotRoll, told
from distspmd.frontend.from_numpy.values import Tensor, View
from distspmd.frontend.tensor_ir.statements import SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import Whole, same

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


_ATTEMPTS = 12
"""How often a loop is read again, at most, because of the kinds of what it carries."""

Result = TypeVar("Result")


# -- what loops carry -----------------------------------------------------------------------------


@dataclass
class Carried:
    """A variable at the head of a loop, or an entry of a list or dictionary.

    Attributes:
        holder: the variables, the list or the dictionary.
        key: its name in the variables, or what the entry is found by.
        name: how the program calls it.
        value: what it stands for in the loop; :data:`ABSENT` where it has to stay what it is.
        before: what it stood for before.
    """

    holder: Any
    key: Any
    name: str
    value: Any
    before: Any

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

    def carried_names(self) -> set[Any]:
        """The variables that have places."""
        return {one.key for one in self.carried if one.value is not ABSENT}

    def may_set(self) -> set[tuple[int, Any]]:
        """Identity and key of the entries that the body may set."""
        found = {(id(holder), key) for holder, key, _ in self.entries}
        for values in self.lists.values():
            found |= {(id(values), n) for n in range(-len(values), len(values))}
        return found


def read_until_settled(
    interpreter: Interpreter,
    node: ast.For | ast.While,
    stops: Sequence[str],
    read: Callable[[Loop], Result],
) -> Result:
    """Read a loop, again wherever it turns out to carry more, or something of another kind.

    Args:
        interpreter: the reading.
        node: the loop.
        stops: flags that end it.
        read: what reads it once.

    Raises:
        CannotRoll: it cannot stay a loop.
    """
    loop = Loop(node, stops, known_before=frozenset(interpreter.tracer.bounds))
    before = Saved.of(interpreter)
    attempts = 0
    around = interpreter.tracer.frames[-1].loops
    while attempts < _ATTEMPTS:
        contents = [(holder, copy.copy(holder)) for holder, *_ in loop.entries]
        is_settled = False
        around.append(loop)
        try:
            loop.carried = _enter(interpreter, loop)
            with watched(interpreter.tracer, Around.LOOP, loop.may_set()) as journal:
                found = read(loop)
            is_settled = True
            return found
        except ReadAgain as problem:
            if loop.kinds.get(problem.name) == problem.kind:
                raise CannotRoll(f"{problem.name!r} changes its kind in the loop") from None
            loop.kinds[problem.name] = problem.kind
            attempts += 1
        except BoundAtTimes as problem:
            if problem.loop is not loop:
                raise
            _carry_first(loop, problem)
        except CarryEntry as problem:
            if problem.journal is not journal:
                raise
            _carry_entries(loop, problem)
        finally:
            around.pop()
            if not is_settled:
                for holder, content in contents:
                    refill(holder, content)
        before.restore(interpreter)
    raise CannotRoll("what the loop carries does not settle")


def _carry_first(loop: Loop, missing: BoundAtTimes) -> None:
    """Let a loop carry a variable that it binds at times, from a first value of its kind.

    Raises:
        CannotRoll: it has another kind now.
    """
    if missing.name in loop.firsts:
        raise CannotRoll(f"{missing.name!r} changes its kind in the loop")
    loop.firsts[missing.name] = missing.first
    if missing.is_fixed:
        loop.kinds[missing.name] = FIXED


def _carry_entries(loop: Loop, missing: CarryEntry) -> None:
    """Let a loop carry an entry, and the arrays that are entries beside it."""
    holder = missing.holder
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    known = {(id(h), k) for h, k, _ in loop.entries}
    key = missing.key
    if not isinstance(holder, dict):
        key %= len(holder)
    name = missing.journal.name_of(holder)
    for other in keys:
        is_array = isinstance(holder[other], Tensor | np.ndarray | float)
        if (other == key or is_array) and (id(holder), other) not in known:
            loop.entries.append((holder, other, f"{name}[{other!r}]"))


def _enter(interpreter: Interpreter, loop: Loop) -> list[Carried]:
    """Give the variables that a loop may change a place that all iterations share."""
    carried: list[Carried] = []
    variables = interpreter.variables
    variables.update({n: value for n, value in loop.firsts.items() if n not in variables})
    every: list[tuple[Any, Any, str]] = [
        (variables, name, name)
        for name in sorted(bound_names(loop.node) | {*loop.stops})
        if name in variables
    ]
    for holder, key, name in (*every, *loop.entries):
        if loop.kinds.get(name) == "free":
            continue
        before = loop.firsts.get(name, holder[key])
        value = place_of(interpreter, name, before, loop)
        if isinstance(value, list):
            loop.lists.setdefault(name, [])[:] = value
            holder[key] = loop.lists[name]
        elif value is not ABSENT:
            holder[key] = value
        carried.append(Carried(holder, key, name, value, before))
    return carried


def _part_shared(carried: Sequence[Carried], kinds: dict[str, Any]) -> None:
    """Give variables that stood for one array, and that the loop binds anew, places of their own.

    Raises:
        ReadAgain: there is one such.
    """
    for one in carried:
        place = one.value
        if not isinstance(place, View) or one.name in kinds:
            continue
        others = [c for c in carried if c is not one and isinstance(c.value, View)]
        is_shared = any(c.value.container is place.container for c in others)
        if is_shared and not alike(place, one.now):
            raise ReadAgain(one.name, (place.dtype, place.weak, place.run_type is not None))


def leave_loop(interpreter: Interpreter, loop: Loop) -> tuple[str | None, list[Any]]:
    """Write what the variables stand for at the end of an iteration to their places.

    Returns:
        The condition that no flag is set, None if there is none, and the statements that come
        before the loop for it.

    Raises:
        ReadAgain: the loop carries something of another kind.
        CannotRoll: a variable is no array or number, and changes.
    """
    tracer = interpreter.tracer
    carry_missing(interpreter, loop)
    note_set_at_first(loop)
    refuse_lost_writes(tracer, loop.carried)
    _part_shared(loop.carried, loop.kinds)
    moves: list[tuple[Any, Any]] = []
    for one in loop.carried:
        now = one.now
        if now is ABSENT:
            continue
        is_free = (
            one.holder is interpreter.variables
            and one.name not in loop.stops
            and is_written_first(loop.node, one.name)
        )
        if one.value is ABSENT:
            if not is_free and is_other_list(interpreter, one.before, now):
                raise ReadAgain(one.name, "list")
            if not is_free:
                carry_absent(interpreter, loop, one.name, one.value, one.before, now)
            if not is_free and not alike(one.before, now):
                raise CannotRoll(
                    f"{one.name!r} is {told(one.before)} at first and {told(now)} after an "
                    "iteration"
                )
            continue
        if not isinstance(one.value, OneOf) and not is_free:
            carry_absent(interpreter, loop, one.name, one.value, one.before, now)
        try:
            _moves(interpreter, one.name, one.value, now, moves, loop.kinds, one.before)
        except ReadAgain as again:
            if is_free and not has_one_type(interpreter, loop.node, one.name, again):
                raise ReadAgain(one.name, "free") from None
            raise
    note_surely_set(loop, tracer.block)
    loop.rebound = [(place, now) for place, now in moves if isinstance(place, RunList)]
    places = {(id(one.holder), one.key) for one in loop.carried if one.value is not ABSENT}
    before_it = keep_last(interpreter, loop.node, places, moves)
    move_lists(interpreter, loop.node, loop.rebound)
    move_tensors(tracer, [(place, now) for place, now in moves if isinstance(place, View)])
    move_symbols(tracer, [(place, now) for place, now in moves if isinstance(place, sympy.Symbol)])
    condition, flags = _ends(interpreter, loop.carried, loop.stops)
    return condition, [*before_it, *flags]


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
    if alike(place, now):
        return
    if isinstance(place, OneOf):
        inner = move_choice(name, place, now, moves)
        if inner is not None:
            _moves(interpreter, name, *inner, moves, kinds, value_of(before))
        return
    if isinstance(place, RunList):
        is_other_list(interpreter, now, place)
        moves.append((place, now))
        return
    if isinstance(place, tuple | list):
        if not isinstance(now, type(place)) or len(now) != len(place):
            is_other_list(interpreter, before, now)
            raise CannotRoll(f"{name!r} changes its length in the loop")
        _moves_of_parts(interpreter, name, place, now, moves, kinds, before)
        return
    if isinstance(place, sympy.Symbol):
        moves.append((place, _next_whole(tracer, name, now, before)))
        return
    assert isinstance(place, View)
    kind = kinds.get(name)
    found = _next_tensor(tracer, name, place, now, kind, before)
    stays = isinstance(found, View) and see_the_same(place, found)
    if not stays:
        moves += moves_of(place, found, kind) if isinstance(kind, Varying) else [(place, found)]
    if place.run_type is not None:
        moves.append((place.run_type, run_types.type_of(found)))


def _moves_of_parts(
    interpreter: Interpreter,
    name: str,
    place: Sequence[Any],
    now: Sequence[Any],
    moves: list[Any],
    kinds: Any,
    before: Sequence[Any],
) -> None:
    """What the elements of a tuple, or of a list of one variable, are next."""
    for n, (p, v, b) in enumerate(zip(place, now, before, strict=True)):
        if isinstance(p, sympy.Symbol | View):
            _moves(interpreter, f"{name}_{n}", p, v, moves, kinds, b)
        elif not alike(p, v):
            raise CannotRoll(f"{name!r} changes in the loop")


def _next_whole(tracer: Tracer, name: str, now: Any, before: Any) -> Whole:
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
        raise ReadAgain(
            name, (run_types.type_from(before, tensor), tensor.weak, bool(tensor.run_type))
        )
    raise CannotRoll(f"{name!r} is no number any more in the loop")


def _next_tensor(
    tracer: Tracer, name: str, place: View, now: Any, kind: Any, before: Any
) -> Tensor:
    """The next value of a container that a loop carries.

    Raises:
        ReadAgain: it needs a container of its own, or of another type.
        CannotRoll: it is no array, or has another shape.
    """
    if not is_carried(now):
        raise CannotRoll(f"{name!r} is no array or number any more in the loop")
    tensor = tracer.tensor(now)
    if tensor.mask is not None:
        tensor = chosen(tracer, tensor)
    if isinstance(kind, Varying) and tensor.ndim == place.ndim:
        return next_varying(tracer, name, place, tensor, kind)
    if len(tensor.shape) != len(place.shape) or not all(
        same(a, b) for a, b in zip(tensor.shape, place.shape, strict=True)
    ):
        if kind != "shape":
            raise ReadAgain(name, "shape")
        refuse_shape(tracer, name, place, tensor)
    joined = joined_type(tensor, place)
    is_typed = place.run_type is not None or run_types.is_joined(tensor, joined)
    if kind is None and before is place and not is_free(tracer, place):
        raise ReadAgain(name, (joined, joined_weak(place, tensor), is_typed))
    if tensor.weak is None and place.weak is not None and kind is None:
        raise ReadAgain(name, (joined, None, is_typed))
    if joined != place.dtype:
        raise ReadAgain(name, (joined, joined_weak(place, tensor), is_typed))
    if is_typed and place.run_type is None:
        raise ReadAgain(name, (joined, place.weak, True))
    return tensor


def after_loop(loop: Loop, *, has_run: bool = False) -> None:
    """After the loop variables stand for their places.

    Args:
        loop: that was read.
        has_run: whether it has an iteration.
    """
    for one in loop.carried:
        if isinstance(one.value, list):
            loop.lists[one.name][:] = one.value
            one.holder[one.key] = loop.lists[one.name]
        elif one.value is not ABSENT:
            one.holder[one.key] = one.value
    for place, now in loop.rebound:  # the names of one list are names of one list after the loop
        for one in loop.carried:
            names = one.holder if isinstance(one.holder, dict) else {}
            for key in [key for key, value in names.items() if value is now]:
                one.holder[key] = place
    if has_run:
        after_some(loop)


def after_some(loop: Loop) -> None:
    """What is None at first is no more, after a loop that has an iteration and always sets it."""
    for one in loop.carried:
        if one.name in loop.surely_set and one.now is one.value:
            one.holder[one.key] = value_of(one.value)


def after_none(interpreter: Interpreter, loop: Loop, before: Mapping[str, Any]) -> None:
    """What variables are after a loop that may have no iteration, and that does not carry them."""
    carried, variables = loop.carried_names(), interpreter.variables
    for name, value in before.items():
        now = variables.get(name, ABSENT)
        if name in carried or now is ABSENT or (value is None and may_be_none(now)):
            continue
        if not alike(value, now):
            variables[name] = one_of(name, value, now, "if the loop has no iteration or has some")
