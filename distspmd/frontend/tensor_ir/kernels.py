"""From traced operators to kernels: maps over expressions, and contractions.

Pointwise operators and views stay expressions until something needs their elements stored: several
readers, a contraction, or a broadcast that would compute them again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from dace import SDFG
from torch import fx

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Expression, Load, Operation, count_additions, depth_of
from distspmd.expressions.operations import DType
from distspmd.frontend.tensor_ir.identifiers import identifier
from distspmd.frontend.tensor_ir.indices import (
    Array,
    Crossing,
    Extent,
    Index,
    Value,
    Variable,
    element,
    is_solid,
    is_whole,
    loads,
    new_variables,
    regroup,
    substitute_indices,
)
from distspmd.frontend.tensor_ir.one_hot import without_picks
from distspmd.plans.heuristics import HEURISTICS

LINES = "lines"
"""The operation of a kernel whose code takes lines (:mod:`distspmd.frontend.tensor_ir.lines`)."""
LAPACK = "lapack"
"""Of one that calls LAPACK (:mod:`distspmd.frontend.tensor_ir.matrices`)."""
FUNCTION = "function"
"""Of one that is a function of its own (:mod:`distspmd.frontend.tensor_ir.functions`)."""
WHOLE = (LINES, LAPACK, FUNCTION)
"""Of those that make all of their results or none, of arrays as they lie."""


@dataclass(eq=False)
class Kernel:
    """One iteration space: a map with one or more results, or a reduction with one."""

    variables: tuple[Variable, ...]
    results: list[tuple[Array, Expression]]
    label: str
    operation: str | None = None
    reduced: tuple[Variable, ...] = ()
    picked: tuple[Variable, Load] | None = None
    """A variable, and what holds the one value of it at which the expression is not neutral."""
    body: tuple[SDFG, tuple[str, ...]] | None = None
    """Of a function: it, and its containers that are the operands."""

    @property
    def read(self) -> list[Load]:
        """All that it loads."""
        return [load for _, expression in self.results for load in loads(expression)]


@dataclass
class Builder:
    """The kernels of a graph, in order, and what is known of its values."""

    arrays: dict[str, Array] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    origins: dict[int, tuple[Expression, fx.Node]] = field(default_factory=dict)
    """The operator that made an expression, by the identity of this."""
    paths: dict[str, str] = field(default_factory=dict)
    """Where in the user's program each container is made."""
    seed: Array | None = None
    draws: int = 0

    # -- containers -----------------------------------------------------------------------------

    def argument(self, name: str, shape: Sequence[int], dtype: DType) -> Value:
        """A container of the caller."""
        dims = new_variables(shape)
        variables = [v for dim in dims for v in dim]
        array = self.container(name, variables, dtype)
        array.is_argument = True
        return Value(dims, array.load(variables), tuple(shape))

    def container(
        self,
        name: str,
        variables: Sequence[Variable],
        dtype: DType,
        node: fx.Node | None = None,
    ) -> Array:
        """A new container, of which the variables index the dimensions; made by an operator."""
        base = identifier(name)
        unique, count = base, 1
        while unique in self.arrays:
            count += 1
            unique = f"{base}_{count}"
        array = Array(unique, tuple(v.extent for v in variables), dtype)
        self.arrays[unique] = array
        if node is not None:
            self.paths[unique] = path_of(node)
        return array

    # -- kernels --------------------------------------------------------------------------------

    def stored(self, value: Value, node: fx.Node) -> Value:
        """A value whose elements are in an array: itself, or after a kernel that stores them."""
        if isinstance(value.expression, Load) and all(
            len(index.terms) <= 1 for index in value.expression.index
        ):
            return value
        _, origin = self.origins.get(id(value.expression), (value.expression, node))
        return self.stored_anew(value, origin)

    def whole(self, value: Value, node: fx.Node) -> Value:
        """A value in an array of which its own variables are the indices, all from the start."""
        stored = self.stored(value, node)
        if is_whole(stored):
            return stored
        return self.stored_anew(value, node)

    def stored_anew(self, value: Value, node: fx.Node, what: str = "") -> Value:
        """A value in an array of its own, which may be named for what it is to the operator."""
        name = "_".join(filter(None, [name_of(node), what]))
        array = self.container(name, value.variables, value.dtype, node)
        variables = value.variables
        self.kernels.append(Kernel(variables, [(array, value.expression)], array.name))
        return Value(value.dims, array.load(variables), value.shape)

    def unsplit(self, value: Value, node: fx.Node) -> Value:
        """A value stored anew, each of whose dimensions is one variable."""
        array, groups = self._stored_at(value.dims, value, node)
        dims = tuple((group,) if group else () for group in groups)
        return Value(dims, array.load([v for v in groups if v]), value.shape)

    def viewed(self, value: Value, shape: Sequence[int], node: fx.Node) -> Value:
        """A value in another shape; a copy, if its dimensions and the view do not go together.

        Only the dimensions that do not are joined in the copy, and read as the view groups them.
        """
        parts = [
            (Value(value.dims[old], value.expression, value.shape[old]), shape[new])
            for old, new in common_groups(value.shape, shape)
        ]
        found = [_regrouped(part, own) for part, own in parts]
        if all(dims is not None for dims in found):
            return Value(
                tuple(d for dims in found for d in dims or ()), value.expression, tuple(shape)
            )
        groups: list[Sequence[Variable]] = []
        for (part, _), dims in zip(parts, found, strict=True):
            if dims is None:
                groups.append(part.variables)
            else:
                groups += [(v,) for v in part.variables]
        array, made = self._stored_at(groups, value, node)
        waiting = iter(made)
        result: list[tuple[Variable, ...]] = []
        by: dict[Variable, Index] = {}
        for (part, own), dims in zip(parts, found, strict=True):
            if dims is None:
                line = next(waiting)
                assert line is not None
                again = _regrouped(Value(((line,),), array.load(()), (line.length,)), own)
                if again is None:
                    again = new_variables(own)
                    by[line] = Index.of([v for dim in again for v in dim])
                result += again
            else:
                count = len(part.variables)
                fresh = tuple(v for v in (next(waiting) for _ in range(count)) if v)
                whole = Value((fresh,), array.load(()), (math.prod(part.shape),))
                result += regroup(whole, own).dims
        load = array.load([v for v in made if v])
        return Value(tuple(result), substitute_indices(load, by), tuple(shape))

    def joined(self, value: Value, count: int, node: fx.Node) -> Value:
        """A value stored anew, whose first dimensions are one, which is one variable."""
        lengths = value.shape[:count], value.shape[count:]
        first = [leaf for dim in value.dims[:count] for v in dim for leaf in v.leaves()]
        rest = [leaf for dim in value.dims[count:] for v in dim for leaf in v.leaves()]
        array, (line, *others) = self._stored_at([first, *([leaf] for leaf in rest)], value, node)
        waiting = [v for v in others if v]
        dims: list[tuple[Variable, ...]] = [(line,) if line else ()]
        dims += [
            tuple(waiting.pop(0) for v in dim for _ in v.leaves()) for dim in value.dims[count:]
        ]
        load = array.load([v for v in (line, *others) if v])
        return Value(tuple(dims), load, (math.prod(lengths[0]), *lengths[1]))

    def _stored_at(
        self, groups: Sequence[Sequence[Variable]], value: Value, node: fx.Node
    ) -> tuple[Array, list[Variable | None]]:
        """Store a value anew in an array that groups of its variables index, and new variables.

        A group of several variables is one dimension, which is not split any more.
        """
        by: dict[Variable, Index] = {}
        new: list[Variable | None] = []
        places: list[Index] = []
        for group in groups:
            leaves = [leaf for v in group for leaf in v.leaves()]
            if not leaves:
                new.append(None)
                continue
            shared = len(leaves) == 1 and not is_solid(leaves)
            length = math.prod(v.length for v in leaves)
            own = Variable(leaves[0].extent if shared else Extent(length))
            new.append(own)
            if len(leaves) == 1:  # what it is read from is split with it, or not at all
                by[leaves[0]] = Index(((own, 1),))
                places.append(Index(((own, 1),)))
            else:
                own.extent.solid = True
                places.append(Index.of(leaves))
        dims = [v for v in new if v]
        array = self.container(f"{name_of(node)}_copy", dims, value.dtype, node)
        if any(is_solid([own]) for own in dims):
            array.written = element(array, places)
        over = tuple(leaf for v in value.variables for leaf, _ in by.get(v, Index(((v, 1),))).terms)
        expression = substitute_indices(value.expression, by)
        self.kernels.append(Kernel(over, [(array, expression)], array.name))
        return array, [v and Variable(v.extent) for v in new]

    def reduced(
        self,
        value: Value,
        dims: Sequence[int],
        operation: str,
        node: fx.Node,
        keep: bool = False,
        picked: tuple[Variable, Expression] | None = None,
    ) -> Value:
        """Reduce along dimensions; of ``picked`` see :class:`Kernel`."""
        axes = {d % len(value.shape) for d in dims} if value.shape else set()
        if operation == "sum":
            value = without_picks(value, axes)
        gone = [v for d in sorted(axes) for v in value.dim(d)]
        stays = [d for d in range(len(value.shape)) if keep or d not in axes]
        shape = [1 if d in axes else value.shape[d] for d in stays]
        out = [() if d in axes else value.dim(d) for d in stays]
        if not gone:
            return Value(tuple(out), value.expression, tuple(shape))
        if not _reducible(value, gone):
            value = self.stored_anew(value, node)
        kept = tuple(v for dim in out for v in dim)
        array = self.container(name_of(node), kept, value.dtype, node)
        results: list[tuple[Array, Expression]] = [(array, value.expression)]
        kernel = Kernel(kept, results, array.name, operation, tuple(gone))
        if picked and isinstance(picked[1], Load):
            kernel.picked = picked[0], picked[1]
        self.kernels.append(kernel)
        return Value(tuple(out), array.load(kept), tuple(shape)).renamed()

    def settled(self, value: Any, node: fx.Node) -> Any:
        """What a node's users see: stored, where several would compute it."""
        if not isinstance(value, Value) or isinstance(value.expression, Load):
            return value
        self.origins.setdefault(id(value.expression), (value.expression, node))
        work = count_additions(value.expression)
        large = (
            work > HEURISTICS.kernel_work or depth_of(value.expression) > HEURISTICS.kernel_depth
        )
        if large or (work > _cheap(value) and _users(node) > 1):
            return self.stored(value, node)
        return value

    def spread(self, value: Value, shape: Sequence[int], node: fx.Node) -> Value:
        """A value before it is broadcast to a shape: stored, if its elements cost something."""
        if (
            tuple(value.shape) != tuple(shape)
            and count_additions(value.expression) > HEURISTICS.cheap_work
        ):
            return self.stored(value, node)
        return value


