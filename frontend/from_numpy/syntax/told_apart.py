"""Statements that compute with one of several things: a branch reads them once for each.

before -> after, of ``x`` that is 0 or an array, and of ``rules`` that is a list of functions::

    y = x + b                if x is 0: y = 0 + b
                             else: y = array + b
    y = rules[k](x)          if k == 0: y = rules[0](x)
                             elif k == 1: y = rules[1](x)
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import sympy

from distspmd.frontend.from_numpy.kinds import has_data
from distspmd.frontend.from_numpy.syntax import objects
from distspmd.frontend.from_numpy.syntax.mutation import Around, watched
from distspmd.frontend.from_numpy.syntax.variables import UNBOUND, OneOf, Saved, Undecided
from distspmd.frontend.from_numpy.texts import Text
from distspmd.frontend.from_numpy.transcript import Refusal

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter

DEEPEST = 6
"""Choices that are told apart for one statement, at most."""
MOST = 8
"""Entries of a list or dictionary that are told apart, at most."""
LONGEST = 64
"""Parts of a list or dictionary that is looked at for choices, at most."""
KEY = "__key"
"""The variable that holds the key of such an entry."""


class ReadsChoice(Refusal):
    """A statement computes with one of several things.

    Attributes:
        choice: which it is.
    """

    def __init__(self, message: str, choice: OneOf) -> None:
        super().__init__(message)
        self.choice = choice


class ReadsEntry(Refusal):
    """A statement reads one of several known things, by a key of the run.

    Attributes:
        node: the expression that reads it.
        keys: all that the key may be; of an index also those from the end.
    """

    def __init__(self, message: str, node: ast.Subscript, keys: list[tuple[Any, ...]]) -> None:
        super().__init__(message)
        self.node, self.keys = node, keys


def refuse(run: Interpreter, choice: Undecided) -> NoReturn:
    """Refuse to compute with one of several things, unless a statement around tells them apart.

    Raises:
        ReadsChoice: it is known which things.
        Refusal: it is not.
    """
    if not isinstance(choice, OneOf):
        run.tracer.refuse(choice.reason)
    raise ReadsChoice(run.tracer.message(choice.reason), choice)


def look_for_entry(run: Interpreter, node: ast.Subscript, base: Any, key: Any) -> None:
    """Let a statement be read once for each entry of a known list or dictionary of functions, say.

    Args:
        run: the reading.
        node: the expression ``base[key]``.
        base: a list or dictionary; nothing happens where it holds numbers, arrays or texts.
        key: what the expression in brackets is; nothing happens where it is known.

    Raises:
        ReadsEntry: the statement around is read anew.
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
        told = "one of several functions or objects, by a key that is not known before the run"
        if run.tracer.guarded:  # the statement would look for the key where Python does not
            run.tracer.refuse(told)
        raise ReadsEntry(run.tracer.message(told), node, keys)


def _holds_others(base: Any) -> bool:
    """Whether a list or dictionary holds functions or objects."""
    if not isinstance(base, list | tuple) and type(base) is not dict:
        return False
    values = base.values() if isinstance(base, dict) else base
    return bool(base) and all(callable(v) or objects.is_own(v) for v in values)


def _may_change(run: Interpreter, part: ast.AST) -> bool:
    """Whether a part of a key may change something: a call of what is not Python's or NumPy's."""
    if not isinstance(part, ast.Call):
        return isinstance(part, ast.NamedExpr)
    if isinstance(part.func, ast.Name):
        return not hasattr(builtins, part.func.id)
    module = part.func.value if isinstance(part.func, ast.Attribute) else None
    known = run.variables.get(module.id) if isinstance(module, ast.Name) else None
    return known is not np and known is not math


def read(run: Interpreter, node: ast.stmt, by: Callable[[Any, Any], None]) -> None:
    """Read a statement; once for each of two things, if it computes with one that is either.

    Args:
        run: the reading.
        node: the statement.
        by: what reads it.
    """
    tracer = run.tracer
    is_straight = tracer.straight is not None or tracer.guarded or tracer.parallel
    if is_straight or not _may_be_told_apart(run, node):
        by(run, node)
        return
    saved = Saved.of(run)
    try:
        with watched(tracer, Around.BRANCH):
            by(run, node)
        return
    except ReadsChoice as problem:
        which = problem.choice.which
        if run.told_apart >= DEEPEST or tracer.bounds.get(str(which)) != (0, 1):
            raise
        test: Any = sympy.Ne(which, 0)
        made: list[ast.stmt] = [ast.If(ast.Constant(test), [node], [node])]
    except ReadsEntry as entry:
        if run.told_apart >= DEEPEST:
            raise
        made = _by_keys(node, entry)
    saved.restore(run)
    run.told_apart += 1
    try:
        run.block([ast.fix_missing_locations(ast.copy_location(each, node)) for each in made])
    finally:
        run.told_apart -= 1
        run.variables.pop(KEY, None)


def _by_keys(node: ast.stmt, entry: ReadsEntry) -> list[ast.stmt]:
    """A statement once for each key of an entry that it reads."""
    given, key = entry.node.slice, ast.Name(KEY, ast.Load())
    error = "KeyError" if len(entry.keys[0]) == 1 else "IndexError"
    chain: list[ast.stmt] = [ast.Raise(ast.Name(error, ast.Load()))]
    for keys in reversed(entry.keys):
        tests: list[ast.expr] = [ast.Compare(key, [ast.Eq()], [ast.Constant(k)]) for k in keys]
        entry.node.slice = ast.copy_location(ast.Constant(keys[0]), given)
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        chain = [ast.If(test, [copy.deepcopy(node)], chain)]
    entry.node.slice = given
    return [ast.Assign([ast.Name(KEY, ast.Store())], given), *chain]


def _may_be_told_apart(run: Interpreter, node: ast.stmt) -> bool:
    """Whether a statement reads what may be one of several things."""
    found = run.names_of_statements.get(node)
    if found is None:
        parts = [*ast.walk(node)]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        run.names_of_statements[node] = found = names, {*map(_base_of_entry, parts)}
    names, bases = found
    known = run.variables
    return any(_holds_choice(known.get(name)) for name in names) or any(
        _holds_others(known.get(name)) for name in bases
    )


def _base_of_entry(part: ast.AST) -> str:
    """The variable of which a part of a statement reads an entry, if the key is no constant."""
    match part:
        case ast.Subscript(ast.Name(name), key) if not isinstance(key, ast.Constant):
            return str(name)
    return ""


def _holds_choice(value: Any) -> bool:
    """Whether a value is a choice, or a record with one."""
    if isinstance(value, OneOf):
        return value.values[0] is not UNBOUND
    if isinstance(value, tuple | list) or type(value) is dict:
        parts = value.values() if isinstance(value, dict) else value
        return len(value) <= LONGEST and any(isinstance(part, OneOf) for part in parts)
    return objects.is_own(value) and any(isinstance(p, OneOf) for p in vars(value).values())
