"""Patterns of ``match``: as a condition, and what a subject that fulfils it gives names to."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Sequence
from typing import Any

NOT_COVERED = "a pattern of match with ** or with names in alternatives"
"""What the name of a pattern says that is refused."""

Match = tuple[ast.expr, list[ast.stmt]]
_OF_ITSELF = frozenset(
    [
        *("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str"),
        "tuple",
    ]
)
"""Classes of which the one pattern in parentheses is of the subject itself."""


def matches(pattern: ast.pattern, subject: ast.expr) -> Match:
    """Whether a subject matches a pattern, and what it binds."""
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(subject, [ast.Eq()], [pattern.value]), []
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]), []
    if isinstance(pattern, ast.MatchOr):
        found = [matches(each, subject) for each in pattern.patterns]
        if not any(bound for _, bound in found):
            return ast.BoolOp(ast.Or(), [test for test, _ in found]), []
    if isinstance(pattern, ast.MatchAs):
        return _named(pattern, subject)
    if isinstance(pattern, ast.MatchSequence):
        return _of_sequence(pattern, subject)
    if isinstance(pattern, ast.MatchMapping) and pattern.rest is None:
        tests = [_call(isinstance, subject, _known(dict))]
        tests += [ast.Compare(key, [ast.In()], [subject]) for key in pattern.keys]
        parts = [ast.Subscript(subject, key, ast.Load()) for key in pattern.keys]
        return _all(tests, pattern.patterns, parts)
    if isinstance(pattern, ast.MatchClass):
        return _of_class(pattern, subject)
    return ast.copy_location(ast.Name(NOT_COVERED, ast.Load()), pattern), []


def _named(pattern: ast.MatchAs, subject: ast.expr) -> Match:
    test: ast.expr = ast.Constant(True)
    bound: list[ast.stmt] = []
    if pattern.pattern is not None:
        test, bound = matches(pattern.pattern, subject)
    return test, [*bound, *_bound(pattern.name, subject, pattern)]


def _of_sequence(pattern: ast.MatchSequence, subject: ast.expr) -> Match:
    """``[a, *rest, b]``: a list or a tuple, of which a star takes what is between."""
    every = pattern.patterns
    stars = [n for n, each in enumerate(every) if isinstance(each, ast.MatchStar)]
    length = ast.Constant(len(every) - len(stars))
    op: ast.cmpop = ast.GtE() if stars else ast.Eq()
    tests: list[ast.expr] = [
        _call(isinstance, subject, _known((list, tuple, range, deque))),
        ast.Compare(_call(len, subject), [op], [length]),
    ]
    first = stars[0] if stars else len(every)
    places = [*range(first), *range(first + 1 - len(every), 0)]
    parts: list[ast.expr] = [ast.Subscript(subject, ast.Constant(n), ast.Load()) for n in places]
    others = [each for each in every if not isinstance(each, ast.MatchStar)]
    test, bound = _all(tests, others, parts)
    for star in (every[n] for n in stars):
        end = ast.Constant(first + 1 - len(every)) if first + 1 < len(every) else None
        between = ast.Subscript(subject, ast.Slice(ast.Constant(first), end), ast.Load())
        bound += _bound(getattr(star, "name", None), _call(list, between), pattern)
    return test, bound


def _of_class(pattern: ast.MatchClass, subject: ast.expr) -> Match:
    """``Circle(r, centre=c)``: an object, by its attributes."""
    kind = pattern.cls
    tests: list[ast.expr] = [_call(isinstance, subject, kind)]
    if isinstance(kind, ast.Name) and kind.id in _OF_ITSELF:
        return _all(tests, pattern.patterns, [subject] * len(pattern.patterns))
    own = ast.Attribute(kind, "__match_args__", ast.Load())
    names: list[ast.expr] = [
        ast.Subscript(own, ast.Constant(n), ast.Load()) for n in range(len(pattern.patterns))
    ]
    names += [ast.Constant(name) for name in pattern.kwd_attrs]
    tests += [_call(hasattr, subject, name) for name in names]
    parts = [_call(getattr, subject, name) for name in names]
    return _all(tests, [*pattern.patterns, *pattern.kwd_patterns], parts)


def _all(
    tests: Sequence[ast.expr], patterns: Sequence[ast.pattern], parts: Sequence[ast.expr]
) -> Match:
    """Whether tests hold, and parts match patterns."""
    inner = [matches(each, part) for each, part in zip(patterns, parts, strict=True)]
    every = [*tests, *(test for test, _ in inner)]
    bound = [statement for _, own in inner for statement in own]
    return (every[0] if len(every) == 1 else ast.BoolOp(ast.And(), every)), bound


def bound_in_test(statement: ast.stmt) -> ast.expr:
    """What a pattern binds, within a condition whose later parts read it."""
    assert isinstance(statement, ast.Assign)
    (target,) = statement.targets
    assert isinstance(target, ast.Name)
    named = ast.NamedExpr(target, statement.value)
    return ast.Compare(named, [ast.IsNot()], [_known(_NEVER)])


_NEVER: Any = object()


def _known(value: Any) -> ast.expr:
    """Something of Python's own, by whatever names the program calls it."""
    return ast.Constant(value)


def _call(function: object, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_known(function), list(arguments), [])


def _bound(name: str | None, value: ast.expr, like: ast.AST) -> list[ast.stmt]:
    if name is None:
        return []
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return [ast.fix_missing_locations(ast.copy_location(made, like))]
