"""A program of statements becomes an SDFG: regions, states, maps with one tasklet, library nodes.

Statements share a state as long as none of them writes what another one has touched there; the
order within a state is then that of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState, data, dtypes
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import ConditionalBlock, ControlFlowRegion, LoopRegion

from distspmd.dace_compat.settings import placed_by_us
from distspmd.expressions.cpp import literal
from distspmd.expressions.ir import (
    Argument,
    Expression,
    IndexValue,
    Load,
    cast,
    replace_leaves,
)
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Branch,
    Container,
    Contract,
    Index,
    Kernel,
    Library,
    Loop,
    Parameter,
    Scope,
    SetSymbol,
    Statement,
    Store,
    Table,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import text
from distspmd.lowering import CallForm, set_call_form
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import Contraction

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


@placed_by_us()
def emit_program(
    name: str, program: Block, arguments: Sequence[Container], returned: Any = None
) -> SDFG:
    """The SDFG of a program.

    Args:
        name: of the SDFG.
        program: its statements.
        arguments: what the caller passes, in order; results are not among them.
        returned: the form of what the function returns, with places of results.
    """
    sdfg = SDFG(name)
    known: dict[str, Container] = {a.name: a for a in arguments}
    for container in program.containers():
        known.setdefault(container.name, container)
    inner = _own(program)
    for container in known.values():
        if container.name not in inner:
            _declare(sdfg, container, transient=not container.is_argument)
    emitter = _Emitter(sdfg, sdfg, known)
    emitter.block(program)
    emitter.finish()
    sdfg.arg_names = [a.name for a in arguments]
    _declare_symbols(sdfg, program)
    numbers = frozenset(c.name for c in known.values() if c.is_argument and not c.shape)
    set_call_form(sdfg, CallForm(numbers, returned))
    return sdfg


def _own(block: Block) -> set[str]:
    """Names of containers that belong to scopes."""
    found: set[str] = set()
    for statement in block.statements:
        if isinstance(statement, Scope):
            found |= statement.own
        for inner in statement.blocks():
            found |= _own(inner)
    return found


def _declare(sdfg: SDFG, container: Container, transient: bool) -> None:
    dtype = dtypes.dtype_to_typeclass(container.dtype.type)
    if container.is_scalar:
        sdfg.add_scalar(container.name, dtype, transient=transient)
        return
    sdfg.add_array(
        container.name, [text(n) for n in container.shape] or [1], dtype, transient=transient
    )


def _declare_symbols(sdfg: SDFG, program: Block) -> None:
    """Sizes, and what loops and edges set."""
    types: dict[str, Any] = {}
    _set_in(program, types)
    for found in map(str, sdfg.free_symbols | set(types)):
        if found not in sdfg.symbols and found not in sdfg.arrays:
            sdfg.add_symbol(found, types.get(found, dtypes.int64))


def _set_in(block: Block, types: dict[str, Any]) -> None:
    for statement in block.statements:
        if isinstance(statement, Loop) and statement.symbol:
            types[statement.symbol] = dtypes.int64
        if isinstance(statement, SetSymbol):
            types[statement.name] = dtypes.dtype_to_typeclass(statement.dtype.type)
        if not isinstance(statement, Scope):
            for inner in statement.blocks():
                _set_in(inner, types)


@dataclass
class _Open:
    """A state that takes more statements."""

    state: SDFGState
    nodes: dict[str, nodes.AccessNode] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def takes(self, reads: Iterable[str], writes: Iterable[str]) -> bool:
        """Whether a statement can stand here."""
        return not any(name in self.nodes for name in writes)

    def read(self, name: str) -> nodes.AccessNode:
        if name not in self.nodes:
            self.nodes[name] = self.state.add_access(name)
        return self.nodes[name]

    def write(self, name: str) -> nodes.AccessNode:
        self.written.add(name)
        self.nodes[name] = self.state.add_access(name)
        return self.nodes[name]


class _Emitter:
    """Adds statements to a region of an SDFG."""

    def __init__(
        self, sdfg: SDFG, region: ControlFlowRegion, known: Mapping[str, Container]
    ) -> None:
        self.sdfg, self.region, self.known = sdfg, region, known
        self.open: _Open | None = None
        self.last: Any = None
        self.pending: dict[str, str] = {}

    # -- states and edges -----------------------------------------------------------------------

    def finish(self) -> None:
        """Let a region have a state at least, and edges that are not followed by one, one."""
        if self.last is None or self.pending:
            self._state(None)

    def _add(self, block: Any) -> None:
        """A block after the last one."""
        first = self.last is None
        if first and self.pending:
            self._append(self.region.add_state("begin", is_start_block=True))
            first = False
        self.region.add_node(block, is_start_block=first, ensure_unique_name=True)
        self._append(block)

    def _append(self, block: Any) -> None:
        if self.last is not None:
            edge = InterstateEdge(assignments=dict(self.pending))
            self.region.add_edge(self.last, block, edge)
            self.pending.clear()
        self.last, self.open = block, None

    def _state(self, statement: Statement | None, label: str = "state") -> _Open:
        reads = {c.name for c in statement.reads()} if statement else set()
        writes = {c.name for c in statement.writes()} if statement else set()
        if self.open is None or self.pending or not self.open.takes(reads, writes):
            self._add(SDFGState(label, self.sdfg))
            self.open = _Open(self.last)
        return self.open

    # -- statements -----------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Add all statements of a block."""
        for statement in block.statements:
            _EMIT[type(statement)](self, statement)

    def _inside(self, region: Any, body: Block) -> None:
        inner = _Emitter(self.sdfg, region, self.known)
        inner.block(body)
        inner.finish()

    def loop(self, loop: Loop) -> None:
        label = f"loop_{loop.symbol or 'while'}"
        if loop.symbol is None:
            region = LoopRegion(label, condition_expr=loop.condition)
        else:
            sign = "<" if text(loop.step)[0] != "-" and text(loop.step)[:2] != "(-" else ">"
            name = loop.symbol
            condition = f"{name} {sign} {text(loop.end)}"
            if loop.condition:
                condition = f"({condition}) and {loop.condition}"
            region = LoopRegion(
                label,
                condition_expr=condition,
                loop_var=name,
                initialize_expr=f"{name} = {text(loop.first)}",
                update_expr=f"{name} = {name} + {text(loop.step)}",
            )
        self._add(region)
        self._inside(region, loop.body)

    def branch(self, branch: Branch) -> None:
        block = ConditionalBlock("branch", self.sdfg, self.region)
        self._add(block)
        for condition, body in (
            (CodeBlock(branch.condition), branch.then),
            (None, branch.otherwise),
        ):
            if condition is not None or body.statements:
                inner = ControlFlowRegion("branch_body", self.sdfg)
                block.add_branch(condition, inner)
                self._inside(inner, body)

    def set_symbol(self, statement: SetSymbol) -> None:
        value = statement.value
        if isinstance(value, Load):
            index = ", ".join(text(i) for i in value.index) or "0"
            container = value.array
            found = container.name if container.is_scalar else f"{container.name}[{index}]"
        else:
            found = value if isinstance(value, str) else text(value)
        if statement.name in self.pending or self.pending:
            self._state(None)
        self.pending[statement.name] = found
        self.open = None

    def kernel(self, kernel: Kernel) -> None:
        opened = self._state(kernel, kernel.label)
        state = opened.state
        names = [load.array.name for load in kernel.loads()]
        names += [s.container.name for s in kernel.stores if s.conflict]
        reads = {name: opened.read(name) for name in dict.fromkeys(names)}
        accumulated = {s.container.name for s in kernel.stores if s.conflict}
        for name in accumulated - {load.array.name for load in kernel.loads()}:
            if state.degree(reads[name]) == 0:
                state.remove_node(reads[name])
                opened.nodes.pop(name)
            reads.pop(name)
        entry, leave = _map(state, kernel.label, kernel.parameters)
        indirect = any(not _is_direct(load.index) for load in kernel.loads()) or any(
            not _is_direct(store.index) for store in kernel.stores
        )
        info = _info(kernel)
        if indirect:
            body = _Body.indirect(self.sdfg, kernel, info)
            nested = _nested(state, body.sdfg, body.reads, body.writes, info)
            _connect(state, self.sdfg, entry, leave, nested, reads, body.writes, opened)
        else:
            tasklet = _tasklet(state, kernel, info)
            _connect_tasklet(state, self.sdfg, entry, leave, tasklet, kernel, reads, opened)
        for node in (entry, leave):
            if node is not None:
                node.map.debuginfo = info

    def table(self, table: Table) -> None:
        opened = self._state(table)
        state, container = opened.state, table.container
        values = np.asarray(table.values, dtype=container.dtype)
        parameters = [Parameter(f"__i{d}", 0, n) for d, n in enumerate(values.shape)]
        entry, leave = _map(state, f"{container.name}_values", parameters)
        flat = "0"
        for parameter, extent in zip(parameters, values.shape, strict=True):
            flat = f"({flat}) * {extent} + {parameter.name}"
        dtype = dtypes.dtype_to_typeclass(container.dtype.type)
        numbers = ", ".join(literal(v, container.dtype) for v in values.ravel()) or "0"
        code = f"static const {dtype.ctype} values[] = {{{numbers}}};\n_out0 = values[{flat}];"
        tasklet = state.add_tasklet(
            f"{container.name}_values", {}, {"_out0": None}, code, language=dtypes.Language.CPP
        )
        info = _info(table)
        tasklet.debuginfo = info
        index = ", ".join(p.name for p in parameters) or "0"
        written = opened.write(container.name)
        memlet = Memlet(data=container.name, subset=index)
        if entry is None or leave is None:
            state.add_edge(tasklet, "_out0", written, None, memlet)
            return
        entry.map.debuginfo = info
        state.add_nedge(entry, tasklet, Memlet())
        _leave(state, self.sdfg, leave, tasklet, "_out0", memlet, written)

    def contract(self, statement: Contract) -> None:
        label = statement.result.container.name
        opened = self._state(statement, label)
        node = Contraction(label, statement.subscripts)
        node.operation, node.expression = statement.operation, statement.expression
        node.debuginfo = _info(statement)
        opened.state.add_node(node)
        for n, window in enumerate(statement.operands):
            memlet = Memlet(data=window.container.name, subset=_window(window))
            read = opened.read(window.container.name)
            opened.state.add_edge(read, None, node, f"_in{n}", memlet)
        window = statement.result
        memlet = Memlet(data=window.container.name, subset=_window(window))
        written = opened.write(window.container.name)
        opened.state.add_edge(node, "_out", written, None, memlet)

    def library(self, statement: Library) -> None:
        opened = self._state(statement)
        node = statement.make()
        node.debuginfo = _info(statement)
        opened.state.add_node(node)
        for connector, container in statement.inputs.items():
            read = opened.read(container.name)
            opened.state.add_edge(read, None, node, connector, self._whole(container.name))
        for connector, container in statement.outputs.items():
            written = opened.write(container.name)
            opened.state.add_edge(node, connector, written, None, self._whole(container.name))

    def scope(self, scope: Scope) -> None:
        used = {c.name: c for c in scope.body.containers()}
        outside = {n: c for n, c in used.items() if n not in scope.own}
        read, written = _touched(scope.body)
        reads = {n for n in outside if n in read}
        writes = {n for n in outside if n in written}
        accumulated = {n for n in writes if _only_accumulated(scope.body, n)}
        opened = self._state_of(reads | (writes - accumulated), writes, scope.label)
        state, info = opened.state, _info(scope)
        inner = SDFG(scope.label)
        for container in used.values():
            if container.name in outside:
                inner.add_datadesc(container.name, _inner(self.sdfg, container.name))
            else:
                _declare(inner, container, transient=True)
        emitter = _Emitter(inner, inner, used)
        emitter.block(scope.body)
        emitter.finish()
        inputs = reads | (writes - accumulated)
        entry, leave = _map(state, scope.label, scope.parameters)
        assert entry is not None and leave is not None
        entry.map.debuginfo = info
        sources = {name: opened.read(name) for name in sorted(inputs)}
        nested = _nested(state, inner, sorted(inputs), sorted(writes), info)
        conflicts = {n: c for n in accumulated if (c := _conflict_of(scope.body, n))}
        _connect(state, self.sdfg, entry, leave, nested, sources, sorted(writes), opened, conflicts)

    def _state_of(self, reads: set[str], writes: set[str], label: str) -> _Open:
        if self.open is None or self.pending or not self.open.takes(reads, writes):
            self._add(SDFGState(label, self.sdfg))
            self.open = _Open(self.last)
        return self.open

    def _whole(self, name: str) -> Memlet:
        return Memlet.from_array(name, self.sdfg.arrays[name])


