"""Loops in loops: ``np.ndindex``, ``np.ndenumerate`` and ``itertools.product`` in a ``for``, maps.

before -> after:  ``for (i, j), v in np.ndenumerate(t): ...``  ->  ``for i in range(t.shape[0]):
for j in range(t.shape[1]): v = t[i, j]; ...``, of which each may stay a loop.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.jumps import StoppedFor
from distspmd.frontend.from_numpy.reader.ranges import Places, SymbolicRange
from distspmd.frontend.tensor_ir.whole_numbers import Whole


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
