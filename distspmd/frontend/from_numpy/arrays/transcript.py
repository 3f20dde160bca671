"""Where a program is written down while it is read: containers, statements, and what is known."""

from __future__ import annotations

import ast
import builtins
import copy
import errno
import functools
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Expression, apply
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.states import (
    Assumptions,
    Hooks,
    Links,
    ListFacts,
    MapContext,
    Program,
    refill,
)
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.kinds.nests import Nest
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


class CannotRoll(Exception):
    """A loop cannot stay one: something of it differs from iteration to iteration.

    Attributes:
        changed: the list that it changes, if that is why.
    """

    def __init__(self, reason: str, changed: Any = None) -> None:
        super().__init__(reason)
        self.changed = changed


class PartOfRow(Exception):
    """An array has a length that an element of a loop's row decides: a scope has to make it."""


class KnownError(Exception):
    """The body of a ``try`` ends in each run with an error that a handler of it takes.

    Attributes:
        flag: of that handler.
    """

    def __init__(self, flag: str, error: Exception) -> None:
        super().__init__(str(error))
        self.flag = flag


@dataclass
class Transcript:
    """A program as far as it is read.

    Attributes:
        program: what is written down.
        known: what is known of numbers.
        map: the maps around.
        lists: what is known of lists whose content the run decides.
        links: who sees the same elements.
        hooks: what is asked of rooms above.
        frames: of the functions that are being read, the innermost one last.
        node: the syntax that is being read.
        guarded: whether what is read may not happen, so that indices have to stay inside.
        guards: the conditions by which it happens, as far as they are known.
        journals: what becomes of lists and dictionaries in the blocks around.
        target: the variable that is assigned to, whose name a container takes.
        inner: how many blocks are around the one that is read: branches and loops.
        ended: whether the block that is read has come to a ``raise``.
        nest: the loops that are being read, and the kinds of what they carry.
        loops: the most iterations of the loops around; None where that is not known.
        loop_nodes: the syntax of these loops.
        takes_rows: whether parts of rows can have a scope of their own (``reader/row_parts.py``).
        in_row: the block around one that is read, and how many blocks are around that.
    """

    program: Program = field(default_factory=Program)
    known: Assumptions = field(default_factory=Assumptions)
    map: MapContext = field(default_factory=MapContext)
    lists: ListFacts = field(default_factory=ListFacts)
    links: Links = field(default_factory=Links)
    hooks: Hooks = field(default_factory=Hooks)
    frames: list[Frame] = field(default_factory=list)
    node: Any = None
    guarded: int = 0
    guards: list[Expression] = field(default_factory=list)
    journals: list[Any] = field(default_factory=list)
    target: str | None = None
    inner: int = 0
    ended: bool = False
    nest: Nest = field(default_factory=Nest)
    loops: list[Length | None] = field(default_factory=list)
    loop_nodes: list[Any] = field(default_factory=list)
    takes_rows: bool = False
    in_row: tuple[Block, int] | None = None

    def saved(self) -> Callable[[], None]:
        """What puts back what a trial changes."""
        parts = (self.program, self.known, self.map, self.lists, self.links)
        saved = [(each, copy.copy(each)) for part in parts for each in part.changed_by_trials()]

        def put_back() -> None:
            for each, content in saved:
                refill(each, content)

        return put_back

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
                if handlers.block is self.program.block and not self.guarded:
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
        return is_at_least(value, 0, self.known.bounds) or any(
            is_at_least(subtract(value, fact), 0, self.known.bounds) for fact in self.known.facts
        )

    @contextmanager
    def where(self, facts: Sequence[sympy.Expr]) -> Iterator[None]:
        """Read what runs only where some numbers are not negative."""
        known = len(self.known.facts)
        self.known.facts += facts
        try:
            yield
        finally:
            del self.known.facts[known:]

    # -- names and containers -------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """A name that nothing has."""
        base = re.sub(r"\W", "_", name) or "t"
        if base[0].isdigit():
            base = f"_{base}"
        if is_word_of_cpp(base):
            base = f"{base}_"
        found, count = base, self.program.counts.get(base, 0)
        while found in self.program.names:
            count += 1
            found = f"{base}_{count}"
        self.program.counts[base] = count
        self.program.names.add(found)
        return found

    def release(self, name: str) -> None:
        """Let a name be had again."""
        self.program.names.discard(name)
        self.program.counts.clear()

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
            of_loop = {s.name for power in powers for s in power.exp.free_symbols} & {
                *self.known.bounds
            }
            if of_loop or (not self.map.own and is_decided_by_data(extent, self.known.bounds)):
                raise CannotRoll(f"{name!r} has the length {extent} in it")
        found = Container(self.unique(name), tuple(shape), np.dtype(dtype))
        if self.map.own:
            self.map.own[-1].add(found.name)
        return found

    def add(self, statement: Statement) -> None:
        """Add a statement."""
        if self.map.straight is not None:
            self.map.straight.leave()
        self.program.last = self.line or self.program.last
        statement.line = self.program.last
        self.program.block.statements.append(statement)
        known = {**self.known.tables, **self.known.formulas}
        for container in statement.writes() if known else ():
            if container in known and not isinstance(statement, Table):
                if container in self.known.relied_on:
                    raise TableChanges(self.known.counted.index(container))
                self.known.tables.pop(container, None)
                self.known.formulas.pop(container, None)

    @contextmanager
    def binding(self) -> Iterator[None]:
        """Add statements that give variables their values, and change no array."""
        first = len(self.program.block.statements)
        yield
        for statement in self.program.block.statements[first:]:
            statement.binds = True

    def parallel_above(self, container: Container) -> list[str]:
        """Parameters of the maps that are inside of the place where a container was made."""
        depth = next(
            (n + 1 for n, own in reversed(list(enumerate(self.map.own))) if container.name in own),
            0,
        )
        return [name for level, names in self.map.parallel if level >= depth for name in names]

    def ordered_kernel(
        self, stores: list[Store], parameters: Sequence[Parameter], label: str
    ) -> None:
        """Add a kernel whose iterations may write one element, of which the last one wins."""
        if self.map.straight is not None:
            self.map.straight.leave()
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
        before, self.program.block = self.program.block, block
        self.inner += 1
        try:
            yield block
        finally:
            self.program.block = before
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
    def taking_rows(self, takes: bool = True) -> Iterator[None]:
        """Let parts of rows have scopes of their own; or let them not."""
        before, self.takes_rows = self.takes_rows, takes
        try:
            yield
        finally:
            self.takes_rows = before

    def leave_rows(self, *lengths: Whole) -> None:
        """Say that an array is to be made of which an element of a loop's row decides a length.

        Raises:
            PartOfRow: a scope of its own can make it.
        """
        is_plain = not self.map.own and not self.map.parallel and self.map.straight is None
        if not self.takes_rows or not is_plain:
            return
        symbols = {s.name for n in lengths if isinstance(n, sympy.Basic) for s in n.free_symbols}
        symbols = {s for s in symbols if self.known.bounds.get(s) == (None, None)}
        if symbols & self.known.rows:
            raise PartOfRow

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


