"""Statements of which nothing is read are left out: flags, and results that nobody takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sympy

from distspmd.expressions.ir import parts
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Branch,
    Contract,
    Kernel,
    Library,
    Loop,
    Routine,
    Scope,
    Statement,
    Store,
    Table,
    loads_of,
)


def without_unread(program: Block, aliases: Iterable[Any] = ()) -> None:
    """Leave out what nothing reads but itself, in place.

    Args:
        program: that is read.
        aliases: containers that may have the elements of arrays, with the symbols that say so.
    """
    _leave_out(program, {s for alias in aliases if not alias.is_followed for s in alias.sets})
    while _prune(program, _used(program)):
        pass


def _leave_out(block: Block, statements: set[Statement]) -> None:
    for statement in block.statements if statements else ():
        for inner in statement.blocks():
            _leave_out(inner, statements)
    block.statements[:] = [each for each in block.statements if each not in statements]


@dataclass
class _Uses:
    """What a program uses.

    Attributes:
        roots: names of containers and symbols that decide what it does or returns.
        sources: of which containers each one is made.
        checked: containers that get what may end the program.
    """

    roots: set[str] = field(default_factory=set)
    sources: dict[str, set[str]] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)

    def collect(self, block: Block) -> None:
        """Add what the statements of a block use."""
        for statement in block.statements:
            if isinstance(statement, Kernel):
                for store in statement.stores:
                    self._add_store(store)
                continue
            reads, writes = ({c.name for c in cs} for cs in (statement.reads(), statement.writes()))
            for name in writes:
                self.sources.setdefault(name, set()).update(reads)
            self.roots |= {c.name for c in statement.writes() if c.is_argument}
            checks = isinstance(statement, Library) and {*statement.operations} & {*_CHECKS}
            if checks or (isinstance(statement, Library) and statement.stays):
                self.roots |= writes
            if not writes:
                self.roots |= reads
            if isinstance(statement, Loop | Branch) and statement.condition:
                self.roots |= _words(statement.condition)
            for inner in statement.blocks():
                self.collect(inner)

    def _add_store(self, store: Store) -> None:
        name = store.container.name
        every = [store.value, *(i for i in store.index if not isinstance(i, int | sympy.Basic))]
        reads = {load.array.name for each in every for load in loads_of(each)}
        self.sources.setdefault(name, set()).update(reads)
        if store.container.is_argument:
            self.roots.add(name)
        if any(getattr(p, "name", None) in _CHECKS for each in every for p in parts(each)):
            self.checked.add(name)


_CHECKS = ("checked", "checked_index")
"""Operations that may end the program; they stay where anything reads what is made of them."""


def _used(program: Block) -> set[str]:
    """Names of containers that decide what the program does or returns, and of symbols."""
    uses = _Uses()
    uses.collect(program)
    read = set().union(*uses.sources.values())
    found: set[str] = set()
    left = [*uses.roots, *(uses.checked & read)]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += uses.sources.get(name, ())
    return found


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def _prune(block: Block, used: set[str]) -> bool:
    changed = False
    kept = []
    for statement in block.statements:
        for inner in statement.blocks():
            changed |= _prune(inner, used)
        if _is_dead(statement, used):
            changed = True
            continue
        kept.append(statement)
    block.statements[:] = kept
    return changed


def _is_dead(statement: object, used: set[str]) -> bool:
    if isinstance(statement, Kernel):
        statement.stores = [s for s in statement.stores if s.container.name in used]
        return not statement.stores
    if isinstance(statement, Contract | Table | Library | Routine):
        return not any(c.name in used for c in statement.writes())
    if isinstance(statement, Branch):
        return not statement.then.statements and not statement.otherwise.statements
    if isinstance(statement, Scope):
        return not statement.body.statements
    return isinstance(statement, Loop) and not statement.body.statements and not statement.condition
