"""Maps run over the indices that they write, if a loop chooses the place of the write.

before -> after:  ``for k: map i in 0:n-k: a[i + k] = x[i]``  ->  ``map i in k:n: a[i] = x[i - k]``;
``for k: a[k, 0] = f(a[k, 0])``  ->  ``map i in k:k+1: a[i, 0] = f(a[i, 0])``;
``for k: map i: a[i, k] = f(a[i, k])``  ->  ``map i, j in k:k+1: a[i, j] = f(a[i, j])``;
``a[0, i] = f(i)`` beside ``a[1:, i] = g(i)``  ->  ``map i, j in 0:1: a[j, i] = f(i)``.
The part of the map that a rank runs is then the part that it writes, in each iteration of the loop:
who holds an element, or a panel, computes it.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import sympy
from dace import SDFG, SDFGState, subsets, symbolic
from dace.sdfg import nodes
from dace.sdfg.replace import replace_dict

from distspmd.analysis.accesses import Access, bound_around, map_accesses
from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.elements import chosen_place
from distspmd.analysis.iteration_spaces import IterationSpace, parameters_of
from distspmd.analysis.pieces import dimensions_in, frames_of
from distspmd.analysis.whole_program import unchanged_control_flow
from distspmd.passes.compilation import Compilation


@dataclass(frozen=True)
class AlignMaps:
    """Maps run over the indices that they write."""

    name: str = "align-maps"

    def apply(self, compilation: Compilation) -> None:
        """Shift the parameters of maps at the top level, and add some, in place.

        A space that the schedule names keeps its parameters, unless it names those of its place.
        """
        align_maps(compilation.sdfg)
        spaces, frames = [], frames_of(compilation.spaces)
        for space in compilation.spaces:
            grid = compilation.grids.get(space.name)
            free = (grid is None or grid.is_of_place) and not is_control_value(space.node)
            if free and isinstance(space.node, nodes.MapEntry):
                space = _at_place(space, space.node, dimensions_in(frames, space.state.sdfg))
            spaces.append(space)
        compilation.spaces = spaces


@unchanged_control_flow()
def align_maps(sdfg: SDFG) -> None:
    """Shift the parameters of all maps at the top level, in place."""
    for state in sdfg.states():
        loops = bound_around(state).keys()
        if not loops:
            continue
        for node in state.nodes():
            if isinstance(node, nodes.MapEntry) and state.entry_node(node) is None:
                _align(state, node, loops)


def _align(state: SDFGState, entry: nodes.MapEntry, loops: Iterable[str]) -> None:
    parameters = list(map(str, entry.map.params))
    writes = [access for access in map_accesses(state, entry) if access.is_write]
    ranges = list(entry.map.range.ranges)
    for d, parameter in enumerate(parameters):
        shifts = set(_shifts(writes, parameter))
        shift = shifts.pop() if len(shifts) == 1 else sympy.Integer(0)
        names = {symbol.name for symbol in shift.free_symbols}
        if not names & set(loops) or names & set(parameters):
            continue
        begin, end, step = ranges[d]
        ranges[d] = (_sum(begin, shift), _sum(end, shift), step)
        entry.map.range = subsets.Range(ranges)
        old = symbolic.pystr_to_symbolic(parameter)
        text = {parameter: f"({parameter} - ({shift}))"}
        inside = state.scope_subgraph(entry)
        replace_dict(inside, text, {old: old - shift})
        for edge in inside.edges():
            if isinstance(edge.data.subset, subsets.Range):
                edge.data.subset.ranges = [tuple(map(_one, r)) for r in edge.data.subset.ranges]


def _at_place(
    space: IterationSpace, entry: nodes.MapEntry, pieces: Mapping[str, Collection[int]]
) -> IterationSpace:
    """Let a map run over the indices of its write that loops choose, too."""
    state, found = space.state, chosen_place(space.state, entry, pieces)
    if found is None:
        return space
    pairs = zip(map(str, entry.map.params), entry.map.range.ranges, strict=True)
    ranges = {name: extent for name, extent in pairs if name in found.kept}
    starts = dict(zip(map(str, entry.map.params), entry.map.range.min_element(), strict=True))
    for name in ranges:
        del starts[name]
    replace_dict(
        state.scope_subgraph(entry),
        {name: str(at) for name, at in starts.items()},
        {symbolic.pystr_to_symbolic(name): at for name, at in starts.items()},
    )
    ranges |= {name: (at, at, 1) for name, (_, at) in found.indices.items()}
    entry.map.params = list(found.parameters)
    entry.map.range = subsets.Range([ranges[name] for name in found.parameters])
    place = list(found.write.data.subset.ranges)
    own = list(place)
    for name, (d, _) in found.indices.items():
        index = symbolic.pystr_to_symbolic(name)
        own[d] = (index, index, 1)
    for edge in [found.write, *state.out_edges(entry)]:
        if edge.data.data == found.write.data.data and edge.data.subset.ranges == place:
            edge.data = copy.deepcopy(edge.data)
            edge.data.subset = subsets.Range(own)
    parameters, extents = parameters_of(entry)
    dimensions = (*space.dimensions, *found.indices) if found.kept and space.dimensions else ()
    return replace(space, parameters=parameters, ranges=extents, dimensions=dimensions)


def _sum(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    return _one(f"({a}) + ({b})")


def _one(expression: sympy.Expr | str) -> sympy.Expr:
    """The expression with one symbol for each name: DaCe's may differ in type, and not cancel."""
    return symbolic.pystr_to_symbolic(str(expression))


def _shifts(writes: Iterable[Access], parameter: str) -> Iterator[sympy.Expr]:
    """What writes add to a parameter that they index with; nan where they do anything else."""
    for access in writes:
        for dimension in access.dimensions:
            if dimension is None:
                yield sympy.nan
                continue
            ends = dimension.first.free_symbols | dimension.last.free_symbols
            for symbol in ends:
                if symbol.name == parameter:
                    single = dimension.first == dimension.last
                    shift = sympy.expand(dimension.first - symbol)
                    yield shift if single and symbol not in shift.free_symbols else sympy.nan
