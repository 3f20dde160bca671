"""From the syntax trees of Python, as DaCe's tasklets have them, to expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from distspmd.expressions.ir import Argument, Call, Constant, Expression, Node, apply
from distspmd.expressions.operations import DType
from distspmd.expressions.python import GETITEM

Names: TypeAlias = Mapping[str, Expression]


class Unreadable(Exception):
    """Code that is more than expressions of elements; the text is the part that is."""

    def __init__(self, code: ast.AST) -> None:
        super().__init__(ast.unparse(code))


_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
    ast.And: "logical_and",
    ast.Or: "logical_or",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_SAME = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan"),
    *("sinh", "cosh", "tanh", "erf", "reciprocal", "floor", "ceil", "trunc", "sign"),
    *("fmod", "arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh"),
)
_CALLED = {
    **{name: name for name in _SAME},
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "abs": "absolute",
    "fabs": "absolute",
    "max": "maximum",
    "min": "minimum",
    "pow": "power",
    "round": "rint",
}
"""Operations by the names that functions have in tasklets."""
CONVERSIONS: dict[str, DType] = {
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"{s}int{b}": np.dtype(f"{s}int{b}") for s in ("", "u") for b in (8, 16, 32, 64)},
    **{f"complex{bits}": np.dtype(f"complex{bits}") for bits in (64, 128)},
    **{name: np.dtype(name) for name in ("half", "single", "double", "intc", "intp", "uintc")},
    **{name: np.dtype(name) for name in ("uintp", "longlong", "ulonglong", "float", "int", "bool")},
    "bool_": np.dtype(bool),
}
"""Types by the names of the functions that convert to them."""


def expression_of(code: ast.expr, known: Names, *, other: DType | None = None) -> Expression:
    """The expression of Python's syntax tree.

    Args:
        code: the tree.
        known: what names stand for.
        other: type of the names that are not known.

    Raises:
        Unreadable: it is no expression of elements.
    """
    return _Reader(known, other or np.dtype(np.int64)).of(code)


def assigned(body: Sequence[ast.stmt], known: Names, *, other: DType | None = None) -> Names:
    """What all names stand for after statements: assignments of names, and branches of such.

    Raises:
        Unreadable: there is another statement.
    """
    found = dict(known)
    for statement in body:
        _run(statement, found, other)
    return found


def _run(statement: ast.stmt, known: dict[str, Expression], other: DType | None) -> None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return
    if isinstance(statement, ast.If):
        test = expression_of(statement.test, known, other=other)
        first = assigned(statement.body, known, other=other)
        second = assigned(statement.orelse, known, other=other)
        for name in sorted(first.keys() & second.keys()):
            if first[name] != second[name]:
                known[name] = apply("where", test, first[name], second[name])
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name):
        raise Unreadable(statement)
    known[target.id] = expression_of(statement.value, known, other=other)


class _Reader:
    def __init__(self, known: Names, other: DType) -> None:
        self.known, self.other = known, other

    def of(self, node: ast.expr) -> Expression:
        read = _READERS.get(type(node))
        if read is None:
            raise Unreadable(node)
        return read(self, node)

    def _name(self, node: ast.expr) -> Expression:
        name = ast.unparse(node)
        return self.known.get(name) or Argument(name, self.other)

    def _constant(self, node: ast.Constant) -> Expression:
        if isinstance(node.value, bool | int | float | complex):
            return Constant(node.value, np.asarray(node.value).dtype)
        raise Unreadable(node)

    def _binary(self, node: ast.BinOp) -> Expression:
        if type(node.op) not in _BINARY:
            raise Unreadable(node)
        return promote_operands(_BINARY[type(node.op)], self.of(node.left), self.of(node.right))

    def _boolean(self, node: ast.BoolOp) -> Expression:
        return self._chain(_BINARY[type(node.op)], list(map(self.of, node.values)))

    def _chosen(self, node: ast.IfExp) -> Expression:
        return promote_operands(
            "where", self.of(node.test), self.of(node.body), self.of(node.orelse)
        )

    def _element(self, node: ast.Subscript) -> Expression:
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        array = self.of(node.value)
        return Call(GETITEM, (array, *map(self.of, index)), array.dtype)

    def _unary(self, node: ast.UnaryOp) -> Expression:
        inner = self.of(node.operand)
        if isinstance(node.op, ast.UAdd):
            return inner
        if isinstance(node.op, ast.USub):
            return apply("negative", inner)
        return apply("logical_not" if isinstance(node.op, ast.Not) else "invert", inner)

    @staticmethod
    def _chain(name: str, values: Sequence[Expression]) -> Expression:
        found, *others = values
        for value in others:
            found = apply(name, found, value)
        return found

    def _compared(self, node: ast.Compare) -> Expression:
        sides = list(map(self.of, [node.left, *node.comparators]))
        if not all(type(sign) in _BINARY for sign in node.ops):
            raise Unreadable(node)
        pairs = zip(node.ops, sides[:-1], sides[1:], strict=True)
        tests = [promote_operands(_BINARY[type(sign)], one, other) for sign, one, other in pairs]
        return self._chain("logical_and", tests)

    def _called(self, node: ast.Call) -> Expression:
        if node.keywords:
            raise Unreadable(node)
        spelled = ast.unparse(node.func)
        name, arguments = spelled.rpartition(".")[2], tuple(map(self.of, node.args))
        if name in CONVERSIONS and len(arguments) == 1:
            return apply("cast", *arguments, dtype=CONVERSIONS[name])
        if name in _CALLED:
            try:
                return promote_operands(_CALLED[name], *arguments)
            except ValueError:
                pass  # of another number of arguments: a function of the user's own
        common = np.result_type(*(a.dtype for a in arguments)) if arguments else self.other
        return Call(spelled, arguments, common)


_READERS: dict[type[ast.AST], Callable[..., Expression]] = {
    ast.Name: _Reader._name,
    ast.Attribute: _Reader._name,
    ast.Constant: _Reader._constant,
    ast.UnaryOp: _Reader._unary,
    ast.BinOp: _Reader._binary,
    ast.BoolOp: _Reader._boolean,
    ast.Compare: _Reader._compared,
    ast.IfExp: _Reader._chosen,
    ast.Call: _Reader._called,
    ast.Subscript: _Reader._element,
}


def promote_operands(name: str, *operands: Expression) -> Expression:
    """An operation; numbers among its operands take the type of the others, as NumPy says."""
    plain: list[Any] = [o.value if isinstance(o, Constant) else o for o in operands]
    types = [o.dtype for o in plain if isinstance(o, Node)]
    if len(types) in (0, len(operands)):
        return apply(name, *operands)
    try:
        common = np.result_type(*types, *(o for o in plain if not isinstance(o, Node)))
    except OverflowError:
        return apply(name, *operands)
    typed = [Constant(o.value, common) if isinstance(o, Constant) else o for o in operands]
    return apply(name, *typed)
