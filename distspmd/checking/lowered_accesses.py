"""What each rank touches in a lowered program, in numbers, for given values of the loops around.

Ranges and subsets of a lowered program name symbols that have a value on each rank. Here they are
evaluated on all ranks at once, from the lowered SDFG alone: not from what the passes believed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy
from dace import SDFG, Memlet, SDFGState, symbolic
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.analysis.accesses import Access, Dimension, map_accesses
from distspmd.analysis.evaluation import evaluate
from distspmd.analysis.index_bounds import Range, bound_index, constant, stepping
from distspmd.analysis.iteration_spaces import IterationSpace, main_map, pure_expansion
from distspmd.analysis.library_nodes import library_accesses
from distspmd.analysis.mixed_radix import ends_of
from distspmd.analysis.rank_boxes import fills_its_box
from distspmd.errors import UnsupportedProgram
from distspmd.layouts.intervals import Box, Numbers
from distspmd.lowering import Lowering

Values = Mapping[str, NDArray[np.int64]]
"""Value of each symbol on each rank; symbols that only the run knows have none."""


@dataclass(frozen=True)
class Touched:
    """What an access touches on each rank.

    Attributes:
        store: the container.
        box: of each rank; empty where it touches nothing.
        known: whether each dimension has a bound; others are whole.
        fixed: dimensions of which every iteration touches the same, as far as the rank decides it.
        exact: of a write, whether each element of the box is written.
        reduces: of a write, whether it combines with what is there.
    """

    store: str
    is_write: bool
    box: tuple[Box, ...]
    known: tuple[bool, ...]
    exact: bool = True
    reduces: bool = False
    fixed: tuple[int, ...] = ()


@dataclass(frozen=True)
class LibrarySpace:
    """The iteration space of a library node of a lowered program.

    Attributes:
        entry: the main map of its pure expansion, whose indices begin at zero.
        accesses: what it touches, in the windows that the node has.
        initialised: containers that it begins from nothing.
    """

    entry: nodes.MapEntry
    accesses: tuple[Access, ...]
    initialised: frozenset[str]

    @classmethod
    def of(cls, state: SDFGState, node: nodes.LibraryNode) -> LibrarySpace:
        """That of a node."""
        expansion = pure_expansion(state, node)
        space = IterationSpace("", node.label, (), (), None, (), state, node, expansion)
        accesses, initialised = library_accesses(space)
        return cls(main_map(expansion)[1], tuple(accesses), frozenset(initialised))

    def origins(self) -> dict[str, list[sympy.Expr]]:
        """Where each parameter begins in the arrays, by every access that it indexes alone."""
        found: dict[str, list[sympy.Expr]] = {}
        for access in self.accesses:
            for dimension in access.dimensions:
                if dimension is None or dimension.first != dimension.last:
                    continue
                names = {s for s in dimension.first.free_symbols if s.name in access.scope}
                for symbol in names if len(names) == 1 else ():
                    rest = sympy.expand(dimension.first - symbol)
                    if symbol not in rest.free_symbols:
                        found.setdefault(symbol.name, []).append(rest)
        return found


@dataclass
class Evaluator:
    """Evaluates subsets and ranges of a lowered SDFG on all ranks.

    Attributes:
        ranks: how many.
        values: of the symbols.
        unknown: symbols that have a value in the run alone.
        own: symbols whose value is that of the rank, all through the program.
    """

    sdfg: SDFG
    ranks: int
    values: dict[str, NDArray[np.int64]]
    unknown: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()

    @classmethod
    def of(cls, sdfg: SDFG, lowering: Lowering) -> Evaluator:
        """For the program that a record is of."""
        symbols = lowering.symbols
        ranks = max([lowering.ranks, *map(len, symbols.values())])
        values = {
            name: np.array([*given, *[0] * (ranks - len(given))], np.int64)
            for name, given in symbols.items()
        }
        return cls(sdfg, ranks, values, own=frozenset(symbols))

    def numbers(self, expression: sympy.Expr) -> NDArray[np.int64] | None:
        """Values of an expression on all ranks; None where the run decides it."""
        expression = sympy.sympify(expression)
        if any(symbol.name not in self.values for symbol in expression.free_symbols):
            return None
        try:
            found = evaluate(expression, self.values)
        except UnsupportedProgram:
            return None
        return np.broadcast_to(np.asarray(found, np.int64), (self.ranks,))

    def storage(self, name: str) -> Numbers | None:
        """First index and end of what each rank stores, shape (ranks, dimensions, 2)."""
        container = self.sdfg.arrays[name]
        found = np.zeros((self.ranks, len(container.shape), 2), np.int64)
        offsets = getattr(container, "offset", None) or [0] * len(container.shape)
        for d, (extent, offset) in enumerate(zip(container.shape, offsets, strict=True)):
            low, length = self.numbers(-sympy.sympify(offset)), self.numbers(extent)
            if low is None or length is None:
                return None
            found[:, d, 0], found[:, d, 1] = low, low + length
        return found

    def range_of(self, entry: nodes.MapEntry) -> list[NDArray[np.int64] | None]:
        """First value and end of each parameter of a map, shape (ranks, 2); None if not known."""
        return [self.within(stepping(*ends)) for ends in entry.map.range.ranges]

    def of_map(self, state: SDFGState, entry: nodes.MapEntry) -> Iterator[Touched]:
        """What a top-level map touches."""
        idle, own = self._idle(entry), self._steps(entry)
        chosen = self._chosen(entry)
        for access in map_accesses(state, entry):
            scope = {name: own.get(name, values) for name, values in access.scope.items()}
            some = {n: chosen[n] for n, values in access.scope.items() if n in chosen and values}
            found = replace(access, scope={**scope, **some})
            yield self._touched(replace(found, conditional=True) if some else found, idle)

    def _chosen(self, entry: nodes.MapEntry) -> dict[str, Range]:
        """Parameters of a map whose range data choose, with the parts of the ranks."""
        found = {}
        for name, ends in zip(entry.map.params, entry.map.range.ranges, strict=True):
            values = stepping(*ends)
            if self.numbers(values.lower) is None or self.numbers(values.upper) is None:
                part = self.part_of(ends)
                if part is not None:
                    found[str(name)] = part
        return found

    def part_of(self, ends: Sequence[sympy.Expr]) -> Range | None:
        """The part of a range that a rank runs at most, whatever data choose; None if not known.

        ``max(k, lo)`` to ``min(k, hi - 1)``, with an unknown ``k``, lies in ``lo`` to ``hi - 1``.
        """
        values = stepping(*ends)
        uppers = [
            each
            for each in sympy.Max.make_args(values.upper)
            if sympy.expand(each - values.lower) != -1  # which only makes it empty
        ]
        lowers = [e for e in sympy.Max.make_args(values.lower) if self.numbers(e) is not None]
        if len(uppers) != 1 or not lowers:
            return None
        highs = [e for e in sympy.Min.make_args(uppers[0]) if self.numbers(e) is not None]
        return Range(sympy.Max(*lowers), sympy.Min(*highs)) if highs else None

    def _steps(self, entry: nodes.MapEntry) -> dict[str, Range]:
        """Ranges of the parameters of a map whose last value is one that is taken on each rank."""
        found = {}
        for name, ends in zip(entry.map.params, entry.map.range.ranges, strict=True):
            values, step = stepping(*ends), constant(ends[2])
            length = self.numbers(values.upper - values.lower)
            if not step or length is None:
                continue
            if not (length[length > 0] % step).any():
                found[str(name)] = replace(values, step=abs(step))
            elif step > 0:  # the range ends between two of its values
                runs = symbolic.int_floor(values.upper - values.lower, step)
                found[str(name)] = Range(values.lower, values.lower + step * runs, step)
        return found

    def _idle(self, entry: nodes.MapEntry) -> NDArray[np.bool_]:
        """Ranks on which a map has no iteration, as far as that is known."""
        idle = np.zeros(self.ranks, bool)
        parts = [self.within(part) for part in self._chosen(entry).values()]
        for ends in (*self.range_of(entry), *parts):
            if ends is not None:
                idle = idle | (ends[:, 1] <= ends[:, 0])
        return idle

    def within(self, values: Range) -> NDArray[np.int64] | None:
        """First value and end of a range, shape (ranks, 2); None where the run decides them."""
        low, high = self.numbers(values.lower), self.numbers(values.upper)
        return None if low is None or high is None else np.stack([low, high + 1], axis=1)

    def of_library_node(self, node: LibrarySpace, idle: NDArray[np.bool_]) -> Iterator[Touched]:
        """What a library node touches where it is not idle: its pure expansion, in its windows."""
        runs_nothing = idle | self._idle(node.entry)
        for access in node.accesses:
            if not access.is_write or access.data not in node.initialised:
                yield self._touched(access, runs_nothing)
                continue
            found = self._touched(access, idle)  # it is initialised where nothing is added
            yield replace(found, exact=all(found.known), reduces=False)

    def of_memlet(self, memlet: Memlet, name: str, is_write: bool) -> Touched:
        """What a memlet names, all of it."""
        subset = memlet.subset if memlet.data == name else memlet.other_subset
        if subset is None:
            shape = self.sdfg.arrays[name].shape
            dimensions = tuple(Dimension(sympy.Integer(0), sympy.sympify(n) - 1) for n in shape)
        else:
            ends = [stepping(*each) for each in subset.ranges]
            dimensions = tuple(Dimension(e.lower, e.upper, e.step) for e in ends)
        access = Access(name, None, is_write, dimensions, {}, reduction=memlet.wcr)  # type: ignore[arg-type]
        return self._touched(access, np.zeros(self.ranks, bool))

    def _touched(self, access: Access, idle: NDArray[np.bool_]) -> Touched:
        bounds = np.zeros((self.ranks, len(access.dimensions), 2), np.int64)
        storage = self.storage(access.data)
        scope = self._scope(access)
        known = []
        for d, dimension in enumerate(access.dimensions):
            ends = self._ends(dimension, scope)
            known.append(ends is not None)
            if ends is not None:
                bounds[:, d] = ends
            elif storage is not None:
                bounds[:, d] = storage[:, d]
        bounds[idle | (bounds[:, :, 1] <= bounds[:, :, 0]).any(axis=1)] = 0
        boxes: list[Box] = [tuple((lo, hi) for lo, hi in box) for box in bounds.tolist()]
        return Touched(
            access.data,
            access.is_write,
            tuple(boxes),
            tuple(known),
            access.is_write and all(known) and self._is_exact(access, scope, idle),
            access.reduction is not None,
            tuple(d for d, dimension in enumerate(access.dimensions) if self._is_fixed(dimension)),
        )

    def _is_fixed(self, dimension: Dimension | None) -> bool:
        if dimension is None:
            return False
        symbols = dimension.first.free_symbols | dimension.last.free_symbols
        return bool(symbols) and {symbol.name for symbol in symbols} <= self.own

    def _scope(self, access: Access) -> dict[str, Range | None]:
        bound = {name: None for name in self.unknown if name not in access.scope}
        return {**bound, **access.scope}

    def _ends(
        self, dimension: Dimension | None, scope: dict[str, Range | None]
    ) -> NDArray[np.int64] | None:
        if dimension is None:
            return None
        first, last = bound_index(dimension.first, scope), bound_index(dimension.last, scope)
        if first is None or last is None:
            return None
        low, high = self.numbers(first.lower), self.numbers(last.upper)
        return None if low is None or high is None else np.stack([low, high + 1], axis=1)

    def _is_exact(
        self, access: Access, scope: dict[str, Range | None], idle: NDArray[np.bool_]
    ) -> bool:
        def value(expression: sympy.Expr) -> NDArray[np.int64]:
            found = self.numbers(expression)
            if found is None:
                raise UnsupportedProgram(f"{expression} has no value before the run.")
            return found

        if access.conditional:
            return False
        try:
            for values in access.scope.values():
                if values is None:
                    return False
                for lower, upper in itertools.product(*ends_of(values)):
                    if (value(self._least(upper - lower, scope)) < 0)[~idle].any():
                        return False
            return fills_its_box(access, scope, value, idle)
        except UnsupportedProgram:
            return False

    @staticmethod
    def _least(length: sympy.Expr, scope: dict[str, Range | None]) -> sympy.Expr:
        """The least length of a range, less one."""
        found = bound_index(length, scope)
        if found is None:
            raise UnsupportedProgram("a range has no bound before the run.")
        return found.lower
