"""What a loop carries from one iteration to the next.

A variable that a loop changes gets one container, or one symbol, which all iterations share.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import run_types
from distspmd.frontend.from_numpy.arrays.choosing import chosen
from distspmd.frontend.from_numpy.arrays.kinds import is_whole, joined_type, joined_weak
from distspmd.frontend.from_numpy.arrays.states import refill
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, told
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.absence import may_be_none, value_of
from distspmd.frontend.from_numpy.kinds.bound_at_times import (
    FIXED,
    BoundAtTimes,
    carry_absent,
    carry_missing,
)
from distspmd.frontend.from_numpy.kinds.carried_choices import (
    move_choice,
    note_set_at_first,
    note_surely_set,
)
from distspmd.frontend.from_numpy.kinds.carried_lists import is_other_list, list_move, move_lists
from distspmd.frontend.from_numpy.kinds.carried_places import is_carried, place_of
from distspmd.frontend.from_numpy.kinds.carried_records import (
    RECORD,
    free_records,
    has_parts,
    have_one_form,
    note_shared_records,
    parts_of,
)
from distspmd.frontend.from_numpy.kinds.carried_variables import (
    Carried,
    Loop,
    move_symbols,
    move_tensors,
)
from distspmd.frontend.from_numpy.kinds.first_arrays import is_free, refuse_lost_writes, written_in
from distspmd.frontend.from_numpy.kinds.joined_arrays import CarryLink, enter_links, leave_links
from distspmd.frontend.from_numpy.kinds.last_values import has_one_type, keep_last
from distspmd.frontend.from_numpy.kinds.nests import Unsettled
from distspmd.frontend.from_numpy.kinds.text_choices import moves_of_text, read_again_with
from distspmd.frontend.from_numpy.kinds.variables import (
    ABSENT,
    OneOf,
    Saved,
    Undecided,
    alike,
    one_of,
    readable,
    see_the_same,
)
from distspmd.frontend.from_numpy.kinds.varying import (
    ReadLoopAgain,
    Varying,
    moves_of,
    next_varying,
    refuse_shape,
)
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader.bindings import bound_names, is_written_first
from distspmd.frontend.from_numpy.reader.mutation import (
    Around,
    CarryEntry,
    watched,
)
from distspmd.frontend.from_numpy.reader.texts import Text
from distspmd.frontend.tensor_ir.statements import SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import Whole, same

_ATTEMPTS = 12
"""How often a loop is read again, at most, because of the kinds of what it carries."""

Result = TypeVar("Result")


# -- what loops carry -----------------------------------------------------------------------------


def read_until_settled(
    interpreter: Context,
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
    tracer = interpreter.tracer
    with tracer.nest.entered(node, tracer.frames) as known:
        loop = Loop(node, stops, known, known_before=frozenset(tracer.known.bounds))
        return _settled(interpreter, loop, read)


def _settled(interpreter: Context, loop: Loop, read: Callable[[Loop], Result]) -> Result:
    """What reads a loop gives, in a pass over the nest that is believed."""
    before, nest = Saved(interpreter), interpreter.tracer.nest
    loop.names_before = set(interpreter.tracer.program.names)
    attempts = 0
    while attempts < _ATTEMPTS:
        nest.begin_pass()
        contents = [(holder, copy.copy(holder)) for holder, *_ in loop.entries]
        is_done = False
        try:
            found, is_done = _pass(interpreter, loop, read)
            if is_done:
                return found
            attempts += 1
        except _Again as again:
            attempts += again.is_of_kinds
        finally:
            if not is_done:
                for holder, content in contents:
                    refill(holder, content)
        before.restore(interpreter)
    raise CannotRoll("what the loop carries does not settle")


class _Again(Exception):
    """A loop is read again, with what it has learnt: of kinds, or of what it carries."""

    def __init__(self, is_of_kinds: bool) -> None:
        super().__init__()
        self.is_of_kinds = is_of_kinds


def _pass(interpreter: Context, loop: Loop, read: Callable[[Loop], Result]) -> tuple[Result, bool]:
    """Read a loop once; and whether it need not be read again.

    Raises:
        _Again: the next reading has to begin with what the loop has learnt.
        Unsettled: the same of the loop around.
    """
    nest = interpreter.tracer.nest
    try:
        return _learning(interpreter, loop, read)
    except _Again:
        raise
    except Exception:  # of kinds that are outdated, whatever it is; a settled pass raises it again
        if nest.is_settled:
            raise
        raise (_Again(True) if nest.is_outermost else Unsettled()) from None


def _learning(
    interpreter: Context, loop: Loop, read: Callable[[Loop], Result]
) -> tuple[Result, bool]:
    tracer, around = interpreter.tracer, interpreter.tracer.frames[-1].loops
    loop.news.clear()
    journal = None
    around.append(loop)
    try:
        loop.carried = _enter(interpreter, loop)
        enter_links(tracer, loop)
        with watched(tracer, Around.LOOP, loop.may_set()) as journal:
            found = read(loop)
        return found, _is_done(interpreter, loop)
    except (ReadLoopAgain, BoundAtTimes, CarryLink, CarryEntry) as problem:
        _learn(loop, problem, journal)
        raise _Again(isinstance(problem, ReadLoopAgain)) from None
    finally:
        around.pop()


def _learn(loop: Loop, problem: Exception, journal: object) -> None:
    """Let the next reading of a loop know of what ended this one.

    Raises:
        CannotRoll: this one knew of it.
    """
    if isinstance(problem, ReadLoopAgain):
        loop.news = {problem.name: problem.kind}
        loop.learn()
    elif isinstance(problem, CarryEntry) and problem.journal is journal:
        _carry_entries(loop, problem)
    elif isinstance(problem, BoundAtTimes) and problem.loop is loop:
        loop.begin_with(problem.name, problem.first)
        if problem.is_fixed:
            loop.kinds[problem.name] = FIXED
    elif isinstance(problem, CarryLink) and problem.loop is loop:
        loop.links.append(problem.pair)
    else:
        raise problem


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
        is_array = is_array and is_carried(holder[other])
        if (other == key or is_array) and (id(holder), other) not in known:
            loop.entries.append((holder, other, f"{name}[{other!r}]"))


def _is_done(interpreter: Context, loop: Loop) -> bool:
    """Whether a loop that was read has the kinds that it needs, or the nest is read again anyway.

    Behind one that has not, its variables get these kinds.
    """
    nest = interpreter.tracer.nest
    if not loop.news:
        return nest.is_settled or not nest.is_outermost
    assumes = nest.assumes and loop.may_assume
    loop.learn()
    if assumes:
        nest.is_settled = False
        _assume(interpreter, loop)
    return assumes


def _assume(interpreter: Context, loop: Loop) -> None:
    """Go on behind a loop with the kinds that it was found to need, without reading it again."""
    for one in loop.carried:
        one.holder[one.key] = one.before
    loop.carried = _enter(interpreter, loop)


def _enter(interpreter: Context, loop: Loop) -> list[Carried]:
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
        if loop.kind_of(name, holder[key]) == "free":
            continue
        before = loop.firsts.get(name, holder[key])
        value = place_of(interpreter, name, before, loop)
        if isinstance(value, list):
            own = loop.lists.setdefault(name, [])
            own[:] = value
            if (known := interpreter.tracer.lists.born.get(id(before))) is not None:
                interpreter.tracer.lists.born[id(own)] = own, known[1]
            holder[key] = own
        elif value is not ABSENT:
            holder[key] = value
        carried.append(Carried(holder, key, name, value, before))
    return carried


def _part_shared(loop: Loop) -> None:
    """Give variables that stood for one array, and that the loop binds anew, places of their own.

    Each in a pass of its own, since the others may stay then.
    """
    for one in loop.carried:
        place = one.value
        if not isinstance(place, View) or one.name in loop.kinds:
            continue
        others = [c for c in loop.carried if c is not one and isinstance(c.value, View)]
        is_shared = any(c.value.container is place.container for c in others)
        if is_shared and not alike(place, one.now):
            loop.news[one.name] = place.dtype, place.weak, place.run_type is not None
            return


def leave_loop(interpreter: Context, loop: Loop) -> tuple[str | None, list[Any]]:
    """Write what the variables stand for at the end of an iteration to their places.

    Returns:
        The condition that no flag is set, None if there is none, and the statements that come
        before the loop for it.

    What is carried that needs another kind is noted in the loop.

    Raises:
        CannotRoll: a variable is no array or number, and changes.
    """
    tracer = interpreter.tracer
    carry_missing(interpreter, loop)
    note_set_at_first(loop)
    refuse_lost_writes(tracer, loop.carried)
    loop.one_behind, first = leave_links(tracer, loop, written_in(tracer))
    _part_shared(loop)
    moves: list[tuple[Any, Any]] = []
    for one in [] if loop.news else loop.carried:
        now = one.now
        if now is ABSENT:
            continue
        is_free = (
            one.holder is interpreter.variables
            and one.name not in loop.stops
            and is_written_first(loop.node, one.name)
        )
        try:
            if one.value is not ABSENT:
                _leave(interpreter, loop, one, moves, is_free=is_free)
            elif not is_free:
                _check_stays(interpreter, loop, one, now)
        except ReadLoopAgain as again:
            loop.news[again.name] = again.kind
    if loop.news:
        return None, []
    note_surely_set(loop, tracer.program.block)
    note_shared_records(tracer, loop.carried)
    loop.rebound = [(place, now) for place, now in moves if isinstance(place, RunList)]
    places = {(id(one.holder), one.key) for one in loop.carried if one.value is not ABSENT}
    before_it = keep_last(interpreter, loop.node, places, moves)
    move_lists(interpreter, loop.node, loop.rebound)
    move_tensors(tracer, [(place, now) for place, now in moves if isinstance(place, View)])
    move_symbols(tracer, [(place, now) for place, now in moves if isinstance(place, sympy.Symbol)])
    condition, flags = _ends(interpreter, loop.carried, loop.stops)
    return condition, [*first, *before_it, *flags]


def _leave(
    interpreter: Context, loop: Loop, one: Carried, moves: list[Any], *, is_free: bool
) -> None:
    """Note what moves to the place of a variable, which the next iteration may not read."""
    now = one.now
    if is_free and type(now) is Undecided:  # nothing reads it in another iteration
        raise ReadLoopAgain(one.name, "free")
    if not isinstance(one.value, OneOf) and not is_free:
        carry_absent(interpreter, loop, one.name, one.value, one.before, now)
    try:
        _moves(interpreter, one.name, one.value, now, moves, loop, one.before)
    except ReadLoopAgain as again:
        if is_free and not has_one_type(interpreter, loop.node, one.name, again):
            raise ReadLoopAgain(one.name, "free") from None
        raise


def _check_stays(interpreter: Context, loop: Loop, one: Carried, now: object) -> None:
    """See to it that what has no place is what it was.

    Raises:
        ReadLoopAgain: it is a list, a dictionary or an object, which can have places of its parts.
        CannotRoll: it is not.
    """
    if isinstance(now, RunList) and now is one.before:
        return
    if is_other_list(interpreter, one.before, now):
        raise ReadLoopAgain(one.name, "list")
    carry_absent(interpreter, loop, one.name, one.value, one.before, now)
    if alike(one.before, now):
        return
    if have_one_form(one.before, now):
        raise ReadLoopAgain(one.name, RECORD)
    read_again_with(interpreter, one.name, one.before, now)
    raise CannotRoll(
        f"{one.name!r} is {told(one.before)} at first and {told(now)} after an iteration"
    )


def _ends(
    interpreter: Context, carried: Sequence[Carried], stops: Sequence[str]
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
    interpreter: Context,
    name: str,
    place: Any,
    now: Any,
    moves: list[Any],
    loop: Loop,
    before: Any,
) -> None:
    tracer, kinds = interpreter.tracer, loop.kinds
    if alike(place, now):
        return
    if isinstance(place, OneOf):
        for own, value in move_choice(name, place, now, moves):
            _moves(interpreter, name, own, value, moves, loop, value_of(before))
        return
    if isinstance(place, RunList):
        moves.append(list_move(interpreter, place, now))
        return
    if isinstance(place, tuple | list) or has_parts(place):
        _moves_of_parts(interpreter, name, place, now, moves, loop, before)
        return
    if isinstance(place, Text):
        moves += moves_of_text(interpreter, name, place, now)
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
    interpreter: Context,
    name: str,
    place: Any,
    now: Any,
    moves: list[Any],
    loop: Loop,
    before: Any,
) -> None:
    """What the parts of a tuple, a list, a dictionary or an object are next."""
    if has_parts(place):
        if not have_one_form(place, now):
            raise CannotRoll(f"{name!r} changes its parts in the loop")
        place, now, before = map(parts_of, (place, now, before))
    elif not isinstance(now, type(place)) or len(now) != len(place):
        is_other_list(interpreter, before, now)
        raise CannotRoll(f"{name!r} changes its length in the loop")
    for n, own in place.items() if isinstance(place, dict) else enumerate(place):
        part = f"{name}_{n}"
        first = loop.firsts.get(part, before[n])
        if not isinstance(own, OneOf):
            carry_absent(interpreter, loop, part, own, first, now[n])
        if isinstance(own, sympy.Symbol | View | Text | OneOf) or loop.kinds.get(part) == RECORD:
            _moves(interpreter, part, own, now[n], moves, loop, first)
        elif not alike(own, now[n]):
            if have_one_form(own, now[n]):
                raise ReadLoopAgain(part, RECORD)
            read_again_with(interpreter, part, own, now[n])
            raise CannotRoll(f"{name!r} changes in the loop")


def _next_whole(tracer: Tracer, name: str, now: object, before: object) -> Whole:
    """The next value of a symbol that a loop carries.

    Raises:
        ReadLoopAgain: it is another number: the loop carries a container.
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
        raise ReadLoopAgain(
            name, (run_types.type_from(before, tensor), tensor.weak, bool(tensor.run_type))
        )
    raise CannotRoll(f"{name!r} is no number any more in the loop")


