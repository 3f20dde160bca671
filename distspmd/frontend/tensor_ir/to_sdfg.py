"""Kernels become an SDFG: containers, maps with one tasklet, and contractions."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dace import SDFG, Memlet, SDFGState, dtypes
from dace.sdfg import nodes as dace_nodes
from dace.subsets import Subset

from distspmd.dace_compat.settings import placed_by_us
from distspmd.expressions.ir import (
    Argument,
    Call,
    Expression,
    IndexValue,
    Load,
    cast,
    replace_leaves,
)
from distspmd.frontend.tensor_ir.indices import Array, Index, Variable
from distspmd.frontend.tensor_ir.kernels import (
    FUNCTION,
    LAPACK,
    LINES,
    Builder,
    Kernel,
    current_indices,
    distinct,
    is_plain,
    is_product,
    place_of,
    reach,
)
from distspmd.frontend.tensor_ir.lines import headers_of
from distspmd.frontend.tensor_ir.matrices import Routine
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.contraction_operands import Pick
from distspmd.nodes.lapack import INFO, Lapack
from distspmd.runtime.engine.compile_runtime import INCLUDE

_GROUPS = {"batch": "bhcdefg", "left": "bsuvwxyz", "right": "opqrta", "reduced": "ijklmn"}
_LETTERS = "bsuvwxyzhcdefgopqrtaijklmnBSUVWXYZHCDEFGOPQRTAIJKLMN"


@placed_by_us()
def emit(name: str, builder: Builder, main: Sequence[Kernel], update: Sequence[Kernel]) -> SDFG:
    """An SDFG of two states: what is computed once, and what is then written in place."""
    sdfg = SDFG(name)
    used = {a.name for k in (*main, *update) for a, _ in k.results}
    used |= {load.array.name for k in (*main, *update) for load in k.read}
    for array in builder.arrays.values():
        if array.name in used or array.is_argument:
            sdfg.add_array(
                array.name,
                [v.length for v in _leaves(array)] or [1],
                dtypes.dtype_to_typeclass(array.dtype.type),
                transient=not array.is_argument,
            )
    if any(kernel.operation == LAPACK for kernel in main):  # whose results note errors
        header = INCLUDE / "distspmd" / "kernels" / "checked_index.hpp"
        sdfg.append_global_code(header.read_text())
    state = sdfg.add_state("main", is_start_block=True)
    _State(state).emit(main)
    if update:
        _State(sdfg.add_state_after(state, "update")).emit(update)
    sdfg.arg_names = [a.name for a in builder.arrays.values() if a.is_argument]
    return sdfg


def _leaves(array: Array) -> list[Variable]:
    return [leaf for extent in array.extents for leaf in Variable(extent).leaves()]


@dataclass
class _State:
    """Adds kernels to a state; one access node for each container and direction."""

    state: SDFGState
    nodes: dict[str, dace_nodes.AccessNode] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def emit(self, kernels: Iterable[Kernel]) -> None:
        for kernel in kernels:
            if kernel.operation is None:
                self._map(kernel)
            elif kernel.operation == LINES:
                self._lines(kernel)
            elif kernel.operation == LAPACK:
                self._lapack(kernel)
            elif kernel.operation == FUNCTION:
                self._function(kernel)
            else:
                self._contraction(kernel)

    def _read(self, name: str) -> dace_nodes.AccessNode:
        if name not in self.nodes:
            self.nodes[name] = self.state.add_read(name)
        return self.nodes[name]

    def _write(self, name: str) -> dace_nodes.AccessNode:
        node = self.state.add_write(name)
        if name not in self.nodes:
            self.nodes[name] = node
        return node

    # -- maps -----------------------------------------------------------------------------------

    def _map(self, kernel: Kernel) -> None:
        leaves = [leaf for v in kernel.variables for leaf in v.leaves()]
        names = {leaf: f"__{letter}" for leaf, letter in zip(leaves, _LETTERS, strict=False)}
        order = kernel.results[0][0].stored(leaves)
        ranges: dict[str, str | Subset] = {names[v]: f"0:{v.length}" for v in order}
        operands = _Operands(names, "_in")
        assignments = tuple(
            (f"_out{n}", cast(operands.closed(expression), array.dtype))
            for n, (array, expression) in enumerate(kernel.results)
        )
        tasklet = Computation(
            kernel.label,
            assignments,
            _connectors("_in", len(operands.loads)),
            _connectors("_out", len(kernel.results)),
        )
        reads = [
            Memlet(data=load.array.name, subset=_subset(load, names))
            for load in operands.loads.values()
        ]
        writes = []
        for array, _ in kernel.results:
            subset = ", ".join(names[v] for v in array.stored(leaves)) or "0"
            if array.written is not None:
                subset = _subset(array.written, names)
            writes.append(Memlet(data=array.name, subset=subset))
        self._in_map(ranges, tasklet, _by_number("_in", reads), _by_number("_out", writes))

    def _in_map(
        self,
        ranges: dict[str, str | Subset],
        tasklet: dace_nodes.Tasklet,
        reads: Mapping[str, Memlet],
        writes: Mapping[str, Memlet],
    ) -> None:
        """Put a tasklet in a map of its own, with memlets by connector; one edge for each array."""
        state = self.state
        nodes = [self._read(memlet.data) for memlet in reads.values()]
        entry, leave = state.add_map(tasklet.label, ranges or {"__once": "0:1"})
        state.add_node(tasklet)
        for node, (connector, memlet) in zip(nodes, reads.items(), strict=True):
            data = memlet.data
            if entry.add_in_connector(f"IN_{data}"):
                entry.add_out_connector(f"OUT_{data}")
                state.add_edge(node, None, entry, f"IN_{data}", self._whole(data))
            state.add_edge(entry, f"OUT_{data}", tasklet, connector, memlet)
        if not reads:
            state.add_nedge(entry, tasklet, Memlet())
        for connector, memlet in writes.items():
            data = memlet.data
            leave.add_in_connector(f"IN_{data}")
            leave.add_out_connector(f"OUT_{data}")
            state.add_edge(tasklet, connector, leave, f"IN_{data}", memlet)
            state.add_edge(leave, f"OUT_{data}", self._write(data), None, self._whole(data))

    def _whole(self, name: str) -> Memlet:
        """All of a container: what moves through a scope is not propagated, which is slow."""
        whole: Memlet = Memlet.from_array(name, self.state.sdfg.arrays[name])
        return whole

    # -- lines ----------------------------------------------------------------------------------

    def _lines(self, kernel: Kernel) -> None:
        leaves = [leaf for v in kernel.variables for leaf in v.leaves()]
        names = {leaf: f"__{letter}" for leaf, letter in zip(leaves, _LETTERS, strict=False)}
        ranges: dict[str, str | Subset] = {names[v]: f"0:{v.length}" for v in leaves}
        call = kernel.results[0][1]
        operands = [load for load in call.arguments if isinstance(load, Load)]
        code = str(call.label[0]).partition(":")[2]
        paths = [INCLUDE / "distspmd" / header for header in headers_of(code)]
        tasklet = dace_nodes.Tasklet(
            kernel.label,
            {f"_line{n}": _pointer(load.array) for n, load in enumerate(operands)},
            {f"_result{n}": _pointer(array) for n, (array, _) in enumerate(kernel.results)},
            code,
            language=dtypes.Language.CPP,
            code_global="\n".join(f'#include "{path}"' for path in paths),
        )
        written = [array.written for array, _ in kernel.results]
        reads, writes = (
            [Memlet(data=load.array.name, subset=_window(load, names)) for load in loads]
            for loads in (operands, [load for load in written if load is not None])
        )
        self._in_map(ranges, tasklet, _by_number("_line", reads), _by_number("_result", writes))

    # -- matrices -------------------------------------------------------------------------------

    def _lapack(self, kernel: Kernel) -> None:
        call = kernel.results[0][1]
        assert isinstance(call, Call)
        routine = Routine.of(call)
        operands = [load.array for load in call.arguments if isinstance(load, Load)]
        made = [array for array, _ in kernel.results]
        count = sum(len(v.leaves()) for v in kernel.variables)
        node = Lapack(
            kernel.label,
            routine.function,
            routine.subscripts,
            count,
            options=routine.options,
            has_info=True,
        )
        self.state.add_node(node)
        for n, array in enumerate(operands):
            read, whole = self._read(array.name), self._whole(array.name)
            self.state.add_edge(read, None, node, f"_in{n}", whole)
        connectors = [*(f"_out{n}" for n in range(len(made) - 1)), INFO]
        for connector, array in zip(connectors, made, strict=True):
            written, whole = self._write(array.name), self._whole(array.name)
            self.state.add_edge(node, connector, written, None, whole)

    # -- functions ------------------------------------------------------------------------------

    def _function(self, kernel: Kernel) -> None:
        assert kernel.body is not None
        body, operands = kernel.body
        call = kernel.results[0][1]
        assert isinstance(call, Call)
        reads = {
            name: load.array.name
            for name, load in zip(operands, call.arguments, strict=True)
            if isinstance(load, Load)
        }
        writes = {str(own.label[0]): array.name for array, own in kernel.results}
        inside: dict[str, Any] = dict.fromkeys(reads)
        outside: dict[str, Any] = dict.fromkeys(writes)
        node = self.state.add_nested_sdfg(copy.deepcopy(body), inside, outside, name=kernel.label)
        for name, array in reads.items():
            self.state.add_edge(self._read(array), None, node, name, self._whole(array))
        for name, array in writes.items():
            self.state.add_edge(node, name, self._write(array), None, self._whole(array))

    # -- contractions ---------------------------------------------------------------------------

    def _contraction(self, kernel: Kernel) -> None:
        ((array, expression),) = kernel.results
        kept = [leaf for v in kernel.variables for leaf in v.leaves()]
        gone = [leaf for v in kernel.reduced for leaf in v.leaves()]
        operands = distinct(kernel.read)
        assert all(map(is_plain, operands)), "a contraction takes dimensions from their start"
        letters = _letters(kept, gone, operands)
        terms = ["".join(_term(i, letters) for i in current_indices(load)) for load in operands]
        subscripts = f"{','.join(terms)}->{''.join(letters[v] for v in array.stored(kept))}"
        node = Contraction(kernel.label, subscripts)
        node.operation = str(kernel.operation)
        if not is_product(kernel):
            node.expression = str(_Operands(letters, "_v", operands).closed(expression))
        node.pick = _pick(kernel, letters, operands)
        self.state.add_node(node)
        for n, load in enumerate(operands):
            subset = ", ".join(
                f"0:{reach(index)}" if index.terms else f"{index.constant}"
                for index in current_indices(load)
            )
            memlet = Memlet(data=load.array.name, subset=subset or "0")
            self.state.add_edge(self._read(load.array.name), None, node, f"_in{n}", memlet)
        self.state.add_edge(node, "_out", self._write(array.name), None, self._whole(array.name))


def _pointer(array: Array) -> dtypes.pointer:
    """The type of a pointer to elements of an array."""
    return dtypes.pointer(dtypes.dtype_to_typeclass(array.dtype.type))


def _window(load: Load, names: dict[Variable, str]) -> str:
    """The line of an array that starts at a load."""
    *batch, _ = (_affine(index, names) for index in current_indices(load))
    own = f"0:{load.array.extents[-1].length}"
    return ", ".join([*(f"{place}:{place} + 1" for place in batch), own])


def _connectors(prefix: str, count: int) -> dict[str, Any]:
    """Connectors of types that DaCe finds; of a set the order would change from run to run."""
    return {f"{prefix}{n}": None for n in range(count)}


def _by_number(prefix: str, memlets: Sequence[Memlet]) -> dict[str, Memlet]:
    return {f"{prefix}{n}": memlet for n, memlet in enumerate(memlets)}


def _pick(kernel: Kernel, letters: dict[Variable, str], operands: Sequence[Load]) -> Pick | None:
    """The letter of a kernel that an operand holds, with the operand's number."""
    if kernel.picked is None:
        return None
    variable, holder = kernel.picked
    keys = [place_of(load) for load in operands]
    if variable not in letters or place_of(holder) not in keys:  # it is split by now
        return None
    return Pick(letters[variable], keys.index(place_of(holder)))


