"""Branches: a variable that they leave different gets one container, into which each way writes.

For a whole number it is one symbol. This is the join of an SSA form over structured control flow.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from distspmd.frontend.from_numpy.arrays import run_types
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import EndsHere
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds import absence, joins
from distspmd.frontend.from_numpy.kinds.bound_at_times import is_exposed
from distspmd.frontend.from_numpy.kinds.variables import ABSENT, UNBOUND, changed, readable
from distspmd.frontend.from_numpy.reader.conditions import condition_text, facts_of
from distspmd.frontend.from_numpy.reader.mutation import Around, join_contents, watched
from distspmd.frontend.from_numpy.reader.operators import tested
from distspmd.frontend.from_numpy.reader.sharing import is_own, references
from distspmd.frontend.tensor_ir.statements import Block, Branch

_BY_CONDITION = "by a condition that is known at run time only"


# -- branches -------------------------------------------------------------------------------------


def branch(interpreter: Context, node: ast.If) -> None:
    """``if``."""
    tracer = interpreter.tracer
    test = tested(interpreter, interpreter.value(node.test))
    known = interpreter.truth(test)
    tracer.node = node
    if known is not None:
        interpreter.block(node.body if known else node.orelse)
        return
    if tracer.map.straight is not None:
        tracer.map.straight.branch(test, node)
        return
    condition = condition_text(interpreter, test)
    before = dict(interpreter.variables)
    then, otherwise = Block(), Block()
    ends, variables, contents = [], [], []
    for block, statements in ((then, node.body), (otherwise, node.orelse)):
        interpreter.variables.clear()
        interpreter.variables.update(before)
        facts = facts_of(tracer, test, holds=block is then)
        with (
            watched(tracer, Around.BRANCH) as journal,
            tracer.within(block),
            tracer.where(facts),
            absence.knowing(tracer, test, holds=block is then),
        ):
            _block(interpreter, statements)
        ends.append(_end_of_block(tracer))
        variables.append(dict(interpreter.variables))
        contents.append(journal.take_back())
    tracer.node = node
    tracer.ended = all(ends)
    if ends[0] != ends[1]:  # one of them ends the program: what follows knows the other
        variables = [variables[ends[0]]] * 2
        contents = [contents[ends[0]]] * 2
    first, second = variables
    interpreter.variables.update(first)

    def join(name: str, one: object, other: object) -> Any:
        if one is ABSENT or other is ABSENT:
            found = other if one is ABSENT else one
            if not is_exposed(interpreter, node, name, found):
                return found
            one, other = (UNBOUND if value is ABSENT else value for value in (one, other))
        return joins.join(interpreter, readable(name), one, other, ways)

    ways = joins.Ways((then, otherwise), (first, second))
    for name in sorted(changed(first, second)):
        one, other = first.get(name, ABSENT), second.get(name, ABSENT)
        kept = _written_in_place(tracer, name, (first, second), (then, otherwise))
        interpreter.variables[name] = join(name, one, other) if kept is None else kept
    join_contents(interpreter, contents[0], contents[1], join)
    tracer.add(Branch(condition, then, otherwise))


def _block(interpreter: Context, statements: Sequence[ast.stmt]) -> None:
    """Read the statements of one way, until it ends the program."""
    try:
        interpreter.block(statements)
    except EndsHere:
        interpreter.tracer.ended = True


def _written_in_place(
    tracer: Tracer, name: str, ways: Sequence[dict[str, Any]], blocks: Sequence[Block]
) -> View | None:
    """A number that one way leaves as it was, where the other way can write its new value there.

    So a number of a loop is copied only where it changes. None where something else sees it.
    """
    values = [way.get(name, ABSENT) for way in ways]
    for old, new, block in zip(values, reversed(values), reversed(blocks), strict=True):
        if not isinstance(old, View) or not isinstance(new, Tensor) or old.ndim or new.ndim:
            continue
        container = old.container
        is_free = old.is_whole and not container.is_argument and is_own(tracer, container)
        if (
            is_free
            and (new.dtype, new.weak) == (old.dtype, old.weak)
            and not run_types.differ(old, new)
            and not references(tracer, container, {**ways[0], name: None})
            and not references(tracer, container, {**ways[1], name: None})
        ):
            with tracer.within(block):
                tracer.assign(old, new)
            return old
    return None


def _end_of_block(tracer: Tracer) -> bool:
    """Whether the block that was read raises in the end."""
    found, tracer.ended = tracer.ended, False
    return found
