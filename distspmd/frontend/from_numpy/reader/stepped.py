"""Generators that a program keeps and asks for one value after the other.

Such a generator is an object with the variables that live from one step to the next, so that loops
carry them and branches join them, as those of other objects. A step is a call of a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.library import steps as library
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.bindings import count_bindings
from distspmd.frontend.from_numpy.reader.frames import Closure, Frame
from distspmd.frontend.from_numpy.reader.generator_states import (
    AT,
    DEFAULT,
    DONE,
    FIRST,
    ITERATOR,
    SENT,
    STEPS,
    STRICT,
    NoStates,
    Stepped,
    simple_statements,
    stepped,
)
from distspmd.frontend.from_numpy.reader.generators import MOST, Generator, of_values
from distspmd.frontend.from_numpy.reader.ranges import (
    Enumerated,
    SymbolicRange,
    Zipped,
    iterated,
    least_of,
    static_values,
)

_OF = "_of"
"""The attribute with the generator, and its function."""


KEPT = (Generator, Iterator, Zipped, Enumerated)
"""Classes of what gives one value after the other, and which a variable may stand for."""


def is_steps(value: Any) -> bool:
    """Whether a value is a generator that takes one step at a time."""
    return isinstance(value, library.Steps)


def as_steps(run: Context, generator: Any) -> Any:
    """A generator that takes one step at a time, in the place of one that nothing has read.

    It gets the place of the other in all variables. None where there is none.
    """
    if is_steps(generator):
        return generator
    if not isinstance(generator, Generator) or generator.rest is not None or generator.has_begun:
        return None
    try:
        made = _made(run, generator)
    except NoStates:
        return None
    for frame in run.tracer.frames:
        for name, value in frame.variables.items():
            if value is generator:
                frame.variables[name] = made
    return made


def _made(run: Context, generator: Generator) -> Any:
    node = generator.node
    made = objects.new_object(run, library.Steps)
    arguments = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    known = generator.frame.variables
    values = {name: v for name, v in known.items() if name in arguments or name == FIRST}
    vars(made).update({**values, AT: 0, DONE: False, SENT: None})
    found = _function_of(run, node, 0)
    for done, statement in enumerate(simple_statements(node), 1):
        if not _is_known_now(run, statement.value, {**known, **vars(made)}):
            break
        found = _function_of(run, node, done)
        _called(run, generator, found.first[-1], made, (False, None))
    vars(made)[_OF] = generator, found.step
    return made


def _function_of(run: Context, node: ast.FunctionDef, first: int) -> Stepped:
    found: Stepped | None = run.stepped.get((node, first))
    if found is None:
        for_python(run, "generator")
        run.stepped[node, first] = found = stepped(node, first)
    return found


def _is_known_now(run: Context, node: ast.expr, known: Any) -> bool:
    """Whether nothing that happens before the first step changes what an expression gives."""
    if not any(isinstance(part, ast.BinOp | ast.UnaryOp) for part in ast.walk(node)):
        return True
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return all(_is_number(known.get(name)) for name in names)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and not value.is_array
    return isinstance(value, int | float | complex | np.number)


def _called(
    run: Context, generator: Generator, node: ast.FunctionDef, steps: Any, how: tuple[Any, Any]
) -> Any:
    """What a function of the generator gives: a step, or what is done before the first one."""
    given = {STEPS: steps, STRICT: how[0], DEFAULT: how[1], ITERATOR: library.iterator_of}
    if generator.around is not None:
        scope = {ITERATOR: library.iterator_of}
        closure = Closure(node, generator.around, {}, (scope,))
        return run.call(closure, [steps, *how], {})
    own = generator.frame
    frame = Frame({**own.variables, **given}, own.file, own.first_line, own.source)
    frame.outside = own.outside
    return run.run_body(node, frame)


class EndByRun(CannotRoll):
    """The run decides how many values a generator gives."""


def values_of(run: Context, steps: Any) -> Iterator[Any]:
    """The values of a generator, one step at a time, as long as it is known that there is one.

    Raises:
        EndByRun: that is not known.
        Refusal: there seems to be no end.
    """
    for _ in range(MOST):
        value = take_step(run, steps, False, None)
        ends = run.truth(vars(steps)[DONE])
        if ends is None:
            raise EndByRun("a generator of which the run decides how many values it gives")
        if ends:
            return
        yield value
    run.tracer.refuse(f"a generator with more than {MOST} values, or without an end")


@function(library.take_step)
def take_step(run: Context, steps: Any, strict: Any, default: Any) -> Any:
    """The next value of a generator."""
    generator, node = vars(steps)[_OF]
    return _called(run, generator, node, steps, (strict, default))


@function(library.iterator_of)
def _iterator_of(run: Context, values: Any) -> Any:
    """The iterator of a loop in a generator."""
    steps = as_steps(run, values)
    if steps is not None:
        return run.call(library.Ahead, [steps], {})
    values = iterated(run, values)
    steps = as_steps(run, values)
    if steps is not None:
        return run.call(library.Ahead, [steps], {})
    if isinstance(values, range):
        values = SymbolicRange(values.start, values.stop, values.step)
    if isinstance(values, SymbolicRange):
        return run.call(library.Numbers, [values.first, values.step, values.length], {})
    if isinstance(values, Tensor):
        values = values if isinstance(values, View) else run.tracer.stored(values)
        return run.call(library.Elements, [values], {})
    if not isinstance(values, list | tuple | RunList):
        values = list(static_values(run, values))
    return run.call(library.Elements, [values], {})


def kept(run: Context, name: str, value: Any) -> Any:
    """What a variable stands for that is assigned a generator, or an iterator."""
    if objects.is_own(value):
        return value
    is_whole = is_kept_whole(run, name)
    if isinstance(value, Zipped | Enumerated):
        return value if is_whole else of_values(run, static_values(run, value))
    if not isinstance(value, Generator):
        return of_values(run, value)
    steps = None if is_whole else as_steps(run, value)
    return value if steps is None else steps


def is_kept_whole(run: Context, name: str) -> bool:
    """Whether a variable with a generator is read once, by a loop or by what reads it to its end.

    Such a generator is put into the loop.
    """
    frame = run.tracer.frames[-1]
    reads = [
        (part, around)
        for statement in frame.body
        for around in ast.walk(statement)
        for part in ast.iter_child_nodes(around)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]
    if len(reads) > 1 or any(_is_repeated(frame.body, part) for part, _ in reads):
        return False
    return not any(_asks(around) for _, around in reads)


def _is_repeated(statements: Sequence[ast.stmt], read: ast.Name) -> bool:
    """Whether a loop reads a variable again and again that it does not bind itself."""
    loops = (p for s in statements for p in ast.walk(s) if isinstance(p, ast.For | ast.While))
    for loop in loops:
        inside = [part for statement in loop.body for part in ast.walk(statement)]
        if any(part is read for part in inside) and not count_bindings(loop, read.id):
            return True
    return False


def _asks(around: ast.AST) -> bool:
    """Whether syntax asks an iterator for one value."""
    if isinstance(around, ast.Call):
        return isinstance(around.func, ast.Name) and around.func.id in ("next", "zip", "islice")
    return isinstance(around, ast.Attribute)


def next_of(run: Context, values: Any, *default: Any) -> Any:
    """``next(values)`` of an object with a method ``__next__``."""
    if is_steps(values):
        strict = not default
        return take_step(run, values, strict, default[0] if default else None)
    if default:
        return run.run_function(library.next_or, {"values": values, "default": default[0]})
    return objects.required(run, "next", next, values)


def beside(run: Context, values: tuple[Any, ...], counted: list[Any]) -> Any:
    """``zip(...)`` of which one part at least is a generator; None where these have no steps.

    Args:
        run: the reading.
        values: the parts.
        counted: of each part that has places its length, and the value at one; None of others.
    """
    parts = []
    for value, known in zip(values, counted, strict=True):
        part = value if known is not None else as_steps(run, iterated(run, value))
        if part is None:
            return None
        parts.append((known is None, part))
    lengths = [known[0] for known in counted if known is not None]
    if not lengths:
        every = tuple(part for _, part in parts)
        return run.run_function(library.beside_each_other, {"parts": every})
    count = least_of(lengths)
    first: list[Any] = []
    for known, (is_stepped, part) in zip(counted, parts, strict=True):
        if is_stepped:
            first.append(part)
        elif known[0] is count or known[0] == count:
            break
    named = [v for frame in run.tracer.frames for v in frame.variables.values()]
    first = [part for part in first if any(part is v for v in named)]
    given = {"parts": tuple(parts), "count": count, "first": tuple(first)}
    return run.run_function(library.beside, given)