def common_groups(a: Sequence[int], b: Sequence[int]) -> list[tuple[slice, slice]]:
    """Dimensions of two shapes of as many elements that have as many elements, as few as may be."""
    if 0 in a:
        return [(slice(0, len(a)), slice(0, len(b)))]
    found: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        first, second = i, j
        left = right = 1
        while left != right or (i == first and j == second):
            if i < len(a) and (left <= right or j == len(b)):
                left *= a[i]
                i += 1
            else:
                right *= b[j]
                j += 1
        found.append((slice(first, i), slice(second, j)))
    return found


def _regrouped(value: Value, shape: Sequence[int]) -> tuple[tuple[Variable, ...], ...] | None:
    """The dimensions of a view; None: they do not go together with it."""
    try:
        return regroup(value, shape).dims
    except Crossing:
        return None


def _reducible(value: Value, gone: Sequence[Variable]) -> bool:
    """Whether a contraction can reduce along variables: each indexes a dimension by itself."""
    read = loads(value.expression)
    known = {
        index.terms[0][0]
        for load in read
        for index in load.index
        if len(index.terms) == 1 and index.terms[0][1] == 1 and not index.constant
    }
    return known.issuperset(gone) and all(map(is_plain, read))


def _cheap(value: Value) -> int:
    """Work of an element that is less than storing and reading it."""
    own = len(value.variables)
    read = ({v for i in load.index for v, _ in i.terms} for load in loads(value.expression))
    if any(len(variables) >= own for variables in read):
        return HEURISTICS.cheap_work
    return HEURISTICS.cheap_work_in_registers


