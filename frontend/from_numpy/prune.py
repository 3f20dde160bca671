"""Statements of which nothing is read are left out: flags, and results that nobody takes."""

from __future__ import annotations

from distspmd.frontend.tensor_ir.statements import (
    Block,
    Branch,
    Contract,
    Kernel,
    Library,
    Loop,
    Routine,
    Scope,
    Table,
)


def without_unread(program: Block) -> None:
    """Leave out what nothing reads, in place."""
    while _prune(program, _used(program)):
        pass


def _used(program: Block) -> set[str]:
    """Names of containers that are read, or that the caller sees, and of symbols."""
    found: set[str] = set()
    for statement in program.statements:
        found |= {c.name for c in statement.reads()}
        found |= {c.name for c in statement.writes() if c.is_argument}
        if isinstance(statement, Loop) and statement.condition:
            found |= _words(statement.condition)
        if isinstance(statement, Branch):
            found |= _words(statement.condition)
        if isinstance(statement, Kernel):
            for store in statement.stores:
                if store.container.is_argument:
                    found.add(store.container.name)
        for block in statement.blocks():
            found |= _used(block)
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
