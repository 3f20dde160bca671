"""How code depends on some of the values that it reads: on which sums of them, if on nothing else.

Such a value, a *leaf*, is followed through assignments as part of a *form*: a linear combination of
leaves, perhaps with something else added. A form ends where it is *consumed*, by what is not linear
or by a result. Code that consumes leaves only together, with factors whose ratios are always the
same numbers, computes the same if their weighted sum is given for one of them, and zero for the
others. What is not understood consumes each leaf by itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Leaf: TypeAlias = Hashable
Number: TypeAlias = int | float | complex


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


@dataclass(frozen=True)
class Statement:
    """An assignment; ``value`` is None where it is no expression that is understood.

    Attributes:
        target: the name, which is assigned once.
        value: what is assigned.
        names: all names in it.
        keeps_type: whether it is stored in the type of the leaves, as far as that is known.
    """

    target: str
    value: ast.expr | None
    names: tuple[str, ...]
    keeps_type: bool = True


def of_python(body: Sequence[ast.stmt]) -> list[Statement] | None:
    """The assignments of a body; None if it is more than those of names, each once."""
    found = []
    for line in body:
        if not (isinstance(line, ast.Assign) and len(line.targets) == 1):
            return None
        (target,) = line.targets
        if not isinstance(target, ast.Name):
            return None
        found.append(Statement(target.id, line.value, ()))
    return found if len({s.target for s in found}) == len(found) else None


_ASSIGNMENT = re.compile(r"\s*(?:const\s+([\w:<> ]+?)\s+)?(\w+)\s*=(?!=)\s*(.*?)\s*\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


def of_cpp(text: str, ctype: str) -> list[Statement] | None:
    """The assignments of C++ code; None if it is more than those of names, each once."""
    if re.search(r"[{}\[\]]|\b(?:if|for|while|return)\b|[-+*/%&|^]=|\+\+|--", text):
        return None
    found = []
    for line in text.split(";"):
        if not line.strip():
            continue
        match = _ASSIGNMENT.match(line)
        if match is None:
            return None
        declared, target, value = match.groups()
        keeps = declared in (None, ctype, "auto")
        found.append(Statement(target, of_expression(value), tuple(_NAME.findall(value)), keeps))
    return found if len({s.target for s in found}) == len(found) else None


def of_expression(text: str) -> ast.expr | None:
    """An expression of C++ that Python writes alike."""
    try:
        return ast.parse(text.replace("std::", "std.").strip(), mode="eval").body
    except SyntaxError:
        return None


@dataclass
class Tracker:
    """Follows leaves through code.

    Attributes:
        casts: names of functions that convert to the type of the leaves.
        kind: of that type, NumPy's letter; a product of whole numbers with a fraction would be cut.
        consumed: the forms that were consumed.
        is_linear: whether all results are linear combinations of leaves, and nothing else.
    """

    casts: Collection[str]
    kind: str
    consumed: list[Form] = field(default_factory=list)
    is_linear: bool = True

    def run(
        self, code: Sequence[Statement], known: Mapping[str, Form], scope: str
    ) -> dict[str, Form]:
        """Forms of all names after the assignments.

        Args:
            code: the assignments.
            known: forms of names before; others are no leaves.
            scope: what tells names of this code from equal names of another one.
        """
        forms = dict(known)
        for line in code:
            if line.value is None:
                for name in line.names:
                    self.consume(forms.get(name, FREE))
                forms[line.target] = FREE
                continue
            form = self._form(line.value, forms, scope)
            if not line.keeps_type:
                self.consume(form)
                form = FREE
            forms[line.target] = form
        return forms

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

    def _form(self, node: ast.expr, forms: Mapping[str, Form], scope: str) -> Form:
        if isinstance(node, ast.Name):
            return forms.get(node.id, FREE)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            sign = -1 if isinstance(node.op, ast.USub) else 1
            return self._form(node.operand, forms, scope).times(sign)
        if isinstance(node, ast.BinOp):
            left, right = (self._form(side, forms, scope) for side in (node.left, node.right))
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return self._sum(left, right.times(-1 if isinstance(node.op, ast.Sub) else 1))
            return self._product(node, left, right, scope)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            form = self._form(node.args[0], forms, scope)
            if ast.unparse(node.func) in self.casts:
                return form
            self.consume(form)
            return FREE
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.consume(self._form(child, forms, scope))
        return FREE

    def _sum(self, left: Form, right: Form) -> Form:
        if left.factors.keys() & right.factors.keys():
            self.consume(left)
            self.consume(right)
            return FREE
        return Form({**left.factors, **right.factors}, left.rest or right.rest)

    def _product(self, node: ast.BinOp, left: Form, right: Form, scope: str) -> Form:
        if isinstance(node.op, ast.Mult) and not (left.factors and right.factors):
            form, other = (right, node.left) if right.factors else (left, node.right)
            number = self._number(other)
            if number is not None:
                return form.times(number)
            if not self.whole:
                return form.times(1, f"{scope}: {ast.unparse(other)}")
        if isinstance(node.op, ast.Div) and not right.factors and not self.whole:
            number = self._number(node.right)
            if number:
                return left.times(1 / number)
            return left.times(1, f"{scope}: 1 / {ast.unparse(node.right)}")
        self.consume(left)
        self.consume(right)
        return FREE

    @property
    def whole(self) -> bool:
        """Whether the leaves are whole numbers."""
        return self.kind in "iu"

    def _number(self, node: ast.expr) -> Number | None:
        """The value of a constant, also of one that is converted to the type of the leaves."""
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            return self._number(node.args[0]) if ast.unparse(node.func) in self.casts else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self._number(node.operand)
            return None if number is None else -number
        allowed = {"f": (int, float), "c": (int, float, complex)}.get(self.kind, (int,))
        value = node.value if isinstance(node, ast.Constant) else None
        return value if type(value) in allowed else None  # type: ignore[return-value]


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