def _users(node: fx.Node) -> int:
    """Users of a node, where a view counts as its own users."""
    count = 0
    for user in node.users:
        count += _users(user) if operator_of(user) in VIEWS else 1
    return count


VIEWS = {
    *("view", "_unsafe_view", "reshape", "permute", "t", "transpose", "expand", "unsqueeze"),
    *("squeeze", "select", "slice", "alias", "detach", "clone", "lift_fresh_copy", "split"),
    *("split_with_sizes", "getitem", "contiguous"),
}
"""Operators that only regroup indices."""


def operator_of(node: fx.Node) -> str:
    """Name of a node's operator, without its overload; of a custom one with its namespace."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        own = str(target.overloadpacket.__name__)
        return own if target.namespace in _OF_TORCH else f"{target.namespace}::{own}"
    return str(getattr(target, "__name__", target))


_OF_TORCH = ("aten", "prims", "profiler")


def called_as(node: fx.Node) -> str:
    """What a node's operator is called in names."""
    return operator_of(node).rpartition("::")[2].strip("_")


def name_of(node: fx.Node) -> str:
    """Name of a node's elements: the path of its module, its operator, and the phase."""
    place = node.meta.get("custom") or {}
    path, phase = place.get("path", ""), place.get("phase", "forward")
    name = called_as(node)
    known = phase == "forward" or name.endswith(phase)
    return "_".join(filter(None, [path, name, "" if known else phase]))


