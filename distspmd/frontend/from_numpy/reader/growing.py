"""Loops over lists that they make longer, as searches do with the places that they have found.

before -> after:  ``for u in order: order.append(v)``  ->
``at = 0`` ``while at < len(order): u = order[at]; at += 1; order.append(v)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.lists.run_lists import Entries, Grows, RunList
from distspmd.frontend.from_numpy.reader.jumps import StoppedFor, StoppedWhile
from distspmd.frontend.from_numpy.reader.mutation import Around, watched
from distspmd.frontend.from_numpy.reader.ranges import Enumerated, Zipped


def lists_in(over: object) -> list[RunList]:
    """The lists that something iterates over."""
    if isinstance(over, RunList):
        return [over.of if isinstance(over, Entries) and over.of else over]
    if isinstance(over, Enumerated):
        return lists_in(over.values)
    return [o for v in over.values for o in lists_in(v)] if isinstance(over, Zipped) else []


def read(
    run: Context, node: StoppedFor, over: object, by: Callable[[Any, StoppedFor, Any], None]
) -> None:
    """Read a loop; by places, if it makes the list longer that it goes through.

    Args:
        run: the reading.
        node: the loop.
        over: what it goes through.
        by: what reads it otherwise.
    """
    if type(over) is not RunList or not isinstance(node.iter, ast.Name | ast.Attribute):
        by(run, node, over)
        return
    saved = Saved(run)
    try:
        with watched(run.tracer, Around.BRANCH):
            by(run, node, over)
        return
    except Grows as problem:
        if problem.own is not over:
            raise
    saved.restore(run)
    over.iterated -= 1
    try:
        run.block(_by_places(node))
    finally:
        over.iterated += 1


def _by_places(node: StoppedFor) -> list[ast.stmt]:
    name = f"__at_{node.lineno}_{node.col_offset}"
    read, place = ast.Name(name, ast.Load()), ast.Name(name, ast.Store())
    length = ast.Call(ast.Name("len", ast.Load()), [node.iter], [])
    body: list[ast.stmt] = [
        ast.Assign([node.target], ast.Subscript(node.iter, read, ast.Load())),
        ast.AugAssign(place, ast.Add(), ast.Constant(1)),
        *node.body,
    ]
    test = ast.Compare(read, [ast.Lt()], [length])
    made: list[ast.stmt] = [
        ast.Assign([place], ast.Constant(0)),
        StoppedWhile(test, body, stops=node.stops),
    ]
    return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in made]
