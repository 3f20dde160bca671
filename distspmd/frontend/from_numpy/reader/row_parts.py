"""Parts of rows in loops: ``y[i] = data[first[i]:first[i + 1]].sum()`` reads its part alone.

The run decides the lengths of such parts, so that arrays of them have room for the whole array
elsewhere, which each iteration of a loop would go through. Here a scope of one iteration computes
with them: its arrays are as long as the part. It has a number that is computed of parts, an
assignment to a part of an array, or, where an array of a part gets a name, the rest of the body.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import cast
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, PartOfRow, Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, make_view
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.reader import scopes
from distspmd.frontend.from_numpy.reader.bindings import bound_names, is_written_first
from distspmd.frontend.from_numpy.reader.map_indices import add_checks, noted
from distspmd.frontend.from_numpy.reader.mutation import Around, watched
from distspmd.frontend.tensor_ir.statements import Block, Parameter, Scope, Store

_SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign


Read = Callable[[Context, Any], None]
"""What reads a statement."""


def statement(run: Context, node: ast.stmt, read: Read) -> None:
    """Read a statement, which may turn out to compute with a part of a row.

    Raises:
        PartOfRow: it does so, and cannot have a scope of its own.
    """
    if not run.tracer.takes_rows or not isinstance(node, _SIMPLE):
        read(run, node)
        return
    saved = Saved(run)
    try:
        read(run, node)
        return
    except PartOfRow as problem:
        found = problem
    for attempt in (_in_scope, functools.partial(_with_number, read)):
        saved.restore(run)
        run.tracer.node = node
        if _succeeds(run, attempt, node):
            return
    saved.restore(run)
    raise found


def _succeeds(run: Context, attempt: Callable[[Context, Any], bool], node: Any) -> bool:
    """Whether something can be read in a scope of its own."""
    tracer = run.tracer
    tracer.in_row = tracer.program.block, tracer.inner
    try:
        return attempt(run, node)
    except (CannotRoll, Refusal):
        tracer.nest.check_settled()
        return False
    finally:
        tracer.in_row = None


def body(run: Context, statements: Sequence[ast.stmt]) -> None:
    """Read the body of a loop; what is left of it in one scope where parts of rows get names."""
    tracer = run.tracer
    with tracer.taking_rows():
        for n, node in enumerate(statements):
            saved = Saved(run)
            try:
                run.statement(node)
                continue
            except PartOfRow:
                saved.restore(run)
            rest = statements[n:]
            if _is_closed(run, rest) and _succeeds(run, _rest_in_scope, rest):
                return
            saved.restore(run)
            with tracer.taking_rows(False):
                run.statement(node)


# -- numbers --------------------------------------------------------------------------------------


def _with_number(
    read: Read, run: Context, node: ast.Assign | ast.AnnAssign | ast.AugAssign
) -> bool:
    """Read a statement whose value is a number, which a scope computes; False for others."""
    if node.value is None:
        return False
    value = _number(run, node.value)
    if value is None:
        return False
    made = copy.copy(node)
    known: Any = value
    made.value = ast.copy_location(ast.Constant(known), node.value)
    read(run, made)
    return True


def _number(run: Context, node: ast.expr) -> View | None:
    """The number that a scope computes; None where it is something else."""
    tracer, block = run.tracer, Block()
    with _scope(run) as (once, own):
        with tracer.within(block), noted(tracer) as indices:
            value = run.value(node)
        add_checks(tracer, indices, [once])
        if isinstance(value, bool | int | float | complex | np.generic) or not _is_number(value):
            return None
        tensor = tracer.tensor(value)
    found = tracer.container(tracer.target or "part", (), tensor.dtype)
    store = Store(found, (), cast(tensor.element(()), tensor.dtype))
    with tracer.within(block):
        tracer.kernel([store], (), found.name)
    tracer.add(Scope(f"part_{node.lineno}", (once,), block, frozenset(own)))
    tracer.known.rows.add(found)
    return make_view(found, (), (), weak=tensor.weak)


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        plain = value.run_type is None and not value.is_mixed and value.mask is None
        return not value.ndim and plain
    return isinstance(value, sympy.Basic)


@contextmanager
def _scope(run: Context) -> Iterator[tuple[Parameter, set[str]]]:
    """Read what a scope of one iteration runs: its parameter, and the names of its containers."""
    tracer, own = run.tracer, set[str]()
    once = Parameter(tracer.unique_index("__once"), 0, 1)
    tracer.map.own.append(own)
    tracer.map.parallel.append((len(tracer.map.own) - 1, [once.name]))
    tracer.known.bounds[once.name] = (0, 0)
    try:
        with watched(tracer, Around.MAP):
            yield once, own
    finally:
        tracer.map.own.pop()
        tracer.map.parallel.pop()


# -- statements -----------------------------------------------------------------------------------


def _in_scope(run: Context, node: ast.stmt) -> bool:
    """Read an assignment to parts of arrays in a scope; False for other statements."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not all(isinstance(target, ast.Subscript) for target in targets):
        return False
    return _rest_in_scope(run, [node])


def _rest_in_scope(run: Context, statements: Sequence[ast.stmt]) -> bool:
    """Read statements in a scope, behind which nothing reads the variables that they bind."""
    outside = dict(run.variables)
    target = ast.Name("__once", ast.Store())
    loop = ast.For(target, ast.Constant(None), list(statements), [])
    ast.fix_missing_locations(ast.copy_location(loop, statements[0]))
    scopes.map_loop(run, loop, [(0, 1, 1)])
    for name in bound_names(loop):
        run.tracer.map.of_maps.pop(name, None)
        run.variables.pop(name, None)
        if name in outside:
            run.variables[name] = outside[name]
    return True


def _is_closed(run: Context, rest: Sequence[ast.stmt]) -> bool:
    """Whether variables that the end of a loop's body binds are read there alone, once bound."""
    within = {part for each in rest for part in ast.walk(each)}
    if any(isinstance(part, _LEAVING) for part in within):
        return False
    loop = ast.For(ast.Name("__once", ast.Store()), ast.Constant(None), list(rest), [])
    bound = bound_names(loop)
    if any(name.startswith("__") or not is_written_first(loop, name) for name in bound):
        return False
    return not any(_reads_others(each, within, bound) for each in run.tracer.frames[-1].body)


_LEAVING = ast.Return | ast.Break | ast.Continue | ast.Yield | ast.YieldFrom | ast.Nonlocal


def _reads_others(node: ast.stmt, within: set[ast.AST], bound: set[str]) -> bool:
    """Whether a statement reads a variable that a part of it or another one may have left."""
    parts = [*ast.walk(node)]
    reads = {
        part.id
        for part in parts
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part not in within
    }
    found = reads & bound
    is_apart = not any(isinstance(part, ast.stmt) and part in within for part in parts)
    if is_apart and isinstance(node, ast.For):
        found = {name for name in found if not is_written_first(node, name)}
    return bool(found)
