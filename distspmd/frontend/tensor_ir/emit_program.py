"""A program of statements becomes an SDFG: regions, states, maps with one tasklet, library nodes.

Statements share a state as long as none of them writes what another one has touched there; the
order within a state is then that of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dace import SDFG, InterstateEdge, Memlet, SDFGState, dtypes
from dace.properties import CodeBlock
from dace.sdfg.state import BreakBlock, ConditionalBlock, ControlFlowRegion, LoopRegion

from distspmd.analysis.control_values import mark_control_value, mark_runs_once
from distspmd.dace_compat.settings import placed_by_us
from distspmd.expressions.cpp import literal
from distspmd.expressions.ir import Load, Node, Operation, parts
from distspmd.expressions.operations import DISTRIBUTIONS
from distspmd.frontend.tensor_ir.emit_nodes import (
    CONFLICTS,
    Indirect,
    OpenState,
    connect_nested,
    connect_tasklet,
    debug_info,
    inner_descriptor,
    is_direct,
    make_tasklet,
    map_of,
    pointer_to,
    window_text,
)
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Branch,
    Container,
    Contract,
    Kernel,
    Library,
    Loop,
    Parameter,
    Routine,
    Scope,
    SetSymbol,
    Statement,
    Store,
    Table,
    Tell,
)
from distspmd.frontend.tensor_ir.variables import begin_with, find_variables, own_containers
from distspmd.frontend.tensor_ir.whole_numbers import CheckedIndex, among, text
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.map_scopes import enter_map, leave_map, nest
from distspmd.nodes.tell import Told
from distspmd.runtime.calls.form import CallForm, set_call_form
from distspmd.runtime.engine.compile_runtime import INCLUDE


@placed_by_us()
def emit_program(
    name: str, program: Block, arguments: Sequence[Container], form: CallForm | None = None
) -> SDFG:
    """The SDFG of a program.

    Args:
        name: of the SDFG.
        program: its statements.
        arguments: what the caller passes, in order; results are not among them.
        form: in which the caller passes arguments and gets results.
    """
    with among(find_variables(program)):
        return _emitted(SDFG(name), program, arguments, form or CallForm())


def _emitted(sdfg: SDFG, program: Block, arguments: Sequence[Container], form: CallForm) -> SDFG:
    known: dict[str, Container] = {a.name: a for a in arguments}
    for container in program.containers():
        known.setdefault(container.name, container)
    inner = own_containers(program)
    for container in known.values():
        if container.name not in inner:
            _declare(sdfg, container, transient=not container.is_argument)
    emitter = _Emitter(sdfg, sdfg, known)
    emitter.block(program)
    emitter.finish()
    used = _operations(program)
    needed = [header for name, headers in _HEADERS.items() if name in used for header in headers]
    for header in dict.fromkeys(needed):
        sdfg.append_global_code((_KERNELS / header).read_text())
    sdfg.arg_names = [a.name for a in arguments]
    _declare_symbols(sdfg, program)
    numbers = {c.name for c in known.values() if c.is_argument and not c.shape}
    set_call_form(sdfg, replace(form, scalars=frozenset(numbers - form.points)))
    return sdfg


_KERNELS = INCLUDE / "distspmd" / "kernels"
_CHECKS = dict.fromkeys(("checked", "checked_index"), ("checked_index.hpp",))
_COUNTER = ("counter_rng.hpp",)
_DRAWS = {f"{name}_draw": (*_COUNTER, "distributions.hpp") for name in DISTRIBUTIONS}
_HEADERS = {"uniform": _COUNTER, **_DRAWS, **_CHECKS}
"""Headers of operations that are functions of the runtime."""


def _operations(block: Block) -> set[str]:
    """Names of the operations of all kernels."""
    found: set[str] = set()
    for statement in block.statements:
        if isinstance(statement, Kernel):
            inside = [i for load in statement.loads() for i in load.index if isinstance(i, Node)]
            for expression in (*statement.expressions(), *inside):
                found |= {p.name for p in parts(expression) if isinstance(p, Operation)}  # type: ignore[arg-type]
        if isinstance(statement, Contract):
            found |= {name for name in _HEADERS if f"{name}(" in statement.expression}
        if isinstance(statement, SetSymbol) and isinstance(statement.value, CheckedIndex):
            found.add("checked_index")
        if isinstance(statement, Library):
            found |= {*statement.operations}
        for inner in statement.blocks():
            found |= _operations(inner)
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
    types = _set_in(program)
    free = {*map(str, sdfg.free_symbols)}
    if _add_symbols(sdfg, dict.fromkeys(sorted(free), dtypes.int64) | types):
        free |= {*map(str, sdfg.free_symbols)}  # DaCe finds more of those that are declared
    begin_with(sdfg, sorted(free & {*types}))


def _add_symbols(sdfg: SDFG, types: Mapping[str, Any]) -> bool:
    """Declare symbols; whether there were some that were not."""
    names = [name for name in types if name not in sdfg.symbols and name not in sdfg.arrays]
    for name in names:
        sdfg.add_symbol(name, types[name])
    return bool(names)


def _set_in(block: Block) -> dict[str, Any]:
    """Types of what edges set: in a nested program DaCe cannot tell all of them."""
    types: dict[str, Any] = {}
    for statement in block.statements:
        if isinstance(statement, Loop) and statement.symbol:
            types[statement.symbol] = dtypes.int64
        if isinstance(statement, SetSymbol):
            types[statement.name] = dtypes.dtype_to_typeclass(statement.dtype.type)
        if not isinstance(statement, Scope):
            for inner in statement.blocks():
                types |= _set_in(inner)
    return types


class _Emitter:
    """Adds statements to a region of an SDFG."""

    def __init__(
        self, sdfg: SDFG, region: ControlFlowRegion, known: Mapping[str, Container]
    ) -> None:
        self.sdfg, self.region, self.known = sdfg, region, known
        self.open: OpenState | None = None
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

    def _state(self, statement: Statement | None, label: str = "state") -> OpenState:
        reads = {c.name for c in statement.reads()} if statement else set()
        writes = {c.name for c in statement.writes()} if statement else set()
        if self.open is None or self.pending or not self.open.takes(reads, writes):
            self._add(SDFGState(label, self.sdfg))
            self.open = OpenState(self.last)
        return self.open

    # -- statements -----------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Add all statements of a block."""
        for statement in block.statements:
            _EMIT[type(statement)](self, statement)

    def _inside(self, region: Any, body: Block, goes_on: str | None = None) -> None:
        """Emit the body of a region; a loop ends behind it where it does not go on."""
        inner = _Emitter(self.sdfg, region, self.known)
        inner.block(body)
        if goes_on:
            block = ConditionalBlock("leave", self.sdfg, region)
            inner._add(block)
            leaving = ControlFlowRegion("leave_body", self.sdfg)
            block.add_branch(CodeBlock(f"not ({goes_on})"), leaving)
            leaving.add_node(BreakBlock("leave", self.sdfg), is_start_block=True)  # type: ignore[abstract]
        inner.finish()

    def loop(self, loop: Loop) -> None:
        label = f"loop_{loop.symbol or 'while'}"
        if loop.symbol is None:
            region = LoopRegion(label, condition_expr=loop.condition)
        else:
            sign = "<" if text(loop.step)[0] != "-" and text(loop.step)[:2] != "(-" else ">"
            name = loop.symbol
            region = LoopRegion(
                label,
                condition_expr=f"{name} {sign} {text(loop.end)}",
                loop_var=name,
                initialize_expr=f"{name} = {text(loop.first)}",
                update_expr=f"{name} = {name} + {text(loop.step)}",
            )
        self._add(region)
        self._inside(region, loop.body, loop.condition if loop.symbol else None)

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
                opened.accesses.pop(name)
            reads.pop(name)
        entry, leave = map_of(state, kernel.label, kernel.parameters)
        indirect = any(not is_direct(load.index) for load in kernel.loads()) or any(
            not is_direct(store.index) for store in kernel.stores
        )
        info = debug_info(kernel)
        if indirect:
            body = Indirect.indirect(self.sdfg, kernel, info)
            nested = nest(state, body.sdfg, body.reads, body.writes, info)
            connect_nested(state, self.sdfg, entry, leave, nested, reads, body.writes, opened)
        else:
            tasklet, loads = make_tasklet(state, kernel, info)
            connect_tasklet(state, self.sdfg, entry, leave, tasklet, loads, kernel, reads, opened)
        for node in (entry, leave):
            if node is not None:
                node.map.debuginfo = info

    def table(self, table: Table) -> None:
        opened = self._state(table)
        state, container = opened.state, table.container
        values = np.asarray(table.values, dtype=container.dtype)
        parameters = [Parameter(f"__i{d}", 0, n) for d, n in enumerate(values.shape)]
        entry, leave = map_of(state, f"{container.name}_values", parameters)
        flat = "0"
        for parameter, extent in zip(parameters, values.shape, strict=True):
            flat = f"({flat}) * {extent} + {parameter.name}"
        dtype = dtypes.dtype_to_typeclass(container.dtype.type)
        numbers = ", ".join(literal(v, container.dtype) for v in values.ravel()) or "0"
        code = f"static const {dtype.ctype} values[] = {{{numbers}}};\n_out0 = values[{flat}];"
        tasklet = state.add_tasklet(
            f"{container.name}_values", {}, {"_out0"}, code, language=dtypes.Language.CPP
        )
        info = debug_info(table)
        tasklet.debuginfo = info
        index = ", ".join(p.name for p in parameters) or "0"
        written = opened.write(container.name)
        memlet = Memlet(data=container.name, subset=index)
        if entry is None or leave is None:
            state.add_edge(tasklet, "_out0", written, None, memlet)
            return
        entry.map.debuginfo = info
        state.add_nedge(entry, tasklet, Memlet())
        leave_map(state, self.sdfg, leave, tasklet, "_out0", memlet, written)

    def contract(self, statement: Contract) -> None:
        label = statement.result.container.name
        opened = self._state(statement, label)
        node = Contraction(label, statement.subscripts)
        node.operation, node.expression = statement.operation, statement.expression
        node.debuginfo = debug_info(statement)
        opened.state.add_node(node)
        for n, window in enumerate(statement.operands):
            memlet = Memlet(data=window.container.name, subset=window_text(window))
            read = opened.read(window.container.name)
            opened.state.add_edge(read, None, node, f"_in{n}", memlet)
        window = statement.result
        memlet = Memlet(data=window.container.name, subset=window_text(window))
        written = opened.write(window.container.name)
        opened.state.add_edge(node, "_out", written, None, memlet)

    def library(self, statement: Library) -> None:
        if statement.stays:  # what it does beside its results comes in the order of the program
            self.open = None
        opened = self._state(statement)
        node = statement.make()
        node.debuginfo = debug_info(statement)
        opened.state.add_node(node)

        def own(connector: str, known: Mapping[str, Any]) -> str | None:
            """Reductions of DaCe have edges without connectors."""
            return connector if connector in known else None

        for connector, container in statement.inputs.items():
            read = opened.read(container.name)
            opened.state.add_edge(
                read, None, node, own(connector, node.in_connectors), self._whole(container.name)
            )
        for connector, container in statement.outputs.items():
            written = opened.write(container.name)
            opened.state.add_edge(
                node,
                own(connector, node.out_connectors),
                written,
                None,
                self._whole(container.name),
            )
        if statement.stays:
            self.open = None

    def routine(self, routine: Routine) -> None:
        opened = self._state(routine, routine.label)
        state, info = opened.state, debug_info(routine)
        reads = {c.name: opened.read(c.name) for c in routine.reads()}
        entry, leave = map_of(state, routine.label, routine.parameters)
        assert entry is not None
        assert leave is not None
        tasklet = state.add_tasklet(
            routine.label,
            {name: pointer_to(window) for name, window in routine.inputs.items()},
            {name: pointer_to(window) for name, window in routine.outputs.items()},
            routine.code,
            language=dtypes.Language.CPP,
            code_global=f'#include "{INCLUDE / "distspmd" / routine.header}"',
        )
        for node in (entry, leave, tasklet):
            (node if node is tasklet else node.map).debuginfo = info
        if routine.where:
            (mark_control_value if routine.where == "all" else mark_runs_once)(entry)
        for name, window in routine.inputs.items():
            memlet = Memlet(data=window.container.name, subset=window_text(window))
            read = reads[window.container.name]
            enter_map(state, self.sdfg, entry, read, tasklet, name, memlet)
        if not routine.inputs:
            state.add_nedge(entry, tasklet, Memlet())
        for name, window in routine.outputs.items():
            memlet = Memlet(data=window.container.name, subset=window_text(window))
            written = opened.write(window.container.name)
            leave_map(state, self.sdfg, leave, tasklet, name, memlet, written)

    def tell(self, statement: Tell) -> None:
        self.open = None
        state = self._state(statement, "tell").state
        node = Told("tell", statement.message, len(statement.values))
        node.debuginfo = debug_info(statement)
        state.add_node(node)
        for n, container in enumerate(statement.values):
            read, whole = state.add_read(container.name), self._whole(container.name)
            state.add_edge(read, None, node, f"_in{n}", whole)
        self.open = None

    def scope(self, scope: Scope) -> None:
        of_inner = own_containers(scope.body)
        used = {c.name: c for c in scope.body.containers() if c.name not in of_inner}
        outside = {n: c for n, c in used.items() if n not in scope.own}
        read, written = _touched(scope.body)
        reads = {n for n in outside if n in read}
        writes = {n for n in outside if n in written}
        accumulated = {n for n in writes if _only_accumulated(scope.body, n)}
        opened = self._state_of(reads, writes, scope.label)
        state, info = opened.state, debug_info(scope)
        inner = SDFG(scope.label)
        for container in used.values():
            if container.name in outside:
                inner.add_datadesc(container.name, inner_descriptor(self.sdfg, container.name))
            else:
                _declare(inner, container, transient=True)
        emitter = _Emitter(inner, inner, used)
        emitter.block(scope.body)
        emitter.finish()
        _add_symbols(inner, _set_in(scope.body))
        inputs = reads
        entry, leave = map_of(state, scope.label, scope.parameters)
        assert entry is not None
        assert leave is not None
        entry.map.debuginfo = info
        sources = {name: opened.read(name) for name in sorted(inputs)}
        nested = nest(state, inner, sorted(inputs), sorted(writes), info)
        conflicts = {n: c for n in accumulated if (c := _conflict_of(scope.body, n))}
        connect_nested(
            state, self.sdfg, entry, leave, nested, sources, sorted(writes), opened, conflicts
        )

    def _state_of(self, reads: set[str], writes: set[str], label: str) -> OpenState:
        if self.open is None or self.pending or not self.open.takes(reads, writes):
            self._add(SDFGState(label, self.sdfg))
            self.open = OpenState(self.last)
        return self.open

    def _whole(self, name: str) -> Memlet:
        memlet: Memlet = Memlet.from_array(name, self.sdfg.arrays[name])
        return memlet


_EMIT: dict[type, Any] = {
    Kernel: _Emitter.kernel,
    Table: _Emitter.table,
    Contract: _Emitter.contract,
    Library: _Emitter.library,
    Routine: _Emitter.routine,
    Tell: _Emitter.tell,
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
