"""The typed form of an expression of elements: five kinds of frozen nodes, and calls of unknowns.

Nodes share parts, so an expression is a graph, and every function here visits a part once. Nodes
are equal if they are written alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from distspmd.expressions.operations import OPERATIONS, DType

INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)
Scalar: TypeAlias = "bool | int | float | complex"


class Node:
    """What all nodes have: a type, arguments, equality, and Python's operators to build others."""

    __slots__ = ("_hash",)
    dtype: DType
    arguments: tuple[Expression, ...]
    _hash: int

    @property
    def label(self) -> tuple[Hashable, ...]:
        """What tells it from other nodes with the same arguments."""
        raise NotImplementedError

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((type(self), self.label, self.arguments))
            object.__setattr__(self, "_hash", found)
            return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and _equal(self, other)

    def __str__(self) -> str:
        from distspmd.expressions.text import print_expression

        return print_expression(self)  # type: ignore[arg-type]

    def __add__(self, other: Any) -> Operation:
        return written("add", self, other)

    def __radd__(self, other: Any) -> Operation:
        return written("add", other, self)

    def __sub__(self, other: Any) -> Operation:
        return written("subtract", self, other)

    def __rsub__(self, other: Any) -> Operation:
        return written("subtract", other, self)

    def __mul__(self, other: Any) -> Operation:
        return written("multiply", self, other)

    def __rmul__(self, other: Any) -> Operation:
        return written("multiply", other, self)

    def __truediv__(self, other: Any) -> Operation:
        return written("divide", self, other)

    def __rtruediv__(self, other: Any) -> Operation:
        return written("divide", other, self)

    def __pow__(self, other: Any) -> Operation:
        return written("power", self, other)

    def __neg__(self) -> Operation:
        return written("negative", self)


class Leaf(Node):
    """A node without arguments."""

    @property
    def arguments(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """None."""
        return ()


@dataclass(frozen=True, eq=False, repr=False)
class Argument(Leaf):
    """A value with a name."""

    name: str
    dtype: DType

    @property
    def label(self) -> tuple[Hashable, ...]:
        """Its name and type."""
        return self.name, self.dtype


@dataclass(frozen=True, eq=False, repr=False)
class Load(Leaf):
    """An element of an array; who builds it says what stands for an array and for its indices."""

    array: Any
    index: tuple[Any, ...]
    dtype: DType

    @property
    def label(self) -> tuple[Hashable, ...]:
        """Its array, index and type."""
        return self.array, self.index, self.dtype


@dataclass(frozen=True, eq=False, repr=False)
class IndexValue(Leaf):
    """The value of ``constant + sum of variable * factor``."""

    terms: tuple[tuple[Any, int], ...] = ()
    constant: int = 0
    dtype: DType = INT64

    @property
    def label(self) -> tuple[Hashable, ...]:
        """Its terms, constant and type."""
        return self.terms, self.constant, self.dtype


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Leaf):
    """A number."""

    value: Scalar
    dtype: DType

    @property
    def label(self) -> tuple[Hashable, ...]:
        """Its value, as it is written, and type."""
        return repr(self.value), self.dtype


@dataclass(frozen=True, eq=False, repr=False)
class Operation(Node):
    """A row of the table of operations, with arguments; :func:`apply` finds its type."""

    name: str
    arguments: tuple[Expression, ...]
    dtype: DType
    cost: int = field(init=False, default=0)
    """Work of one element with that of all arguments, as it would be written out."""
    depth: int = field(init=False, default=1)
    """Operations that follow each other, this one the last."""

    def __post_init__(self) -> None:
        total = OPERATIONS[self.name].work + sum(map(count_additions, self.arguments))
        object.__setattr__(self, "cost", total)
        object.__setattr__(self, "depth", 1 + max(map(depth_of, self.arguments), default=0))

    @property
    def label(self) -> tuple[Hashable, ...]:
        """Its name and type."""
        return self.name, self.dtype


