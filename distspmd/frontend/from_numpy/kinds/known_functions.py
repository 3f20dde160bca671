"""Calls of one of several known functions, and attributes of one of several known objects.

Which one is decided by a key of the run: ``rules[k](x)``, ``shapes[k].area(t)``, ``nodes[k].mass``.
The key and the arguments are read once. A branch for each entry gives its value, and behind the
branches there is one value, so that what follows is read once, however many such calls there are.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Undecided
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.branches import branch
from distspmd.frontend.from_numpy.reader.texts import Text

_VALUE = "__chosen"
"""The variable that each way of such a branch sets."""
_KEY = "__chosen_by"
"""The variable that has the key until it is stored."""
_UNLIKE = (
    "what the entry gives that a key of the run chooses has another form for each entry; give "
    "numbers, or arrays of one shape, or write if and elif with a statement for each"
)


MOST = 8
"""Entries of a list or dictionary that are called by a key of the run, at most."""


class ReadsEntry(Refusal):
    """An expression reads one of several known things, by a key of the run.

    Attributes:
        node: the expression that reads it.
        keys: all that the key may be; of an index also those from the end.
        values: the entry of each.
        key: what it is.
    """

    def __init__(
        self,
        message: str,
        node: ast.Subscript,
        keys: list[tuple[Any, ...]],
        values: list[Any],
        key: Any,
    ) -> None:
        super().__init__(message)
        self.node, self.keys, self.values, self.key = node, keys, values, key


def look_for_entry(run: Context, node: ast.Subscript, base: Any, key: object) -> None:
    """Let what calls an entry of a known list or dictionary of functions do so for each entry.

    Args:
        run: the reading.
        node: the expression ``base[key]``.
        base: a list or dictionary; nothing happens where it holds numbers, arrays or texts.
        key: what the expression in brackets is; nothing happens where it is known.

    Raises:
        ReadsEntry: the call or the attribute around is read for each.
    """
    is_known = not isinstance(key, Text) and not has_data(key)
    if (
        is_known
        or not _holds_others(base)
        or any(_may_change(run, part) for part in ast.walk(node.slice))
    ):
        return
    is_dict = isinstance(base, dict)
    every = [*base] if is_dict else [*range(len(base))]
    keys = [(k,) if is_dict else (k, k - len(base)) for k in every]
    if len(keys) <= MOST and all(isinstance(k, str | int) for k in every):
        told = "one of several things, by a key that is not known before the run"
        if run.tracer.guarded:  # the statement would look for the key where Python does not
            run.tracer.refuse(told)
        values = [base[k] for k in every]
        raise ReadsEntry(run.tracer.message(told), node, keys, values, key)


def _holds_others(base: object) -> bool:
    """Whether a list or dictionary holds functions or objects."""
    if not isinstance(base, list | tuple) and type(base) is not dict:
        return False
    values = base.values() if isinstance(base, dict) else base
    return bool(base) and all(callable(v) or objects.is_own(v) for v in values)


def _may_change(run: Context, part: ast.AST) -> bool:
    """Whether a part of a key may change something: a call of what is not Python's or NumPy's."""
    if not isinstance(part, ast.Call):
        return isinstance(part, ast.NamedExpr)
    if isinstance(part.func, ast.Name):
        return not hasattr(builtins, part.func.id)
    module = part.func.value if isinstance(part.func, ast.Attribute) else None
    known = run.variables.get(module.id) if isinstance(module, ast.Name) else None
    return known is not np and known is not math


def called(
    run: Context,
    node: ast.Call,
    entry: ReadsEntry,
    argument: Callable[[Any, ast.expr], Any],
) -> Any:
    """What a call gives of which the run decides what is called.

    Args:
        run: the reading.
        node: the call.
        entry: what is called, or whose method is.
        argument: of what is called and an argument of it, what that is.

    Raises:
        ReadsEntry: it is something else, and the statement around is read for each.
    """
    ways = [_with(node.func, entry, value) for value in entry.values]
    if None in ways:
        raise entry
    is_plain = not any(isinstance(a, ast.Starred | ast.GeneratorExp) for a in node.args)
    is_plain = is_plain and all(keyword.arg is not None for keyword in node.keywords)
    arguments, keywords = list(node.args), list(node.keywords)
    key = _kept_key(run, entry)
    if is_plain:
        first = run.value(ways[0])  # type: ignore[arg-type]
        arguments = [_given(run, argument(first, part)) for part in arguments]
        keywords = [
            ast.keyword(each.arg, _given(run, argument(first, each.value))) for each in keywords
        ]
    calls = [ast.Call(way, arguments, keywords) for way in ways]  # type: ignore[arg-type]
    return _chosen(run, node, entry, key, calls)


def attribute(run: Context, node: ast.Attribute, entry: ReadsEntry) -> Any:
    """An attribute that is no method, of an object of which the run decides which one it is.

    Raises:
        ReadsEntry: it is something else, and a call or the statement around is read for each.
    """
    if node.value is not entry.node:
        raise entry
    if not all(objects.is_own(v) and node.attr in vars(v) for v in entry.values):
        raise entry
    ways = [_with(node, entry, value) for value in entry.values]
    return _chosen(run, node, entry, _kept_key(run, entry), ways)  # type: ignore[arg-type]


def _with(node: ast.expr, entry: ReadsEntry, value: Any) -> ast.expr | None:
    """An entry, or an attribute of it, with a value in its place; None for other expressions."""
    found: ast.expr = ast.Constant(value)
    if isinstance(node, ast.Attribute) and node.value is entry.node:
        found = ast.Attribute(found, node.attr, ast.Load())
    elif node is not entry.node:
        return None
    return ast.fix_missing_locations(ast.copy_location(found, node))


def _kept_key(run: Context, entry: ReadsEntry) -> ast.expr:
    """The key, which is read once."""
    if run.tracer.map.straight is not None:
        run.tracer.map.straight.leave()
    run.bind(ast.Name(_KEY, ast.Store()), entry.key)
    return ast.Constant(run.variables.pop(_KEY))


def _given(run: Context, value: Any) -> ast.expr:
    """An argument, which is read once."""
    if isinstance(value, Tensor) and not isinstance(value, View) and value.mask is None:
        value = run.tracer.settled(value)
    return ast.Constant(value)


def _chosen(
    run: Context,
    node: ast.expr,
    entry: ReadsEntry,
    key: ast.expr,
    ways: Sequence[ast.expr],
) -> Any:
    """The value of one of several expressions, each of which stands for a key."""
    error = "KeyError" if len(entry.keys[0]) == 1 else "IndexError"
    chain: ast.stmt = ast.Raise(ast.Name(error, ast.Load()))
    for keys, way in reversed(list(zip(entry.keys, ways, strict=True))):
        tests: list[ast.expr] = [ast.Compare(key, [ast.Eq()], [ast.Constant(k)]) for k in keys]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        chain = ast.If(test, [ast.Assign([ast.Name(_VALUE, ast.Store())], way)], [chain])
    assert isinstance(chain, ast.If)
    branch(run, ast.fix_missing_locations(ast.copy_location(chain, node)))
    found = run.variables.pop(_VALUE)
    return replace(found, reason=_UNLIKE) if isinstance(found, Undecided) else found
