"""``while``: a loop, or its iterations one by one where it is known of each that it follows."""

from __future__ import annotations

import ast
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.states import UNROLLED
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds import carried
from distspmd.frontend.from_numpy.kinds.bound_at_times import note_unbound
from distspmd.frontend.from_numpy.kinds.carried_variables import Loop as LoopBeingRead
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.lists.run_lists import decided_by_run
from distspmd.frontend.from_numpy.reader.branches import branch
from distspmd.frontend.from_numpy.reader.conditions import relation_text
from distspmd.frontend.from_numpy.reader.continuing import continued
from distspmd.frontend.from_numpy.reader.jumps import StoppedWhile
from distspmd.frontend.from_numpy.reader.loops import TRIED, all_of, unset
from distspmd.frontend.from_numpy.reader.operators import tested
from distspmd.frontend.tensor_ir.statements import Block, Loop, SetSymbol


def _goes_on(interpreter: Context, node: StoppedWhile) -> bool | None:
    """Whether another iteration follows; None if that is not known."""
    known = interpreter.truth(interpreter.value(node.test))
    flags = [interpreter.truth(interpreter.variables.get(s, False)) for s in node.stops]
    if known is None or None in flags:
        return None
    return known and True not in flags


def _is_written_out(interpreter: Context, node: StoppedWhile) -> bool:
    """Read the iterations of a loop one by one, if it is known of each that it follows."""
    for _ in range(TRIED):
        goes_on = _goes_on(interpreter, node)
        if not goes_on:
            return goes_on is not None
        interpreter.block(node.body)
    return False


def while_loop(interpreter: Context, node: StoppedWhile) -> None:
    """``while``."""
    tracer = interpreter.tracer
    if tracer.map.straight is not None:
        tracer.map.straight.leave()
    problem = _tried(interpreter, node)
    if problem is None:
        return
    reason, changed = str(problem), problem.changed
    read = 0
    while read < UNROLLED:
        goes_on = _goes_on(interpreter, node)
        if goes_on is None:
            break
        if not goes_on:
            return
        if read == tracer.lists.written_out:
            tracer.lists.keeps_loop = True
            decided_by_run(interpreter, changed)
        interpreter.block(node.body)
        read += 1
    tracer.node = node
    decided_by_run(interpreter, changed)
    if 0 < read < UNROLLED:  # what differed in kind at first may be alike from here on
        rest = StoppedWhile(node.test, node.body, stops=node.stops)
        interpreter.block([_unless_ended(node, rest)])
        return
    if not read and not node.why_rest:
        _peeled_while(interpreter, node, reason)
        return
    tracer.refuse(
        f"{node.why_rest or reason}, and the number of its iterations is not known, or large"
    )


def _tried(interpreter: Context, node: StoppedWhile) -> CannotRoll | None:
    """Read a loop as one, or written out where that is refused; or why it cannot be one."""
    saved = Saved(interpreter)
    try:
        _rolled_while(interpreter, node)
    except CannotRoll as problem:
        interpreter.tracer.nest.check_settled()
        saved.restore(interpreter)
        interpreter.tracer.node = node
        return problem
    except (Refusal, RecursionError):  # what is refused of any may be known of each iteration
        interpreter.tracer.nest.check_settled()
        saved.restore(interpreter)
        interpreter.tracer.node = node
        if not _is_written_out(interpreter, node):
            raise
    return None


def _peeled_while(interpreter: Context, node: StoppedWhile, why: str) -> None:
    """Read the first iteration by itself: ``if test: body``, and in it the loop over the others."""
    stopped = StoppedWhile(node.test, node.body, stops=node.stops, why_rest=why)
    body = continued(node.body, _unless_ended(node, stopped), node.stops)
    made = ast.If(all_of([*(unset(flag) for flag in node.stops), node.test]), body, [])
    branch(interpreter, ast.fix_missing_locations(ast.copy_location(made, node)))


def _unless_ended(node: StoppedWhile, rest: ast.stmt) -> ast.stmt:
    """The rest of a loop, unless an iteration that was read by itself has ended it."""
    if node.stops:
        rest = ast.If(all_of([unset(flag) for flag in node.stops]), [rest], [])
    return ast.fix_missing_locations(ast.copy_location(rest, node))


def _rolled_while(interpreter: Context, node: StoppedWhile) -> None:
    tracer = interpreter.tracer
    saved = Saved(interpreter)

    def read(loop: LoopBeingRead) -> tuple[LoopBeingRead, Any, Any, Any]:
        body, end = Block(), None
        again: tuple[str, bool | None] = ("", None)
        first = _test(interpreter, node.test, None)
        if first[1] is not False:
            with tracer.within(body), tracer.in_loop(None):
                interpreter.block(node.body)
                end = carried.leave_loop(interpreter, loop)
                carried.after_loop(tracer, loop)
                tracer.node = node
                again = _test(interpreter, node.test, first[0])
        return loop, first, again, (body, end)

    loop, (test, first), (again, known), (body, end) = carried.read_until_settled(
        interpreter, node, node.stops, read
    )
    if first is False:
        saved.restore(interpreter)
        return
    condition, before_it = end
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
    if first is not True:
        note_unbound(interpreter, node, saved.variables, loop.carried_names(), None, body)
    tracer.add(Loop(None, 0, 0, 1, " and ".join(f"({c})" for c in parts_), body))
    if first is True:
        carried.after_some(loop)
    else:
        carried.after_none(interpreter, loop, saved.variables)


def _test(interpreter: Context, node: ast.expr, before: str | None) -> tuple[str, bool | None]:
    """The condition of a ``while`` as text, which ends in the same symbols as before."""
    tracer = interpreter.tracer
    value = tested(interpreter, interpreter.value(node))
    known = interpreter.truth(value)
    if known is not None:
        return str(known), known
    if isinstance(value, sympy.Basic):
        return relation_text(value), None
    if before is None:
        return tracer.condition(tracer.tensor(value)), None
    found = tracer.condition(tracer.tensor(value))
    statement = tracer.program.block.statements[-1]
    assert isinstance(statement, SetSymbol)
    assert statement.name == found
    statement.name = before
    return before, None
