"""Reads what a map computes at each of its indices: expressions of elements, or nothing else.

before -> after:  ``map[i, j] -> tasklet(x[i, j + 1], w[j]) -> y[i, j]``  ->  a stage
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import sympy
from dace import SDFGState, data, dtypes, symbolic
from dace.sdfg import nodes
from dace.sdfg.utils import dfs_topological_sort

from distspmd.analysis.accesses import Edge
from distspmd.codegen.device_stages import Access, Stage, Value, has_type
from distspmd.expressions.cuda import CudaPrinter
from distspmd.expressions.from_python import Unreadable, assigned
from distspmd.expressions.ir import Argument, cast, parts
from distspmd.expressions.operations import DType
from distspmd.expressions.text import Assignments
from distspmd.nodes.computation import Computation

_Bound: TypeAlias = tuple[sympy.Expr, sympy.Expr, int]


def map_stage(state: SDFGState, entry: nodes.MapEntry, exact: bool = False) -> Stage | None:
    """The stage of a map whose body is expressions of elements; None if it has none.

    Args:
        state: that it stands in.
        entry: the map.
        exact: whether only expressions count of which the program says the type of each part.
    """
    reader = _MapReader(state, entry, exact)
    try:
        return reader.stage()
    except _NoStage:
        return None


class _NoStage(Exception):
    """The map has no stage."""


def _unless(refused: object) -> None:
    if refused:
        raise _NoStage


class _MapReader:
    """Reads one map."""

    def __init__(self, state: SDFGState, entry: nodes.MapEntry, exact: bool) -> None:
        self.state, self.entry, self.exact = state, entry, exact
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.lines: list[str] = []
        self.temporaries: dict[nodes.AccessNode, str] = {}
        self.params: dict[str, _Bound | sympy.Expr] = {}
        self.extents: list[sympy.Expr] = []

    def stage(self) -> Stage:
        """The stage.

        Raises:
            _NoStage: it has none.
        """
        entry, state = self.entry, self.state
        _unless(any(not connector.startswith("IN_") for connector in entry.in_connectors))
        self._read_ranges()
        inside = state.scope_subgraph(entry, include_entry=False, include_exit=False)
        for node in dfs_topological_sort(inside):
            if isinstance(node, nodes.Tasklet):
                self._read_tasklet(node)
            elif isinstance(node, nodes.AccessNode):
                self._read_temporary(node)
            else:
                raise _NoStage
        _unless(not self.writes)
        text = "\n".join(self.lines)
        return Stage(
            entry.map.label,
            entry,
            tuple(self.extents),
            tuple(self.reads),
            tuple(self.writes),
            text,
            tuple(self._values(text)),
        )

    def _read_ranges(self) -> None:
        names = set(self.entry.map.params)
        for name, one in zip(self.entry.map.params, self.entry.map.range.ranges, strict=True):
            begin, end, step = map(sympy.sympify, one)
            _unless(not (step.is_Integer and step > 0))
            _unless(names & {str(s) for bound in (begin, end) for s in bound.free_symbols})
            count = end - begin + 1
            count = count if step == 1 else symbolic.int_floor(end - begin + step, step)
            if sympy.expand(count) == 1:
                self.params[name] = begin
                continue
            self.params[name] = (begin, step, len(self.extents))
            self.extents.append(sympy.expand(count) if step == 1 else count)

    def _read_temporary(self, node: nodes.AccessNode) -> None:
        """A value that one tasklet passes to another."""
        container = node.desc(self.state.sdfg)
        _unless(not container.transient or container.total_size != 1)
        _unless(not has_type(container.dtype) or self.state.in_degree(node) != 1)
        others = [
            n for s in self.state.sdfg.states() for n in s.data_nodes() if n.data == node.data
        ]
        _unless(len(others) != 1)
        (edge,) = self.state.in_edges(node)
        _unless(edge.data.wcr is not None or not isinstance(edge.src, nodes.Tasklet))

    def _read_tasklet(self, node: nodes.Tasklet) -> None:
        state = self.state
        _unless(node.side_effects or node.code_global.as_string)
        known: dict[str, DType] = {}
        lines, stores = ["{"], []
        for edge in state.in_edges(node):
            if edge.data.is_empty():
                continue
            dtype, text = self._source(edge)
            known[edge.dst_conn] = np.dtype(dtype.as_numpy_dtype())
            lines.append(f"const {dtype.ctype} {edge.dst_conn} = {text};")
        outputs: dict[str, DType] = {}
        for edge in state.out_edges(node):
            if edge.data.is_empty():
                continue
            dtype, text = self._goal(edge)
            if edge.src_conn not in outputs:
                lines.append(f"{dtype.ctype} {edge.src_conn};")
            outputs[edge.src_conn] = np.dtype(dtype.as_numpy_dtype())
            stores.append(f"{text} = {edge.src_conn};")
        lines += [self._code(node, known, outputs), *stores, "}"]
        self.lines += lines

    def _source(self, edge: Edge) -> tuple[dtypes.typeclass, str]:
        """What a tasklet reads: its type, and its name."""
        if isinstance(edge.src, nodes.AccessNode):
            return self.state.sdfg.arrays[edge.src.data].dtype, self.temporaries[edge.src]
        _unless(edge.src is not self.entry)
        outer = self.state.memlet_path(edge)[0]
        local = f"__r{len(self.reads)}"
        self.reads.append(self._access(edge, outer, outer.src, local))
        return self.reads[-1].dtype, local

    def _goal(self, edge: Edge) -> tuple[dtypes.typeclass, str]:
        """What a tasklet writes: its type, and its name."""
        _unless(edge.data.wcr is not None or edge.data.dynamic)
        if isinstance(edge.dst, nodes.AccessNode):
            name = self.temporaries[edge.dst] = f"__l{len(self.temporaries)}"
            dtype = self.state.sdfg.arrays[edge.dst.data].dtype
            self.lines.append(f"{dtype.ctype} {name};")
            return dtype, name
        _unless(edge.dst is not self.state.exit_node(self.entry))
        outer = self.state.memlet_path(edge)[-1]
        _unless(outer.data.wcr is not None)
        local = f"__w{len(self.writes)}"
        self.writes.append(self._access(edge, outer, outer.dst, local))
        return self.writes[-1].dtype, local

    def _access(self, edge: Edge, outer: Edge, node: nodes.Node, local: str) -> Access:
        """The element at the inner end of a path."""
        memlet = edge.data
        if not isinstance(node, nodes.AccessNode) or memlet.data != node.data:
            raise _NoStage
        _unless(outer.data.data != node.data or memlet.other_subset is not None)
        container = self.state.sdfg.arrays[node.data]
        _unless(not isinstance(container, data.Array | data.Scalar))
        _unless(not has_type(container.dtype))
        offset, steps = sympy.Integer(0), [sympy.Integer(0)] * len(self.extents)
        strides = getattr(container, "strides", (1,))
        for (begin, end, _), stride in zip(memlet.subset.ranges, strides, strict=True):
            _unless(sympy.expand(sympy.sympify(begin) - sympy.sympify(end)) != 0)
            rest = self._put_in(sympy.sympify(begin))
            for n in range(len(steps)):
                factor = rest.coeff(_variable(n), 1)
                steps[n] += factor * stride
                rest = sympy.expand(rest - factor * _variable(n))
                _unless(any(str(s).startswith(_VARIABLE) for s in factor.free_symbols))
            _unless(any(str(s).startswith(_VARIABLE) for s in rest.free_symbols))
            offset += rest * stride
        window = outer.data.subset
        origin = sympy.Add(
            *(sympy.sympify(b) * s for (b, _, _), s in zip(window.ranges, strides, strict=True))
        )
        return Access(node, window, container.dtype, local, origin, offset, tuple(steps))

    def _put_in(self, index: sympy.Expr) -> sympy.Expr:
        """An index of the variables, in place of the parameters."""
        by = {}
        for symbol in index.free_symbols:
            found = self.params.get(str(symbol))
            if isinstance(found, tuple):
                begin, step, number = found
                by[symbol] = begin + step * _variable(number)
            elif found is not None:
                by[symbol] = found
        return sympy.expand(index.subs(by))

    def _code(
        self, node: nodes.Tasklet, known: Mapping[str, DType], outputs: Mapping[str, DType]
    ) -> str:
        if isinstance(node, Computation):
            found = node.assignments()
            _unless(found is None or {name for name, _ in found} != outputs.keys())
            assert found is not None
            _unless(not all(CudaPrinter.can_print(value) for _, value in found))
            return node.before + CudaPrinter().assignments(found)
        _unless(self.exact or node.language is not dtypes.Language.Python)
        return CudaPrinter().assignments(self._of_python(node, known, outputs))

    def _of_python(
        self, node: nodes.Tasklet, known: Mapping[str, DType], outputs: Mapping[str, DType]
    ) -> Assignments:
        given = {name: Argument(name, dtype) for name, dtype in known.items()}
        try:
            found = assigned(node.code.code, given)
            values = [(name, cast(found[name], dtype)) for name, dtype in outputs.items()]
        except (Unreadable, KeyError, ValueError, TypeError):
            raise _NoStage from None
        names = {*known, *self.params, *map(str, self.state.sdfg.symbols)}
        for _, value in values:
            _unless(not CudaPrinter.can_print(value))
            _unless(any(isinstance(p, Argument) and p.name not in names for p in parts(value)))
        return tuple(values)

    def _values(self, text: str) -> Iterator[Value]:
        """Parameters and symbols that the text names."""
        for name in sorted(set(_NAMES.findall(text))):
            found = self.params.get(name)
            if isinstance(found, tuple):
                yield Value(name, *found)
            elif found is not None:
                yield Value(name, found)
            elif name in self.state.sdfg.symbols:
                _unless(self.state.sdfg.symbols[name] not in _INTEGERS)
                yield Value(name, symbolic.pystr_to_symbolic(name))


_VARIABLE = "__variable_"
_NAMES = re.compile(r"[A-Za-z_]\w*")
_INTEGERS = (dtypes.int32, dtypes.int64)


def _variable(number: int) -> sympy.Symbol:
    return sympy.Symbol(f"{_VARIABLE}{number}", integer=True)
