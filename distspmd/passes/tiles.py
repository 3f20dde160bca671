"""Local tiles: the containers in which ranks hold their boxes, still indexed globally.

A tile is an array of the extents of the largest box, whose descriptor has the ``offset`` of the
rank's box. DaCe subtracts the origin wherever it generates an index, so no body is rewritten. What
differs between ranks enters as symbols, two for each dimension of each distinct layout.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import sympy
from dace import SDFG, data, dtypes, subsets, symbolic
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.analysis.accesses import Edge
from distspmd.analysis.tiling import Tiling
from distspmd.layouts.layout import Layout

End: TypeAlias = sympy.Expr
"""An end of an interval: a symbol that has a value on each rank, or a number."""


@dataclass(frozen=True)
class TileWindow:
    """The box that a layout gives a rank, in symbols."""

    lower: tuple[End, ...]
    upper: tuple[End, ...]

    def subset(self) -> subsets.Range:
        """The box as a subset."""
        ends = zip(self.lower, self.upper, strict=True)
        return subsets.Range([(lower, upper - 1, 1) for lower, upper in ends])

    def within(
        self,
        window: subsets.Range,
        single: frozenset[int],
        parts: Mapping[int, tuple[End, End]] | None = None,
    ) -> subsets.Range:
        """What the box has of a window.

        Args:
            window: in the container.
            single: dimensions with one element on each rank.
            parts: first and last index in dimensions where they are known otherwise.
        """
        found = []
        ends = zip(window.ranges, self.lower, self.upper, strict=True)
        for d, ((begin, end, _), lower, upper) in enumerate(ends):
            if parts and d in parts:
                found.append((*parts[d], 1))
                continue
            first, last = common((begin, end), lower, upper)
            found.append((first, first if d in single else last, 1))
        return subsets.Range(found)


@dataclass
class Symbols:
    """The symbols of a lowered program and the value of each on each rank.

    A symbol has one value for each rank of its mesh, and is 0 on all ranks beyond. Ends with the
    same values share a symbol, so that DaCe sees that sizes agree.
    """

    sdfg: SDFG
    values: dict[str, list[int]] = field(default_factory=dict)
    _named: dict[bytes, str] = field(default_factory=dict)
    _windows: dict[tuple[int, bytes], TileWindow] = field(default_factory=dict)

    def end(self, name: str, values: NDArray[np.int64]) -> End:
        """A symbol with these values, or the number that they all are."""
        used = np.flatnonzero(values)
        if not len(used):
            return sympy.Integer(0)
        known = values[: used[-1] + 1]
        key = known.tobytes()
        if key not in self._named:
            unique = new_name(name, {*self.sdfg.arrays, *self.sdfg.symbols})
            self.sdfg.add_symbol(unique, dtypes.int64)
            self.values[unique] = known.tolist()
            self._named[key] = unique
        return symbolic.pystr_to_symbolic(self._named[key])

    def window(self, name: str, layout: Layout) -> TileWindow:
        """The box of each rank, as symbols."""
        key = len(layout.extents), layout.bounds.tobytes()
        if key not in self._windows:
            bounds = layout.bounds * (layout.volumes > 0)[:, None, None]
            dimensions = range(len(layout.extents))
            self._windows[key] = TileWindow(
                tuple(self.end(f"{name}_lo{d}", bounds[:, d, 0]) for d in dimensions),
                tuple(self.end(f"{name}_hi{d}", bounds[:, d, 1]) for d in dimensions),
            )
        return self._windows[key]

    def part(self, name: str, parameter: str, d: int, tiling: Tiling) -> tuple[End, End]:
        """The part of a parameter of a space that each rank runs: its first value, and its end."""
        busy = ~tiling.idle
        stem = f"{name}_{parameter.strip('_')}"
        lower = self.end(f"{stem}_lo", tiling.lower[:, d] * busy)
        upper = self.end(f"{stem}_hi", tiling.upper[:, d] * busy)
        return lower, upper

    def tile_map(self, name: str, tiling: Tiling, entry: nodes.MapEntry) -> None:
        """Make a map run the rank's part of its range, in global indices."""
        ranges = []
        for d, (parameter, (begin, end, step)) in enumerate(
            zip(entry.map.params, entry.map.range.ranges, strict=True)
        ):
            lower, upper = self.part(name, parameter, d, tiling)
            ranges.append((*common((begin, end), lower, upper), step))
        entry.map.range = subsets.Range(ranges)

    def iterations(self, name: str, parameters: Sequence[str], tiling: Tiling) -> sympy.Expr:
        """Iterations of a space that each rank runs."""
        parts = [self.part(name, own, d, tiling) for d, own in enumerate(parameters)]
        return sympy.Mul(*(upper - lower for lower, upper in parts))


