"""Tensors as expressions of their indices.

A value is ``lambda i, j: expression``. A view only regroups the indices, so nothing is copied, and
the heads, batches and sequences that torch merged stay apart. If a view needs a variable split into
two, it is split everywhere at once: variables of one ``Extent`` are split together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import (
    Expression,
    IndexValue,
    Load,
    parts,
    replace_leaves,
)
from distspmd.expressions.operations import DType


class Crossing(UnsupportedProgram):
    """A dimension is viewed in groups that do not go together: a copy of it may be."""


class Extent:
    """The length of a dimension, or of several that are split alike; a node of a union-find."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.parent: Extent | None = None
        self.parts: tuple[Extent, Extent] | None = None
        self.solid = False

    def find(self) -> Extent:
        """The one that stands for all."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root


class Variable:
    """An index: it runs over an extent, or stands for the variables of its parts."""

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        self._parts: tuple[Variable, Variable] | None = None

    @property
    def length(self) -> int:
        """Number of its values."""
        return self.extent.length

    def leaves(self) -> tuple[Variable, ...]:
        """The variables that it stands for, outermost first."""
        halves = self.halves()
        return tuple(leaf for half in halves for leaf in half.leaves()) if halves else (self,)

    def halves(self) -> tuple[Variable, Variable] | None:
        """The two variables into which it is split, the outer one first; None: it is not."""
        parts = self.extent.find().parts
        if parts is not None and self._parts is None:
            self._parts = Variable(parts[0]), Variable(parts[1])
        return self._parts


@dataclass(frozen=True)
class Index:
    """``constant + sum of variable * factor``; divided, and kept within an extent, if that is set.

    What is outside of the extent gives some element, which the expression around does not use.
    """

    terms: tuple[tuple[Variable, int], ...] = ()
    constant: int = 0
    divisor: int = 1
    within: int | None = None

    @classmethod
    def of(cls, variables: Sequence[Variable]) -> Index:
        """The index that variables make together, the last one fastest."""
        factor, terms = 1, []
        for variable in reversed(variables):
            terms.append((variable, factor))
            factor *= variable.length
        return cls(tuple(reversed(terms)))

    def substitute(self, by: Mapping[Variable, Index]) -> Index:
        """Put other indices in for variables."""
        if not any(v in by or v.extent.find().parts for v, _ in self.terms):
            return self
        constant, terms = self.constant, dict[Variable, int]()
        for variable, factor in self.terms:
            for leaf, inner in _split_terms(variable, by):
                other = by.get(leaf, Index(((leaf, 1),)))
                constant += factor * inner * other.constant
                for v, f in other.terms:
                    terms[v] = terms.get(v, 0) + factor * inner * f
        return Index(tuple(terms.items()), constant, self.divisor, self.within)


def _split_terms(variable: Variable, known: Mapping[Variable, Index]) -> list[tuple[Variable, int]]:
    """The variables that make one, down to those that are known: these may be split since."""
    halves = None if variable in known else variable.halves()
    if halves is None:
        return [(variable, 1)]
    outer, inner = (_split_terms(half, known) for half in halves)
    return [*((v, f * halves[1].length) for v, f in outer), *inner]


def element(array: Array, index: Sequence[Index]) -> Load:
    """An element of an array, at one index for each of its dimensions."""
    return Load(array, tuple(index), array.dtype)


def at(index: Index) -> IndexValue:
    """The value of an index."""
    return IndexValue(index.terms, index.constant)


@dataclass(eq=False)
class Array:
    """A container of the program; its dimensions may still be split."""

    name: str
    extents: tuple[Extent, ...]
    dtype: DType
    is_argument: bool = False
    written: Load | None = None
    """Where the kernel that writes it does so, if not at its own variables."""
    order: tuple[int, ...] | None = None
    """For each dimension that it has, that of the kernel which writes it; None: the same."""

    def stored(self, variables: Sequence[Variable]) -> list[Variable]:
        """Variables of the kernel that writes it, in the order of its dimensions."""
        return [variables[d] for d in self.order or range(len(variables))]

    def load(self, variables: Sequence[Variable]) -> Load:
        """The element at variables."""
        return element(self, [Index(((v, 1),)) for v in variables])


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor: for each dimension the variables that make its index, and its elements."""

    dims: tuple[tuple[Variable, ...], ...]
    expression: Expression
    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.expression.dtype

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables of its indices, split as far as they are by now."""
        return tuple(leaf for dim in self.dims for v in dim for leaf in v.leaves())

    def dim(self, d: int) -> tuple[Variable, ...]:
        """The variables of a dimension, split as far as they are by now."""
        return tuple(leaf for v in self.dims[d] for leaf in v.leaves())

    def renamed(self) -> Value:
        """The same with variables of its own."""
        fresh = {v: Variable(v.extent) for v in self.variables}
        by = {old: Index(((new, 1),)) for old, new in fresh.items()}
        dims = tuple(tuple(fresh[v] for v in self.dim(d)) for d in range(len(self.dims)))
        return Value(dims, substitute_indices(self.expression, by), self.shape)


def substitute_indices(
    expression: Expression,
    by: Mapping[Variable, Index],
    known: dict[int, Expression] | None = None,
) -> Expression:
    """Put other indices in for variables; ``known`` is shared by expressions that share parts."""

    def replace(leaf: Expression) -> Expression:
        if isinstance(leaf, Load):
            return move_load(leaf, by)
        if isinstance(leaf, IndexValue):
            return at(Index(leaf.terms, leaf.constant).substitute(by))
        return leaf

    return replace_leaves(expression, replace, known) if by else expression


def move_load(load: Load, by: Mapping[Variable, Index]) -> Load:
    """Put other indices in for variables of a load."""
    return element(load.array, [index.substitute(by) for index in load.index])


def replace_loads(
    expression: Expression,
    replace: Callable[[Load], Expression],
    known: dict[int, Expression] | None = None,
) -> Expression:
    """Put other expressions in for loads; ``known`` as in :func:`substitute_indices`."""
    return replace_leaves(
        expression, lambda leaf: replace(leaf) if isinstance(leaf, Load) else leaf, known
    )


def loads(expression: Expression) -> list[Load]:
    """All loads, each occurrence of the same one once."""
    return [part for part in parts(expression) if isinstance(part, Load)]


def new_variables(lengths: Sequence[int]) -> tuple[tuple[Variable, ...], ...]:
    """New variables for dimensions of these lengths; none where there is one element."""
    return tuple((Variable(Extent(n)),) if n != 1 else () for n in lengths)


def split_variable(variable: Variable, inner: int) -> None:
    """Split a variable, and all that share its extent, so that the last part has a length.

    Raises:
        UnsupportedProgram: it is split otherwise already.
    """
    done = 1
    for leaf in reversed(variable.leaves()):
        if done == inner:
            return
        if done * leaf.length <= inner:
            if inner % (done * leaf.length):
                break
            done *= leaf.length
            continue
        root = leaf.extent.find()
        part, odd = divmod(inner, done)
        if odd or leaf.length % part or root.solid:
            break
        root.parts = Extent(leaf.length // part), Extent(part)
        return
    if done != inner:
        raise Crossing(
            f"a dimension of {variable.length} elements is viewed in groups of {inner}, and "
            f"elsewhere as {' x '.join(str(v.length) for v in variable.leaves())}, which do not "
            "go together."
        )


def unify(a: Variable, b: Variable) -> None:
    """Let two variables of one length be split alike from now on."""
    if a.extent.find() is b.extent.find():
        return
    for one, other in ((a, b), (b, a)):
        for inner in itertools.accumulate(
            (leaf.length for leaf in reversed(one.leaves()[1:])), lambda x, y: x * y
        ):
            split_variable(other, inner)
    for one, other in zip(a.leaves(), b.leaves(), strict=True):
        left, right = one.extent.find(), other.extent.find()
        if left is not right:
            left.solid = left.solid or right.solid
            right.parent = left


def is_solid(variables: Sequence[Variable]) -> bool:
    """Whether a dimension is one variable that must not be split."""
    leaves = [leaf for v in variables for leaf in v.leaves()]
    return len(leaves) == 1 and leaves[0].extent.find().solid


def is_whole(value: Value) -> bool:
    """Whether a load has each dimension of its array in one of the value's, all from the start."""
    load = value.expression
    assert isinstance(load, Load)
    place = {leaf: d for d, own in enumerate(value.dims) for v in own for leaf in v.leaves()}
    for index, extent in zip(load.index, load.array.extents, strict=True):
        if not index.terms:
            continue
        (variable, factor), *others = index.terms
        plain = (factor, index.constant, index.divisor, index.within) == (1, 0, 1, None)
        if others or not plain or variable.length != extent.length:
            return False
        if len({place.get(leaf) for leaf in variable.leaves()}) > 1:
            return False
    return True


