"""Nodes of a state: maps, tasklets, nested SDFGs, and the edges between them and containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState, data, dtypes
from dace.sdfg import nodes

from distspmd.expressions.ir import (
    INT64,
    Argument,
    Constant,
    Expression,
    IndexValue,
    Load,
    Operation,
    cast,
    parts,
    replace_leaves,
)
from distspmd.frontend.tensor_ir.statements import (
    Container,
    Index,
    Kernel,
    Parameter,
    Statement,
    Store,
)
from distspmd.frontend.tensor_ir.whole_numbers import CheckedIndex, text
from distspmd.nodes.computation import Computation
from distspmd.nodes.map_scopes import enter_map, inside_name, leave_map

CONFLICTS = {
    "add": "lambda x, y: x + y",
    "multiply": "lambda x, y: x * y",
    "maximum": "lambda x, y: max(x, y)",
    "minimum": "lambda x, y: min(x, y)",
    "bitwise_and": "lambda x, y: x & y",
    "bitwise_or": "lambda x, y: x | y",
    "bitwise_xor": "lambda x, y: x ^ y",
    "logical_and": "lambda x, y: x and y",
    "logical_or": "lambda x, y: x or y",
}
"""Conflict resolutions of DaCe by the operation that they are."""


@dataclass
class OpenState:
    """A state that takes more statements."""

    state: SDFGState
    accesses: dict[str, nodes.AccessNode] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def takes(self, reads: Iterable[str], writes: Iterable[str]) -> bool:
        """Whether a statement can stand here."""
        return not any(name in self.accesses for name in writes)

    def read(self, name: str) -> nodes.AccessNode:
        """The node of a container that is read."""
        if name not in self.accesses:
            self.accesses[name] = self.state.add_access(name)
        return self.accesses[name]

    def write(self, name: str) -> nodes.AccessNode:
        """A new node of a container that is written."""
        self.written.add(name)
        self.accesses[name] = self.state.add_access(name)
        return self.accesses[name]


def inner_descriptor(sdfg: SDFG, name: str) -> data.Data:
    """What a container is in a nested SDFG."""
    container = sdfg.arrays[name].clone()
    container.transient = False
    found: data.Data = container
    return found


# -- nodes ----------------------------------------------------------------------------------------


def debug_info(statement: Statement) -> dtypes.DebugInfo | None:
    """The line of a statement."""
    if statement.line is None:
        return None
    file, line = statement.line
    return dtypes.DebugInfo(line, 0, line, 0, file)


def map_of(
    state: SDFGState, label: str, parameters: Sequence[Parameter]
) -> tuple[nodes.MapEntry | None, nodes.MapExit | None]:
    """A map; none where there is one iteration."""
    if not parameters:
        return None, None
    ranges: dict[str, Any] = {}
    for p in parameters:
        step = "" if p.step == 1 else f":{text(p.step)}"
        ranges[p.name] = f"{text(p.first)}:{text(p.end)}{step}"
    return state.add_map(label, ranges)


def is_direct(index: Sequence[Index]) -> bool:
    """Whether no index is in data."""
    return all(isinstance(i, int | sympy.Basic) for i in index)


def subset_text(index: Sequence[Index]) -> str:
    """An index as DaCe's subset."""
    return ", ".join(text(i) for i in index) or "0"


def pointer_to(window: Any) -> dtypes.pointer:
    """The type of a pointer to elements of a window."""
    return dtypes.pointer(dtypes.dtype_to_typeclass(window.container.dtype.type))


def window_text(window: Any) -> str:
    """A window as DaCe's subset."""
    pairs = zip(window.first, window.lengths, strict=True)
    return ", ".join(f"{text(a)}:{text(a)} + {text(n)}" for a, n in pairs) or "0"


class _Names:
    """Names of loads in a tasklet, the same for those of one element."""

    def __init__(self) -> None:
        self.loads: dict[Any, tuple[str, Load]] = {}
        self._closed: dict[int, Expression] = {}

    def closed(self, expression: Expression) -> Expression:
        return replace_leaves(expression, self._named, self._closed)

    def _named(self, leaf: Expression) -> Expression:
        if not isinstance(leaf, Load):
            return leaf
        key = leaf.array.name, tuple(map(str, leaf.index))
        name, _ = self.loads.setdefault(key, (f"_in{len(self.loads)}", leaf))
        return Argument(name, leaf.dtype)


