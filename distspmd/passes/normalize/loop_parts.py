"""A loop in which one iteration is all that the others need becomes three.

before -> after:  ``for j: d[i, j] = min(d[i, j], d[i, k] + d[k, j])``  ->  the same for ``j`` below
``k``, for ``k``, and above. Only iteration ``k`` writes what the others read, so the first and the
last of the three have no order. Shortest paths between all pairs are such loops.
"""

from __future__ import annotations

import copy
from collections.abc import Collection

import sympy
from dace.properties import CodeBlock
from dace.sdfg.state import LoopRegion

from distspmd.analysis.accesses import bound_around_loop, loops_around
from distspmd.analysis.dependences import LoopRange, accesses_of, first_dependence, is_place
from distspmd.passes.normalize.loop_dimensions import MANY, replace_loop


def part_loop(loop: LoopRegion, values: LoopRange, own: Collection[str]) -> list[LoopRegion]:
    """Replace a loop by three, in place; these, or none where that does not help.

    Args:
        loop: iterations of it have an order.
        values: of its variable.
        own: names of which each iteration makes its own value.
    """
    count = values.count
    if values.step != 1 or count is None or (count.is_Integer and count < MANY):
        return []
    outer = [str(each.loop_variable) for each in loops_around(loop) if each.loop_variable]
    places = {
        str(d.first)
        for access in accesses_of(loop)
        for d in access.dimensions
        if d is not None and d.first == d.last and isinstance(d.first, sympy.Symbol)
    }
    scope = bound_around_loop(loop)
    for name in sorted(places & set(outer)):
        place = sympy.Symbol(name)
        if not is_place(place - values.first, count, scope):
            continue
        ends = [(values.first, place - 1), (place, place), (place + 1, values.last)]
        apart = (first_dependence(loop, LoopRange(*ends[n], 1), own) for n in (0, 2))
        if all(found is None for found in apart):
            return _parts(loop, ends)
    return []


def _parts(loop: LoopRegion, ends: list[tuple[sympy.Expr, sympy.Expr]]) -> list[LoopRegion]:
    name = loop.loop_variable
    found = []
    for number, (first, last) in enumerate(ends):
        length = sympy.expand(sympy.sympify(f"{last} - ({first})"))  # symbols without assumptions
        if length.is_Integer and length < 0:
            continue
        part = copy.deepcopy(loop)
        part.label = f"{loop.label}_{number}"
        part.init_statement = CodeBlock(f"{name} = {first}")
        part.loop_condition = CodeBlock(f"{name} <= {last}")
        found.append(part)
    replace_loop(loop, found)
    return found