def _next_tensor(
    tracer: Tracer, name: str, place: View, now: object, kind: object, before: object
) -> Tensor:
    """The next value of a container that a loop carries.

    Raises:
        ReadLoopAgain: it needs a container of its own, or of another type.
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
            raise ReadLoopAgain(name, "shape")
        refuse_shape(tracer, name, place, tensor)
    joined = joined_type(tensor, place)
    is_typed = place.run_type is not None or run_types.is_joined(tensor, joined)
    if kind is None and before is place and not is_free(tracer, place):
        raise ReadLoopAgain(name, (joined, joined_weak(place, tensor), is_typed))
    if tensor.weak is None and place.weak is not None and kind is None:
        raise ReadLoopAgain(name, (joined, None, is_typed))
    if joined != place.dtype:
        raise ReadLoopAgain(name, (joined, joined_weak(place, tensor), is_typed))
    if is_typed and place.run_type is None:
        raise ReadLoopAgain(name, (joined, place.weak, True))
    return tensor


def after_loop(tracer: Tracer, loop: Loop, *, has_run: bool = False) -> None:
    """After the loop variables stand for their places.

    Args:
        tracer: the reading.
        loop: that was read.
        has_run: whether it has an iteration.
    """
    for one in loop.carried:
        if isinstance(one.value, list):
            loop.lists[one.name][:] = one.value
            one.holder[one.key] = loop.lists[one.name]
        elif one.value is not ABSENT:
            one.holder[one.key] = one.value
    tracer.links.aliases += [each for each in loop.one_behind if each not in tracer.links.aliases]
    free_records(tracer, loop.carried)
    _follow_lists(loop)
    if has_run:
        after_some(loop)


def _follow_lists(loop: Loop) -> None:
    """Let other names of a list that a carried name got follow it: both are names of one list."""
    set_now = {(id(one.holder), one.key) for one in loop.carried}
    places = {id(now): place for place, now in loop.rebound}
    for holder in {id(one.holder): one.holder for one in loop.carried}.values():
        names = holder if isinstance(holder, dict) else {}
        for key, value in names.items():
            if (id(holder), key) not in set_now:
                names[key] = _followed(value, places)


def _followed(value: object, places: Mapping[int, RunList]) -> Any:
    """A value in which lists are the places of those that loops carry."""
    if isinstance(value, OneOf):
        return replace(value, values=tuple(_followed(v, places) for v in value.values))
    return places.get(id(value), value)


def after_some(loop: Loop) -> None:
    """What is None at first is no more, after a loop that has an iteration and always sets it."""
    for one in loop.carried:
        if one.name in loop.surely_set and one.now is one.value:
            one.holder[one.key] = value_of(one.value)


def after_none(interpreter: Context, loop: Loop, before: Mapping[str, Any]) -> None:
    """What variables are after a loop that may have no iteration, and that does not carry them."""
    carried, variables = loop.carried_names(), interpreter.variables
    for name, value in before.items():
        now = variables.get(name, ABSENT)
        if name in carried or now is ABSENT or (value is None and may_be_none(now)):
            continue
        if not alike(value, now):
            variables[name] = one_of(name, value, now, "if the loop has no iteration or has some")
