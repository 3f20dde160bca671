"""Loops: they stay loops, whatever their length; what differs in kind by iteration is unrolled.

A loop whose shapes or lists differ from iteration to iteration is unrolled, if its length is known.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.elements import known_number
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex, joined
from distspmd.frontend.from_numpy.arrays.states import UNROLLED
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    make_view,
    whole_expression,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds import carried
from distspmd.frontend.from_numpy.kinds.bound_at_times import note_unbound
from distspmd.frontend.from_numpy.kinds.carried_variables import Loop as LoopBeingRead
from distspmd.frontend.from_numpy.kinds.first_arrays import WrittenElsewhere
from distspmd.frontend.from_numpy.kinds.turns import END, Turns, of_known, turns_of
from distspmd.frontend.from_numpy.kinds.variables import OneOf, Saved
from distspmd.frontend.from_numpy.lists.list_rooms import loop_length
from distspmd.frontend.from_numpy.lists.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.reader import generators, row_parts
from distspmd.frontend.from_numpy.reader.branches import branch
from distspmd.frontend.from_numpy.reader.continuing import continued
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.jumps import StoppedFor
from distspmd.frontend.from_numpy.reader.ranges import (
    Enumerated,
    Places,
    SymbolicRange,
    Zipped,
    by_index,
    in_table,
    iterated,
    map_ranges,
    static_values,
)
from distspmd.frontend.from_numpy.reader.registry import expression
from distspmd.frontend.tensor_ir.statements import Block, Loop, SetSymbol, Statement
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    is_at_least,
    multiply,
    simplified,
    subtract,
    symbol,
)
from distspmd.runtime.calls.form import rebuilt

FEW = 16
"""Iterations of a loop that is unrolled, at most, before the first one is read by itself."""

TRIED = 64
"""Iterations of one that is unrolled, at most, because something in it is refused."""

LONG = 1200
"""Statements of a loop that is written out, at most, for the sake of a list that it changes."""


# -- loops ----------------------------------------------------------------------------------------


def for_loop(interpreter: Context, node: StoppedFor) -> None:
    """``for``: over a range, a map, the rows of an array, or values that are known."""
    parameters = map_ranges(interpreter, node.iter)
    if parameters is not None:
        from distspmd.frontend.from_numpy.reader import scopes

        loops = in_order(interpreter, node, parameters)
        if loops is not None:
            for_loop(interpreter, loops)
            return
        scopes.map_loop(interpreter, node, parameters)
        return
    if isinstance(node.iter, ast.GeneratorExp):
        over = generators.of_expression(interpreter, node.iter)
    else:
        over = iterated(interpreter, interpreter.value(node.iter))
    iterated_lists = _lists_in(over)
    for each in iterated_lists:
        each.iterated += 1
    try:
        _iterate(interpreter, node, over)
    finally:
        for each in iterated_lists:
            each.iterated -= 1


def _lists_in(over: object) -> list[RunList]:
    """The lists that something iterates over."""
    if isinstance(over, Enumerated):
        return _lists_in(over.values)
    if isinstance(over, Zipped):
        return [own for values in over.values for own in _lists_in(values)]
    return [over] if isinstance(over, RunList) else []


def _iterate(interpreter: Context, node: StoppedFor, over: object) -> None:
    tracer = interpreter.tracer
    tracer.node = node
    if isinstance(over, Enumerated):
        over = Enumerated(iterated(interpreter, over.values), over.start)
    values, start = (over.values, [over.start]) if isinstance(over, Enumerated) else (over, [])
    if isinstance(values, Generator) and values.rest is None:
        generators.loop(interpreter, node, values, *start)
        return
    if isinstance(over, range):
        over = SymbolicRange(over.start, over.stop, over.step)
    if isinstance(over, _Rest):
        _range_loop(interpreter, node, over.over, over.value_of, why_rest=over.why)
        return
    if isinstance(over, SymbolicRange):
        _range_loop(interpreter, node, over)
        return
    if isinstance(over, Places) and over.is_of_ranges:
        for_loop(interpreter, nested(interpreter, node, over))
        return
    counted = by_index(interpreter, over)
    if counted is not None:
        length, value_of = counted
        _range_loop(interpreter, node, SymbolicRange(0, length, 1), value_of)
        return
    if isinstance(over, Generator):
        over = list(static_values(interpreter, over))
    if not _read_by_table(interpreter, node, over):
        turns = over if isinstance(over, Turns) else turns_of(interpreter, over)
        _unrolled(interpreter, node, turns)


def _read_by_table(interpreter: Context, node: StoppedFor, over: object) -> bool:
    """Read a loop over many known numbers as one loop, if nothing in it has to know them."""
    values = _known_list(over)
    if len(values) <= TRIED:
        return False
    saved = Saved(interpreter)
    value_of = in_table(interpreter.tracer, values)
    if value_of is None:
        return False
    try:
        _rolled(interpreter, node, SymbolicRange(0, len(values), 1), value_of)
        if _known_list(over) == values:
            return True
    except (CannotRoll, Refusal):
        interpreter.tracer.nest.check_settled()
    saved.restore(interpreter)
    interpreter.tracer.node = node
    return False


def _known_list(over: object) -> list[Any]:
    """What a loop goes through, of lists and tuples of Python; nothing of others."""
    if isinstance(over, list | tuple):
        return list(over)
    if isinstance(over, Enumerated) and isinstance(over.start, int):
        return list(enumerate(_known_list(over.values), over.start))
    if isinstance(over, Zipped):
        return list(zip(*map(_known_list, over.values), strict=False))
    return []


def _unrolled(
    interpreter: Context,
    node: StoppedFor,
    turns: Turns,
    changed: object = None,
    times: int = 0,
) -> None:
    """Read iterations one by one; so often for the sake of a list that the loop changes."""
    stops, block = node.stops, interpreter.tracer.program.block
    first = len(block.statements)
    for value, rest in turns.rest():
        if rest.place > 20 * UNROLLED:
            interpreter.tracer.refuse(f"a loop over {rest.place} values that cannot stay a loop")
        interpreter.bind(node.target, value)
        interpreter.block(node.body)
        if changed is not None:
            _leave_if_long(interpreter, changed, block.statements[first:], times)
            changed = None
        known = [interpreter.truth(interpreter.variables.get(s, False)) for s in stops]
        if True in known:
            return
        if None in known:
            _unrolled_after(interpreter, node, rest, stops)
            return


def _leave_if_long(
    interpreter: Context, changed: object, statements: Sequence[Statement], times: int
) -> None:
    """Let a loop stay one, with a list of the run, whose iterations are long when written out."""
    tracer = interpreter.tracer
    if tracer.lists.written_out < UNROLLED and times * _count(statements) > LONG:
        tracer.lists.keeps_loop = True
        decided_by_run(interpreter, changed)


def _count(statements: Sequence[Statement]) -> int:
    """How many statements there are, inside of blocks too."""
    inside = (_count(block.statements) for each in statements for block in each.blocks())
    return len(statements) + sum(inside)


def unset(flag: str) -> ast.expr:
    """Whether a flag is not set."""
    return ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))


def all_of(tests: list[ast.expr]) -> ast.expr:
    """Whether all tests hold."""
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _unrolled_after(
    interpreter: Context, node: StoppedFor, turns: Turns, stops: Sequence[str]
) -> None:
    """The rest of an unrolled loop, unless a flag is set."""
    if turns.at(turns.place) is END:
        return
    test = all_of([unset(flag) for flag in stops])
    values: Any = turns
    rest = StoppedFor(node.target, ast.Constant(values), node.body, stops=stops)
    made = ast.If(test, [rest], [])
    ast.fix_missing_locations(ast.copy_location(made, node))
    branch(interpreter, made)


def _range_loop(
    interpreter: Context,
    node: StoppedFor,
    over: SymbolicRange,
    value_of: Any = None,
    *,
    why_rest: str = "",
) -> None:
    """Read a loop over a range; ``why_rest`` says why its first iteration was read before."""
    tracer = interpreter.tracer
    length = over.length
    if isinstance(length, int) and length <= 1:
        values = [over.first] if length == 1 else []
        _unrolled(interpreter, node, of_known([value_of(v) if value_of else v for v in values]))
        return
    if tracer.map.straight is not None:
        tracer.map.straight.leave()
    saved = Saved(interpreter)
    changed = None
    try:
        _rolled(interpreter, node, over, value_of)
        return
    except CannotRoll as problem:
        tracer.nest.check_settled()
        saved.restore(interpreter)
        tracer.node = node
        changed = problem.changed
        is_known = isinstance(length, int) and length > 3 and not node.stops
        if isinstance(problem, WrittenElsewhere) and is_known and not why_rest:
            _by_arrays(interpreter, node, over, value_of, str(problem))
            return
        is_large = not isinstance(length, int) or length > UNROLLED
        if is_large or length > tracer.lists.written_out:
            tracer.lists.keeps_loop |= not is_large
            decided_by_run(interpreter, problem.changed)
        if why_rest and is_large:
            tracer.refuse(f"{why_rest}, and the number of its iterations is not known, or large")
        if not why_rest and (is_large or length > FEW):
            _peeled(interpreter, node, _Rest(over, value_of, str(problem)))
            return
    except (Refusal, RecursionError):  # what is refused of any may be known of each iteration
        tracer.nest.check_settled()
        if not isinstance(length, int) or length > TRIED:
            raise
        saved.restore(interpreter)
        tracer.node = node
    values = [add(over.first, multiply(n, over.step)) for n in range(length)]
    turns = of_known([value_of(v) if value_of else v for v in values])
    _unrolled(interpreter, node, turns, changed, length)


@dataclass(frozen=True, eq=False)
class _Rest:
    """What is iterated over behind its first value.

    Attributes:
        over: the places; with the first one until that is read.
        value_of: how a value is made of its place; None for the place itself.
        why: the first iteration is read by itself, in words.
    """

    over: SymbolicRange
    value_of: Any
    why: str


def _peeled(interpreter: Context, node: StoppedFor, every: _Rest) -> None:
    """Read the first iteration by itself, where there is one, and after it the loop of the rest."""
    over, value_of = every.over, every.value_of
    first = value_of(over.first) if value_of else over.first
    interpreter.bind(node.target, first)
    over_rest = SymbolicRange(add(over.first, over.step), over.end, over.step)
    values: Any = replace(every, over=over_rest)
    rest: ast.stmt = StoppedFor(node.target, ast.Constant(values), node.body, stops=node.stops)
    ast.fix_missing_locations(ast.copy_location(rest, node))
    if node.stops:
        rest = ast.If(all_of([unset(flag) for flag in node.stops]), [rest], [])
    many: Any = sympy.Ge(sympy.sympify(over.length), 1)
    if is_at_least(over.length, 1, interpreter.tracer.known.bounds):
        many = True
    body = continued(node.body, rest, node.stops)
    made = ast.If(ast.Constant(many), body, [])
    branch(interpreter, ast.fix_missing_locations(ast.copy_location(made, node)))


def _by_arrays(
    interpreter: Context, node: StoppedFor, over: SymbolicRange, value_of: Any, why: str
) -> None:
    """Read a loop in which a name stands for one array first, and then for another.

    Two that are swapped are the same again after two iterations, which become one. Else the first
    iteration is read by itself.
    """
    saved = Saved(interpreter)
    pairs = over.length // 2
    end = add(over.first, multiply(2 * pairs, over.step))
    try:
        twice = SymbolicRange(over.first, end, multiply(2, over.step))
        _rolled(interpreter, node, twice, value_of, (0, over.step))
        rest = [end] if over.length % 2 else []
    except CannotRoll:
        interpreter.tracer.nest.check_settled()
        saved.restore(interpreter)
        interpreter.tracer.node = node
        rest = [over.first]
        over = SymbolicRange(add(over.first, over.step), over.end, over.step)
        pairs = 0
    _unrolled(interpreter, node, of_known([value_of(v) if value_of else v for v in rest]))
    if not pairs:
        _range_loop(interpreter, node, over, value_of, why_rest=why)


def _rolled(
    interpreter: Context,
    node: StoppedFor,
    over: SymbolicRange,
    value_of: Any,
    offsets: Sequence[Any] = (0,),
) -> None:
    """Read a loop as one; its body once for each offset of the variable."""
    tracer = interpreter.tracer
    stops = node.stops
    name = node.target.id if isinstance(node.target, ast.Name) else "i"
    outside = dict(interpreter.variables)
    most = loop_length(tracer, over.length)

    def read(loop: LoopBeingRead) -> tuple[LoopBeingRead, str, str, Block, str | None]:
        variable, reached, body = tracer.unique_index(name), "", Block()
        tracer.known.bounds[variable] = _ends(over, offsets[-1])
        with tracer.within(body), tracer.in_loop(most):
            index = symbol(variable)
            if stops:  # of an iteration that ends the loop the variable keeps its value
                reached = tracer.unique(f"{name}_reached")
                tracer.known.bounds[reached] = (None, None)
                tracer.add(SetSymbol(reached, index, INT64))
            tracer.known.rows.add(variable)
            for offset in offsets:
                place = add(index, offset)
                interpreter.bind(node.target, value_of(place) if value_of else place)
                row_parts.body(interpreter, node.body)
            condition, before_it = carried.leave_loop(interpreter, loop)
        tracer.node = node
        for statement in before_it:
            tracer.add(statement)
        return loop, variable, reached, body, condition

    loop, variable, reached, body, condition = carried.read_until_settled(
        interpreter, node, stops, read
    )
    last = add(over.first, multiply(subtract(over.length, 1), over.step))
    may_be_none = not is_at_least(over.length, 1, tracer.known.bounds)
    if may_be_none:
        note_unbound(interpreter, node, outside, loop.carried_names(), over.length, body)
    if stops:
        tracer.add(SetSymbol(reached, over.first, INT64))
        last = symbol(reached)
    tracer.add(Loop(variable, over.first, over.end, over.step, condition, body))
    carried.after_loop(tracer, loop, has_run=not may_be_none)
    by = {symbol(variable): sympy.sympify(last)}
    for frame in tracer.frames:  # a generator gives values to the function that loops over it
        for key, value in frame.variables.items():
            frame.variables[key] = _at_end(value, by)
    if may_be_none:
        carried.after_none(interpreter, loop, outside)
    del tracer.known.bounds[variable]


def _ends(over: SymbolicRange, offset: object) -> tuple[Any, Any]:
    """The least and the largest value of a range, whose ends an offset to them does not pass."""
    if isinstance(over.step, int) and over.step < 0:
        return add(over.end, subtract(1, offset)), over.first
    return over.first, subtract(over.end, add(1, offset))


def _at_end(value: object, by: dict[Any, Any]) -> Any:
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
    if isinstance(value, RealOrComplex):
        return joined([value], _at_end(value.in_complex, by))
    if isinstance(value, Tensor) and not isinstance(value, View):
        known = known_number(value)
        if not isinstance(known, sympy.Basic) or variable not in known.free_symbols:
            return value
        last = simplified(known.xreplace(by))
        return Tensor((), INT64, lambda _: whole_expression(last))
    if isinstance(value, tuple):
        values = [_at_end(v, by) for v in value]
        return value if all(map(operator.is_, values, value)) else rebuilt(value, values)
    if isinstance(value, list):
        value[:] = [_at_end(v, by) for v in value]
    elif type(value) is dict and len(value) < 1000 and "__builtins__" not in value:
        ends = {key: _at_end(v, by) for key, v in value.items()}
        value.update({key: end for key, end in ends.items() if end is not value[key]})
    elif isinstance(value, OneOf):
        return replace(value, values=tuple(_at_end(v, by) for v in value.values))
    return value


@expression(ast.Yield, ast.YieldFrom)
def _yield(run: Context, node: ast.Yield | ast.YieldFrom) -> None:
    """What a generator gives that is read to its end."""
    value = None if node.value is None else run.value(node.value)
    for each in [value] if isinstance(node, ast.Yield) else static_values(run, value):
        generators.give(run, each)


def nested(run: Context, node: StoppedFor, places: Places) -> StoppedFor:
    """The loops in loops that a loop over places is."""
    names = _names(run, node.target, places)
    index = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
    value: ast.expr = index
    target: ast.expr | None = node.target
    if places.array is not None:
        array = run.tracer.unique("__places")
        run.variables[array] = places.array
        element = ast.Subscript(ast.Name(array, ast.Load()), index, ast.Load())
        value = ast.Tuple([index, element], ast.Load())
        if _are_names(_index_of(target), names):
            assert isinstance(target, ast.Tuple)
            target, value = target.elts[1], element
    elif _are_names(target, names):
        target = None
    body = list(node.body)
    if target is not None:
        body.insert(0, ast.Assign([target], value))
    for axis, name in reversed([*zip(places.axes, names, strict=True)]):
        over = run.tracer.unique("__axis")
        run.variables[over] = axis
        loop = StoppedFor(
            ast.Name(name, ast.Store()), ast.Name(over, ast.Load()), body, stops=node.stops
        )
        body = [ast.fix_missing_locations(ast.copy_location(loop, node))]
    return loop


def in_order(
    run: Context, node: StoppedFor, ranges: Sequence[tuple[Whole, Whole, Whole]]
) -> StoppedFor | None:
    """The loops in loops that a parallel map is whose ranges data decide; None for other maps.

    Any order of its iterations is right, and ranges of spaces do not depend on data.
    """
    every = [number for each in ranges for number in each]
    if not run.tracer.is_decided_by_data(*every):
        return None
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(targets) != len(ranges) or not all(isinstance(t, ast.Name) for t in targets):
        run.tracer.refuse(f"a map of {len(ranges)} ranges needs as many variables")
    body = list(node.body)
    for target, each in reversed([*zip(targets, ranges, strict=True)]):
        over = run.tracer.unique("__range")
        run.variables[over] = SymbolicRange(*each)
        loop = StoppedFor(target, ast.Name(over, ast.Load()), body, stops=())
        body = [ast.fix_missing_locations(ast.copy_location(loop, node))]
    return loop


def _names(run: Context, target: ast.expr, places: Places) -> Sequence[str]:
    """The variables of the loops: those of the target, where it has as many."""
    index = target if places.array is None else _index_of(target)
    parts = index.elts if isinstance(index, ast.Tuple) else []
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    if len(names) == len(parts) == len(set(names)) == len(places.axes):
        return names
    return [run.tracer.unique("__place") for _ in places.axes]


def _index_of(target: ast.expr | None) -> ast.expr | None:
    """What an index and an element are bound to: the part for the index."""
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return target.elts[0]
    return None


def _are_names(target: ast.expr | None, names: Sequence[str]) -> bool:
    parts = target.elts if isinstance(target, ast.Tuple) else []
    return [getattr(part, "id", None) for part in parts] == list(names)