def common(values: tuple[End, End], lower: End, upper: End) -> tuple[End, End]:
    """First and last index of an interval that are in a range too, if that is one of symbols.

    The last is at least one before the first, so that an empty intersection has the length 0.
    """
    first, last = map(sympy.sympify, values)
    if first.is_Integer and last.is_Integer:
        return lower, upper - 1
    if lower.is_Integer and upper.is_Integer and lower != upper:  # the hull of the range
        return first, last
    begin = sympy.Max(first, lower)
    return begin, sympy.Max(begin - 1, sympy.Min(last, upper - 1))


def add_tile(sdfg: SDFG, name: str, like: data.Data, layout: Layout, symbols: Symbols) -> str:
    """Add the storage of a layout's tiles; the name it got."""
    unique = new_name(name, {*sdfg.arrays, *sdfg.symbols})
    sdfg.add_array(
        unique,
        layout.storage_shape(),
        like.dtype,
        transient=True,
        lifetime=dtypes.AllocationLifetime.Persistent,
        offset=[-lower for lower in symbols.window(unique, layout).lower],
    )
    return unique


def describe_inside(
    sdfg: SDFG, container: data.Data, node: nodes.NestedSDFG, connector: str
) -> None:
    """Give the inner containers behind a connector the descriptor of the outer one, recursively."""
    inner = copy.deepcopy(container)
    inner.transient = False
    inner.lifetime = dtypes.AllocationLifetime.Scope
    node.sdfg.arrays[connector] = inner
    for symbol in sorted(map(str, inner.free_symbols)):
        if symbol not in node.sdfg.symbols:
            node.sdfg.add_symbol(symbol, sdfg.symbols[symbol])
        node.symbol_mapping.setdefault(symbol, symbolic.pystr_to_symbolic(symbol))
    for child, name in _nested_users(node.sdfg, connector):
        if child.sdfg.arrays[name] is not inner:
            describe_inside(node.sdfg, inner, child, name)


def _nested_users(sdfg: SDFG, name: str) -> Iterator[tuple[nodes.NestedSDFG, str]]:
    """Nested SDFGs that a container is passed to, with the connectors."""
    for state in sdfg.states():
        for access in state.data_nodes():
            if access.data != name:
                continue
            for edge in state.all_edges(access):
                for leaf in state.memlet_tree(edge).root().traverse_children(include_self=True):
                    yield from nested_ends(leaf.edge)


def nested_ends(edge: Edge) -> Iterator[tuple[nodes.NestedSDFG, str]]:
    """The ends of an edge that are connectors of nested SDFGs."""
    for node, connector in ((edge.dst, edge.dst_conn), (edge.src, edge.src_conn)):
        if isinstance(node, nodes.NestedSDFG) and connector is not None:
            yield node, connector


def new_name(name: str, taken: set[str]) -> str:
    """An identifier close to the name and not taken.

    Without leading underscores: DaCe takes names that start with ``__return`` for results.
    """
    base = re.sub(r"\W+", "_", name).lstrip("_")
    unique, count = base, 1
    while unique in taken:
        count += 1
        unique = f"{base}_{count}"
    return unique
