"""What comes behind the body of a loop, in the branch of the body where nothing ends the loop.

before -> after::

    if small: done = True         if small: done = True
    else: x = x + dx              else: x = x + dx; rest
    if not done: rest

Variables are then what they are in that branch, in place of one of two as the run decides.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence


def continued(body: Sequence[ast.stmt], rest: ast.stmt, flags: Collection[str]) -> list[ast.stmt]:
    """Statements with another one behind them, which asks itself whether one of the flags is set.

    Args:
        body: the statements.
        rest: does nothing where one of the flags is set.
        flags: that the body sets at the end of a branch.
    """
    last = body[-1] if body else None
    if not isinstance(last, ast.If):
        return [*body, rest]
    one, other = last.body, last.orelse
    if _sets(one, flags):
        other = continued(other, rest, flags)
    elif _sets(other, flags) or (not other and _is_unset(last.test, flags)):
        one = continued(one, rest, flags)
    else:
        return [*body, rest]
    return [*body[:-1], ast.copy_location(ast.If(last.test, one, other), last)]


def _sets(block: Sequence[ast.stmt], flags: Collection[str]) -> bool:
    """Whether a block always sets one of the flags."""
    match block[-1] if block else None:
        case ast.Assign([ast.Name(name)], ast.Constant(True)):
            return name in flags
        case ast.If(_, one, other):
            return _sets(one, flags) and _sets(other, flags)
    return False


def _is_unset(test: ast.expr, flags: Collection[str]) -> bool:
    """Whether a condition is that none of some flags is set."""
    match test:
        case ast.UnaryOp(ast.Not(), ast.Name(name)):
            return name in flags
        case ast.BoolOp(ast.And(), values):
            return all(_is_unset(value, flags) for value in values)
    return False
