"""Where a program is written down while it is read: containers, statements, and what is known."""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
import sympy

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Expression, apply
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.arrays.words_of_cpp import is_word_of_cpp
from distspmd.frontend.from_numpy.kinds.nests import Nest
from distspmd.frontend.from_numpy.kinds.reading_again import TableChanges
from distspmd.frontend.from_numpy.reader.frames import Frame, in_program
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Container,
    Kernel,
    Length,
    Loop,
    Parameter,
    Scope,
    Statement,
    Store,
    Table,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    is_at_least,
    is_decided_by_data,
    subtract,
)

PYTHON_TYPES: dict[type, DType] = {
    bool: np.dtype(bool),
    int: INT64,
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
"""Types in which numbers of Python are kept."""


class Refusal(UnsupportedProgram):
    """What the front end does not take; the message has the line.

    Attributes:
        places: the statements that were being read (``host/hosting.py``).
        is_of_python: whether it is no array work, so that Python may run it.
    """

    places: Sequence[Any] = ()
    is_of_python = False


class AsksForGradients(Refusal):
    """The program asks for gradients, which DaCe's parser reads."""


class EndsHere(Refusal):
    """A way of the run ends the program here, whatever follows; on all ways that is refused."""


class Fails(Refusal):
    """A statement that Python would end with an error, whatever the run computes.

    Attributes:
        error: that each run which comes here has.
        by_name: whether that depends on names alone, and not on the kinds of values.
    """

    def __init__(self, message: str, error: Exception, by_name: bool) -> None:
        super().__init__(message)
        self.error, self.by_name = error, by_name


UNROLLED = 512
"""Iterations of a loop that is unrolled, at most."""


class CannotRoll(Exception):
    """A loop cannot stay one: something of it differs from iteration to iteration.

    Attributes:
        changed: the list that it changes, if that is why.
    """

    def __init__(self, reason: str, changed: Any = None) -> None:
        super().__init__(reason)
        self.changed = changed


class KnownError(Exception):
    """The body of a ``try`` ends in each run with an error that a handler of it takes.

    Attributes:
        flag: of that handler.
    """

    def __init__(self, flag: str, error: Exception) -> None:
        super().__init__(str(error))
        self.flag = flag


class MapOfIndices(Protocol):
    """What looks at the indices in the body of a parallel map, with so many blocks around it."""

    depth: int

    def note(self, tracer: Any, value: sympy.Expr, length: Length) -> bool:
        """Look at an index of a dimension of some length; whether it does."""


@dataclass
class Transcript:
    """A program as far as it is read.

    Attributes:
        block: where statements are added.
        outermost: the block that has all the others.
        bounds: of the symbols of loops and scopes, and of values that were read.
        facts: numbers that are not negative, in the branches that are read.
        names: of containers and symbols that are taken.
        counts: numbers behind names that are taken at least, by what stands before them.
        frames: of the functions that are being read, the innermost one last.
        node: the syntax that is being read.
        guarded: whether what is read may not happen, so that indices have to stay inside.
        guards: the conditions by which it happens, as far as they are known.
        journals: what becomes of lists and dictionaries in the blocks around.
        target: the variable that is assigned to, whose name a container takes.
        own: names of the containers of the maps around, the innermost one last.
        parallel: parameters of the maps around, each with the number of maps outside of it.
        maps: what looks at the indices of the maps around, the innermost one last.
        in_range: whether indices in inner blocks of a map are in range, of those read so far.
        straight: the body of a map that is read as one kernel, if one is.
        accumulated: numbers that the iterations of the maps around add to, with their types.
        of_maps: why variables have no value that a map has set.
        last: the line of the last statement, of which results are that no line stores.
        capacities: the most that lengths can be which data decide.
        blank: arrays that begin with any elements, by the blocks that make them.
        tables: numbers of containers that are known, and that nothing has changed.
        relied_on: those of which numbers were taken as known.
        changing: numbers, in order of making, of tables that are not taken as known.
        counted: all tables, in that order.
        inner: how many blocks are around the one that is read: branches and loops.
        ends_if: ends the program with an error where a condition of symbols holds.
        chooses: the elements that the mask of a tensor chooses, as an array.
        form_of: the form in which a value is returned, and the tensors in it.
        made: objects of the user's classes that the program has made, by their dictionaries.
        ended: whether the block that is read has come to a ``raise``.
        known_lists: what is known, by the places that make them, of lists that the run decides.
        noted: what this reading has found of them.
        written_out: iterations of a loop, at most, that is written out for the sake of lists.
        keeps_loop: whether a loop that might be written out stayed one, with lists of the run.
        born: lists of Python that expressions have made, with the places, by identity.
        given: those that are elements of a list whose content the run decides.
        handles: all lists whose content the run decides.
        needs: by their numbers, how many elements they may get; None where that has no bound.
        nest: the loops that are being read, and the kinds of what they carry.
        loops: the most iterations of the loops around; None where that is not known.
        loop_nodes: the syntax of these loops.
        has_left_out: whether statements were left out that read lists without elements so far.
        room: elements of lists whose growth has no bound.
        aliases: containers that may have the elements of an array, as the run decides.
        elements: containers of all elements of a list of which the run decides the one, with pairs
            of each part and the element; None where these have no place.
        joined: containers of two ways of a branch, with those of the ways.
        ambiguous: lists, dictionaries and objects of which the run decides who sees them.
        followed: statements of which the writes to such containers have reached the others.
        puts: statements that put elements into lists whose content the run decides, or move them.
    """

    block: Block = field(default_factory=Block)
    bounds: dict[str, tuple[Whole | None, Whole | None]] = field(default_factory=dict)
    facts: list[sympy.Expr] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    node: Any = None
    guarded: int = 0
    guards: list[Expression] = field(default_factory=list)
    journals: list[Any] = field(default_factory=list)
    target: str | None = None
    own: list[set[str]] = field(default_factory=list)
    parallel: list[tuple[int, list[str]]] = field(default_factory=list)
    maps: list[MapOfIndices] = field(default_factory=list)
    in_range: list[sympy.Basic] = field(default_factory=list)
    straight: Any = None
    accumulated: dict[Container, Any] = field(default_factory=dict)
    of_maps: dict[str, str] = field(default_factory=dict)
    last: tuple[str, int] | None = None
    capacities: dict[Any, Length] = field(default_factory=dict)
    blank: dict[Container, Block] = field(default_factory=dict)
    tables: dict[Container, Any] = field(default_factory=dict)
    relied_on: set[Container] = field(default_factory=set)
    changing: frozenset[int] = frozenset()
    counted: list[Container] = field(default_factory=list)
    inner: int = 0
    ends_if: Callable[..., None] | None = None
    chooses: Callable[[Any, Tensor], Tensor] | None = None
    form_of: Callable[[Any, Any], Any] | None = None
    made: dict[int, Any] = field(default_factory=dict)
    ended: bool = False
    known_lists: Mapping[Any, Any] = field(default_factory=dict)
    noted: dict[Any, Any] = field(default_factory=dict)
    written_out: int = UNROLLED
    keeps_loop: bool = False
    born: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    given: dict[int, Any] = field(default_factory=dict)
    handles: list[Any] = field(default_factory=list)
    needs: dict[int, Length | None] = field(default_factory=dict)
    nest: Nest = field(default_factory=Nest)
    loops: list[Length | None] = field(default_factory=list)
    loop_nodes: list[Any] = field(default_factory=list)
    has_left_out: bool = False
    room: Length = 0
    aliases: list[Any] = field(default_factory=list)
    elements: dict[Container, Any] = field(default_factory=dict)
    joined: dict[Container, list[Container]] = field(default_factory=dict)
    ambiguous: dict[int, tuple[Any, str]] = field(default_factory=dict)
    followed: set[Statement] = field(default_factory=set)
    puts: set[Any] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.outermost = self.block

    # -- messages -------------------------------------------------------------------------------

    @property
    def line(self) -> tuple[str, int] | None:
        """The line that is being read."""
        if not self.frames or self.node is None:
            return None
        node, frame = in_program(self.node, self.frames)
        return frame.file, node.lineno

    def refuse(self, what: str) -> NoReturn:
        """Refuse what is being read.

        Raises:
            Refusal: always; the message has the line, with a caret.
        """
        more = "; a function that @distspmd.host marks runs in Python as it is"
        refusal = Refusal(self.message(what + more * what.endswith("is not covered")))
        refusal.is_of_python = what.partition(":")[0].endswith("is not covered")
        raise refusal

    def fail(
        self, error: Exception, place: str = "", *, told: str = "", by_name: bool = False
    ) -> NoReturn:
        """Read no further in the body of a ``try`` that takes an error, which each run has.

        Args:
            error: that each run has.
            place: what a message says before the error.
            told: what a message says, if not the error.
            by_name: whether that depends on names alone, and not on the kinds of values.

        Raises:
            KnownError: there is one around, in the same function.
            Fails: there is none, or a condition of the run stands between.
        """
        for handlers in reversed(self.frames[-1].attempts):
            flag = handlers.flag_of(type(error))
            if flag is not None:
                if handlers.block is self.block and not self.guarded:
                    raise KnownError(flag, error)
                break
        text = told or f"{place}{type(error).__name__}: {error}"
        raise Fails(self.message(text), error, by_name)

    def check_uncaught(self, kind: str, *, is_said: bool = False) -> bool:
        """Refuse what may end the program with an error that a handler around is for.

        Args:
            kind: the name of the error.
            is_said: whether the program says so itself, by ``raise`` say.

        Returns:
            Whether a handler around takes it as it takes all errors. The program ends there.

        Raises:
            Refusal: there is a handler that names the error, or one of all for what is said.
        """
        error = error_class(kind)
        every = [frame.handlers_of(error) for frame in self.frames]
        found = [handlers for handlers in every if handlers is not None]
        is_said = is_said or kind in ("AssertionError", "LinAlgError")
        if any(is_said or not handlers.takes_all(error) for handlers in found):
            self.refuse(
                f"{kind} may be raised here, and a handler of a try around would take it: what is "
                "covered is np.linalg's LinAlgError, raise and assert in the body of the try "
                "and in functions that it calls, in a statement of their own or an assignment"
            )
        return bool(found)

    @contextmanager
    def guarded_by(self, *conditions: Expression) -> Iterator[None]:
        """Read what happens only where a condition holds; none is given where it has no form."""
        self.guarded += 1
        self.guards += conditions
        try:
            yield
        finally:
            self.guarded -= 1
            del self.guards[len(self.guards) - len(conditions) :]

    def guard(self) -> Expression | None:
        """Whether what is read happens; None where it always does, or where that is not known."""
        if not self.guards or self.guarded != len(self.guards):
            return None
        return functools.reduce(lambda a, b: apply("logical_and", a, b), self.guards)

    def message(self, what: str) -> str:
        """A message with the line that is being read."""
        line = self.line
        if line is None:
            return what
        file, number_ = line
        node, frame = in_program(self.node, self.frames)
        place = number_ - frame.first_line
        text = frame.source[place].rstrip() if 0 <= place < len(frame.source) else ""
        caret = " " * node.col_offset + "^"
        return f"{Path(file).name}:{number_}: {what}\n    {text}\n    {caret}"

    def is_not_negative(self, value: Whole) -> bool:
        """Whether a number is never negative where it is read; False where that is not known."""
        return is_at_least(value, 0, self.bounds) or any(
            is_at_least(subtract(value, fact), 0, self.bounds) for fact in self.facts
        )

    @contextmanager
    def where(self, facts: Sequence[sympy.Expr]) -> Iterator[None]:
        """Read what runs only where some numbers are not negative."""
        known = len(self.facts)
        self.facts += facts
        try:
            yield
        finally:
            del self.facts[known:]

    # -- names and containers -------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """A name that nothing has."""
        base = re.sub(r"\W", "_", name) or "t"
        if base[0].isdigit():
            base = f"_{base}"
        if is_word_of_cpp(base):
            base = f"{base}_"
        found, count = base, self.counts.get(base, 0)
        while found in self.names:
            count += 1
            found = f"{base}_{count}"
        self.counts[base] = count
        self.names.add(found)
        return found

    def release(self, name: str) -> None:
        """Let a name be had again."""
        self.names.discard(name)
        self.counts.clear()

    def unique_index(self, name: str) -> str:
        """A name that nothing has, for a variable of a loop or map.

        DaCe keeps the ranges of loops as texts, in which SymPy and Python have functions.
        """
        is_taken = any(callable(getattr(known, name, None)) for known in (sympy, builtins))
        return self.unique(f"{name}_" if is_taken else name)

    def container(self, name: str, shape: Sequence[Length], dtype: DType) -> Container:
        """A new container.

        Raises:
            CannotRoll: data decide its length, or a loop the exponent of a power in it.
        """
        for extent in shape:
            powers = sympy.sympify(extent).atoms(sympy.Pow)
            of_loop = {s.name for power in powers for s in power.exp.free_symbols} & {*self.bounds}
            if of_loop or (not self.own and is_decided_by_data(extent, self.bounds)):
                raise CannotRoll(f"{name!r} has the length {extent} in it")
        found = Container(self.unique(name), tuple(shape), np.dtype(dtype))
        if self.own:
            self.own[-1].add(found.name)
        return found

    def add(self, statement: Statement) -> None:
        """Add a statement."""
        if self.straight is not None:
            self.straight.leave()
        self.last = self.line or self.last
        statement.line = self.last
        self.block.statements.append(statement)
        for container in statement.writes() if self.tables else ():
            if container in self.tables and not isinstance(statement, Table):
                if container in self.relied_on:
                    raise TableChanges(self.counted.index(container))
                del self.tables[container]

    @contextmanager
    def binding(self) -> Iterator[None]:
        """Add statements that give variables their values, and change no array."""
        first = len(self.block.statements)
        yield
        for statement in self.block.statements[first:]:
            statement.binds = True

    def parallel_above(self, container: Container) -> list[str]:
        """Parameters of the maps that are inside of the place where a container was made."""
        depth = next(
            (n + 1 for n, own in reversed(list(enumerate(self.own))) if container.name in own), 0
        )
        return [name for level, names in self.parallel if level >= depth for name in names]

    def ordered_kernel(
        self, stores: list[Store], parameters: Sequence[Parameter], label: str
    ) -> None:
        """Add a kernel whose iterations may write one element, of which the last one wins."""
        if self.straight is not None:
            self.straight.leave()
        decided = set()
        for store in stores:
            for index in store.index:
                if not isinstance(index, int | sympy.Basic):
                    for load in loads_of(index):
                        for part in load.index:
                            decided |= {s.name for s in sympy.sympify(part).free_symbols}
        ordered = [p for p in parameters if p.name in decided]
        free = [p for p in parameters if p.name not in decided]
        body = Block()
        inner = body
        for p in ordered:
            block = Block()
            inner.statements.append(
                Loop(p.name, p.first, p.end, p.step, None, block, line=self.line)
            )
            inner = block
        inner.statements.append(Kernel(label, (), stores, line=self.line))
        self.add(Scope(label, tuple(free) or (Parameter("__once", 0, 1),), body))

    @contextmanager
    def within(self, block: Block) -> Iterator[Block]:
        """Add statements to another block."""
        before, self.block = self.block, block
        self.inner += 1
        try:
            yield block
        finally:
            self.block = before
            self.inner -= 1

    @contextmanager
    def in_loop(self, length: Length | None) -> Iterator[None]:
        """Read the body of a loop of so many iterations at most; None where that is not known."""
        self.loops.append(length)
        self.loop_nodes.append(self.node)
        try:
            yield
        finally:
            self.loops.pop()
            self.loop_nodes.pop()

    @contextmanager
    def named(self, target: str | None) -> Iterator[None]:
        """What is stored next is called so: after a variable, or what the source says."""
        before, self.target = self.target, target
        try:
            yield
        finally:
            self.target = before


def error_class(kind: str) -> type[BaseException]:
    """The class of errors of a name; of one that a program has itself, the most general one."""
    found = getattr(builtins, kind, None) or getattr(np.linalg, kind, Exception)
    return found if isinstance(found, type) else Exception


def shape_text(shape: Sequence[Length]) -> str:
    """A shape in a message."""
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def told(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Tensor):
        return f"an array of the shape {shape_text(value.shape)}"
    if callable(value):
        return f"the function {getattr(value, '__name__', value)}"
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"
