"""Programs of arrays with control flow: what a front end for a language with statements makes.

A program is a block of statements: kernels, contractions, other library nodes, routines on lines,
loops, branches and scopes that run in parallel. All indices are integers or expressions of symbols
(SymPy): sizes, variables of loops and scopes, and values that the program reads. Elements are
expressions (:mod:`distspmd.expressions.ir`), of which a ``Load`` names a :class:`Container`, and
for each dimension an index, which may be an expression itself where data decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy

from distspmd.expressions.ir import Expression, Load, parts
from distspmd.expressions.operations import DType

Length: TypeAlias = "int | sympy.Expr"
"""A whole number, or an expression of symbols."""
Index: TypeAlias = "int | sympy.Expr | Expression"
"""The index in one dimension; an expression of elements where data decide."""


@dataclass(eq=False)
class Container:
    """An array of the program; one of no dimensions is a scalar.

    Attributes:
        name: which is unique in the program.
        shape: its extents.
        dtype: of its elements.
        is_argument: whether the caller passes it, or gets it as a result.
        is_scalar: whether the caller passes a number.
        is_of_others: whether a loop has in it a copy of an array that others see.
        example: an array that it is like, where the run asks a library for its elements.
    """

    name: str
    shape: tuple[Length, ...]
    dtype: DType
    is_argument: bool = False
    is_scalar: bool = False
    is_of_others: bool = False
    example: Any = None

    def __str__(self) -> str:
        return self.name

    @property
    def is_point(self) -> bool:
        """Whether it is an argument that is an array of no dimensions, which may be written."""
        return self.is_argument and not self.shape and not self.is_scalar


@dataclass(frozen=True)
class Parameter:
    """A variable of a map: ``first``, ``first + step``, ... below ``end``."""

    name: str
    first: Length
    end: Length
    step: Length = 1


@dataclass(eq=False)
class Store:
    """What is written to an element; ``conflict`` combines it with what is there."""

    container: Container
    index: tuple[Index, ...]
    value: Expression
    conflict: str | None = None


@dataclass(eq=False)
class Statement:
    """What all statements have: the line of the user's program.

    ``binds``: whether it gives a variable its value, and changes no array that has other names.
    """

    line: tuple[str, int] | None = field(default=None, kw_only=True)
    binds: bool = field(default=False, kw_only=True)

    def blocks(self) -> Iterator[Block]:
        """The blocks inside."""
        return iter(())

    def reads(self) -> Iterator[Container]:
        """Containers that it reads, but those that only its blocks read."""
        return iter(())

    def writes(self) -> Iterator[Container]:
        """Containers that it writes, but those that only its blocks write."""
        return iter(())


@dataclass(eq=False)
class Block:
    """Statements in order."""

    statements: list[Statement] = field(default_factory=list)

    def containers(self) -> Iterator[Container]:
        """All containers that the statements touch, inside of blocks too."""
        for statement in self.statements:
            yield from statement.reads()
            yield from statement.writes()
            for block in statement.blocks():
                yield from block.containers()


@dataclass(eq=False)
class Kernel(Statement):
    """A map with stores: all loads of an iteration come before its stores."""

    label: str
    parameters: tuple[Parameter, ...]
    stores: list[Store]

    def expressions(self) -> Iterator[Expression]:
        """All expressions, those of indices included."""
        for store in self.stores:
            yield store.value
            yield from (i for i in store.index if not isinstance(i, int | sympy.Basic))

    def loads(self) -> Iterator[Load]:
        """All loads, those that indices need included."""
        for expression in self.expressions():
            yield from loads_of(expression)

    def reads(self) -> Iterator[Container]:
        """Containers that are loaded, or accumulated into."""
        for load in self.loads():
            yield load.array

    def writes(self) -> Iterator[Container]:
        """Containers that are stored to."""
        for store in self.stores:
            yield store.container


@dataclass(eq=False)
class Table(Statement):
    """A container gets numbers that are known."""

    container: Container
    values: Any

    def writes(self) -> Iterator[Container]:
        """The container."""
        yield self.container


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a container: the first index and the length in each dimension."""

    container: Container
    first: tuple[Length, ...]
    lengths: tuple[Length, ...]


