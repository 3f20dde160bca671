"""Code of C++ that takes lines one by one gets all that a map has, with their steps.

before -> after:  ``for i: { f(_lines, &x[n * i], y) }`` -> ``f(Lines{{{m, n, 1}}}, &x[0], y)``

Code that names ``_lines`` takes lines side by side, wherever they lie (``kernels/fourier.hpp``).
Where a map has more than that code, or places of lines that are no multiples of its parameters, the
code gets one line, and the step between its elements.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import sympy
from dace import SDFG, SDFGState, data, dtypes, subsets, symbolic
from dace.codegen.common import sym2cpp
from dace.properties import CodeBlock
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge
from distspmd.dace_compat.tasklet_kinds import LINES, takes_lines

_TYPE = "distspmd::fourier::Lines"


def batch_lines(program: SDFG) -> None:
    """Define the lines of code that names them, in place; a map of nothing else becomes code."""
    for node, state in list(program.all_nodes_recursive()):
        if isinstance(node, nodes.Tasklet) and isinstance(state, SDFGState) and takes_lines(node):
            _Batch(state, node).define()


@dataclass
class _Batch:
    """Code that takes lines, and the one operand that it reads and the one that it writes."""

    state: SDFGState
    tasklet: nodes.Tasklet

    def define(self) -> None:
        read, written = self._operands()
        steps = [_step_of_elements(self._strides(e), e.data.subset) for e in (read, written)]
        batch: list[str] = []
        while isinstance(entry := self.state.entry_node(self.tasklet), nodes.MapEntry):
            found = self._along(entry)
            if found is None:
                break
            batch = [*found, *batch]
            self._take_map(entry)
        text = ", ".join([f"{{{', '.join(batch)}}}", *(str(sym2cpp(step)) for step in steps)])
        code = f"const {_TYPE} {LINES}{{{text}}};\n{self.tasklet.code.as_string}"
        self.tasklet.code = CodeBlock(code, dtypes.Language.CPP)

    def _operands(self) -> tuple[Edge, Edge]:
        (read,) = (e for e in self.state.in_edges(self.tasklet) if e.dst_conn == "_line0")
        (written,) = self.state.out_edges(self.tasklet)
        return read, written

    def _strides(self, edge: Edge) -> list[sympy.Expr]:
        container = self.state.sdfg.arrays[edge.data.data]
        return [sympy.sympify(stride) for stride in container.strides]

    def _along(self, entry: nodes.MapEntry) -> list[str] | None:
        """Dimensions of lines that a map has, if it has nothing but these."""
        of = entry.map
        within = self.state.scope_subgraph(entry).nodes()
        own = {str(s) for s in of.range.free_symbols} & set(of.params)
        if len(within) != 3 or own or any(step != 1 for _, _, step in of.range.ranges):
            return None
        params = [symbolic.pystr_to_symbolic(name) for name in of.params]
        edges = self._operands()
        others = [e for e in self.state.in_edges(self.tasklet) if e is not edges[0]]
        if any(str(s) in of.params for e in others for s in e.data.free_symbols):
            return None
        if any(type(self.state.sdfg.arrays[e.data.data]) is not data.Array for e in edges):
            return None
        steps = [_steps_of_lines(self._strides(e), e.data.subset, params) for e in edges]
        if steps[0] is None or steps[1] is None:
            return None
        counts = [sympy.Max(0, hi - lo + 1) for lo, hi, _ in of.range.ranges]
        return [
            f"{{{', '.join(str(sym2cpp(number)) for number in each)}}}"
            for each in zip(counts, steps[0], steps[1], strict=True)
        ]

    def _take_map(self, entry: nodes.MapEntry) -> None:
        """Let the code stand where the map stood, whose windows begin at the first line."""
        state = self.state
        leave = state.exit_node(entry)
        assert leave is not None
        ends = {
            symbolic.pystr_to_symbolic(name): (lo, hi)
            for name, (lo, hi, _) in zip(entry.map.params, entry.map.range.ranges, strict=True)
        }
        for edge in [*state.in_edges(self.tasklet), *state.out_edges(self.tasklet)]:
            path = state.memlet_path(edge)
            memlet = copy.deepcopy(edge.data)
            memlet.subset = _over(edge.data.subset, ends) if memlet.subset is not None else None
            enters = edge.dst is self.tasklet
            outer = path[path.index(edge) + (-1 if enters else 1)] if len(path) > 1 else None
            state.remove_edge(edge)
            if outer is None:
                continue
            if enters:
                state.add_edge(outer.src, outer.src_conn, self.tasklet, edge.dst_conn, memlet)
            else:
                state.add_edge(self.tasklet, edge.src_conn, outer.dst, outer.dst_conn, memlet)
        state.remove_nodes_from([entry, leave])


def _over(subset: subsets.Range, ends: dict[sympy.Symbol, tuple[object, object]]) -> subsets.Range:
    first = {name: lo for name, (lo, _) in ends.items()}
    last = {name: hi for name, (_, hi) in ends.items()}
    return subsets.Range(
        [
            (sympy.sympify(lo).subs(first), sympy.sympify(hi).subs(last), step)
            for lo, hi, step in subset.ranges
        ]
    )


def _step_of_elements(strides: list[sympy.Expr], subset: subsets.Range) -> sympy.Expr:
    """Elements of a container from one element of a line to the next."""
    along = [d for d, size in enumerate(subset.size()) if size != 1]
    assert len(along) <= 1, "a line lies along one dimension"
    return strides[along[0]] if along else sympy.Integer(1)


def _steps_of_lines(
    strides: list[sympy.Expr], subset: subsets.Range, params: list[sympy.Symbol]
) -> list[sympy.Expr] | None:
    """Elements from one line to the next, for each parameter, if they are the same everywhere."""
    indices = [sympy.expand(sympy.sympify(index)) for index in subset.min_element()]
    own = [[index.coeff(name, 1) for index in indices] for name in params]
    rests = [
        index - sum(by[d] * name for by, name in zip(own, params, strict=True))
        for d, index in enumerate(indices)
    ]
    if any({*rest.expand().free_symbols} & {*params} for rest in rests):
        return None
    if any(not (by.is_Integer and by >= 0) for each in own for by in each):
        return None
    return [sum(by * s for by, s in zip(each, strides, strict=True)) for each in own]
