"""Loops, branches and maps of a program: what they carry from one place to the next.

A variable that a loop changes, or that branches leave different, gets one container (or, for a
whole number, one symbol), into which each way writes; this is the join of an SSA form over
structured control flow. A loop stays a loop, whatever its length; one of which something differs
in kind from iteration to iteration (a shape, a list) is unrolled, if its length is known.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dace
import numpy as np
import sympy

from distspmd.expressions.ir import Load, apply, cast, parts
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy import indexing
from distspmd.frontend.from_numpy.arithmetic import combine
from distspmd.frontend.from_numpy.jumps import STOPS
from distspmd.frontend.from_numpy.tracer import (
    PYTHON_TYPES,
    CannotRoll,
    Refusal,
    Tracer,
    told,
)
from distspmd.frontend.from_numpy.values import (
    INT64,
    Tensor,
    View,
    make_view,
    number,
    view_of,
)
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Branch,
    Container,
    Loop,
    Parameter,
    Scope,
    SetSymbol,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    ceil_divide,
    is_at_least,
    multiply,
    same,
    simplified,
    subtract,
    symbol,
    text,
)

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter

UNROLLED = 512
"""Iterations of a loop that is unrolled, at most."""


# -- what is known of containers ------------------------------------------------------------------


def references(tracer: Tracer, container: Container) -> int:
    """How many variables, of all functions that are being read, see a container."""
    return sum(
        _sees(value, container) for frame in tracer.frames for value in frame.variables.values()
    )


def _sees(value: Any, container: Container) -> int:
    if isinstance(value, View):
        return int(value.container is container)
    if isinstance(value, Tensor):
        index = tuple(symbol(f"__probe{d}") for d in range(value.ndim))
        return int(any(load.array is container for load in loads_of(value.element(index))))
    if isinstance(value, list | tuple) and len(value) < 1000:
        return sum(_sees(v, container) for v in value)
    if isinstance(value, dict) and len(value) < 1000 and "__builtins__" not in value:
        return sum(_sees(v, container) for v in value.values())
    return 0


def is_own(tracer: Tracer, container: Container) -> bool:
    """Whether a container belongs to the innermost scope, so that it can be written again."""
    return not tracer.own or container.name in tracer.own[-1]


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


_CONFLICTS: dict[type[ast.AST], str] = {
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
    if not _collide(old.at(index), parameters):
        return None
    if type(op) not in _CONFLICTS:
        tracer.refuse(
            f"iterations of a map change one element by {type(op).__name__}: only +, -, *, /, &, |, "
            "^ have no order"
        )
    return _CONFLICTS[type(op)]


def _collide(place: Sequence[Any], parameters: Sequence[str]) -> bool:
    alone = set()
    for index in place:
        if isinstance(index, sympy.Basic):
            own = [s.name for s in index.free_symbols if s.name in parameters]
            if len(own) == 1 and simplified(index).coeff(symbol(own[0]), 1) != 0:  # type: ignore[union-attr]
                alone.add(own[0])
    return not set(parameters) <= alone


def combined_with(tracer: Tracer, old: View, op: ast.operator, value: Any) -> Tensor:
    """What is combined with an element: of ``-=`` and ``/=`` the inverse of the value."""
    tensor = tracer.tensor(value)
    if isinstance(op, ast.Sub):
        tensor = combine(tracer, np.negative, [tensor])
    elif isinstance(op, ast.Div):
        tensor = combine(tracer, np.divide, [1.0, tensor])
    return tracer.broadcast(tensor, old.shape)


def decided(tracer: Tracer, relation: sympy.Basic) -> bool | None:
    """Whether a relation of whole numbers holds for all values of its symbols."""
    if relation in (sympy.true, sympy.false):
        return bool(relation)
    kinds: dict[Any, Any] = {
        sympy.StrictLessThan: lambda a, b: (subtract(b, a), 1),
        sympy.LessThan: lambda a, b: (subtract(b, a), 0),
        sympy.StrictGreaterThan: lambda a, b: (subtract(a, b), 1),
        sympy.GreaterThan: lambda a, b: (subtract(a, b), 0),
    }
    if type(relation) in kinds:
        value, least = kinds[type(relation)](*relation.args)
        if is_at_least(value, least, tracer.bounds):
            return True
        if is_at_least(subtract(least - 1, value), 0, tracer.bounds):
            return False
        return None
    if isinstance(relation, sympy.Eq | sympy.Ne):
        difference = subtract(*relation.args)
        apart = is_at_least(difference, 1, tracer.bounds) or is_at_least(
            subtract(0, difference), 1, tracer.bounds
        )
        equal = difference == 0
        if apart or equal:
            return equal == isinstance(relation, sympy.Eq)
    return None


def condition_text(interpreter: Interpreter, value: Any) -> str:
    """The text of a condition that is known at run time only."""
    tracer = interpreter.tracer
    if isinstance(value, sympy.Basic):
        return _relation_text(value)
    return tracer.condition(tracer.tensor(value))


def _relation_text(value: sympy.Basic) -> str:
    if isinstance(value, sympy.And):
        return "(" + " and ".join(map(_relation_text, value.args)) + ")"
    if isinstance(value, sympy.Or):
        return "(" + " or ".join(map(_relation_text, value.args)) + ")"
    if isinstance(value, sympy.Not):
        return f"(not {_relation_text(value.args[0])})"
    signs = {
        sympy.StrictLessThan: "<",
        sympy.LessThan: "<=",
        sympy.StrictGreaterThan: ">",
        sympy.GreaterThan: ">=",
        sympy.Equality: "==",
        sympy.Unequality: "!=",
    }
    if type(value) in signs:
        a, b = value.args
        return f"({text(a)} {signs[type(value)]} {text(b)})"
    if value in (sympy.true, sympy.false):
        return str(bool(value))
    return f"({text(value)} != 0)"


# -- states of the reading ------------------------------------------------------------------------


@dataclass
class _Saved:
    """What a trial changes, to be put back."""

    variables: dict[str, Any]
    statements: int
    names: set[str]
    bounds: dict[str, Any]
    own: list[set[str]]

    @classmethod
    def of(cls, interpreter: Interpreter) -> _Saved:
        tracer = interpreter.tracer
        return cls(
            dict(interpreter.variables),
            len(tracer.block.statements),
            set(tracer.names),
            dict(tracer.bounds),
            [set(o) for o in tracer.own],
        )

    def restore(self, interpreter: Interpreter) -> None:
        tracer = interpreter.tracer
        interpreter.variables.clear()
        interpreter.variables.update(self.variables)
        del tracer.block.statements[self.statements :]
        tracer.names = set(self.names)
        tracer.bounds.clear()
        tracer.bounds.update(self.bounds)
        tracer.own[:] = [set(o) for o in self.own]


class _Again(Exception):
    """A loop is read again, with another kind of a variable that it carries."""

    def __init__(self, name: str, kind: Any) -> None:
        super().__init__(name)
        self.name, self.kind = name, kind


# -- branches -------------------------------------------------------------------------------------


def branch(interpreter: Interpreter, node: ast.If) -> None:
    """``if``."""
    tracer = interpreter.tracer
    test = interpreter.value(node.test)
    known = interpreter.truth(test)
    tracer.node = node
    if known is not None:
        interpreter.block(node.body if known else node.orelse)
        return
    if tracer.straight is not None:
        tracer.straight.branch(test, node)
        return
    condition = condition_text(interpreter, test)
    before = dict(interpreter.variables)
    then, otherwise = Block(), Block()
    with tracer.within(then):
        interpreter.block(node.body)
    first = dict(interpreter.variables)
    interpreter.variables.clear()
    interpreter.variables.update(before)
    with tracer.within(otherwise):
        interpreter.block(node.orelse)
    second = dict(interpreter.variables)
    tracer.node = node
    for name in sorted(_changed(first, second)):
        one, other = first.get(name, _ABSENT), second.get(name, _ABSENT)
        interpreter.variables[name] = _join(
            interpreter, _readable(name), one, other, then, otherwise
        )
    tracer.add(Branch(condition, then, otherwise))


_ABSENT = object()


def _readable(name: str) -> str:
    return name.strip("_") or "value"


def _changed(first: dict[str, Any], second: dict[str, Any]) -> set[str]:
    names = first.keys() | second.keys()
    return {n for n in names if not _alike(first.get(n, _ABSENT), second.get(n, _ABSENT))}


def _alike(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, View) and isinstance(other, View):
        return (
            one.container is other.container
            and one.place == other.place
            and len(one.shape) == len(other.shape)
            and all(same(a, b) for a, b in zip(one.shape, other.shape, strict=True))
        )
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return False
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    if isinstance(one, tuple | list) and type(one) is type(other) and len(one) == len(other):
        return all(map(_alike, one, other))
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def _join(
    interpreter: Interpreter, name: str, one: Any, other: Any, then: Block, otherwise: Block
) -> Any:
    """A value that is one of two, by the way that was taken."""
    tracer = interpreter.tracer
    if one is _ABSENT or other is _ABSENT:
        return other if one is _ABSENT else one
    if one is None or other is None:  # not returned, or not bound, on that way
        return other if one is None else one
    if isinstance(one, tuple | list) and type(one) is type(other) and len(one) == len(other):
        return type(one)(
            _join(interpreter, f"{name}_{n}", a, b, then, otherwise)
            for n, (a, b) in enumerate(zip(one, other, strict=True))
        )
    if _is_whole(one) and _is_whole(other):
        joined = tracer.unique(name)
        tracer.bounds[joined] = (None, None)
        for block, value in ((then, one), (otherwise, other)):
            with tracer.within(block):
                tracer.add(SetSymbol(joined, sympy.sympify(value), INT64))
        return symbol(joined)
    tensors = [_as_tensor(tracer, v, block) for v, block in ((one, then), (other, otherwise))]
    if any(t is None for t in tensors):
        tracer.refuse(
            f"after the branches {name!r} is {told(one)} or {told(other)}, by a condition that is "
            "known at run time only"
        )
    shapes = [t.shape for t in tensors]
    if len(shapes[0]) != len(shapes[1]) or not all(
        same(a, b) for a, b in zip(*shapes, strict=True)
    ):
        tracer.refuse(
            f"after the branches {name!r} has one of the shapes {shapes[0]} and {shapes[1]}, by a "
            "condition that is known at run time only"
        )
    dtype = np.result_type(*(t.dtype for t in tensors))
    container = tracer.container(name, shapes[0], dtype)
    found = view_of(container)
    found.weak = tensors[0].weak if tensors[0].weak is tensors[1].weak else None
    for block, tensor in ((then, tensors[0]), (otherwise, tensors[1])):
        with tracer.within(block):
            tracer.write(found, tensor)
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | sympy.Expr) and not isinstance(value, bool)


def _as_tensor(tracer: Tracer, value: Any, block: Block) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool | int | float | complex | np.generic | sympy.Basic | np.ndarray):
        with tracer.within(block):
            return tracer.tensor(value)
    return None


# -- loops ----------------------------------------------------------------------------------------


def for_loop(interpreter: Interpreter, node: ast.For) -> None:
    """``for``: over a range, a map, the rows of an array, or values that are known."""
    tracer = interpreter.tracer
    parameters = _map_ranges(interpreter, node.iter)
    if parameters is not None:
        from distspmd.frontend.from_numpy import scopes

        scopes.map_loop(interpreter, node, parameters)
        return
    over = interpreter.value(node.iter)
    tracer.node = node
    if isinstance(over, SymbolicRange):
        _range_loop(interpreter, node, over)
        return
    if isinstance(over, range):
        _range_loop(interpreter, node, SymbolicRange(over.start, over.stop, over.step))
        return
    if isinstance(over, Tensor):
        if over.ndim == 0:
            tracer.refuse("iteration over a 0-d array")
        view = tracer.stored(over)
        _range_loop(
            interpreter,
            node,
            SymbolicRange(0, view.shape[0], 1),
            lambda index: indexing.read(tracer, view, index),
        )
        return
    if isinstance(over, Enumerated):
        inner, start = over.values, over.start
        if isinstance(inner, Tensor):
            view = tracer.stored(inner)
            _range_loop(
                interpreter,
                node,
                SymbolicRange(0, view.shape[0], 1),
                lambda index: (add(index, start), indexing.read(tracer, view, index)),
            )
            return
        if isinstance(inner, SymbolicRange):
            _range_loop(
                interpreter,
                node,
                SymbolicRange(0, inner.length, 1),
                lambda index: (add(index, start), add(inner.first, multiply(index, inner.step))),
            )
            return
    if isinstance(over, Zipped) and any(isinstance(v, Tensor | SymbolicRange) for v in over.values):
        views = [tracer.stored(v) if isinstance(v, Tensor) else v for v in over.values]
        lengths = [
            v.shape[0]
            if isinstance(v, View)
            else v.length
            if isinstance(v, SymbolicRange)
            else len(v)
            for v in views
        ]
        if all(isinstance(v, View | SymbolicRange | range) for v in views):
            _range_loop(
                interpreter,
                node,
                SymbolicRange(0, _least(lengths), 1),
                lambda index: tuple(
                    indexing.read(tracer, v, index)
                    if isinstance(v, View)
                    else add(v.first, multiply(index, v.step))
                    if isinstance(v, SymbolicRange)
                    else add(v.start, multiply(index, v.step))
                    for v in views
                ),
            )
            return
    _unrolled(interpreter, node, list(static_values(interpreter, over)))


def _least(lengths: Sequence[Whole]) -> Whole:
    first, *others = lengths
    for other in others:
        if not same(first, other):
            first = simplified(sympy.Min(sympy.sympify(first), sympy.sympify(other)))
    return first


@dataclass(frozen=True)
class SymbolicRange:
    """``range(first, end, step)`` where not all are numbers."""

    first: Whole
    end: Whole
    step: Whole

    @property
    def length(self) -> Whole:
        """Number of values, if it is not negative."""
        if isinstance(self.step, int) and self.step < 0:
            return ceil_divide(subtract(self.first, self.end), -self.step)
        return ceil_divide(subtract(self.end, self.first), self.step)


@dataclass(frozen=True)
class Enumerated:
    """``enumerate(values, start)``."""

    values: Any
    start: Whole


@dataclass(frozen=True)
class Zipped:
    """``zip(...)``."""

    values: tuple[Any, ...]


def static_values(interpreter: Interpreter, over: Any) -> Iterator[Any]:
    """The values that are iterated over, if their number is known."""
    tracer = interpreter.tracer
    if isinstance(over, Enumerated):
        for n, value in enumerate(static_values(interpreter, over.values)):
            yield add(over.start, n), value
    elif isinstance(over, Zipped):
        yield from zip(*(static_values(interpreter, v) for v in over.values), strict=False)
    elif isinstance(over, SymbolicRange):
        if not isinstance(over.length, int):
            tracer.refuse(f"a number of values that is not known: {over.length}")
        for n in range(max(0, over.length)):
            yield add(over.first, multiply(n, over.step))
    elif isinstance(over, Tensor):
        if over.ndim == 0 or not isinstance(over.shape[0], int):
            tracer.refuse(f"values of a number that is not known: {told(over)}")
        for n in range(over.shape[0]):
            yield indexing.read(tracer, over, n)
    else:
        try:
            yield from over
        except TypeError:
            tracer.refuse(f"{told(over)} is not iterated over")


def _unrolled(interpreter: Interpreter, node: ast.For, values: Sequence[Any]) -> None:
    stops = getattr(node, STOPS, [])
    if len(values) > 20 * UNROLLED:
        interpreter.tracer.refuse(f"a loop over {len(values)} values that cannot stay a loop")
    for place, value in enumerate(values):
        interpreter.bind(node.target, value)
        interpreter.block(node.body)
        known = [interpreter.truth(interpreter.variables.get(s, False)) for s in stops]
        if True in known:
            return
        if None in known:
            rest = copy.copy(node)
            _unrolled_after(interpreter, rest, values[place + 1 :], stops)
            return


def _unrolled_after(
    interpreter: Interpreter, node: ast.For, values: Sequence[Any], stops: Sequence[str]
) -> None:
    """The rest of an unrolled loop, unless a flag is set."""
    if not values:
        return
    tests: list[ast.expr] = [ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())) for flag in stops]
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    rest = ast.For(node.target, ast.Constant(tuple()), node.body, [])
    setattr(rest, STOPS, stops)
    inner = _Values(list(values))
    rest.iter = ast.Name("__values", ast.Load())
    interpreter.variables["__values"] = inner.values
    made = ast.If(test, [rest], [])
    ast.fix_missing_locations(ast.copy_location(made, node))
    branch(interpreter, made)


@dataclass
class _Values:
    values: list[Any]


def _range_loop(
    interpreter: Interpreter,
    node: ast.For,
    over: SymbolicRange,
    value_of: Any = None,
) -> None:
    tracer = interpreter.tracer
    length = over.length
    if isinstance(length, int) and length <= 1:
        values = [over.first] if length == 1 else []
        _unrolled(interpreter, node, [value_of(v) if value_of else v for v in values])
        return
    if tracer.straight is not None:
        tracer.straight.leave()
    saved = _Saved.of(interpreter)
    try:
        _rolled(interpreter, node, over, value_of)
        return
    except CannotRoll as problem:
        saved.restore(interpreter)
        tracer.node = node
        if not isinstance(length, int) or length > UNROLLED:
            tracer.refuse(f"{problem}, and the number of its iterations is not known, or large")
        reason = problem
    values = [add(over.first, multiply(n, over.step)) for n in range(length)]
    del reason
    _unrolled(interpreter, node, [value_of(v) if value_of else v for v in values])


def _rolled(interpreter: Interpreter, node: ast.For, over: SymbolicRange, value_of: Any) -> None:
    tracer = interpreter.tracer
    stops = getattr(node, STOPS, [])
    name = node.target.id if isinstance(node.target, ast.Name) else "i"
    kinds: dict[str, Any] = {}
    before = _Saved.of(interpreter)
    for _ in range(12):
        try:
            variable = tracer.unique(name)
            body = Block()
            carried = _enter(interpreter, node, kinds)
            if isinstance(over.step, int) and over.step < 0:
                tracer.bounds[variable] = (add(over.end, 1), over.first)
            else:
                tracer.bounds[variable] = (over.first, subtract(over.end, 1))
            with tracer.within(body):
                index = symbol(variable)
                interpreter.bind(node.target, value_of(index) if value_of else index)
                _body(interpreter, node.body)
                condition, before_it = _leave(interpreter, node, carried, kinds, stops)
            break
        except _Again as again:
            before.restore(interpreter)
            if kinds.get(again.name) == again.kind:
                raise CannotRoll(f"{again.name!r} changes its kind in the loop") from None
            kinds[again.name] = again.kind
    else:
        raise CannotRoll("what the loop carries does not settle")
    tracer.node = node
    for statement in before_it:
        tracer.add(statement)
    tracer.add(Loop(variable, over.first, over.end, over.step, condition, body))
    _after(interpreter, carried)
    if not stops:
        last = add(over.first, multiply(subtract(over.length, 1), over.step))
        by = {symbol(variable): sympy.sympify(last)}
        for key, value in interpreter.variables.items():
            interpreter.variables[key] = _at_end(value, by)
    del tracer.bounds[variable]


def _at_end(value: Any, by: dict[Any, Any]) -> Any:
    """A value of the last iteration, after the loop."""
    (variable,) = by
    if isinstance(value, sympy.Basic) and variable in value.free_symbols:
        return simplified(value.xreplace(by))
    if isinstance(value, View) and any(
        isinstance(p, sympy.Basic) and variable in p.free_symbols for p in value.place
    ):
        place = [p if isinstance(p, int) else simplified(p.xreplace(by)) for p in value.place]
        shape = [n if isinstance(n, int) else simplified(n.xreplace(by)) for n in value.shape]
        return make_view(value.container, shape, place, is_merged=value.is_merged, weak=value.weak)
    return value


def while_loop(interpreter: Interpreter, node: ast.While) -> None:
    """``while``."""
    tracer = interpreter.tracer
    if tracer.straight is not None:
        tracer.straight.leave()
    saved = _Saved.of(interpreter)
    try:
        _rolled_while(interpreter, node)
        return
    except CannotRoll as problem:
        saved.restore(interpreter)
        tracer.node = node
        reason = str(problem)
    stops = getattr(node, STOPS, [])
    for _ in range(UNROLLED):
        known = interpreter.truth(interpreter.value(node.test))
        flags = [interpreter.truth(interpreter.variables.get(s, False)) for s in stops]
        if known is None or None in flags:
            break
        if not known or True in flags:
            return
        interpreter.block(node.body)
    tracer.node = node
    tracer.refuse(f"{reason}, and the number of its iterations is not known, or large")


def _rolled_while(interpreter: Interpreter, node: ast.While) -> None:
    tracer = interpreter.tracer
    stops = getattr(node, STOPS, [])
    kinds: dict[str, Any] = {}
    before = _Saved.of(interpreter)
    for _ in range(12):
        try:
            body = Block()
            carried = _enter(interpreter, node, kinds)
            test, first = _test(interpreter, node.test, None)
            if first is False:
                before.restore(interpreter)
                return
            with tracer.within(body):
                _body(interpreter, node.body)
                condition, before_it = _leave(interpreter, node, carried, kinds, stops)
                _after(interpreter, carried)
                tracer.node = node
                again, known = _test(interpreter, node.test, test)
            break
        except _Again as problem:
            before.restore(interpreter)
            if kinds.get(problem.name) == problem.kind:
                raise CannotRoll(f"{problem.name!r} changes its kind in the loop") from None
            kinds[problem.name] = problem.kind
    else:
        raise CannotRoll("what the loop carries does not settle")
    if first is None and again != test:
        tracer.refuse("the condition of the loop reads something else after an iteration")
    if first is True and known is not True:
        raise CannotRoll("the condition of the loop is known at first only")
    parts_ = [c for c in (condition, test if first is None else None) if c]
    if not parts_:
        raise CannotRoll("the loop has no end")
    tracer.node = node
    for statement in before_it:
        tracer.add(statement)
    tracer.add(Loop(None, 0, 0, 1, " and ".join(f"({c})" for c in parts_), body))


def _test(interpreter: Interpreter, node: ast.expr, before: str | None) -> tuple[str, bool | None]:
    """The condition of a ``while`` as text, which ends in the same symbols as before."""
    tracer = interpreter.tracer
    value = interpreter.value(node)
    known = interpreter.truth(value)
    if known is not None:
        return str(known), known
    if isinstance(value, sympy.Basic):
        return _relation_text(value), None
    if before is None:
        return tracer.condition(tracer.tensor(value)), None
    found = tracer.condition(tracer.tensor(value))
    statement = tracer.block.statements[-1]
    assert isinstance(statement, SetSymbol) and statement.name == found
    statement.name = before
    return before, None


def _body(interpreter: Interpreter, body: Sequence[ast.stmt]) -> None:
    """Read the body of a loop that stays one: it may not change lists from outside."""
    tracer = interpreter.tracer
    known: set[int] = set()
    for frame in tracer.frames:
        for value in list(frame.variables.values()):
            if isinstance(value, list | dict):
                known.add(id(value))
    tracer.rolled.append(known)
    try:
        interpreter.block(body)
    finally:
        tracer.rolled.pop()


# -- what loops carry -----------------------------------------------------------------------------


@dataclass
class _Carried:
    """A variable at the head of a loop.

    Attributes:
        name: of the variable.
        value: what it stands for in the loop.
        before: what it stood for before.
    """

    name: str
    value: Any
    before: Any


def _enter(
    interpreter: Interpreter, node: ast.For | ast.While, kinds: dict[str, Any]
) -> list[_Carried]:
    """Give the variables that a loop may change a place that all iterations share."""
    tracer = interpreter.tracer
    carried: list[_Carried] = []
    body_names = _assigned(node)
    for name in sorted(body_names):
        if name not in interpreter.variables or kinds.get(name) == "free":
            continue
        before = interpreter.variables[name]
        value = _place(interpreter, name, before, kinds)
        if value is _ABSENT:
            continue
        interpreter.variables[name] = value
        carried.append(_Carried(name, value, before))
    return carried


def _place(interpreter: Interpreter, name: str, before: Any, kinds: dict[str, Any]) -> Any:
    tracer, kind = interpreter.tracer, kinds.get(name)
    if kind is None and (_is_whole(before)):
        found = tracer.unique(_readable(name))
        tracer.bounds[found] = (None, None)
        tracer.add(SetSymbol(found, sympy.sympify(before), INT64))
        return symbol(found)
    if isinstance(before, tuple) and any(_carries(v) for v in before):
        return tuple(
            _place(interpreter, f"{name}_{n}", v, kinds) if _carries(v) else v
            for n, v in enumerate(before)
        )
    if not _carries(before):
        return _ABSENT
    tensor = tracer.tensor(before)
    if tensor.mask is not None:
        raise CannotRoll(f"{name!r} is a choice by a mask")
    if isinstance(before, View) and kind is None:
        return before
    dtype, weak = kind if isinstance(kind, tuple) else (tensor.dtype, tensor.weak)
    container = tracer.container(_readable(name), tensor.shape, dtype)
    found = view_of(container)
    found.weak = weak
    tracer.write(found, tensor)
    return found


def _carries(value: Any) -> bool:
    return isinstance(
        value, bool | int | float | complex | np.generic | sympy.Basic | Tensor | np.ndarray
    )


def _leave(
    interpreter: Interpreter,
    node: ast.For | ast.While,
    carried: Sequence[_Carried],
    kinds: dict[str, Any],
    stops: Sequence[str],
) -> tuple[str | None, list[Any]]:
    """Write what the variables stand for at the end of an iteration to their places."""
    tracer = interpreter.tracer
    moves: list[tuple[Any, Any]] = []
    for one in carried:
        now = interpreter.variables.get(one.name, _ABSENT)
        if now is _ABSENT:
            continue
        try:
            _moves(interpreter, one.name, one.value, now, moves, kinds, one.before)
        except _Again:
            if _is_written_first(node, one.name) and one.name not in stops:
                raise _Again(one.name, "free") from None
            raise
    symbols = [(place, now) for place, now in moves if isinstance(place, sympy.Symbol)]
    tensors = [(place, now) for place, now in moves if isinstance(place, View)]
    places = {place.container for place, _ in tensors}
    ready: list[tuple[View, Tensor]] = []
    for place, now in tensors:
        if len(tensors) > 1 and isinstance(now, Tensor) and _reads(now, places - {place.container}):
            now = tracer.stored_anew(now, "next")
        ready.append((place, now))
    for place, now in ready:
        tracer.assign(place, now)
    if len(symbols) > 1:
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
            name = tracer.unique(f"{_readable(stop)}_value")
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
            elif not _alike(p, v):
                raise CannotRoll(f"{name!r} changes in the loop")
        return
    if isinstance(place, sympy.Symbol):
        if _alike(place, now):
            return
        if _is_whole(now):
            moves.append((place, now))
            return
        if isinstance(now, Tensor) and now.ndim == 0 and now.weak is int:
            moves.append((place, tracer.as_whole(now)))
            return
        if (
            (isinstance(now, Tensor)
            and now.ndim == 0)
            or isinstance(now, float | complex | np.generic)
        ):
            tensor = tracer.tensor(now)
            kind = np.result_type(tensor.dtype, INT64), tensor.weak
            raise _Again(name, kind)
        raise CannotRoll(f"{name!r} is no number any more in the loop")
    assert isinstance(place, View)
    if _alike(place, now):
        return
    if not _carries(now):
        raise CannotRoll(f"{name!r} is no array or number any more in the loop")
    tensor = tracer.tensor(now)
    if tensor.mask is not None:
        raise CannotRoll(f"{name!r} is a choice by a mask")
    if len(tensor.shape) != len(place.shape) or not all(
        same(a, b) for a, b in zip(tensor.shape, place.shape, strict=True)
    ):
        raise (
            _Again(name, "shape")
            if kinds.get(name) != "shape"
            else CannotRoll(f"{name!r} changes its shape in the loop")
        )
    joined = np.result_type(tensor.dtype, place.dtype)
    if kinds.get(name) is None and not _is_free(tracer, place, before):
        raise _Again(name, (joined, place.weak if place.weak is tensor.weak else None))
    if tensor.weak is None and place.weak is not None and kinds.get(name) is None:
        raise _Again(name, (joined, None))
    if joined != place.dtype:
        raise _Again(name, (joined, None if tensor.weak is None else tensor.weak))
    moves.append((place, tensor))


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


def _after(interpreter: Interpreter, carried: Sequence[_Carried]) -> None:
    """After the loop variables stand for their places."""
    for one in carried:
        interpreter.variables[one.name] = one.value


def _assigned(node: ast.AST) -> set[str]:
    """Names that the body of a loop may bind."""
    found: set[str] = set()
    for part in node.body:  # type: ignore[attr-defined]
        found |= _bound_in(part)
    return found


def _bound_in(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return {node.name} if isinstance(node, ast.FunctionDef) else set()
    found = set()
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        found.add(node.id)
    for child in ast.iter_child_nodes(node):
        found |= _bound_in(child)
    return found


def _is_written_first(node: ast.For | ast.While, name: str) -> bool:
    """Whether each iteration binds a variable before it reads it."""
    if isinstance(node, ast.While) and _uses(node.test, name):
        return False
    return _first_use(node.body, name) == "write"


def _first_use(statements: Sequence[ast.stmt], name: str) -> str | None:
    for statement in statements:
        found = _use(statement, name)
        if found is not None:
            return found
    return None


def _use(node: ast.stmt, name: str) -> str | None:
    if isinstance(node, ast.Assign):
        if _uses(node.value, name):
            return "read"
        if any(_binds(t, name) for t in node.targets):
            return "write"
        return "read" if any(_uses(t, name) for t in node.targets) else None
    if isinstance(node, ast.If):
        if _uses(node.test, name):
            return "read"
        one, other = _first_use(node.body, name), _first_use(node.orelse, name)
        if "read" in (one, other):
            return "read"
        return "write" if one == other == "write" else ("maybe" if one or other else None)
    if isinstance(node, ast.For):
        if _uses(node.iter, name):
            return "read"
        if _binds(node.target, name):
            return "write"
        return (
            "read"
            if any(_uses(s, name) for s in node.body) and _first_use(node.body, name) != "write"
            else ("write" if _first_use(node.body, name) == "write" else None)
        )
    return "read" if _uses(node, name) else None


def _binds(target: ast.AST, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_binds(t, name) for t in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def _uses(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name)
        and n.id == name
        and not (isinstance(n.ctx, ast.Store) and not isinstance(node, ast.AugAssign))
        for n in ast.walk(node)
    )


# -- maps -----------------------------------------------------------------------------------------


def _map_ranges(interpreter: Interpreter, node: ast.expr) -> list[tuple[Any, Any, Any]] | None:
    """The ranges of ``dace.map[...]`` or ``distspmd.map[...]``; None for something else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute | ast.Name):
        return None
    try:
        base = interpreter.value(node.value)
    except Refusal:
        return None
    if not (base is dace.map or type(base).__name__ == "ParallelMap"):
        return None
    tracer = interpreter.tracer
    items = interpreter.subscript(node.slice)
    found = []
    for item in items if isinstance(items, tuple) else (items,):
        if not isinstance(item, slice) or item.stop is None:
            tracer.refuse("a map needs ranges: dace.map[0:n, 0:m]")
        found.append(
            tuple(
                default if e is None else tracer.as_whole(e, "the end of a range")
                for e, default in ((item.start, 0), (item.stop, 0), (item.step, 1))
            )
        )
    return found


__all__ = [
    "PYTHON_TYPES",
    "DType",
    "Load",
    "Parameter",
    "Scope",
    "apply",
    "branch",
    "cast",
    "for_loop",
    "number",
    "parts",
    "while_loop",
]
