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


class StoppedFor(ast.For):
    """A loop with the names of the flags that end it, which has no ``else``."""

    def __init__(
        self, target: ast.expr, over: ast.expr, body: list[ast.stmt], *, stops: Sequence[str]
    ) -> None:
        super().__init__(target, over, body, [])
        self.stops = tuple(stops)


class StoppedWhile(ast.While):
    """A loop with the names of the flags that end it, which has no ``else``."""

    def __init__(self, test: ast.expr, body: list[ast.stmt], *, stops: Sequence[str]) -> None:
        super().__init__(test, body, [])
        self.stops = tuple(stops)


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
            made, jumps = self.statement(statement, statements[place + 1 :], loops)
            found += made
            if jumps is not None:
                return found, jumps
        return found, _Jumps()

    def statement(
        self, statement: ast.stmt, rest: Sequence[ast.stmt], loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps | None]:
        """A statement, and the rest of the block with it if it may jump; else no jumps."""
        if isinstance(statement, ast.Return):
            value = statement.value or ast.Constant(None)
            ends = [(RESULT, value), (DONE, ast.Constant(True))]
            return [_assign(name, to, statement) for name, to in ends], _Jumps({DONE}, True)
        if isinstance(statement, ast.Break | ast.Continue):
            flag = loops[-1][0 if isinstance(statement, ast.Break) else 1]
            return [_assign(flag, ast.Constant(True), statement)], _Jumps({flag}, True)
        if isinstance(statement, ast.If):
            return self.branch(statement, rest, loops)
        if isinstance(statement, ast.For | ast.While):
            made, jumps = self.loop(statement, loops)
        elif isinstance(statement, ast.With):
            body, jumps = self.block(statement.body, loops)
            made = [ast.copy_location(ast.With(statement.items, body), statement)]
        else:
            return [statement], None
        if not jumps.flags:
            return made, None
        after, later = self.block(rest, loops)
        if after and not jumps.always:
            made.append(_if(statement, _none(jumps.flags), after, []))
        return made, _Jumps(jumps.flags | later.flags, jumps.always)

    def branch(
        self, branch: ast.If, rest: Sequence[ast.stmt], loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps | None]:
        """A branch, with the rest in the one of its blocks that does not always jump."""
        one, first = self.block(branch.body, loops)
        other, second = self.block(branch.orelse, loops)
        flags = first.flags | second.flags
        if not flags:
            return [_if(branch, branch.test, one, other)], None
        before = _unset(flags, branch)
        if first.always and second.always:
            return [*before, _if(branch, branch.test, one, other)], _Jumps(flags, True)
        after, later = self.block(rest, loops)
        every = flags | later.flags
        if first.always and not second.flags:
            return [*before, _if(branch, branch.test, one, other + after)], _Jumps(
                every, later.always
            )
        if second.always and not first.flags:
            return [*before, _if(branch, branch.test, one + after, other)], _Jumps(
                every, later.always
            )
        made = [*before, _if(branch, branch.test, one, other)]
        if after:
            made.append(_if(branch, _none(flags), after, []))
        return made, _Jumps(every, False)

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
        copied: ast.stmt
        if isinstance(loop, ast.For):
            copied = StoppedFor(loop.target, loop.iter, body, stops=sorted(stops))
        else:
            copied = StoppedWhile(loop.test, body, stops=sorted(stops))
        found = [*before, ast.copy_location(copied, loop)]
        if loop.orelse:
            other, more = self.block(loop.orelse, loops)
            found = [*_unset(more.flags - stops, loop), *found]
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
