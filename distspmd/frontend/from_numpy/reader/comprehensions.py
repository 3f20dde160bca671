"""Comprehensions: their values, one by one, or loops where the run decides how many there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.known_keys import OF_RUN
from distspmd.frontend.from_numpy.lists.run_lists import DecidedByRun, site_of
from distspmd.frontend.from_numpy.reader import operators
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.jumps import StoppedFor
from distspmd.frontend.from_numpy.reader.mutation import Around, watched
from distspmd.frontend.from_numpy.reader.ranges import Enumerated, by_index, static_values
from distspmd.frontend.from_numpy.reader.registry import expression


@expression(ast.ListComp, ast.GeneratorExp, ast.SetComp)
def _comprehension(run: Context, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    with _own_variables(run, node.generators):
        return _values(run, node)


def _values(run: Context, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    found: Any = []
    site = site_of(run.tracer, node)
    saved = Saved(run)
    try:
        with _seen(run, node, found), watched(run.tracer, Around.BRANCH):
            for _ in _generated(run, node.generators):
                if len(found) == run.tracer.lists.written_out and has_data(found):
                    run.tracer.lists.keeps_loop = True
                    raise _OfRun
                value = (run.present if node is run.computed_with else run.value)(node.elt)
                if isinstance(value, Tensor) and not isinstance(value, View):
                    value = run.tracer.settled(value) if run.tracer.map.straight is None else value
                found.append(value)
        if isinstance(node, ast.SetComp):
            if has_data(found):
                for_python(run, "set")
            found = set(found)
    except _OfRun as why:
        is_list = isinstance(why, _OfGenerator) and not isinstance(node, ast.SetComp)
        if site not in run.tracer.lists.known_lists and not is_list:
            raise DecidedByRun(site) from None
        saved.restore(run)
        found = _by_loops(run, node, site)
    return found


@contextmanager
def _seen(run: Context, node: ast.expr, values: list[Any]) -> Iterator[None]:
    """Let values that are read so far be a variable's, whose arrays no other value takes over."""
    name = _name_of(node)
    run.variables[name] = values
    try:
        yield
    finally:
        run.variables.pop(name, None)


def _name_of(node: ast.expr) -> str:
    return f"__made_{node.lineno}_{node.col_offset}"


@contextmanager
def _own_variables(run: Context, generators: Sequence[ast.comprehension]) -> Iterator[None]:
    """Let a comprehension have variables of its own; functions made in it see their last values."""
    frame, before = run.tracer.frames[-1], dict(run.variables)
    scope: dict[str, Any] = {}
    frame.comprehensions.append(scope)
    try:
        yield
    finally:
        frame.comprehensions.pop()
        for name in {n for each in generators for n in _stored_names(each.target)}:
            if name in run.variables:
                scope[name] = run.variables.pop(name)
            if name in before:
                run.variables[name] = before[name]


class _OfRun(Exception):
    """The run decides how many values a comprehension has."""


class _OfGenerator(_OfRun):
    """A comprehension is over a generator, whose steps are between its own."""


def _by_loops(
    run: Context, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, site: object
) -> Any:
    """A comprehension over a generator, or of a length that the run decides, as loops."""
    is_set = isinstance(node, ast.SetComp)
    name = _name_of(node)
    if site in run.tracer.lists.known_lists:
        run.variables[name] = lists.made_of(run, site, set if is_set else list, [])
    else:
        first: list[Any] = []
        run.variables[name] = first
        run.tracer.lists.born[id(first)] = first, site
    add = ast.Attribute(ast.Name(name, ast.Load()), "add" if is_set else "append", ast.Load())
    _run_loops(run, node, ast.Expr(ast.Call(add, [node.elt], [])))
    return run.variables.pop(name)


def _run_loops(run: Context, node: Any, inner: ast.stmt) -> None:
    """Read the loops of a comprehension around a statement."""
    body: list[ast.stmt] = [inner]
    for each in reversed(node.generators):
        for test in reversed(each.ifs):
            body = [ast.If(test, body, [])]
        body = [StoppedFor(each.target, each.iter, body, stops=())]
    (made,) = body
    ast.fix_missing_locations(ast.copy_location(made, node))
    run.statement(made)


@expression(ast.DictComp)
def _dict_comprehension(run: Context, node: ast.DictComp) -> Any:
    site = site_of(run.tracer, node)
    saved = Saved(run)
    try:
        with _own_variables(run, node.generators):
            if site in run.tracer.lists.known_lists:
                return _dict_by_loops(run, node, site)
            pairs: list[Any] = []
            with _seen(run, node, pairs), watched(run.tracer, Around.BRANCH):
                for _ in _generated(run, node.generators):
                    pair = run.value(node.key), run.value(node.value)
                    pairs.append(pair)
            if not has_data([key for key, _ in pairs]):
                return dict(pairs)
            if run.tracer.loops:
                raise CannotRoll(OF_RUN.format("gets"))
    except _OfRun:
        pass
    saved.restore(run)
    raise DecidedByRun(site)


def _dict_by_loops(run: Context, node: ast.DictComp, site: object) -> Any:
    """A dictionary whose keys the run decides: loops that add to an empty one."""
    name = _name_of(node)
    run.variables[name] = lists.made_of(run, site, dict, [])
    entry = ast.Subscript(ast.Name(name, ast.Load()), node.key, ast.Store())
    _run_loops(run, node, ast.Assign([entry], node.value))
    return run.variables.pop(name)


def _generated(run: Context, generators: Sequence[ast.comprehension]) -> Iterator[None]:
    if not generators:
        yield None
        return
    first, *rest = generators
    over = run.value(first.iter)
    counted = by_index(run, over)
    if counted is not None and not isinstance(counted[0], int):
        raise _OfRun
    for value in _known_values(run, over):
        _bind(run, first.target, value)
        tests = [run.truth(operators.tested(run, run.value(test))) for test in first.ifs]
        if any(t is None for t in tests):
            raise _OfRun
        if all(tests):
            yield from _generated(run, rest)


def _known_values(run: Context, over: Any) -> Iterator[Any]:
    each = over.values if isinstance(over, Enumerated) else over
    is_read = isinstance(each, Generator) and each.rest is None
    try:
        yield from static_values(run, over)
    except (CannotRoll, Refusal):
        if not is_read:
            raise
        each.has_begun = False
        raise _OfGenerator from None


def _bind(run: Context, target: ast.expr, value: object) -> None:
    """Give a variable its value; a number is not stored, since it is used before it is given anew.

    In one container, each would take the place of the one before, which a list may still have.
    """
    if isinstance(target, ast.Name) and isinstance(value, Tensor) and not value.ndim:
        run.variables[target.id] = value
        return
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else None
    starred = any(isinstance(each, ast.Starred) for each in parts or ())
    if parts is not None and type(value) is tuple and len(value) == len(parts) and not starred:
        for each, part in zip(parts, value, strict=True):
            _bind(run, each, part)
        return
    run.bind(target, value)


def _stored_names(target: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
