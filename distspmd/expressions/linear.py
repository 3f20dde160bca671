"""How code depends on some of the values that it reads: on which sums of them, if on nothing else.

Such a value, a *leaf*, is followed through expressions as part of a *form*: a linear combination of
leaves, perhaps with something else added. A form ends where it is *consumed*, by what is not linear
or by a result. Code that consumes leaves only together, with factors whose ratios are always the
same numbers, computes the same if their weighted sum is given for one of them, and zero for the
others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from distspmd.expressions.derivatives import difference, total
from distspmd.expressions.ir import (
    Argument,
    Constant,
    Expression,
    Operation,
    names,
)
from distspmd.expressions.operations import OPERATIONS, DType

Leaf: TypeAlias = Hashable
Number: TypeAlias = "int | float | complex"


@dataclass(frozen=True)
class Factor:
    """What a leaf is multiplied by: a number, and other values by what is written for them."""

    number: Number = 1
    values: tuple[str, ...] = ()

    def times(self, number: Number, *values: str) -> Factor:
        """The product with a number and more values."""
        return Factor(self.number * number, tuple(sorted((*self.values, *values))))


@dataclass(frozen=True)
class Form:
    """Leaves with their factors, added up; ``rest`` says whether something else is added."""

    factors: Mapping[Leaf, Factor]
    rest: bool = False

    def times(self, number: Number, *values: str) -> Form:
        """The product with a number and values that are no leaves."""
        return Form({x: f.times(number, *values) for x, f in self.factors.items()}, self.rest)


FREE = Form({}, True)
"""A value that is not followed."""


@dataclass
class Tracker:
    """Follows leaves through expressions.

    Attributes:
        dtype: the type of the leaves; a product of whole numbers with a fraction would be cut.
        consumed: the forms that were consumed.
        is_linear: whether all results are linear combinations of leaves, and nothing else.
    """

    dtype: DType
    consumed: list[Form] = field(default_factory=list)
    is_linear: bool = True

    def form(
        self,
        expression: Expression,
        forms: Mapping[str, Form],
        scope: str,
        known: dict[int, Form] | None = None,
    ) -> Form:
        """The form of an expression.

        Args:
            expression: of arguments.
            forms: of arguments by their names; others are no leaves.
            scope: what tells names of this code from equal names of another one.
            known: forms by the identity of expressions, for such that share parts.
        """
        known = {} if known is None else known
        if id(expression) not in known:
            known[id(expression)] = self._form(expression, forms, scope, known)
        return known[id(expression)]

    def consume(self, form: Form) -> None:
        """Something that is not linear takes a value."""
        if form.factors:
            self.consumed.append(form)
            self.is_linear = False

    def leave(self, form: Form) -> None:
        """A value is a result."""
        if form.factors:
            self.consumed.append(form)
        if form.rest:
            self.is_linear = False

    @property
    def whole(self) -> bool:
        """Whether the leaves are whole numbers."""
        return self.dtype.kind in "iu"

    def _form(
        self, node: Expression, forms: Mapping[str, Form], scope: str, known: dict[int, Form]
    ) -> Form:
        if isinstance(node, Argument):
            return forms.get(node.name, FREE)
        inner = [self.form(argument, forms, scope, known) for argument in node.arguments]
        if not isinstance(node, Operation):
            return self._ended(*inner)
        found = self._combined(node, inner, scope)
        return found if node.dtype == self.dtype else self._ended(found)

    def _combined(self, node: Operation, inner: Sequence[Form], scope: str) -> Form:
        how = OPERATIONS[node.name].linear
        if how == "conversion" and node.dtype == self.dtype:
            return inner[0]
        if how == "negation":
            return inner[0].times(-1)
        if how in ("sum", "difference"):
            return self._sum(inner[0], inner[1].times(-1 if how == "difference" else 1))
        if how == "product" and not (inner[0].factors and inner[1].factors):
            return self._product(node, inner, scope)
        if how == "quotient" and not inner[1].factors and not self.whole:
            number = self._number(node.arguments[1])
            if number:
                return inner[0].times(1 / number)
            return inner[0].times(1, f"{scope}: 1 / {node.arguments[1]}")
        return self._ended(*inner)

    def _ended(self, *forms: Form) -> Form:
        for form in forms:
            self.consume(form)
        return FREE

    def _sum(self, left: Form, right: Form) -> Form:
        if left.factors.keys() & right.factors.keys():
            return self._ended(left, right)
        return Form({**left.factors, **right.factors}, left.rest or right.rest)

    def _product(self, node: Operation, inner: Sequence[Form], scope: str) -> Form:
        place = 1 if inner[1].factors else 0
        form, other = inner[place], node.arguments[1 - place]
        number = self._number(other)
        if number is not None:
            return form.times(number)
        if self.whole:
            return self._ended(*inner)
        return form.times(1, f"{scope}: {other}")

    def _number(self, node: Expression) -> Number | None:
        """The value of a constant, also of one that is converted to the type of the leaves."""
        if isinstance(node, Operation) and node.name == "cast" and node.dtype == self.dtype:
            return self._number(node.arguments[0])
        if isinstance(node, Operation) and node.name == "negative":
            number = self._number(node.arguments[0])
            return None if number is None else -number
        allowed = {"f": (int, float), "c": (int, float, complex)}.get(self.dtype.kind, (int,))
        value = node.value if isinstance(node, Constant) else None
        return value if type(value) in allowed else None


def sums(consumed: Sequence[Form]) -> Iterator[dict[Leaf, Number]]:
    """The largest sums that stand for their leaves wherever these are consumed.

    Each is given by two leaves or more, with their weights up to a common factor.
    """
    alike: dict[Hashable, dict[Leaf, Number]] = {}
    for leaf in dict.fromkeys(leaf for form in consumed for leaf in form.factors):
        factors = [(n, f.factors[leaf]) for n, f in enumerate(consumed) if leaf in f.factors]
        first = factors[0][1].number
        if first != 0:
            key = tuple((n, factor.number / first, factor.values) for n, factor in factors)
            alike.setdefault(key, {})[leaf] = first
    yield from (leaves for leaves in alike.values() if len(leaves) > 1)


def weights(numbers: Sequence[Number], whole: bool) -> list[Number | None]:
    """Numbers divided by the first; None for fractions where weights shall be whole numbers."""
    found = [_ratio(number, numbers[0]) for number in numbers]
    return [None if whole and type(ratio) is not int else ratio for ratio in found]


def _ratio(number: Number, first: Number) -> Number:
    if isinstance(number, int) and isinstance(first, int) and number % first == 0:
        return number // first
    ratio = number / first
    return int(ratio) if isinstance(ratio, float) and ratio.is_integer() else ratio


def linear_in(
    expression: Expression, name: str
) -> tuple[Expression | None, Expression | None] | None:
    """The factor and the rest of ``factor * name + rest``; None if an expression is no such sum.

    A factor or rest of None is zero. Neither has the name.
    """
    if name not in names(expression):
        return None, expression
    if isinstance(expression, Argument):
        return Constant(1, expression.dtype), None
    if not isinstance(expression, Operation):
        return None
    how = OPERATIONS[expression.name].linear
    inner = [linear_in(argument, name) for argument in expression.arguments]
    if not how or None in inner:
        return None
    return _linear(how, expression, inner)  # type: ignore[arg-type]


def _linear(
    how: str, node: Operation, inner: list[tuple[Expression | None, Expression | None]]
) -> tuple[Expression | None, Expression | None] | None:
    factor, rest = inner[0]
    if how == "negation":
        return _negative(factor), _negative(rest)
    if how == "conversion":
        wide = node.dtype == node.arguments[0].dtype
        return (factor, rest) if wide else None
    other, more = inner[1]
    if how == "sum":
        return total(factor, other), total(rest, more)
    if how == "difference":
        return difference(factor, other), difference(rest, more)
    if how == "product" and other is None:
        right = node.arguments[1]
        return _scaled(factor, right), _scaled(rest, right)
    if how == "product" and factor is None:
        left = node.arguments[0]
        return _scaled(other, left), _scaled(more, left)
    if how == "quotient" and other is None and node.dtype.kind in "fc":
        right = node.arguments[1]
        return _over(factor, right), _over(rest, right)
    return None


def _negative(part: Expression | None) -> Expression | None:
    return None if part is None else -part


def _scaled(part: Expression | None, by: Expression) -> Expression | None:
    return None if part is None else part * by


def _over(part: Expression | None, by: Expression) -> Expression | None:
    return None if part is None else part / by
