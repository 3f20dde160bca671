"""A reading of a program, as all see it who say what a part of the program becomes.

What reads statements, expressions, functions and methods is given one. So none of it has to know
the interpreter, which knows all of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.arrays.tracer import Tracer
    from distspmd.frontend.from_numpy.reader.frames import Frame
    from distspmd.frontend.tensor_ir.whole_numbers import Whole


class Context(Protocol):
    """A reading of a program; the interpreter says what each attribute and method is."""

    tracer: Tracer
    functions: Mapping[Any, Callable[..., Any]]
    methods: Mapping[str, Callable[..., Any]]
    sizes: dict[str, Whole]
    sizes_read: set[str]
    depth: int
    fixes_numbers: bool
    bodies: dict[tuple[ast.FunctionDef, tuple[str, ...]], list[ast.stmt]]
    known_calls: dict[tuple[Any, ...], Any]
    inlined: dict[ast.For, Any]
    inner_calls: int
    computed_with: ast.expr | None
    streams: dict[str, Any]
    hosting: Any

    @property
    def variables(self) -> dict[str, Any]:
        """Those of the function that is being read."""

    def run_function(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """What a function of Python returns."""

    def run_body(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Any:
        """What the statements of a function return, with the variables of a frame."""

    def call(self, function: object, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What a call gives."""

    def variables_of(self, known: dict[str, Any]) -> AbstractContextManager[None]:
        """Read with other variables."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Read statements in order."""

    def statement(self, node: ast.stmt) -> None:
        """Read a statement."""

    def bind(self, target: ast.expr, value: object) -> None:
        """Assign to a target."""

    def write_part(self, base: object, items: object, value: object) -> None:
        """``base[items] = value`` of an array."""

    def writable(self, node: ast.expr) -> Any:
        """What is assigned into."""

    def settled_parts(self, values: object) -> Any:
        """A list, tuple or dictionary whose tensors are stored."""

    def unpacked(self, value: object, like: ast.expr | None) -> Sequence[Any]:
        """The values that are assigned to several targets."""

    def kept(self, name: str, value: object) -> Any:
        """What a variable stands for."""

    def truth(self, value: object) -> bool | None:
        """Whether a value is true; None where that is not known."""

    def value(self, node: ast.expr) -> Any:
        """The value of an expression."""

    def present(self, node: ast.expr) -> Any:
        """The value of an expression that is computed with."""

    def whatever(self, node: ast.expr) -> Any:
        """The value of an expression, which may be None."""

    def assigned(self, node: ast.expr) -> Any:
        """The value of an expression that is assigned to what the tracer names."""

    def part_of(self, base: object, items: object) -> Any:
        """``base[items]``."""

    def outside(self, name: str, value: object) -> Any:
        """What a name outside of the program stands for."""

    def binary(self, op: ast.operator, left: object, right: object) -> Any:
        """What an operator gives."""

    def attribute(self, base: object, name: str) -> Any:
        """An attribute of a value."""

    def subscript(self, node: ast.expr) -> Any:
        """What stands in the brackets of an expression."""