_EMIT: dict[type, Any] = {
    Kernel: _Emitter.kernel,
    Table: _Emitter.table,
    Contract: _Emitter.contract,
    Library: _Emitter.library,
    SetSymbol: _Emitter.set_symbol,
    Loop: _Emitter.loop,
    Branch: _Emitter.branch,
    Scope: _Emitter.scope,
}


# -- parts of scopes ------------------------------------------------------------------------------


def _touched(block: Block) -> tuple[set[str], set[str]]:
    read: set[str] = set()
    written: set[str] = set()
    for statement in block.statements:
        read |= {c.name for c in statement.reads()}
        written |= {c.name for c in statement.writes()}
        for inner in statement.blocks():
            more_read, more_written = _touched(inner)
            read |= more_read
            written |= more_written
    return read, written


def _stores(block: Block, name: str) -> list[Store | None]:
    found: list[Store | None] = []
    for statement in block.statements:
        if isinstance(statement, Kernel):
            found += [s for s in statement.stores if s.container.name == name]
        elif any(c.name == name for c in statement.writes()):
            found.append(None)
        for inner in statement.blocks():
            found += _stores(inner, name)
    return found


def _only_accumulated(block: Block, name: str) -> bool:
    read, _ = _touched(block)
    return name not in read and all(s is not None and s.conflict for s in _stores(block, name))