def make_tasklet(
    state: SDFGState, kernel: Kernel, info: Any
) -> tuple[nodes.Tasklet, list[tuple[str, Load]]]:
    """The tasklet of a kernel without its edges, and its loads by connector."""
    names = _Names()
    assignments = tuple(
        (f"_out{n}", cast(names.closed(store.value), store.container.dtype))
        for n, store in enumerate(kernel.stores)
    )
    tasklet = Computation(
        kernel.label,
        assignments,
        {name: None for name, _ in names.loads.values()},
        {f"_out{n}": None for n in range(len(kernel.stores))},
    )
    tasklet.debuginfo = info
    state.add_node(tasklet)
    return tasklet, list(names.loads.values())


def connect_tasklet(
    state: SDFGState,
    sdfg: SDFG,
    entry: nodes.MapEntry | None,
    leave: nodes.MapExit | None,
    tasklet: nodes.Tasklet,
    loads: Sequence[tuple[str, Load]],
    kernel: Kernel,
    reads: Mapping[str, nodes.AccessNode],
    opened: OpenState,
) -> None:
    """The edges of a kernel's tasklet, through its map where it has one."""
    for name, load in loads:
        container = load.array.name
        memlet = Memlet(data=container, subset=subset_text(load.index))
        if entry is None:
            state.add_edge(reads[container], None, tasklet, name, memlet)
        else:
            enter_map(state, sdfg, entry, reads[container], tasklet, name, memlet)
    if entry is not None and not loads:
        state.add_nedge(entry, tasklet, Memlet())
    targets: dict[str, nodes.AccessNode] = {}
    for n, store in enumerate(kernel.stores):
        container = store.container.name
        if container not in targets:
            targets[container] = opened.write(container)
        memlet = Memlet(data=container, subset=subset_text(store.index))
        if store.conflict:
            memlet.wcr = CONFLICTS[store.conflict]
        if leave is None:
            state.add_edge(tasklet, f"_out{n}", targets[container], None, memlet)
        else:
            leave_map(state, sdfg, leave, tasklet, f"_out{n}", memlet, targets[container])


# -- nested SDFGs ---------------------------------------------------------------------------------


def connect_nested(
    state: SDFGState,
    sdfg: SDFG,
    entry: nodes.MapEntry | None,
    leave: nodes.MapExit | None,
    nested: nodes.NestedSDFG,
    reads: Mapping[str, nodes.AccessNode],
    writes: Sequence[str],
    opened: OpenState,
    conflicts: Mapping[str, str] | None = None,
) -> None:
    """Edges between a nested SDFG and whole containers."""
    conflicts = conflicts or {}
    outside = {inside_name(name): name for name in sdfg.arrays}
    for connector in nested.in_connectors:
        name = outside[connector]
        memlet = Memlet.from_array(name, sdfg.arrays[name])
        if entry is None:
            state.add_edge(reads[name], None, nested, connector, memlet)
        else:
            enter_map(state, sdfg, entry, reads[name], nested, connector, memlet)
    if entry is not None and not nested.in_connectors:
        state.add_nedge(entry, nested, Memlet())
    for name in writes:
        memlet = Memlet.from_array(name, sdfg.arrays[name])
        memlet.wcr = conflicts.get(name)
        written = opened.write(name)
        if leave is None:
            state.add_edge(nested, inside_name(name), written, None, memlet)
        else:
            leave_map(state, sdfg, leave, nested, inside_name(name), memlet, written)


@dataclass
class Indirect:
    """The nested SDFG of a kernel whose indices are in data."""

    sdfg: SDFG
    reads: list[str]
    writes: list[str]

    @classmethod
    def indirect(cls, outer: SDFG, kernel: Kernel, info: Any) -> Indirect:
        """Symbols get the indices, one after the other; then one tasklet does the rest."""
        inner = SDFG(kernel.label)
        used = {load.array.name for load in kernel.loads()}
        used |= {store.container.name for store in kernel.stores}
        for name in sorted(used):
            inner.add_datadesc(name, inner_descriptor(outer, name))
        places = _Places(inner, kernel, info, inner.add_state("indices", is_start_block=True))
        stores = [
            Store(s.container, places.direct(s.index), places.moved(s.value), s.conflict)
            for s in kernel.stores
        ]
        for symbol in places.known.values():
            inner.add_symbol(str(symbol), dtypes.int64)
        _add_tasklet(inner, places.state, stores, kernel, info)
        every = {load.array.name for load in kernel.loads()}
        writes = sorted({s.container.name for s in stores})
        every |= {s.container.name for s in stores if not s.conflict} & every
        return cls(inner, sorted(every), writes)