@dataclass(eq=False)
class Contract(Statement):
    """A contraction (:class:`distspmd.nodes.contraction.Contraction`) of windows."""

    subscripts: str
    operands: tuple[Window, ...]
    result: Window
    operation: str = "sum"
    expression: str = ""

    def reads(self) -> Iterator[Container]:
        """The operands."""
        yield from (operand.container for operand in self.operands)

    def writes(self) -> Iterator[Container]:
        """The result."""
        yield self.result.container


@dataclass(eq=False)
class Library(Statement):
    """A library node between whole containers.

    Attributes:
        make: makes the node.
        inputs: containers by connector.
        outputs: containers by connector.
        stays: whether it is there for more than what it writes.
        operations: of the runtime that the node calls.
    """

    make: Callable[[], Any]
    inputs: dict[str, Container]
    outputs: dict[str, Container]
    stays: bool = False
    operations: tuple[str, ...] = ()

    def reads(self) -> Iterator[Container]:
        """The inputs."""
        yield from self.inputs.values()

    def writes(self) -> Iterator[Container]:
        """The outputs."""
        yield from self.outputs.values()


@dataclass(eq=False)
class Routine(Statement):
    """A map, each iteration of which runs code of C++ on windows of containers.

    A window takes whole lines: the code gets a pointer to its first element, and finds the others
    of its last dimension behind it.

    Attributes:
        label: names the map.
        parameters: of the map.
        inputs: windows by connector, which is the pointer's name.
        outputs: the same; no two iterations write one element.
        code: in C++.
        header: that it includes, below ``distspmd/``.
        question: what the code asks Python (``runtime/host/library_calls.py``), if that is all.
        extents: of the inputs and outputs of the question, in turn.
        where: whether "all" ranks run it, or "one" alone; nothing where that is open.
    """

    label: str
    parameters: tuple[Parameter, ...]
    inputs: dict[str, Window]
    outputs: dict[str, Window]
    code: str
    header: str
    question: str = ""
    extents: tuple[Length, ...] = ()
    where: str = ""

    def reads(self) -> Iterator[Container]:
        """The containers of the inputs."""
        yield from (window.container for window in self.inputs.values())

    def writes(self) -> Iterator[Container]:
        """The containers of the outputs."""
        yield from (window.container for window in self.outputs.values())


@dataclass(eq=False)
class Tell(Statement):
    """Python is told something while the program runs: what to print, or how it ends.

    Attributes:
        message: what :mod:`distspmd.execution.messages` reads.
        values: what it names by numbers; all ranks get them.
    """

    message: str
    values: tuple[Container, ...] = ()

    def reads(self) -> Iterator[Container]:
        """The values."""
        yield from self.values


@dataclass(eq=False)
class SetSymbol(Statement):
    """A symbol gets a value: an expression of symbols, or an element of a container."""

    name: str
    value: Any
    dtype: DType

    def reads(self) -> Iterator[Container]:
        """The container of which it is an element."""
        if isinstance(self.value, Load):
            yield self.value.array


@dataclass(eq=False)
class Loop(Statement):
    """Iterations in order: over a symbol, and as long as the condition holds.

    Attributes:
        symbol: the variable; None for a loop with a condition alone.
        first: its first value.
        end: where it ends, which is not a value of it.
        step: between values; negative for a loop downwards.
        condition: in Python's syntax, over symbols.
        body: what is repeated.
    """

    symbol: str | None
    first: Length
    end: Length
    step: Length
    condition: str | None
    body: Block

    def blocks(self) -> Iterator[Block]:
        """The body."""
        yield self.body


@dataclass(eq=False)
class Branch(Statement):
    """One of two blocks, by a condition over symbols in Python's syntax."""

    condition: str
    then: Block
    otherwise: Block

    def blocks(self) -> Iterator[Block]:
        """Both."""
        yield self.then
        yield self.otherwise


@dataclass(eq=False)
class Scope(Statement):
    """A map whose iterations run a block each, in any order; it has containers of its own."""

    label: str
    parameters: tuple[Parameter, ...]
    body: Block
    own: frozenset[str] = frozenset()

    def blocks(self) -> Iterator[Block]:
        """The body."""
        yield self.body


def loads_of(expression: Expression) -> Iterator[Load]:
    """All loads of an expression, and those of their indices, inner ones first."""
    for part in parts(expression):
        if isinstance(part, Load):
            for index in part.index:
                if not isinstance(index, int | sympy.Basic):
                    yield from loads_of(index)
            yield part
