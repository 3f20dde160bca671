"""Iteration spaces: the top-level maps and library nodes of an SDFG, under lasting names.

A space is named for the container that it writes, because DaCe's labels repeat and contain line
numbers. Containers have the names of the user's variables. If several spaces write one container,
the later ones are numbered in program order, ``y``, ``y.2``.
"""

from __future__ import annotations

import copy
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import dace
import networkx as nx
import sympy
from dace import SDFG, SDFGState
from dace.dtypes import DebugInfo
from dace.libraries.comm.nodes.node import CommNode
from dace.sdfg import nodes
from dace.sdfg import utils as sdfg_utils

import distspmd.nodes.reduce  # noqa: F401  (registers its expansion)
from distspmd.analysis.declared_accesses import (
    PURE,
    add_stated,
    add_whole,
    implementations,
    runs_as_it_is,
    stated_by,
)
from distspmd.analysis.meanings import dimensions_of, meanings_of
from distspmd.dace_compat.exact_ranges import exact
from distspmd.dace_compat.settings import quiet
from distspmd.errors import UnsupportedProgram
from distspmd.tables import Table, as_html, as_text

_LIBRARIES = tuple(
    f"{Path(file).resolve().parent}{os.sep}" for file in (str(dace.__file__), Path(__file__).parent)
)
_FAR = 50
"""Nodes behind one that has no line, among which one with a line is sought."""
_INSTEAD = {"Inv": "Solve for what it multiplies: np.linalg.solve(a, b)."}
"""What to write in the place of library nodes of a type."""
_PBLAS = "dace.libraries.pblas."
"""Modules with nodes that send messages, and are no communication nodes."""
_ANONYMOUS = re.compile(r"__tmp\d+\Z")


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True, slots=True)
class ParameterRange:
    """Values of a parameter: ``begin``, ``begin + step``, ... below ``end``.

    Attributes:
        begin, end, step: the values.
        frame: the interval whose blocks the range is cut by; None where it is cut by its own.
    """

    begin: sympy.Expr
    end: sympy.Expr
    step: sympy.Expr
    frame: tuple[int, int] | None = None

    @property
    def iterations(self) -> int:
        """How many values there are, of ends that are numbers."""
        return max(0, -(-(int(self.end) - int(self.begin)) // int(self.step)))

    @property
    def divisible(self) -> int:
        """How many values there are to be cut: those of the frame, if there is one."""
        return self.frame[1] - self.frame[0] if self.frame else self.iterations

    @classmethod
    def up_to(cls, count: int) -> ParameterRange:
        """All indices of a dimension of so many elements."""
        return cls(sympy.Integer(0), sympy.Integer(count), sympy.Integer(1))

    def start(self, count: int) -> ParameterRange:
        """The first values of it, of ends that are numbers, cut by themselves."""
        return ParameterRange(self.begin, self.begin + count * self.step, self.step)

    def __str__(self) -> str:
        return f"{self.begin}:{self.end}" + ("" if self.step == 1 else f":{self.step}")


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """One schedulable unit of work.

    Attributes:
        name: unique in its SDFG, and stable under edits elsewhere: the container it writes.
        label: DaCe's label of the map or library node; may repeat.
        parameters: name of each dimension.
        ranges: values of each parameter.
        source: where in the user's program, if DaCe kept it.
        writes: containers that the space writes.
        state: the state that has it (an SDFG's internals, for passes).
        node: the map entry or library node.
        expansion: of a library node, the throw-away SDFG of its pure expansion.
        chosen: parameters whose range loops choose, with it; ``ranges`` has its hull.
        dimensions: what a schedule calls each parameter: as the front end does, else by its name.
        path: what patterns of a schedule are compared with: where in the user's program it is, if
            the front end knows that, and else its name.
    """

    name: str
    label: str
    parameters: tuple[str, ...]
    ranges: tuple[ParameterRange, ...]
    source: Source | None
    writes: tuple[str, ...]
    state: SDFGState = field(repr=False, compare=False)
    node: nodes.MapEntry | nodes.LibraryNode = field(repr=False, compare=False)
    expansion: SDFG | None = field(repr=False, compare=False)
    chosen: tuple[tuple[str, ParameterRange], ...] = ()
    dimensions: tuple[str, ...] = ()
    path: str = ""

    @property
    def iterates(self) -> tuple[tuple[str, str], ...]:
        """What a schedule calls each parameter, with its range, as text."""
        names = self.dimensions or self.parameters
        return tuple((p, str(r)) for p, r in zip(names, self.ranges, strict=True))

    @property
    def moving(self) -> frozenset[str]:
        """Parameters whose range loops choose."""
        return frozenset(name for name, _ in self.chosen)

    @property
    def is_placed(self) -> bool:
        """Whether each run of the space has one value of some parameter, which loops choose."""
        if not isinstance(self.node, nodes.MapEntry):
            return False
        sizes = zip(map(str, self.node.map.params), self.node.map.range.size(), strict=True)
        return any(name in self.moving and size == 1 for name, size in sizes)

    @property
    def where(self) -> str:
        """The source line for messages, or the label where there is none."""
        return str(self.source) if self.source else f"node {self.label}"


class IterationSpaces(Sequence[IterationSpace]):
    """The spaces of an SDFG in program order; prints as a table, and as HTML in Jupyter."""

    def __init__(self, spaces: Sequence[IterationSpace]) -> None:
        self._spaces = tuple(spaces)

    @overload
    def __getitem__(self, index: int) -> IterationSpace: ...

    @overload
    def __getitem__(self, index: slice) -> IterationSpaces: ...

    def __getitem__(self, index: int | slice) -> IterationSpace | IterationSpaces:
        found = self._spaces[index]
        return IterationSpaces(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._spaces)

    def _table(self) -> Table:
        rows = [
            (
                space.name,
                ", ".join(f"{p}={r}" for p, r in space.iterates),
                space.label,
                str(space.source or ""),
            )
            for space in self._spaces
        ]
        return Table("", ("name", "iterates over", "label", "source"), tuple(rows))

    def __str__(self) -> str:
        return as_text([self._table()])

    def _repr_html_(self) -> str:
        return as_html([self._table()])


def spaces_of(sdfg: SDFG) -> IterationSpaces:
    """The maps and library nodes of an SDFG, in program order, also inside loops and nested SDFGs.

    Library nodes have the space of the main map of their pure expansion, which is discarded.

    Raises:
        UnsupportedProgram: a library node without a pure expansion.
    """
    found = list(program_order(sdfg))
    known = meanings_of(sdfg)
    written: dict[str, int] = {}
    named = []
    for state, node in found:
        base = _base_name(state, node)
        count = written[base] = written.get(base, 0) + 1
        name = base if count == 1 else f"{base}.{count}"
        if isinstance(node, nodes.MapEntry):
            entry, expansion = node, None
        else:
            expansion = pure_expansion(state, node)
            _, entry = main_map(expansion)
        parameters, ranges = parameters_of(entry)
        dimensions = dimensions_of(state, node, parameters, known)
        named.append(
            IterationSpace(
                name,
                _label(node),
                parameters,
                ranges,
                source(state, node),
                _written(state, node),
                state,
                node,
                expansion,
                dimensions=dimensions,
                path=known.paths.get(base, name),
            )
        )
    return IterationSpaces(named)


def program_order(sdfg: SDFG) -> Iterator[tuple[SDFGState, nodes.MapEntry | nodes.LibraryNode]]:
    """Top-level maps and library nodes in program order."""
    for block in _program_order(sdfg):
        for node in in_order(block):
            if block.entry_node(node) is not None:
                continue
            if isinstance(node, (nodes.MapEntry, nodes.LibraryNode)):
                yield block, node
            elif isinstance(node, nodes.NestedSDFG):
                yield from program_order(node.sdfg)


def in_order(state: SDFGState) -> Iterator[nodes.Node]:
    """Nodes after those that they need; what is independent by its line, then as it was added."""
    lines = {node: source(state, node) for node in state.nodes()}
    order = {node: (at.line if at else 0, k) for k, (node, at) in enumerate(lines.items())}
    yield from nx.lexicographical_topological_sort(state.nx, key=order.__getitem__)


def _program_order(sdfg: SDFG) -> Iterator[SDFGState]:
    def visit(region: dace.sdfg.state.ControlFlowRegion) -> Iterator[SDFGState]:
        for block in sdfg_utils.dfs_topological_sort(region, region.source_nodes()):
            if isinstance(block, SDFGState):
                yield block
            elif isinstance(block, dace.sdfg.state.ConditionalBlock):
                for _, branch in block.branches:
                    yield from visit(branch)
            elif isinstance(block, dace.sdfg.state.ControlFlowRegion):
                yield from visit(block)

    yield from visit(sdfg)


def _exit(state: SDFGState, node: nodes.Node) -> nodes.Node:
    if not isinstance(node, nodes.MapEntry):
        return node
    leave = state.exit_node(node)
    assert leave is not None
    return leave


def _label(node: nodes.MapEntry | nodes.LibraryNode) -> str:
    label: str = node.map.label if isinstance(node, nodes.MapEntry) else node.label
    return label


def _written(state: SDFGState, node: nodes.Node) -> tuple[str, ...]:
    found = [
        edge.dst.data
        for edge in state.out_edges(_exit(state, node))
        if isinstance(edge.dst, nodes.AccessNode)
    ]
    return tuple(dict.fromkeys(found))


def _base_name(state: SDFGState, node: nodes.MapEntry | nodes.LibraryNode) -> str:
    """The container written; for an anonymous one, the label and the container it flows into."""
    written = _written(state, node)
    if not written:
        return _label(node)
    if not _ANONYMOUS.match(written[0]):
        return written[0]
    label = re.sub(r"_\d+\Z", "", _label(node))
    frontier = [e.dst for e in state.out_edges(_exit(state, node))]
    for follower in dace.sdfg.utils.dfs_topological_sort(state, frontier):
        if isinstance(follower, nodes.AccessNode) and not _ANONYMOUS.match(follower.data):
            return f"{follower.data}<{label}"
    return label


def source(state: SDFGState, node: nodes.Node) -> Source | None:
    """Line of the user's program that a node is from.

    Its own, else that of what it writes or reads, else of what comes after it. Lines of DaCe, which
    some of what it adds has, are not the user's.
    """
    around = [e.dst for e in state.out_edges(_exit(state, node))] + [
        e.src for e in state.in_edges(node)
    ]
    after = (found for _, found in itertools.islice(nx.bfs_edges(state.nx, node), _FAR))
    for candidate in itertools.chain([node, *around], after):
        info: DebugInfo | None = getattr(candidate, "debuginfo", None)
        if info is not None and info.filename and info.start_line:
            file = str(info.filename)
            if not file.startswith(_LIBRARIES):
                return Source(file, int(info.start_line))
    return None


def parameters_of(entry: nodes.MapEntry) -> tuple[tuple[str, ...], tuple[ParameterRange, ...]]:
    """Parameters of a map and the values of each."""
    ranges = tuple(
        ParameterRange(sympy.sympify(begin), sympy.sympify(end) + 1, sympy.sympify(step))
        for begin, end, step in (map(exact, ends) for ends in entry.map.range.ranges)
    )
    return tuple(map(str, entry.map.params)), ranges


def pure_expansion(state: SDFGState, node: nodes.LibraryNode) -> SDFG:
    """An SDFG with the pure expansion of a library node between its containers.

    Each connector ``_a`` has a container of its own, also named ``_a``, of the shape of its memlet:
    so an array that is read twice stays apart, and indices start at zero in each window.

    Nodes of ours that are alike between containers that are alike share one, which nobody changes:
    a network has the same products in each layer.

    Raises:
        UnsupportedProgram: no pure expansion.
    """
    key = _alike(state, node)
    if key is None:
        return _expanded(state, node)
    if key not in _expansions:
        if len(_expansions) >= _MOST_EXPANSIONS:
            _expansions.pop(next(iter(_expansions)))
        _expansions[key] = _expanded(state, node)
    return _expansions[key]


_MOST_EXPANSIONS = 256
_expansions: dict[tuple[Any, ...], SDFG] = {}


def _alike(state: SDFGState, node: nodes.LibraryNode) -> tuple[Any, ...] | None:
    """What decides the pure expansion of a node of ours; None where its properties do not."""
    if not type(node).__module__.startswith("distspmd.") or node.free_symbols:
        return None
    properties = dace.serialize.all_properties_to_json(node)
    own = [f"{name}={properties[name]}" for name in sorted(properties.keys() - _IDENTITY)]
    ends = []
    for edge in [*state.in_edges(node), *state.out_edges(node)]:
        if not edge.data.is_empty():
            container = state.sdfg.arrays[edge.data.data]
            sizes = tuple(map(str, edge.data.subset.size()))
            ends.append((edge.dst is node, edge.dst_conn, edge.src_conn, sizes, container.dtype))
    if any(not size.isdecimal() for _, _, _, sizes, _ in ends for size in sizes):
        return None
    return type(node), *own, *ends


_IDENTITY = {"name", "label", "debuginfo", "guid"}
"""Properties that say which node it is, and not what it does."""


def _expanded(state: SDFGState, node: nodes.LibraryNode) -> SDFG:
    proxy, windows = _windows_of(state, node)
    if stated_by(node) is not None:
        add_stated(proxy, node, windows)
        return proxy
    _check_alone(state, node)
    if any(name in PURE for name in implementations(node)):
        _expand_between(proxy, state, node)
        if not runs_as_it_is(node) or _is_one_map(proxy):
            return proxy
        proxy, windows = _windows_of(state, node)
    add_whole(proxy, node, windows)
    return proxy


def _windows_of(state: SDFGState, node: nodes.LibraryNode) -> tuple[SDFG, dict[str, str]]:
    """An SDFG with a container for the window behind each connector, and their names."""
    proxy, windows = SDFG("pure_expansion"), {}
    for _, edge in _operands(state, node):
        connector = (edge.dst_conn if edge.dst is node else edge.src_conn) or ""
        connector = connector or ("_in" if edge.dst is node else "_out")
        windows[connector] = name = window_name(connector)
        if name not in proxy.arrays:
            dtype = state.sdfg.arrays[edge.data.data].dtype
            proxy.add_array(name, edge.data.subset.size(), dtype)
    for symbol in proxy.free_symbols:
        if symbol in state.sdfg.symbols and symbol not in proxy.symbols:
            proxy.add_symbol(symbol, state.sdfg.symbols[symbol])
    return proxy, windows


def _operands(state: SDFGState, node: nodes.LibraryNode) -> Iterator[tuple[bool, Any]]:
    """Edges with data at a node, and whether each enters it."""
    for edge in [*state.in_edges(node), *state.out_edges(node)]:
        if not edge.data.is_empty():
            yield edge.dst is node, edge


def _check_alone(state: SDFGState, node: nodes.LibraryNode) -> None:
    """Refuse a node that has a better form, or that sends messages itself."""
    kind = type(node).__name__
    if isinstance(node, CommNode) or type(node).__module__.startswith(_PBLAS):
        raise UnsupportedProgram(
            f"{source(state, node) or node.label}: the library node {node.label} ({kind}) sends "
            "messages itself: the program is already one of many ranks. Lower the program from "
            "before it was distributed."
        )
    if kind in _INSTEAD and stated_by(node) is None:
        raise UnsupportedProgram(
            f"{source(state, node) or node.label}: the library node {node.label} ({kind}) has no "
            f"pure expansion to analyse, only {', '.join(implementations(node)) or 'none'}. "
            f"{_INSTEAD[kind]}"
        )


def _expand_between(proxy: SDFG, state: SDFGState, node: nodes.LibraryNode) -> None:
    """Put the pure expansion of a node between the windows of an SDFG."""
    inside, twin = proxy.add_state(), copy.deepcopy(node)
    inside.add_node(twin)
    for enters, edge in _operands(state, node):
        connector = edge.dst_conn if enters else edge.src_conn
        name = window_name(connector or ("_in" if enters else "_out"))
        memlet = dace.Memlet.from_array(name, proxy.arrays[name])
        if enters:
            inside.add_edge(inside.add_read(name), None, twin, connector, memlet)
        else:
            inside.add_edge(twin, connector, inside.add_write(name), None, memlet)
    while library := [
        (n, s) for n, s in proxy.all_nodes_recursive() if isinstance(n, nodes.LibraryNode)
    ]:
        for found, parent in library:
            names = implementations(found)
            implementation = next((n for n in PURE if n in names), None)
            if implementation is None:
                raise UnsupportedProgram(
                    f"{source(state, node) or node.label}: the library node {node.label} "
                    f"({type(found).__name__}) has no pure expansion to analyse, only "
                    f"{', '.join(names) or 'none'}. Expand it before you lower the SDFG."
                )
            try:
                with quiet():
                    found.expand(parent, implementation)
            except Exception as problem:  # of whichever node DaCe or a user wrote
                raise UnsupportedProgram(
                    f"{source(state, node) or node.label}: the library node {node.label} "
                    f"({type(found).__name__}) cannot be expanded: {problem}. Write the operation "
                    "as maps, or expand the node before you lower the SDFG."
                ) from problem


def _is_one_map(proxy: SDFG) -> bool:
    """Whether an expansion is one map over its operands, and others that only begin results."""
    reading, maps = 0, 0
    for node, state in proxy.all_nodes_recursive():
        if not isinstance(state, SDFGState):
            continue
        if isinstance(node, nodes.AccessNode) and node.desc(state.sdfg).transient:
            return False
        if isinstance(node, nodes.MapEntry) and state.entry_node(node) is None:
            maps += 1
            reading += any(not edge.data.is_empty() for edge in state.in_edges(node))
    return maps > 0 and reading <= 1


def window_name(connector: str) -> str:
    """Container of a connector in the throw-away SDFG."""
    return f"window{connector}"


def main_map(proxy: SDFG) -> tuple[SDFGState, nodes.MapEntry]:
    """The map of an expansion that does the work: the one of most parameters, the later of two."""
    maps = [
        (state, node)
        for node, state in proxy.all_nodes_recursive()
        if isinstance(node, nodes.MapEntry)
        and isinstance(state, SDFGState)
        and state.entry_node(node) is None
    ]
    if not maps:
        raise UnsupportedProgram(f"the expansion of {proxy.name} has no map to partition.")
    return max(enumerate(maps), key=lambda item: (len(item[1][1].map.params), item[0]))[1]
