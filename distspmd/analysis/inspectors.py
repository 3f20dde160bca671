"""Inspectors: how a rank finds out, at run time, which elements data let it touch.

An inspector computes the indices of accesses alone, over the rank's part of the iteration space:
loops, and the elements of other containers on which the indices depend, but nothing else of the
body. It may find too many elements, if the body skips an access, and never too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

import sympy

from distspmd.analysis.accesses import Access, Dimension, Edge
from distspmd.analysis.symbol_values import PLACE, ElementValue, Value, terms


@dataclass(frozen=True, slots=True)
class Loop:
    """A symbol takes all values from ``first`` to ``last``."""

    name: str
    first: sympy.Expr
    last: sympy.Expr


@dataclass(frozen=True, slots=True)
class Let:
    """A symbol has a value."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Touch:
    """The indices that one access touches in the dimensions that data decide.

    Attributes:
        statements: what binds symbols, each after those that it needs.
        ranges: of each such dimension.
    """

    statements: tuple[Loop | Let, ...]
    ranges: tuple[Dimension, ...]

    @property
    def loads(self) -> list[ElementValue]:
        """Elements of containers that have to be there before."""
        values = (s.value for s in self.statements if isinstance(s, Let))
        return [value for value in values if isinstance(value, ElementValue)]

    def __str__(self) -> str:
        """``col[k], k = row[i]..row[i + 1] - 1``."""
        texts = _Texts(self.statements)
        ends = [(texts.of(d.first), texts.of(d.last)) for d in self.ranges]
        found = ", ".join(first if first == last else f"{first}..{last}" for first, last in ends)
        return "".join([found, *(f", {loop}" for loop in texts.loops())])


class _Texts:
    """Expressions as the program has them: with what is loaded in the place of symbols for it."""

    def __init__(self, statements: Sequence[Loop | Let]) -> None:
        self.statements = {statement.name: statement for statement in statements}

    def of(self, expression: sympy.Expr) -> str:
        """Text of an expression."""
        expression = expression.replace(PLACE, lambda index, _: index)
        return _NAME.sub(lambda found: self._name(found[0]), str(expression))

    def loops(self) -> Iterator[str]:
        """What loops inside of the space run over."""
        for name, statement in self.statements.items():
            if isinstance(statement, Loop) and _plain(name) != name:
                ends = f"{self.of(statement.first)}..{self.of(statement.last)}"
                yield f"{_plain(name)} = {ends}"

    def _name(self, name: str) -> str:
        statement = self.statements.get(name)
        if not isinstance(statement, Let):
            return _plain(name)
        if isinstance(statement.value, ElementValue):
            return f"{statement.value.data}[{', '.join(map(self.of, statement.value.indices))}]"
        found = self.of(statement.value)
        return found if isinstance(statement.value, sympy.Symbol | PLACE) else f"({found})"


_NAME = re.compile(r"[A-Za-z_]\w*")


def _plain(name: str) -> str:
    """The name that a symbol had before it was made unique."""
    return re.sub(r"(__\d+)+\Z", "", name)


@dataclass(frozen=True, slots=True)
class Inspection:
    """How to find what is touched of a container.

    Attributes:
        dimensions: those in which data decide; the others have boxes.
        touches: one for each access.
        depth: how many inspections have to come before, each of what the next one loads.
    """

    dimensions: tuple[int, ...]
    touches: tuple[Touch, ...]
    depth: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return "; ".join(dict.fromkeys(map(str, self.touches)))

    @property
    def loads(self) -> list[ElementValue]:
        """Elements of containers that have to be there before."""
        return [load for touch in self.touches for load in touch.loads]

    @property
    def sources(self) -> tuple[str, ...]:
        """Containers whose values decide."""
        return tuple(dict.fromkeys(load.data for load in self.loads))

    @property
    def names(self) -> set[str]:
        """Symbols that the inspection does not bind itself."""
        free: set[str] = set()
        for touch in self.touches:
            bound: set[str] = set()
            for statement in touch.statements:
                free |= _mentioned(statement) - bound
                bound.add(statement.name)
            ends = (end for d in touch.ranges for end in (d.first, d.last))
            free |= {s.name for end in ends for s in end.free_symbols} - bound
        return free


def _mentioned(statement: Loop | Let) -> set[str]:
    parts = (
        (statement.first, statement.last) if isinstance(statement, Loop) else terms(statement.value)
    )
    return {symbol.name for part in parts for symbol in part.free_symbols}


class _Unknown(Exception):
    """A symbol of which it is not known what it holds."""


@dataclass(frozen=True, eq=False)
class UnboundedRead:
    """A read of an iteration space: its accesses, dimensions without a bound, and edges."""

    accesses: Sequence[Access]
    unbounded: Sequence[int]
    edges: Sequence[Edge]


def inspections(
    reads: Sequence[UnboundedRead], written: Set[str], around: Set[str]
) -> list[Inspection | None]:
    """How to find what each read of a space touches; None where that cannot be told.

    Args:
        reads: all of them; an inspection may need what others read.
        written: containers that the space writes, whose values may change meanwhile.
        around: symbols that have other values when the space runs again.
    """
    asked = [_inspection(read, written, around) for read in reads]
    found: list[Inspection | None] = [None] * len(reads)
    ready = {
        id(edge)
        for way, read in zip(asked, reads, strict=True)
        if way is None
        for edge in read.edges
    }
    waiting = {number: way for number, way in enumerate(asked) if way is not None}
    for depth in range(1, len(reads) + 1):
        able = {n: w for n, w in waiting.items() if {id(load.edge) for load in w.loads} <= ready}
        for number, way in able.items():
            found[number] = replace(way, depth=depth)
            ready |= {id(edge) for edge in reads[number].edges}
            del waiting[number]
    return found


def _inspection(read: UnboundedRead, written: Set[str], around: Set[str]) -> Inspection | None:
    """How to find what a read touches, whatever it needs for that."""
    if not read.unbounded:
        return None
    try:
        touches = tuple(_touch(access, read.unbounded) for access in read.accesses)
    except _Unknown:
        return None
    found = Inspection(tuple(read.unbounded), tuple(dict.fromkeys(touches)))
    if any(load.data in written or load.edge is None for load in found.loads):
        return None
    return found if found.loads or found.names & around else None


def _touch(access: Access, dimensions: Sequence[int]) -> Touch:
    ranges: list[Dimension] = []
    for d in dimensions:
        dimension = access.dimensions[d]
        if dimension is None:
            raise _Unknown
        ranges.append(dimension)
    bound: dict[str, Loop | Let] = {}
    for dimension in ranges:
        for end in (dimension.first, dimension.last):
            _bind(end, access, bound, ())
    return Touch(tuple(bound.values()), tuple(ranges))


def _bind(
    expression: sympy.Expr, access: Access, bound: dict[str, Loop | Let], around: tuple[str, ...]
) -> None:
    """Bind the symbols of an expression, after those that they depend on."""
    for name in sorted(symbol.name for symbol in expression.free_symbols):
        if name in bound or name not in access.scope:
            continue
        statement = _statement(name, access)
        if name in around:
            raise _Unknown
        parts = (
            (statement.first, statement.last)
            if isinstance(statement, Loop)
            else terms(statement.value)
        )
        for part in parts:
            _bind(part, access, bound, (*around, name))
        bound[name] = statement


def _statement(name: str, access: Access) -> Loop | Let:
    if name in access.values:
        return Let(name, access.values[name])
    values = access.scope[name]
    if values is None:
        raise _Unknown
    return Loop(name, values.lower, values.upper)