def path_of(node: fx.Node) -> str:
    """Where a node is: the path of its module, its operator, and the phase behind the forward."""
    place = node.meta.get("custom") or {}
    phase = place.get("phase", "forward")
    found = (
        place.get("path", ""),
        called_as(node),
        "" if phase == "forward" else phase,
    )
    return ".".join(filter(None, found))


def refuse(node: fx.Node, known: Sequence[str]) -> UnsupportedProgram:
    """The error for an operator that is not covered."""
    return UnsupportedProgram(f"{called(node)} is not covered. Covered are {', '.join(known)}.")


def called(node: fx.Node, target: Any = None) -> str:
    """An operator with where it is called; another one that its operator calls."""
    place = node.meta.get("custom") or {}
    where = f"in the {place.get('phase', 'forward')} of {place.get('path') or 'the step itself'}"
    line = f", {place['line']}" if place.get("line") else ""
    return f"the operator {target or node.target} ({where}{line})"


def digits(index: Index, extents: Sequence[int]) -> list[Index]:
    """An index of a dimension as one index for each of its parts, the last one fastest.

    Raises:
        UnsupportedProgram: some index would carry over from one part into the next.
    """
    if index.within is not None and len(extents) == 1:
        return [index.substitute({})]  # by the parts of its variables
    strides = [1]
    for extent in reversed(extents[1:]):
        strides.insert(0, strides[0] * extent)
    parts: list[dict[Variable, int]] = [{} for _ in extents]
    constants, rest = [], index.constant
    for stride in strides:
        constants.append(rest // stride)
        rest %= stride
    split = [
        (leaf, factor * inner)
        for variable, factor in index.terms
        for leaf, inner in Index.of(variable.leaves()).terms
    ]
    for variable, factor in split:
        place = next(p for p, stride in enumerate(strides) if abs(factor) % stride == 0)
        parts[place][variable] = factor // strides[place]
    for part, constant, extent in zip(parts, constants, extents, strict=True):
        most = constant + sum(f * (v.length - 1) for v, f in part.items() if f > 0)
        if most >= extent or index.within is not None:
            raise Crossing(
                "a slice of a dimension crosses the groups in which it is viewed elsewhere."
            )
    return [Index(tuple(p.items()), c) for p, c in zip(parts, constants, strict=True)]


def current_indices(load: Load) -> list[Index]:
    """One index for each dimension that the array has by now."""
    found: list[Index] = []
    for extent, index in zip(load.array.extents, load.index, strict=True):
        found += digits(index, [leaf.length for leaf in Variable(extent).leaves()])
    return found


def is_plain(load: Load) -> bool:
    """Whether a contraction can take it: a dimension from its start, forwards, or one place."""
    return all(
        not index.terms
        or (
            index.constant == 0
            and index.divisor == 1
            and index.within is None
            and all(factor > 0 for _, factor in index.terms)
        )
        for index in current_indices(load)
    )


def distinct(found: Sequence[Load]) -> list[Load]:
    """Loads of different elements."""
    known: dict[Any, Load] = {}
    for load in found:
        known.setdefault(place_of(load), load)
    return list(known.values())


def place_of(load: Load) -> Any:
    """What tells loads of different elements apart."""
    return load.array.name, tuple((frozenset(i.terms), i.constant) for i in current_indices(load))


def is_product(kernel: Kernel) -> bool:
    """Whether a kernel sums up products of two elements of its type."""
    ((_, expression),) = kernel.results
    return (
        kernel.operation == "sum"
        and isinstance(expression, Operation)
        and expression.name == "multiply"
        and all(isinstance(a, Load) and a.dtype == expression.dtype for a in expression.arguments)
        and len(distinct(kernel.read)) == 2
    )


def reach(index: Index) -> int:
    """How many elements of a dimension an index runs over, from the first one."""
    return 1 + sum(factor * (v.length - 1) for v, factor in index.terms)