@dataclass(frozen=True, eq=False, repr=False)
class Call(Node):
    """A function that is in no table, of code that somebody else wrote."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: DType

    @property
    def label(self) -> tuple[Hashable, ...]:
        """The function and the type."""
        return self.function, self.dtype


Expression: TypeAlias = Argument | Load | IndexValue | Constant | Operation | Call


def count_additions(expression: Expression) -> int:
    """Work of one element in additions, as it would be written out."""
    return expression.cost if isinstance(expression, Operation) else 0


def depth_of(expression: Expression) -> int:
    """Operations that follow each other in it; functions that visit it call themselves so often."""
    return expression.depth if isinstance(expression, Operation) else 0


def apply(name: str, *arguments: Expression, dtype: DType | None = None) -> Operation:
    """An operation on arguments, of the type that the table says if none is given.

    Raises:
        ValueError: there is no such operation, or not of so many arguments.
    """
    kind = OPERATIONS.get(name)
    if kind is None or kind.arity != len(arguments):
        known = f"takes {kind.arity}" if kind else "is in no table"
        raise ValueError(f"the operation {name!r} of {len(arguments)} arguments: {name!r} {known}.")
    if dtype is None:
        dtype = kind.result([argument.dtype for argument in arguments])
    return Operation(name, arguments, dtype)


def cast(expression: Expression, dtype: DType) -> Expression:
    """An expression converted to a type; of complex numbers real ones have the real part."""
    if expression.dtype == dtype:
        return expression
    if expression.dtype.kind == "c" and dtype.kind == "b":
        return apply("not_equal", expression, Constant(0, expression.dtype))
    if expression.dtype.kind == "c" and dtype.kind != "c":
        real = np.empty(0, expression.dtype).real.dtype
        return cast(apply("real", expression, dtype=real), dtype)
    if dtype == _HALF and expression.dtype == FLOAT64 and not isinstance(expression, Constant):
        expression = _rounded_to_odd(expression)
    return apply("cast", expression, dtype=dtype)


_HALF, _SINGLE, _WORD = map(np.dtype, (np.float16, np.float32, np.uint32))


def _rounded_to_odd(value: Expression) -> Expression:
    """A float64 as a float32 whose last bit says that more follows.

    So what is rounded to float16 by way of float32 is rounded once.
    """
    single = apply("cast", value, dtype=_SINGLE)
    back = apply("cast", single, dtype=FLOAT64)
    word, one = apply("bits", single, dtype=_WORD), Constant(1, _WORD)
    beyond = apply("greater", apply("absolute", back), apply("absolute", value))
    before = apply("subtract", word, apply("cast", beyond, dtype=_WORD))
    differs = apply("not_equal", back, value)
    odd = apply("bitwise_or", before, one)
    return apply("bits", apply("where", differs, odd, word), dtype=_SINGLE)


def written(name: str, *operands: Any, real: DType = FLOAT64) -> Operation:
    """An operation on expressions and numbers of Python, which take the type of the others.

    Args:
        name: of the operation.
        operands: expressions and numbers.
        real: type of real numbers beside expressions that are none.
    """
    types = [operand.dtype for operand in operands if isinstance(operand, Node)]
    common = np.result_type(*types, *(o for o in operands if not isinstance(o, Node)))
    if common.kind == "f" and not any(dtype.kind in "fc" for dtype in types):
        common = real
    arguments = [o if isinstance(o, Node) else Constant(o, common) for o in operands]
    return apply(name, *arguments)  # type: ignore[arg-type]


class Functions:
    """The operations as functions: ``functions.exp(a)``, ``functions.where(c, a, 0.0)``.

    ``real`` is the type of numbers that stand alone.
    """

    def __init__(self, real: DType = FLOAT64) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Callable[..., Operation]:
        if name not in OPERATIONS:
            raise AttributeError(name)
        return lambda *operands: written(name, *operands, real=self._real)


# -- walks ----------------------------------------------------------------------------------------


def parts(expression: Expression) -> list[Expression]:
    """All nodes, each once, arguments first."""
    found: list[Expression] = []
    seen: set[int] = set()

    def visit(node: Expression) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for argument in node.arguments:
                visit(argument)
            found.append(node)

    visit(expression)
    return found


def names(expression: Expression) -> set[str]:
    """Names of its arguments."""
    return {node.name for node in parts(expression) if isinstance(node, Argument)}


def replace_leaves(
    expression: Expression,
    replace: Callable[[Expression], Expression],
    known: dict[int, Expression] | None = None,
) -> Expression:
    """Put other expressions in for arguments, loads, indices and constants.

    Args:
        expression: what stays as it is where nothing changes.
        replace: of each leaf; leaves that stay are returned as they are.
        known: of nodes by their identity, shared by expressions that share parts.
    """
    known = {} if known is None else known

    def visit(node: Expression) -> Expression:
        found = known.get(id(node))
        if found is None:
            if isinstance(node, Operation | Call):
                found = rebuilt(node, tuple(map(visit, node.arguments)))
            else:
                found = replace(node)
            known[id(node)] = found
        return found

    return visit(expression)


def rebuilt(node: Operation | Call, arguments: tuple[Expression, ...]) -> Expression:
    """The node with other arguments; itself, if they are the same objects."""
    if all(new is old for new, old in zip(arguments, node.arguments, strict=True)):
        return node
    if isinstance(node, Call):
        return Call(node.function, arguments, node.dtype)
    return Operation(node.name, arguments, node.dtype)


def substitute(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """Put other expressions in for arguments, by their names."""

    def replace(leaf: Expression) -> Expression:
        return by.get(leaf.name, leaf) if isinstance(leaf, Argument) else leaf

    return replace_leaves(expression, replace)


def _equal(a: Node, b: Node) -> bool:
    """Whether two nodes are written alike, comparing each pair of parts once."""
    done: set[tuple[int, int]] = set()
    waiting = [(a, b)]
    while waiting:
        one, other = waiting.pop()
        if one is other or (id(one), id(other)) in done:
            continue
        done.add((id(one), id(other)))
        alike = type(one) is type(other) and hash(one) == hash(other) and one.label == other.label
        if not alike or len(one.arguments) != len(other.arguments):
            return False
        waiting += zip(one.arguments, other.arguments, strict=True)
    return True