def align_groups(a: Sequence[Variable], b: Sequence[Variable]) -> dict[Variable, Index]:
    """Split two groups of one length alike; what to put in for the variables of the second.

    A second one that must not be split is indexed by what the variables of the first make.

    Raises:
        Crossing: they do not go together.
    """
    left = [leaf for v in a for leaf in v.leaves()]
    right = [leaf for v in b for leaf in v.leaves()]
    if is_solid(right):
        return {right[0]: Index.of(left)}
    while left and right:
        one, other = left[-1], right[-1]
        if one.length == other.length:
            unify(one, other)
            left.pop()
            right.pop()
        elif one.length > other.length:
            split_variable(one, other.length)
            left[-1:] = one.leaves()
        else:
            split_variable(other, one.length)
            right[-1:] = other.leaves()
    ours = [leaf for v in a for leaf in v.leaves()]
    theirs = [leaf for v in b for leaf in v.leaves()]
    return {t: Index(((o, 1),)) for o, t in zip(ours, theirs, strict=True)}


def regroup(value: Value, shape: Sequence[int]) -> Value:
    """A view of the same elements in another shape."""
    waiting = list(value.variables)
    dims = []
    for extent in shape:
        taken: list[Variable] = []
        done = 1
        while done < extent:
            variable = waiting.pop(0)
            needed, odd = divmod(extent, done)
            if not odd and variable.length > needed:
                split_variable(variable, variable.length // needed)
                outer, *inner = _halves(variable, needed)
                waiting = [v for half in inner for v in half] + waiting
                taken += outer
            else:
                taken.append(variable)
            done = math.prod(v.length for v in taken)
        if done != extent:
            raise Crossing(
                f"the view of {list(value.shape)} as {list(shape)} mixes dimensions that do not "
                "divide each other."
            )
        dims.append(tuple(taken))
    return Value(tuple(dims), value.expression, tuple(shape))


def _halves(variable: Variable, outer: int) -> tuple[list[Variable], list[Variable]]:
    leaves, done, first = list(variable.leaves()), 1, list[Variable]()
    while done < outer:
        first.append(leaves.pop(0))
        done *= first[-1].length
    return first, leaves


def pointwise(
    build: Callable[..., Expression], operands: Sequence[Value], shape: Sequence[int]
) -> Value:
    """A value of one shape from the elements of others, which are broadcast to it."""
    dims: list[tuple[Variable, ...]] = [()] * len(shape)
    substitutions: list[dict[Variable, Index]] = [{} for _ in operands]
    for d in range(1, len(shape) + 1):
        if shape[-d] == 1:
            continue
        pairs = [
            (operand, by)
            for operand, by in zip(operands, substitutions, strict=True)
            if d <= len(operand.shape) and operand.shape[-d] != 1
        ]
        for operand, by in sorted(pairs, key=lambda pair: is_solid(pair[0].dims[-d])):
            own = operand.dims[-d]
            if not dims[-d]:
                dims[-d] = tuple(Variable(v.extent) for v in operand.dim(len(operand.dims) - d))
            by.update(align_groups(dims[-d], own))
        if not dims[-d]:
            dims[-d] = (Variable(Extent(shape[-d])),)
    arguments = [
        substitute_indices(operand.expression, by)
        for operand, by in zip(operands, substitutions, strict=True)
    ]
    return Value(tuple(dims), build(*arguments), tuple(shape))


def element_index(x: Value, dim: int) -> Value:
    """The index of each element along a dimension."""
    dims = tuple(
        tuple(Variable(u.extent) for u in x.dim(d)) if d == dim else () for d in range(len(x.shape))
    )
    shape = tuple(n if d == dim else 1 for d, n in enumerate(x.shape))
    return Value(dims, at(Index.of(dims[dim])), shape)