def _conflict_of(block: Block, name: str) -> str | None:
    kinds = {s.conflict for s in _stores(block, name) if s is not None}
    return CONFLICTS[kinds.pop() or ""] if len(kinds) == 1 else None


def _inner(sdfg: SDFG, name: str) -> data.Data:
    container = sdfg.arrays[name].clone()
    container.transient = False
    return container


# -- nodes ----------------------------------------------------------------------------------------


def _info(statement: Statement) -> dtypes.DebugInfo | None:
    if statement.line is None:
        return None
    file, line = statement.line
    return dtypes.DebugInfo(line, 0, line, 0, file)


def _map(
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


def _is_direct(index: Sequence[Index]) -> bool:
    return all(isinstance(i, int | sympy.Basic) for i in index)


def _subset(index: Sequence[Index]) -> str:
    return ", ".join(text(i) for i in index) or "0"


def _window(window: Any) -> str:
    pairs = zip(window.first, window.lengths, strict=True)
    return ", ".join(f"{text(a)}:{text(a)} + {text(n)}" for a, n in pairs) or "0"


class _Names:
    """Names of loads in a tasklet, the same for those of one element."""

    def __init__(self, symbols: Mapping[Any, str] | None = None) -> None:
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


def _tasklet(state: SDFGState, kernel: Kernel, info: Any) -> nodes.Tasklet:
    """The tasklet of a kernel without its edges; its loads are found again by their names."""
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
    tasklet.distspmd_loads = [(name, load) for name, load in names.loads.values()]
    return tasklet


def _connect_tasklet(
    state: SDFGState,
    sdfg: SDFG,
    entry: nodes.MapEntry | None,
    leave: nodes.MapExit | None,
    tasklet: nodes.Tasklet,
    kernel: Kernel,
    reads: Mapping[str, nodes.AccessNode],
    opened: _Open,
) -> None:
    loads = tasklet.distspmd_loads
    del tasklet.distspmd_loads
    for name, load in loads:
        container = load.array.name
        memlet = Memlet(data=container, subset=_subset(load.index))
        if entry is None:
            state.add_edge(reads[container], None, tasklet, name, memlet)
        else:
            _enter(state, sdfg, entry, reads[container], tasklet, name, memlet)
    if entry is not None and not loads:
        state.add_nedge(entry, tasklet, Memlet())
    targets: dict[str, nodes.AccessNode] = {}
    for n, store in enumerate(kernel.stores):
        container = store.container.name
        if container not in targets:
            targets[container] = opened.write(container)
        memlet = Memlet(data=container, subset=_subset(store.index))
        if store.conflict:
            memlet.wcr = CONFLICTS[store.conflict]
        if leave is None:
            state.add_edge(tasklet, f"_out{n}", targets[container], None, memlet)
        else:
            _leave(state, sdfg, leave, tasklet, f"_out{n}", memlet, targets[container])


def _enter(
    state: SDFGState,
    sdfg: SDFG,
    entry: nodes.MapEntry,
    read: nodes.AccessNode,
    node: nodes.Node,
    connector: str,
    memlet: Memlet,
) -> None:
    name = read.data
    if entry.add_in_connector(f"IN_{name}"):
        entry.add_out_connector(f"OUT_{name}")
        whole = Memlet.from_array(name, sdfg.arrays[name])
        state.add_edge(read, None, entry, f"IN_{name}", whole)
    state.add_edge(entry, f"OUT_{name}", node, connector, memlet)


def _leave(
    state: SDFGState,
    sdfg: SDFG,
    leave: nodes.MapExit,
    node: nodes.Node,
    connector: str,
    memlet: Memlet,
    written: nodes.AccessNode,
) -> None:
    name, own = written.data, written.data
    count = 1
    while not leave.add_in_connector(f"IN_{own}"):
        count += 1
        own = f"{name}_{count}"
    leave.add_out_connector(f"OUT_{own}")
    whole = Memlet.from_array(name, sdfg.arrays[name])
    whole.wcr = memlet.wcr
    state.add_edge(leave, f"OUT_{own}", written, None, whole)
    state.add_edge(node, connector, leave, f"IN_{own}", memlet)


# -- nested SDFGs ---------------------------------------------------------------------------------


def _nested(
    state: SDFGState, inner: SDFG, reads: Sequence[str], writes: Sequence[str], info: Any
) -> nodes.NestedSDFG:
    for name in [n for n in inner.arrays if n != _inside(n)]:
        inner.replace(name, _inside(name))
    reads, writes = [list(map(_inside, names)) for names in (reads, writes)]
    symbols = {str(s): str(s) for s in inner.free_symbols if str(s) not in inner.arrays}
    for name in symbols:
        if name not in inner.symbols:
            inner.add_symbol(name, dtypes.int64)
    node = state.add_nested_sdfg(
        inner, dict.fromkeys(reads), dict.fromkeys(writes), symbol_mapping=symbols
    )
    node.debuginfo = info
    return node


def _connect(
    state: SDFGState,
    sdfg: SDFG,
    entry: nodes.MapEntry | None,
    leave: nodes.MapExit | None,
    nested: nodes.NestedSDFG,
    reads: Mapping[str, nodes.AccessNode],
    writes: Sequence[str],
    opened: _Open,
    conflicts: Mapping[str, str] | None = None,
) -> None:
    """Edges between a nested SDFG and whole containers."""
    conflicts = conflicts or {}
    outside = {_inside(name): name for name in sdfg.arrays}
    for connector in nested.in_connectors:
        name = outside[connector]
        memlet = Memlet.from_array(name, sdfg.arrays[name])
        if entry is None:
            state.add_edge(reads[name], None, nested, connector, memlet)
        else:
            _enter(state, sdfg, entry, reads[name], nested, connector, memlet)
    if entry is not None and not nested.in_connectors:
        state.add_nedge(entry, nested, Memlet())
    for name in writes:
        memlet = Memlet.from_array(name, sdfg.arrays[name])
        memlet.wcr = conflicts.get(name)
        written = opened.write(name)
        if leave is None:
            state.add_edge(nested, _inside(name), written, None, memlet)
        else:
            _leave(state, sdfg, leave, nested, _inside(name), memlet, written)


def _inside(name: str) -> str:
    """The name of a container in a nested SDFG, where DaCe keeps those of results to results."""
    return f"result{name.removeprefix('__return')}__" if name.startswith("__return") else name


@dataclass
class _Body:
    """The nested SDFG of a kernel whose indices are in data."""

    sdfg: SDFG
    reads: list[str]
    writes: list[str]

    @classmethod
    def indirect(cls, outer: SDFG, kernel: Kernel, info: Any) -> _Body:
        """Symbols get the indices, one after the other; then one tasklet does the rest."""
        inner = SDFG(kernel.label)
        used = {load.array.name for load in kernel.loads()}
        used |= {store.container.name for store in kernel.stores}
        for name in sorted(used):
            inner.add_datadesc(name, _inner(outer, name))
        known: dict[Any, sympy.Symbol] = {}
        state = inner.add_state("indices", is_start_block=True)

        def direct(index: Sequence[Index]) -> tuple[Any, ...]:
            nonlocal state
            found: list[Any] = []
            for i in index:
                if isinstance(i, int | sympy.Basic):
                    found.append(i)
                    continue
                assert isinstance(i, Load), "indices are stored before they are used"
                key = i.array.name, tuple(map(str, i.index))
                if key not in known:
                    element = direct(i.index)
                    known[key] = sympy.Symbol(f"__index{len(known)}", integer=True)
                    after = inner.add_state("indices")
                    value = f"{i.array.name}[{_subset(element)}]"
                    edge = InterstateEdge(assignments={str(known[key]): value})
                    inner.add_edge(state, after, edge)
                    state = after
                found.append(known[key])
            return tuple(found)

        def moved(leaf: Expression) -> Expression:
            return (
                Load(leaf.array, direct(leaf.index), leaf.dtype) if isinstance(leaf, Load) else leaf
            )

        stores = [
            Store(s.container, direct(s.index), replace_leaves(s.value, moved), s.conflict)
            for s in kernel.stores
        ]
        body = Kernel(kernel.label, (), stores, line=kernel.line)
        for name in known.values():
            inner.add_symbol(str(name), dtypes.int64)
        opened = _Open(state)
        reads = {load.array.name for load in body.loads()}
        sources = {name: opened.read(name) for name in sorted(reads)}
        tasklet = _tasklet(state, body, info)
        _connect_tasklet(state, inner, None, None, tasklet, body, sources, opened)
        every = {load.array.name for load in kernel.loads()}
        writes = sorted({s.container.name for s in stores})
        every |= {s.container.name for s in stores if not s.conflict} & every
        return cls(inner, sorted(every), writes)


__all__ = ["CONFLICTS", "IndexValue", "emit_program", "loads_of"]