def _index_names(stores: Sequence[Store]) -> set[str]:
    """The variables of indices whose values are computed with."""
    values = [part for store in stores for part in parts(store.value)]
    return {str(v) for part in values if isinstance(part, IndexValue) for v, _ in part.terms}


@dataclass
class _Places:
    """Symbols for the indices of a kernel that are in data.

    Attributes:
        sdfg: of the kernel.
        kernel: has the indices.
        info: the line.
        state: the last one, behind which all symbols that there are so far have their values.
        known: the symbols, by the indices.
    """

    sdfg: SDFG
    kernel: Kernel
    info: Any
    state: SDFGState
    known: dict[Any, sympy.Symbol] = field(default_factory=dict)

    def direct(self, index: Sequence[Index]) -> tuple[Any, ...]:
        """Indices, with symbols for those in data."""
        return tuple(i if isinstance(i, int | sympy.Basic) else self._symbol(i) for i in index)

    def moved(self, expression: Expression) -> Expression:
        """An expression whose loads have such indices."""

        def leaf_of(leaf: Expression) -> Expression:
            if not isinstance(leaf, Load):
                return leaf
            return Load(leaf.array, self.direct(leaf.index), leaf.dtype)

        return replace_leaves(expression, leaf_of)

    def _symbol(self, index: Expression) -> sympy.Symbol:
        key = (index.array.name, tuple(map(str, index.index))) if isinstance(index, Load) else index
        if key not in self.known:
            value = self._value(index)
            self.known[key] = sympy.Symbol(f"__index{len(self.known)}", integer=True)
            after = self.sdfg.add_state("indices")
            edge = InterstateEdge(assignments={str(self.known[key]): value})
            self.sdfg.add_edge(self.state, after, edge)
            self.state = after
        return self.known[key]

    def _value(self, index: Expression) -> str:
        """An element, a comparison of one symbol, or the name of a scalar that gets the index."""
        if isinstance(index, Load):
            return f"{index.array.name}[{subset_text(self.direct(index.index))}]"
        checked = _checked(index)
        if checked is not None:
            (place,) = self.direct(checked[:1])
            return text(CheckedIndex(place, *checked[1:]))
        value = self.moved(index)
        name = f"__place{len(self.known)}"
        name, _ = self.sdfg.add_scalar(name, dtypes.int64, transient=True, find_new_name=True)
        before, self.state = self.state, self.sdfg.add_state("place")
        self.sdfg.add_edge(before, self.state, InterstateEdge())
        stores = [Store(Container(name, (), INT64), (), value)]
        _add_tasklet(self.sdfg, self.state, stores, self.kernel, self.info)
        return name


def _checked(index: Expression) -> tuple[Index, sympy.Integer, sympy.Integer] | None:
    """An element or a sum of symbols that is compared with a length, and its line, if one is."""
    if not isinstance(index, Operation) or index.name != "checked_index":
        return None
    value, *rest = index.arguments
    while isinstance(value, Operation) and value.name == "cast" and value.dtype == INT64:
        (value,) = value.arguments
    known = [sympy.Integer(r.value) for r in rest if isinstance(r, Constant)]
    if len(known) < 2 or value.dtype.kind not in "iu":
        return None
    length, line = known
    if isinstance(value, IndexValue):
        terms = (factor * sympy.Symbol(str(v), integer=True) for v, factor in value.terms)
        return sympy.Add(value.constant, *terms), length, line
    return (value, length, line) if isinstance(value, Load) else None


def _add_tasklet(
    sdfg: SDFG, state: SDFGState, stores: list[Store], kernel: Kernel, info: Any
) -> None:
    """Add what writes stores of a kernel to a state of its own, without a map."""
    for name in sorted(_index_names(stores) - set(sdfg.symbols) - set(sdfg.arrays)):
        sdfg.add_symbol(name, dtypes.int64)  # DaCe looks for no others in code of C++
    body = Kernel(kernel.label, (), stores, line=kernel.line)
    opened = OpenState(state)
    sources = {n: opened.read(n) for n in sorted({load.array.name for load in body.loads()})}
    tasklet, loads = make_tasklet(state, body, info)
    connect_tasklet(state, sdfg, None, None, tasklet, loads, body, sources, opened)
