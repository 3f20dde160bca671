"""Derivatives of expressions, as expressions.

Where a function has no derivative, at a kink, it is what torch says: halves of both sides for the
larger of two equal values, zero for the absolute value of zero.
"""

from __future__ import annotations

from distspmd.expressions.ir import (
    Argument,
    Call,
    Constant,
    Expression,
    Functions,
    IndexValue,
    Load,
    Operation,
    Scalar,
    names,
    rebuilt,
)
from distspmd.expressions.operations import OPERATIONS


class NoDerivative(Exception):
    """An expression whose derivative is not known."""

    def __init__(self, expression: Expression) -> None:
        super().__init__(str(expression))
        self.expression = expression


def derivative(expression: Expression, name: str) -> Expression | None:
    """The derivative of an expression by an argument; None where it is zero everywhere.

    Raises:
        NoDerivative: it is not known.
    """
    return _Derivation(name).of(expression)


class _Derivation:
    """Derives by one argument; parts that are shared are derived once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._known: dict[int, Expression | None] = {}

    def of(self, node: Expression) -> Expression | None:
        if id(node) not in self._known:
            self._known[id(node)] = self._derived(node)
        return self._known[id(node)]

    def _derived(self, node: Expression) -> Expression | None:
        if isinstance(node, Argument):
            return Constant(1.0, node.dtype) if node.name == self.name else None
        if isinstance(node, Load | IndexValue | Constant):
            return None
        if isinstance(node, Call):
            if self.name in names(node):
                raise NoDerivative(node)
            return None
        kind = OPERATIONS[node.name]
        if kind.is_step or all(self.of(argument) is None for argument in node.arguments):
            return None  # of a step also where its arguments have no known derivative
        if kind.chooses:
            return self._of_choice(node, kind.chooses)
        if node.name in _RULES:
            return _RULES[node.name](self, node)
        return self._by_table(node)

    def _by_table(self, node: Operation) -> Expression | None:
        rule = OPERATIONS[node.name].derivative
        if rule is None:
            raise NoDerivative(node)
        found = None
        slopes = rule(Functions(node.dtype), node, *node.arguments)
        for argument, slope in zip(node.arguments, slopes, strict=True):
            inner = self.of(argument)
            found = total(found, None if inner is None else product(inner, slope))
        return found

    def _of_choice(self, node: Operation, count: int) -> Expression:
        tests, branches = node.arguments[:-count], node.arguments[-count:]
        slopes = (self.of(branch) or Constant(0.0, node.dtype) for branch in branches)
        return rebuilt(node, (*tests, *slopes))

    def sum(self, node: Operation) -> Expression | None:
        left, right = map(self.of, node.arguments)
        return total(left, right)

    def difference(self, node: Operation) -> Expression | None:
        left, right = map(self.of, node.arguments)
        return difference(left, right)

    def negation(self, node: Operation) -> Expression | None:
        inner = self.of(node.arguments[0])
        return None if inner is None else -inner

    def conversion(self, node: Operation) -> Expression | None:
        """Whole numbers are steps."""
        return self.of(node.arguments[0]) if node.dtype.kind in "fc" else None

    def product(self, node: Operation) -> Expression | None:
        left, right = node.arguments
        return total(_times(self.of(left), right), _times(self.of(right), left))

    def quotient(self, node: Operation) -> Expression | None:
        left, right = node.arguments
        by_left, by_right = map(self.of, node.arguments)
        over = None if by_left is None else by_left / right
        return difference(over, _times(by_right, left / (right * right)))

    def power(self, node: Operation) -> Expression | None:
        base, exponent = node.arguments
        inner, value = self.of(base), constant_value(exponent)
        if value is None or isinstance(value, complex):
            return self._by_table(node)
        if value == 0:
            return None
        return _times(inner, 2 * base if value == 2 else value * base ** (value - 1))


_RULES = {
    "add": _Derivation.sum,
    "subtract": _Derivation.difference,
    "negative": _Derivation.negation,
    "cast": _Derivation.conversion,
    "multiply": _Derivation.product,
    "divide": _Derivation.quotient,
    "power": _Derivation.power,
}


def constant_value(node: Expression) -> Scalar | None:
    """The number that an expression is, also one with a sign or a type; None if it is none."""
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Operation) and node.name in ("cast", "negative"):
        value = constant_value(node.arguments[0])
        if value is None or node.name == "negative":
            return None if value is None else -value
        return value if node.dtype.kind in "fc" or isinstance(value, complex) else int(value)
    return None


def product(left: Expression, right: Expression) -> Expression:
    """A product without factors of one."""
    if _is_one(right):
        return left
    return right if _is_one(left) else left * right


def total(left: Expression | None, right: Expression | None) -> Expression | None:
    """A sum; None stands for zero."""
    if left is None or right is None:
        return left if right is None else right
    return left + right


def difference(left: Expression | None, right: Expression | None) -> Expression | None:
    """A difference; None stands for zero."""
    if right is None:
        return left
    return -right if left is None else left - right


def _times(left: Expression | None, right: Expression) -> Expression | None:
    return None if left is None else product(left, right)


def _is_one(node: Expression) -> bool:
    return isinstance(node, Constant) and node.value == 1
