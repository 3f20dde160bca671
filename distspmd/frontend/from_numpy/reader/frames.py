"""Functions that are being read: their variables, their handlers, their place in the source."""

from __future__ import annotations

import ast
import functools
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from distspmd.frontend.tensor_ir.statements import Block


@dataclass
class Handlers:
    """Those of a ``try`` whose body is being read.

    Attributes:
        kinds: the classes of errors that each one takes.
        flags: the variables that say which one runs.
        block: what the body is written into; None of handlers around a call.
    """

    kinds: Sequence[tuple[type[BaseException], ...]]
    flags: Sequence[str]
    block: Block | None = None

    def flag_of(self, error: type[BaseException]) -> str | None:
        """The flag of the handler that takes an error; None if no one does."""
        pairs = zip(self.kinds, self.flags, strict=True)
        return next((flag for kinds, flag in pairs if issubclass(error, kinds)), None)

    def takes_all(self, error: type[BaseException]) -> bool:
        """Whether the handler that takes an error takes every other one, too."""
        kinds = next(each for each in self.kinds if issubclass(error, each))
        return issubclass(Exception, kinds)


@dataclass(frozen=True)
class Origin:
    """Where syntax comes from that is read in another function than its own."""

    file: str
    first_line: int
    source: Sequence[str]

    def __deepcopy__(self, memo: object) -> Origin:
        return self


@dataclass
class Yielded:
    """What a generator that is read to its end has given so far.

    Attributes:
        at_once: whether the program reads it to its end at this place too.
        inner: how many blocks are around the place.
        block: where statements were added there.
        statements: how many there were.
        values: that it has given.
    """

    at_once: bool
    inner: int
    block: Block
    statements: int
    values: list[Any] = field(default_factory=list)

    def has_only_given(self, block: Block) -> bool:
        """Whether it has computed nothing but values that are known."""
        return block is self.block and len(block.statements) == self.statements


@dataclass
class Frame:
    """The variables of a function that is being read.

    Attributes:
        variables: by name.
        file: of the function.
        first_line: where it begins there.
        source: its lines.
        target: what its result is called.
        written_into: names of variables of which it assigns parts.
        changed_in_place: these, and those that it changes as ``x += 1`` and ``x.sort()`` do.
        attempts: the handlers of the ``try`` statements around, the innermost one last.
        statement: that is being read.
        block: where statements are added there.
        is_binding: whether the statement puts what it has computed into a part of something.
        outside: what the function sees of its module, and of functions that have ended.
        receiver: its first argument, which is the object of a method.
        around: the frame of the function in which it was defined.
        yielded: what a generator has given so far that is read to its end.
        comprehensions: those around, with the last values of their variables once they are done.
        reads: how often the function reads each variable; None where that is not known.
        loops: that are being read, the outermost one first.
        body: the statements of the function, as they are written.
        called_at: the syntax of the call, of a function of ours that stands for one of Python's.
        name: of the function; empty of a lambda.
        place: the file, the line and the name of the function.
        inner: how many blocks are around the call.
        line: of the function.
        objects: names of the objects of Python that its variables are, by these.
    """

    variables: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    first_line: int = 0
    source: Sequence[str] = ()
    target: str | None = None
    written_into: frozenset[str] = frozenset()
    changed_in_place: frozenset[str] = frozenset()
    attempts: list[Handlers] = field(default_factory=list)
    statement: Any = None
    block: Block | None = None
    is_binding: bool = False
    receiver: Any = None
    outside: Mapping[str, Any] = field(default_factory=dict)
    around: Frame | None = None
    yielded: Yielded | None = None
    comprehensions: list[dict[str, Any]] = field(default_factory=list)
    reads: Counter[str] | None = None
    loops: list[Any] = field(default_factory=list)
    body: Sequence[ast.stmt] = ()
    called_at: Any = None
    name: str = ""
    place: tuple[Any, ...] = ()
    inner: int = 0
    line: int = 0
    objects: dict[str, str] = field(default_factory=dict)

    @functools.cached_property
    def ends_at_return(self) -> bool:
        """Whether nothing of the function runs behind a return: no ``finally``, and no ``with``."""
        parts = [part for statement in self.body for part in ast.walk(statement)]
        tried = any(isinstance(part, ast.Try) and part.finalbody for part in parts)
        return not tried and not any(isinstance(part, ast.With) for part in parts)

    @contextmanager
    def binding(self) -> Iterator[None]:
        """Put what a statement has computed into a part of something."""
        before, self.is_binding = self.is_binding, True
        try:
            yield
        finally:
            self.is_binding = before

    def take_place_of(self, other: Frame) -> None:
        """Let what is said here, of results say, be said of the lines of another function."""
        self.file, self.first_line, self.source = other.file, other.first_line, other.source

    def flag_of(self, error: type[BaseException]) -> str | None:
        """The flag of the handler in this function that takes an error; None if none does."""
        found = self.handlers_of(error)
        return None if found is None else found.flag_of(error)

    def handlers_of(self, error: type[BaseException]) -> Handlers | None:
        """The handlers in this function one of which takes an error; None if none does."""
        every = reversed(self.attempts)
        return next((each for each in every if each.flag_of(error) is not None), None)


def in_program(node: object, frames: Sequence[Frame]) -> tuple[Any, Any]:
    """Syntax in the innermost function, and that function, as the user sees them.

    Args:
        node: the syntax that is being read.
        frames: the functions; of ours that stand for Python's the user sees the call.
    """
    place = len(frames) - 1
    while place and frames[place].called_at is not None:
        node, place = frames[place].called_at, place - 1
    return node, getattr(node, "origin", frames[place])


@dataclass(eq=False)
class Closure:
    """A function that the program defines.

    Attributes:
        node: its syntax.
        frame: of the function around.
        defaults: of its arguments.
        scopes: variables of the comprehensions around, once these are done.
    """

    node: ast.FunctionDef | ast.Lambda
    frame: Frame
    defaults: Mapping[str, Any]
    scopes: tuple[Mapping[str, Any], ...] = ()

    @property
    def __name__(self) -> str:
        return getattr(self.node, "name", "lambda")

    def __get__(self, owner: object, kind: object = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *_: object, **__: object) -> Any:
        """Never: a program reads its functions."""
        raise TypeError(f"{self.__name__} is a function of the program, which is read, not called")
