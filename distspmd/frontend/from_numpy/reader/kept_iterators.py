"""Iterators that variables stand for: a loop reads one to its end, ``next`` a part of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.bindings import count_bindings
from distspmd.frontend.from_numpy.reader.generators import Generator, of_values
from distspmd.frontend.from_numpy.reader.ranges import Enumerated, Zipped, static_values

KEPT = (Generator, Iterator, Zipped, Enumerated)
"""Classes of what gives one value after the other, and which a variable may stand for."""


def kept(run: Context, name: str, value: Any) -> Any:
    """What a variable stands for that is assigned a generator, or an iterator."""
    if objects.is_own(value) or isinstance(value, Generator):
        return value
    if isinstance(value, Zipped | Enumerated):
        is_whole = _is_kept_whole(run, name)
        return value if is_whole else of_values(run, static_values(run, value))
    return of_values(run, value)


def _is_kept_whole(run: Context, name: str) -> bool:
    """Whether a variable is read once, by a loop or by what reads it to its end."""
    frame = run.tracer.frames[-1]
    reads = [
        (part, around)
        for statement in frame.body
        for around in ast.walk(statement)
        for part in ast.iter_child_nodes(around)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]
    if len(reads) > 1 or any(_is_repeated(frame.body, part) for part, _ in reads):
        return False
    return not any(_asks(around) for _, around in reads)


def _is_repeated(statements: Sequence[ast.stmt], read: ast.Name) -> bool:
    """Whether a loop reads a variable again and again that it does not bind itself."""
    loops = (p for s in statements for p in ast.walk(s) if isinstance(p, ast.For | ast.While))
    for loop in loops:
        inside = [part for statement in loop.body for part in ast.walk(statement)]
        if any(part is read for part in inside) and not count_bindings(loop, read.id):
            return True
    return False


def _asks(around: ast.AST) -> bool:
    """Whether syntax asks an iterator for one value."""
    if isinstance(around, ast.Call):
        return isinstance(around.func, ast.Name) and around.func.id in ("next", "zip", "islice")
    return isinstance(around, ast.Attribute)
