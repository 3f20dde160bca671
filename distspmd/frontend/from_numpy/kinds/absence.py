"""Values that may be None, or unbound: a choice of that and a value, and a symbol that says which.

``is None`` asks the symbol. Where such a value is computed with, the program ends with Python's
TypeError on all ranks if it is None. Where a variable is read that may be unbound, it ends with
UnboundLocalError if it is.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import sympy

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays import checks
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import EndsHere, Fails
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import UNBOUND, OneOf, Undecided
from distspmd.frontend.from_numpy.reader.bindings import is_bound_in
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import same, subtract, symbol
from distspmd.runtime.calls.form import rebuilt


def may_be_none(value: object) -> bool:
    """Whether a value is None or something that is no choice itself, which the run decides."""
    if not isinstance(value, OneOf) or may_be_unbound(value):
        return False
    others = [each for each in value.values if each is not None]
    return len(others) == 1 and not isinstance(others[0], Undecided)


def may_be_unbound(value: object) -> bool:
    """Whether a variable has a value only on some ways, which the run decides."""
    return isinstance(value, OneOf) and value.values[0] is UNBOUND


def may_be_absent(value: object) -> bool:
    """Whether a value is one that a flag says to be there: it may be None, or unbound."""
    return may_be_none(value) or may_be_unbound(value)


def value_of(choice: OneOf) -> Any:
    """What a value is that may be absent, where it is not."""
    one, other = choice.values
    return other if _is_absent(one) else one


def _is_absent(value: object) -> bool:
    return value is None or value is UNBOUND


def is_none(choice: OneOf) -> sympy.Basic:
    """Whether a value that may be absent is absent."""
    kind = sympy.Ne if _is_absent(choice.values[0]) else sympy.Eq
    return kind(choice.which, 0)


def _known(tracer: Tracer, choice: OneOf) -> bool | None:
    """Whether it is known here that a value is absent, or is not."""
    first, last = tracer.known.bounds.get(choice.which.name, (0, 1))
    return None if first != last else (first != 0) == _is_absent(choice.values[0])


def compared_with_none(run: Context, op: ast.cmpop, left: Any, right: Any) -> Any:
    """``left is right``, where one may be None and the other is; NotImplemented elsewhere."""
    if not isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return NotImplemented
    for one, other in ((left, right), (right, left)):
        if may_be_none(one) and other is None:
            found = is_none(one)
            holds = _known(run.tracer, one)
            negative = isinstance(op, ast.IsNot | ast.NotEq)
            if holds is not None:
                return holds != negative
            return sympy.Not(found) if negative else found
    return NotImplemented


def known_value(run: Context, choice: object) -> Any:
    """A value of which it is known here which of several things it is."""
    while isinstance(choice, OneOf) and not may_be_unbound(choice):
        first, last = run.tracer.known.bounds.get(choice.which.name, (0, 1))
        if first != last:
            break
        choice = choice.values[0 if first else 1]
    return choice


def present(run: Context, choice: Any) -> Any:
    """What is computed with, of a value that may be None: the program ends where it is."""
    if not may_be_none(choice):
        return choice
    known = _known(run.tracer, choice)
    if known:
        run.tracer.refuse("TypeError: the value is None here")
    if known is None:
        _end_if_absent(run, choice, "TypeError", f"{choice.reason}: it is None")
    return value_of(choice)


def put(run: Context, value: object) -> Any:
    """What becomes an element of a list of the run: such a list has no room for None."""
    if isinstance(value, tuple):
        return rebuilt(value, [put(run, part) for part in value])
    choice = known_value(run, value)
    if not may_be_none(choice):
        return choice
    what = "None is put into a list, set or dictionary whose content the run decides"
    _end_if_absent(run, choice, "RuntimeError", f"{what}; put -1 or np.nan, say")
    return value_of(choice)


def bound(run: Context, name: str, value: Any) -> Any:
    """What a variable is that may be unbound: the program ends where it is."""
    if not may_be_unbound(value):
        return value
    known = _known(run.tracer, value)
    if known:
        end_unbound(run, name)
        run.tracer.refuse(f"UnboundLocalError: {_UNBOUND.format(name)}")
    if known is None:
        _end_if_absent(run, value, "UnboundLocalError", _UNBOUND.format(name))
    found = value_of(value)
    if run.variables.get(name) is value and not run.tracer.guarded:
        run.variables[name] = found
    return found


def end_if_none(run: Context, values: Sequence[Any], told: str) -> None:
    """End a way of the run that computes with None.

    Args:
        run: the reading.
        values: that are computed with.
        told: what is computed.

    Raises:
        EndsHere: what follows on this way is not read.
    """
    tracer = run.tracer
    if all(value is not None for value in values) or not tracer.inner or tracer.guarded:
        return
    end_way(run, "TypeError", f"{told} where a value is None")


def end_way(run: Context, kind: str, text: str) -> NoReturn:
    """End the way of the run that is being read, with an error of Python.

    Raises:
        EndsHere: what follows on this way is not read.
    """
    run.tracer.check_uncaught(kind)
    checks.end(run, kind, text)
    raise EndsHere(run.tracer.message(f"{kind}: {text}"))


def refuse_choice(run: Context, choice: Undecided) -> NoReturn:
    """Refuse to compute with one of several things.

    Raises:
        Refusal: with what to write instead.
    """
    run.tracer.refuse(
        f"{choice.reason}: compute with it in the branch that binds it, or bind things of one "
        "kind, for 0 an array of zeros say"
    )


def end_failed(run: Context, failed: Fails) -> NoReturn:
    """End the way of the run that is being read, if a statement of it fails whatever there is.

    In loops the kinds of variables may be others than in a first reading, but not the names.

    Raises:
        EndsHere: what follows on this way is not read.
        Fails: each run comes here, or the error cannot be told.
    """
    tracer, kind = run.tracer, type(failed.error)
    is_sure = failed.by_name or not any(frame.loops for frame in tracer.frames)
    is_known = getattr(builtins, kind.__name__, None) is kind
    if not (tracer.inner and is_sure and is_known) or tracer.guarded or tracer.map.parallel:
        raise failed
    end_way(run, kind.__name__, str(failed.error))


_UNKNOWN = "name {!r} is not defined"
_UNBOUND = "cannot access local variable {!r} where it is not associated with a value"


def end_unbound(run: Context, name: str) -> None:
    """End a way of the run that reads a variable which nothing has bound.

    A loop around carries the variable, if it binds it later.

    Raises:
        EndsHere: what follows on this way is not read.
    """
    tracer, frame = run.tracer, run.tracer.frames[-1]
    if not tracer.inner or tracer.guarded or not is_bound_in(frame.body, name):
        return
    if frame.loops:
        frame.loops[0].missing.add(name)
    tracer.check_uncaught("UnboundLocalError")
    checks.end(run, "UnboundLocalError", _UNBOUND.format(name))
    raise EndsHere(tracer.message(f"the name {name!r} is not defined"))


def fail_unbound(run: Context, name: str) -> NoReturn:
    """Read no further where a name is read that has no value.

    Raises:
        KnownError: a handler takes the error.
        Fails: none does.
    """
    is_local = is_bound_in(run.tracer.frames[-1].body, name)
    local, unknown = UnboundLocalError(_UNBOUND.format(name)), NameError(_UNKNOWN.format(name))
    error = local if is_local else unknown
    told = f"{type(error).__name__}: the {_UNKNOWN.format(name)}"
    run.tracer.fail(error, told=told, by_name=not is_local)


def _end_if_absent(run: Context, choice: OneOf, kind: str, text: str) -> None:
    """End the program where a value is absent, and where the expression around asks for it."""
    tracer = run.tracer
    condition: Any = is_none(choice)
    if tracer.guarded:
        guard = tracer.guard()
        if guard is None or tracer.map.straight is not None:
            tracer.refuse(choice.reason)
        truth = tracer.truth(condition)
        condition = Tensor(
            (), truth.dtype, lambda _: apply("logical_and", guard, truth.element(()))
        )
    checks.end_if(run, condition, kind, text)


@contextmanager
def knowing(tracer: Tracer, test: object, *, holds: bool) -> Iterator[None]:
    """Read a branch in which it is known of a value whether it is None."""
    if isinstance(test, sympy.Not):
        with knowing(tracer, test.args[0], holds=not holds):
            yield
        return
    name = test.args[0].name if isinstance(test, sympy.Eq | sympy.Ne) and _asks(test) else None
    if name is None or tracer.known.bounds.get(name) != (0, 1):
        yield
        return
    is_zero = holds == isinstance(test, sympy.Eq)
    before = tracer.known.bounds[name]
    tracer.known.bounds[name] = (0, 0) if is_zero else (1, 1)
    try:
        yield
    finally:
        tracer.known.bounds[name] = before


def _asks(test: sympy.Basic) -> bool:
    return isinstance(test.args[0], sympy.Symbol) and test.args[1] == 0


def joined_choice(
    run: Context, name: str, values: Sequence[Any], blocks: Sequence[Block], join: object
) -> Any:
    """A value of two ways of which one at least may be None; None where they are other things.

    Args:
        run: the reading.
        name: of the value.
        values: what it is on each way.
        blocks: the ways.
        join: of two values, what is one of them.
    """
    if any(isinstance(value, Undecided) and not may_be_none(value) for value in values):
        return None
    found = _joined_value(values, may_be_none, join)
    if isinstance(found, Undecided):
        return None
    reason = next(v.reason for v in values if may_be_none(v))
    return _joined_flag(run, name, values, blocks, OneOf(reason, _ONE, (None, found)))


def joined_bindings(
    run: Context, name: str, values: Sequence[Any], blocks: Sequence[Block], join: object
) -> OneOf:
    """A variable that one way at least leaves unbound, or may; as :func:`joined_choice`."""
    found = _joined_value(values, may_be_unbound, join)
    return _joined_flag(run, name, values, blocks, unbound_or(name, found))


_ONE = sympy.Integer(1)


def unbound_or(name: str, value: object, which: sympy.Basic = _ONE) -> OneOf:
    """A variable that is unbound where a flag is not 0."""
    return OneOf(f"{name!r} has no value on some ways of the run", which, (UNBOUND, value))


def none_or(name: str, value: object, which: sympy.Basic) -> OneOf:
    """A value that is None where a flag is not 0."""
    return OneOf(f"{name!r} may be None here", which, (None, value))


def _joined_value(values: Sequence[Any], is_choice: Any, join: Any) -> Any:
    """What values of two ways are where they are not absent."""
    each = [value_of(v) if is_choice(v) else v for v in values]
    others = [v for v in each if not (v is UNBOUND if is_choice is may_be_unbound else v is None)]
    return others[0] if len(others) == 1 else join(*others)


def _joined_flag(
    run: Context, name: str, values: Sequence[Any], blocks: Sequence[Block], choice: OneOf
) -> OneOf:
    """A choice with a flag of its own, which each way sets."""
    which = run.tracer.unique(f"{name}_which")
    run.tracer.known.bounds[which] = (0, 1)
    for value, block in zip(values, blocks, strict=True):
        with run.tracer.within(block):
            run.tracer.add(SetSymbol(which, flag_of(value, choice.values[0]), INT64))
    return replace(choice, which=symbol(which))


def flag_of(value: Any, absent: object) -> sympy.Basic:
    """1 where a value is absent, 0 where it is not."""
    if not (may_be_unbound(value) if absent is UNBOUND else may_be_none(value)):
        return sympy.Integer(value is absent)
    first = _is_absent(value.values[0])
    return value.which if first else sympy.sympify(subtract(1, value.which))


def alike_choices(one: Any, other: Any, alike: Any) -> bool:
    """Whether two values that may be absent are the same one."""
    return (
        may_be_absent(one)
        and may_be_absent(other)
        and same(one.which, other.which)
        and all(a is b or alike(a, b) for a, b in zip(one.values, other.values, strict=True))
    )
