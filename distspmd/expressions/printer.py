"""What printers of expressions have in common: one class and one table of forms for each target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

from distspmd.expressions.ir import (
    Argument,
    Call,
    Constant,
    Expression,
    IndexValue,
    Load,
    Operation,
)
from distspmd.expressions.operations import DType

Form: TypeAlias = "str | Mapping[str, str]"
"""A template of the arguments ``{0}``, ``{1}``, ... and of what :meth:`Printer.facts` gives; or one
for each kind of the result's type (NumPy's letters), of which "" is for all others."""


class Printer(ABC):
    """Prints expressions in a target language.

    Attributes:
        forms: of each operation, its text in the language.
    """

    forms: ClassVar[Mapping[str, Form]]

    def __init__(self, variables: Mapping[Any, str] | None = None) -> None:
        """A printer.

        Args:
            variables: what the variables of indices are called in the language; others keep the
                names that they have.
        """
        self.variables = variables or {}
        self._texts: dict[int, str] = {}
        self._alive: list[Expression] = []

    def text(self, expression: Expression) -> str:
        """An expression in the language."""
        found = self._texts.get(id(expression))
        if found is None:
            found = self._texts[id(expression)] = self._printed(expression)
            self._alive.append(expression)  # its identity is its key
        return found

    def _printed(self, node: Expression) -> str:
        if isinstance(node, Argument):
            return self.argument(node)
        if isinstance(node, Load):
            return self.load(node)
        if isinstance(node, IndexValue):
            return self.index(node)
        if isinstance(node, Constant):
            return self.constant(node)
        arguments = [self.text(argument) for argument in node.arguments]
        if isinstance(node, Call):
            return self.call(node, arguments)
        return self.operation(node, arguments)

    def operation(self, node: Operation, arguments: list[str]) -> str:
        """An operation on arguments that are printed."""
        form = self.forms[node.name]
        if not isinstance(form, str):
            form = form.get(node.dtype.kind, form.get("", ""))
        return form.format(*arguments, **self.facts(node.dtype))

    def call(self, node: Call, arguments: list[str]) -> str:
        """A function that is in no table."""
        return f"{node.function}({', '.join(arguments)})"

    def facts(self, dtype: DType) -> dict[str, Any]:
        """What templates may name of the type of the result."""
        return {"type": self.type_name(dtype)}

    def argument(self, node: Argument) -> str:
        """A value with a name."""
        return node.name

    def index_sum(self, node: IndexValue) -> str:
        """The sum that an index is."""
        names = [(self.variables.get(v, str(v)), factor) for v, factor in node.terms]
        terms = [name if factor == 1 else f"{name} * {factor}" for name, factor in names]
        if node.constant or not terms:
            terms.append(str(node.constant))
        return " + ".join(terms)

    def load(self, node: Load) -> str:
        """An element of an array.

        Raises:
            TypeError: by default: whoever emits code gives loads names first.
        """
        raise TypeError(f"the load of {node.array} has no name.")

    @abstractmethod
    def index(self, node: IndexValue) -> str:
        """The value of an index."""

    @abstractmethod
    def constant(self, node: Constant) -> str:
        """A number."""

    @abstractmethod
    def type_name(self, dtype: DType) -> str:
        """Name of a type."""
