"""What belongs to parts of a program: variables and their values, and containers of scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dace import SDFG, InterstateEdge

from distspmd.frontend.tensor_ir.statements import Block, Loop, Scope, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import Bounds, Whole, add, same

Ends = tuple["Whole | None", "Whole | None"]


def find_variables(program: Block) -> Bounds:
    """Least and greatest value of each variable, outer ones first; None where unknown.

    Variables of one name are one variable.
    """
    found: dict[str, Ends] = {}
    for name, ends in _variables(program):
        if name in found:
            low, high = (_common(*pair) for pair in zip(found[name], ends, strict=True))
            ends = _least(low), _greatest(high)
        found[name] = ends
    return found


def _variables(block: Block) -> Iterator[tuple[str, Ends]]:
    for statement in block.statements:
        if isinstance(statement, SetSymbol):
            yield statement.name, (None, None)
        if isinstance(statement, Loop) and statement.symbol is not None:
            yield statement.symbol, _ends(statement.first, statement.end, statement.step)
        for p in getattr(statement, "parameters", ()):
            yield p.name, _ends(p.first, p.end, p.step)
        for inner in statement.blocks():
            yield from _variables(inner)


def _ends(first: Whole, end: Whole, step: Whole) -> Ends:
    if not isinstance(step, int) or step == 0:
        return None, None
    return (first, add(end, -1)) if step > 0 else (add(end, 1), first)


def _common(one: Whole | None, other: Whole | None) -> list[Whole] | None:
    """Both, if they are known and comparable."""
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int):
        return [one, other]
    return [one] if same(one, other) else None


def _least(ends: list[Whole] | None) -> Whole | None:
    return min(ends) if ends else None


def _greatest(ends: list[Whole] | None) -> Whole | None:
    return max(ends) if ends else None


def own_containers(block: Block) -> set[str]:
    """Names of containers that belong to scopes."""
    found: set[str] = set()
    for statement in block.statements:
        if isinstance(statement, Scope):
            found |= statement.own
        for inner in statement.blocks():
            found |= own_containers(inner)
    return found


def begin_with(sdfg: SDFG, names: Sequence[str]) -> None:
    """Give symbols a number that are set on some ways only, and kept on others.

    The program does not compute with them there. Without a number they would be sizes.
    """
    if names:
        first = sdfg.start_block
        begin = sdfg.add_state("begin", is_start_block=True)
        sdfg.add_edge(begin, first, InterstateEdge(assignments=dict.fromkeys(names, "0")))