def told(value: object) -> str:
    """A value in a message."""
    if isinstance(value, Tensor):
        return f"an array of the shape {shape_text(value.shape)}"
    if callable(value):
        return f"the function {getattr(value, '__name__', value)}"
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"


_WORDS = """
abs alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue dace decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int int_ceil int_floor ipow long max min mutable
namespace new noexcept not not_eq nullptr operator or or_eq pow private protected public
register reinterpret_cast requires return short signed sizeof static static_assert static_cast
std struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_MACROS = "BUFSIZ EOF INFINITY MAXFLOAT NAN NULL RAND_MAX errno linux stderr stdin stdout unix"
_WORDS_OF_CPP = frozenset(
    [*_WORDS.split(), *_MACROS.split(), *errno.errorcode.values(), *signal.Signals.__members__]
)
_MACROS_OF_LIMITS = re.compile(
    r"(M|MPI|FE|CLOCK|SEEK|L?DBL|FLT|U?INT\w*|[SU]?CHAR|U?SHRT|U?L?LONG|S?SIZE|HUGE|PTRDIFF)_[A-Z]"
)


def is_word_of_cpp(name: str) -> bool:
    """Whether no container and no symbol is called so.

    These are keywords, functions that emitted code calls, and macros of the headers.
    """
    return name in _WORDS_OF_CPP or _MACROS_OF_LIMITS.match(name) is not None


class ReadProgramAgain(Exception):
    """What was found now had to be known from the beginning: the program is read again."""


class DrawsBefore(ReadProgramAgain):
    """A loop or branch draws first from the generator of a module."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self.module = module


class TableChanges(ReadProgramAgain):
    """A table changes of which numbers were taken as known."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def line_of_error(tracer: Transcript, kind: str) -> int:
    """The line with which the program ends here; below 0 if a handler would take all errors.

    Raises:
        Refusal: a handler around names the error.
    """
    line = tracer.line[1] if tracer.line else 0
    return -line if tracer.check_uncaught(kind) else line


def is_taken(tracer: Transcript, kind: str) -> bool:
    """Whether a handler that names an error takes it from what the statement computes."""
    frame, error = tracer.frames[-1], error_class(kind)
    handlers = frame.handlers_of(error)
    is_inside = frame.block is not tracer.program.block or frame.is_binding
    if handlers is None or handlers.takes_all(error) or is_inside:
        return False
    if tracer.guarded or tracer.map.parallel or tracer.map.straight is not None:
        return False
    return isinstance(frame.statement, ast.Assign | ast.AnnAssign)


class NeedsObject(ReadProgramAgain):
    """A variable is an object of Python: all that reads it is for Python."""

    def __init__(self, file: str, line: int, name: str) -> None:
        super().__init__(name)
        self.file, self.line, self.name = file, line, name