def _letters(
    kept: Sequence[Variable], gone: Sequence[Variable], operands: Sequence[Load]
) -> dict[Variable, str]:
    """Letters of a kernel's variables, by the part that they play."""
    sides = [
        {v for index in current_indices(load) for v, _ in index.terms}
        for load in (*operands, *operands)
    ][:2]
    several = len(operands) == 2
    found: dict[Variable, str] = {}
    free = dict.fromkeys(_LETTERS)
    for variable in (*kept, *gone):
        part = "left"
        if variable in gone:
            part = "reduced"
        elif several and variable in sides[1]:
            part = "batch" if variable in sides[0] else "right"
        letter = next((x for x in _GROUPS[part] if x in free), next(iter(free)))
        del free[letter]
        found[variable] = letter
    return found


def _term(index: Index, letters: dict[Variable, str]) -> str:
    """A dimension of subscripts."""
    parts = [f"{factor if factor != 1 else ''}{letters[v]}" for v, factor in index.terms]
    return parts[0] if len(parts) == 1 and index.terms[0][1] == 1 else f"({'+'.join(parts)})"


def _subset(load: Load, names: dict[Variable, str]) -> str:
    return ", ".join(_affine(index, names) for index in current_indices(load)) or "0"


def _affine(index: Index, names: dict[Variable, str]) -> str:
    terms = [names[v] if f == 1 else f"{names[v]} * {f}" for v, f in index.terms]
    if index.constant or not terms:
        terms.append(str(index.constant))
    text = " + ".join(terms)
    if index.divisor != 1:
        text = f"int_floor({text}, {index.divisor})"
    return text if index.within is None else f"Max(0, Min({text}, {index.within - 1}))"


class _Operands:
    """Gives loads and variables the names that they have in a node.

    Attributes:
        loads: the loads, by what tells different ones apart, in the order of their names.
    """

    def __init__(self, names: dict[Variable, str], prefix: str, known: Sequence[Load] = ()) -> None:
        self.names, self.prefix = names, prefix
        self.loads: dict[Any, Load] = {place_of(load): load for load in known}
        self._closed: dict[int, Expression] = {}

    def closed(self, expression: Expression) -> Expression:
        """An expression of arguments, and of indices by name."""
        return replace_leaves(expression, self._named, self._closed)

    def _named(self, leaf: Expression) -> Expression:
        if isinstance(leaf, Load):
            key = place_of(leaf)
            self.loads.setdefault(key, leaf)
            return Argument(f"{self.prefix}{list(self.loads).index(key)}", leaf.dtype)
        if isinstance(leaf, IndexValue):
            terms = tuple(
                (self.names[part], factor * inner)
                for variable, factor in leaf.terms
                for part, inner in Index.of(variable.leaves()).terms
                if part.length != 1
            )
            return IndexValue(terms, leaf.constant, leaf.dtype)
        return leaf
