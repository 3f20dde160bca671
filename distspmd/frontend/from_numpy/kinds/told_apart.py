"""Statements that compute with one of several things: a branch reads them once for each.

before -> after, of ``x`` that is 0 or an array, of ``rules`` that is a list of functions, and
of ``label`` that is one of two texts::

    y = x + b                if x is 0: y = 0 + b
                             else: y = array + b
    y = rules[k](x)          if k == 0: y = rules[0](x)
                             elif k == 1: y = rules[1](x)
    counts[label] += 1       if label == "a": counts["a"] += 1
                             else: counts["b"] += 1
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import UNBOUND, OneOf, Saved, Undecided
from distspmd.frontend.from_numpy.lists.known_keys import ReadsText
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.mutation import Around, watched
from distspmd.frontend.from_numpy.reader.texts import Choice, Text, known_choice

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


def refuse(run: Context, choice: Undecided) -> NoReturn:
    """Refuse to compute with one of several things, unless a statement around tells them apart.

    Raises:
        ReadsChoice: it is known which things.
        Refusal: it is not.
    """
    if not isinstance(choice, OneOf):
        run.tracer.refuse(choice.reason)
    raise ReadsChoice(run.tracer.message(choice.reason), choice)


def look_for_entry(
    run: Context, node: ast.Subscript, base: Any, key: Any, *, is_written: bool = False
) -> None:
    """Let a statement be read once for each entry of a known list or dictionary of functions, say.

    Args:
        run: the reading.
        node: the expression ``base[key]``.
        base: a list or dictionary; nothing happens where it holds numbers, arrays or texts, but
            for a dictionary that has each of the texts that the key may be.
        key: what the expression in brackets is; nothing happens where it is known.
        is_written: whether the entry gets another value.

    Raises:
        ReadsEntry: the statement around is read anew.
    """
    is_known = not isinstance(key, Text) and not has_data(key)
    texts = _texts_in(base, key)
    if texts and not is_written and _are_plain([base[text] for text in texts]):
        return  # of these a number or a text is made without
    if (
        is_known
        or not (texts or _holds_others(base))
        or any(_may_change(run, part) for part in ast.walk(node.slice))
    ):
        return
    is_dict = isinstance(base, dict)
    every = texts or ([*base] if is_dict else [*range(len(base))])
    keys = [(k,) if is_dict else (k, k - len(base)) for k in every]
    if len(keys) <= MOST and all(isinstance(k, str | int) for k in every):
        told = "one of several things, by a key that is not known before the run"
        if run.tracer.guarded:  # the statement would look for the key where Python does not
            run.tracer.refuse(told)
        values = [base[k] for k in every]
        raise ReadsEntry(run.tracer.message(told), node, keys, values, key)


def look_for_text(run: Context, node: ast.Subscript, base: Any, key: Any) -> None:
    """The same of an entry that is written, by a key that is one of several texts."""
    if isinstance(key, Text):
        look_for_entry(run, node, base, key, is_written=True)


def _are_plain(values: Sequence[Any]) -> bool:
    """Whether values are texts, or numbers of one type of Python."""
    kinds = {type(value) for value in values}
    return kinds == {str} or (len(kinds) == 1 and kinds <= {bool, int, float})


def _texts_in(base: Any, key: Any) -> list[Any]:
    """The texts that a key may be, if a dictionary has all of them."""
    choice = known_choice(key)
    if choice is None or type(base) is not dict or not {*choice.texts} <= base.keys():
        return []
    return list(dict.fromkeys(choice.texts))


def _holds_others(base: Any) -> bool:
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


def read(run: Context, node: ast.stmt, by: Callable[[Any, Any], None]) -> None:
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
        if run.told_apart >= DEEPEST or saved.bounds.get(str(which)) != (0, 1):
            raise
        test: Any = sympy.Ne(which, 0)
        made: list[ast.stmt] = [ast.If(ast.Constant(test), [node], [node])]
    except ReadsEntry as entry:
        if run.told_apart >= DEEPEST:
            raise
        made = _by_keys(node, entry)
    except ReadsText as problem:
        names = _names_of(run, node, problem.choice)
        if run.told_apart >= DEEPEST or not names:
            raise
        made = _by_texts(node, names, problem.choice.texts)
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


def _names_of(run: Context, node: ast.stmt, choice: Choice) -> list[str]:
    """The variables of a statement that are one of several texts."""
    names, _ = run.names_of_statements[node]
    found = {name: known_choice(run.variables.get(name)) for name in names}
    return sorted(name for name, each in found.items() if each is choice)


def _by_texts(node: ast.stmt, names: Sequence[str], texts: Sequence[str]) -> list[ast.stmt]:
    """A statement once for each of the texts that variables may be, all of them the same."""
    chain: list[ast.stmt] = []
    for text in reversed(texts):
        to: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        body: list[ast.stmt] = [ast.Assign(to, ast.Constant(text)), copy.deepcopy(node)]
        test = ast.Compare(ast.Name(names[0], ast.Load()), [ast.Eq()], [ast.Constant(text)])
        chain = [ast.If(test, body, chain)] if chain else body
    return chain


def _may_be_told_apart(run: Context, node: ast.stmt) -> bool:
    """Whether a statement reads what may be one of several things."""
    found = run.names_of_statements.get(node)
    if found is None:
        parts = [*ast.walk(node)]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        run.names_of_statements[node] = found = names, {*map(_base_of_entry, parts)}
    names, bases = found
    known = run.variables
    return any(_holds_choice(known.get(name)) for name in names) or any(
        _holds_others(base) or _has_names(base)
        for base in (_value_at(known, place) for place in bases)
    )


def _base_of_entry(part: ast.AST) -> tuple[str, ...]:
    """Of what a part of a statement reads an entry by a key: ``x`` or ``x.y``."""
    if isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Constant):
        match part.value:
            case ast.Name(name):
                return (name,)
            case ast.Attribute(ast.Name(name), attribute):
                return name, attribute
    return ()


def _value_at(known: Mapping[str, Any], place: tuple[str, ...]) -> Any:
    """What a variable is, or an attribute of one that is an object; None of others."""
    found = known.get(place[0]) if place else None
    if len(place) < 2:
        return found
    return vars(found).get(place[1]) if objects.is_own(found) else None


def _has_names(value: Any) -> bool:
    """Whether a value is a dictionary of a few texts."""
    return type(value) is dict and 0 < len(value) <= LONGEST and all(type(k) is str for k in value)


def _holds_choice(value: Any) -> bool:
    """Whether a value is a choice, or a record with one."""
    if isinstance(value, OneOf):
        return value.values[0] is not UNBOUND
    if known_choice(value) is not None:
        return True
    if isinstance(value, tuple | list) or type(value) is dict:
        parts = value.values() if isinstance(value, dict) else value
        return len(value) <= LONGEST and any(isinstance(part, OneOf) for part in parts)
    return objects.is_own(value) and any(isinstance(p, OneOf) for p in vars(value).values())
