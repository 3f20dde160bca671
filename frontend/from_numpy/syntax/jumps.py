"""``break``, ``continue`` and early ``return`` become flags, and blocks that run unless one is set.

before -> after:  ``if c: return a``; rest  ->  ``if c: result = a`` ``else:`` rest.
In loops:  ``if c: break``; rest  ->  ``if c: stop = True`` ``else:`` rest, and the loop goes on
until ``stop``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

RESULT = "__result"
DONE = "__done"
STOPS = "distspmd_stops"
"""Attribute of a loop: names of the flags that end it."""


@dataclass
class _Jumps:
    """Flags that a block may set, and whether it always sets one."""

    flags: set[str] = field(default_factory=set)
    always: bool = False


def without_jumps(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body of a function, which assigns what it returns to :data:`RESULT`."""
    return _Rewriter().block(function.body, [])[0]


class _Rewriter:
    def __init__(self) -> None:
        self.count = 0

    def block(
        self, statements: Sequence[ast.stmt], loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps]:
        found: list[ast.stmt] = []
        for place, statement in enumerate(statements):
            if isinstance(statement, ast.Return):
                value = statement.value or ast.Constant(None)
                found.append(_assign(RESULT, value, statement))
                found.append(_assign(DONE, ast.Constant(True), statement))
                return found, _Jumps({DONE}, True)
            if isinstance(statement, ast.Break | ast.Continue):
                flag = loops[-1][0 if isinstance(statement, ast.Break) else 1]
                found.append(_assign(flag, ast.Constant(True), statement))
                return found, _Jumps({flag}, True)
            rest = statements[place + 1 :]
            if isinstance(statement, ast.If):
                one, first = self.block(statement.body, loops)
                other, second = self.block(statement.orelse, loops)
                flags = first.flags | second.flags
                if not flags:
                    found.append(_if(statement, statement.test, one, other))
                    continue
                if first.always and second.always:
                    found += _unset(flags, statement)
                    found.append(_if(statement, statement.test, one, other))
                    return found, _Jumps(flags, True)
                after, later = self.block(rest, loops)
                if first.always and not second.flags:
                    other = other + after
                elif second.always and not first.flags:
                    one = one + after
                else:
                    found += _unset(flags, statement)
                    found.append(_if(statement, statement.test, one, other))
                    if after:
                        found.append(_if(statement, _none(flags), after, []))
                    return found, _Jumps(flags | later.flags, False)
                found += _unset(flags, statement)
                found.append(_if(statement, statement.test, one, other))
                return found, _Jumps(flags | later.flags, later.always)
            if isinstance(statement, ast.For | ast.While):
                inner, jumps = self.loop(statement, loops)
                found += inner
                if DONE in jumps.flags:
                    after, later = self.block(rest, loops)
                    if after:
                        found.append(_if(statement, _none({DONE}), after, []))
                    return found, _Jumps(jumps.flags | later.flags, False)
                continue
            if isinstance(statement, ast.With):
                body, jumps = self.block(statement.body, loops)
                copied = ast.With(statement.items, body)
                found.append(ast.copy_location(copied, statement))
                if jumps.flags:
                    after, later = self.block(rest, loops)
                    if after and not jumps.always:
                        found.append(_if(statement, _none(jumps.flags), after, []))
                    return found, _Jumps(jumps.flags | later.flags, jumps.always)
                continue
            found.append(statement)
        return found, _Jumps()

    def loop(
        self, loop: ast.For | ast.While, loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps]:
        self.count += 1
        stop, skip = f"__break{self.count}", f"__continue{self.count}"
        body, jumps = self.block(loop.body, [*loops, (stop, skip)])
        before: list[ast.stmt] = []
        if skip in jumps.flags:
            body = [*_unset({skip}, loop), *body]
        stops = jumps.flags & {stop, DONE}
        before = _unset(stops, loop)
        copied: ast.For | ast.While
        if isinstance(loop, ast.For):
            copied = ast.For(loop.target, loop.iter, body, [])
        else:
            copied = ast.While(loop.test, body, [])
        ast.copy_location(copied, loop)
        setattr(copied, STOPS, sorted(stops))
        found = [*before, copied]
        if loop.orelse:
            other, more = self.block(loop.orelse, loops)
            found.append(
                _if(loop, _none(stops), other, [])
                if stops
                else ast.copy_location(ast.If(ast.Constant(True), other, []), loop)
            )
            jumps.flags |= more.flags
        return found, _Jumps(jumps.flags - {stop, skip}, False)


def _assign(name: str, value: ast.expr, like: ast.stmt) -> ast.stmt:
    target = ast.Name(name, ast.Store())
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), like))


def _unset(flags: set[str], like: ast.stmt) -> list[ast.stmt]:
    return [_assign(flag, ast.Constant(False), like) for flag in sorted(flags)]


def _none(flags: set[str]) -> ast.expr:
    tests: list[ast.expr] = [
        ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())) for flag in sorted(flags)
    ]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _if(
    like: ast.stmt, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
) -> ast.stmt:
    made = ast.If(test, list(body) or [ast.Pass()], list(orelse))
    return ast.fix_missing_locations(ast.copy_location(made, like))
