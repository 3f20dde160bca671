"""The code of a pipeline: blocks of the loop in the body of a map, and messages between ranks.

before -> after:  ``map i: for j: body``  ->
``map block, i: {at the first i: receive} for j in the block: {body} {at the last i: send}``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, dtypes, symbolic
from dace.codegen.common import sym2cpp
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from dace.subsets import Range

from distspmd.analysis.dependences import LoopRange
from distspmd.lowering import CONTEXT
from distspmd.nodes.distributed_memlet import Runtime
from distspmd.nodes.handing_on import HandingOn, Rim, handed_on, loop_of
from distspmd.nodes.map_scopes import enter_map
from distspmd.runtime.engine.compile_runtime import INCLUDE

_HEADER = INCLUDE / "distspmd" / "kernels" / "pipeline.hpp"
_BLOCK = "distspmd_block"
_ROW = "distspmd_row"
_FIRST, _END = "distspmd_first", "distspmd_end"
"""Symbols of a body: block and parameter of the map, and the values of the loop in the block."""


def write_pipelines(program: SDFG) -> None:
    """Cut loops into blocks where ranks hand on what they wrote, in place."""
    for state in program.states():
        for entry in state.nodes():
            if (body := handed_on(state, entry)) is not None:
                assert isinstance(entry, nodes.MapEntry)
                if body[1].blocks:
                    _Pipeline(state, entry, *body).write()
                start = body[0].sdfg.start_block
                start.remove_node(body[1])


class _Pipeline:
    """A map in order that ranks share, and its body."""

    def __init__(
        self, state: SDFGState, entry: nodes.MapEntry, nested: nodes.NestedSDFG, mark: HandingOn
    ) -> None:
        self.state, self.entry, self.nested, self.mark = state, entry, nested, mark
        self.inner: SDFG = nested.sdfg
        self.loop = loop_of(nested, mark)
        self.parameter = str(entry.map.params[0])
        values = LoopRange.of(self.loop)
        assert values is not None
        self.values = values

    def write(self) -> None:
        """Rewrite the map and its body."""
        mark, inner = self.mark, self.inner
        entry = self.entry
        entry.map.params = [_BLOCK, *entry.map.params]
        entry.map.range = Range([(0, mark.blocks - 1, 1), *entry.map.range.ranges])
        for name, outside in ((_BLOCK, _BLOCK), (_ROW, self.parameter)):
            inner.add_symbol(name, dtypes.int64)
            self.nested.symbol_mapping[name] = symbolic.pystr_to_symbolic(outside)
        inner.add_scalar(CONTEXT, dtypes.int64)
        self.nested.add_in_connector(CONTEXT, dtypes.int64)
        memlet = Memlet(data=CONTEXT, subset="0")
        read = self.state.add_read(CONTEXT)
        enter_map(self.state, self.state.sdfg, entry, read, self.nested, CONTEXT, memlet)
        self._cut()
        before, behind = str(mark.before), str(mark.behind)
        start = inner.start_block
        assert isinstance(start, SDFGState)
        receive = inner.add_state_after(start, "receive")
        self._talk(receive, "receive", f"{_ROW} == {mark.first} && {before} >= 0", before)
        (last,) = inner.sink_nodes()
        send = inner.add_state_after(last, "send")  # type: ignore[arg-type]  # or a loop
        self._talk(send, "send", f"{_ROW} == {mark.last} && {behind} >= 0", behind)

    def _ends(self, row: str) -> tuple[str, str]:
        """Least value and end of the loop in the block of an iteration, as expressions."""
        first, last, mark = self.values.first, self.values.last, self.mark
        turns = f"({_BLOCK} * {mark.width} - {mark.skew} * ({row} - ({mark.begin})))"
        if self.values.step > 0:
            return (
                f"max({first}, {first} + {turns})",
                f"min({last} + 1, {first} + {turns} + {mark.width})",
            )
        return (
            f"max({last}, {first} + 1 - {turns} - {mark.width})",
            f"min({first} + 1, {first} + 1 - {turns})",
        )

    def _cut(self) -> None:
        """Let the loop run through the values of a block alone."""
        first, end = self._ends(_ROW)
        loop: LoopRegion = self.loop
        region = loop.parent_graph
        before = region.add_state_before(loop, "block")  # type: ignore[arg-type]  # or a loop
        (edge,) = region.in_edges(loop)
        assert edge.src is before
        edge.data.assignments |= {_FIRST: first, _END: end}
        for name in (_FIRST, _END):
            self.inner.add_symbol(name, dtypes.int64)
        name, is_up = loop.loop_variable, self.values.step > 0
        loop.init_statement = CodeBlock(f"{name} = {_FIRST if is_up else f'{_END} - 1'}")
        loop.loop_condition = CodeBlock(f"{name} < {_END}" if is_up else f"{name} >= {_FIRST}")

    def _talk(self, state: SDFGState, verb: str, condition: str, rank: str) -> None:
        """Receive or send the rims of a block."""
        rims = [rim for rim in self.mark.rims if rim.depth]
        context: dict[str, Any] = {f"{CONTEXT}_": dtypes.int64}
        pointers: dict[str, Any] = {
            f"_{rim.data}": dtypes.pointer(self.inner.arrays[rim.data].dtype) for rim in rims
        }
        receives = verb == "receive"
        begin = "0" if receives else "1"  # rows end before this iteration, or with it
        code = [f"if ({condition}) {{", "std::vector<distspmd::pipeline::Window> windows;"]
        for rim in rims:
            code += self._windows(rim, begin)
        code += [
            f"distspmd::pipeline::{verb}({CONTEXT}_, {self.mark.number}, {rank}, windows);",
            "}",
        ]
        tasklet = state.add_tasklet(
            verb,
            context | ({} if receives else pointers),
            pointers if receives else {},
            "\n".join(code),
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
            side_effects=True,
        )
        tasklet.environments = {Runtime.full_class_path()}  # type: ignore[attr-defined]
        read = state.add_read(CONTEXT)
        memlet = Memlet(data=CONTEXT, subset="0")
        state.add_edge(read, None, tasklet, f"{CONTEXT}_", memlet)
        for rim in rims:
            container = self.inner.arrays[rim.data]
            ends = zip(container.offset, container.shape, strict=True)
            whole = Range([(-offset, extent - offset - 1, 1) for offset, extent in ends])
            memlet = Memlet(data=rim.data, subset=whole)
            if receives:
                memlet.dynamic = True
                state.add_edge(tasklet, f"_{rim.data}", state.add_write(rim.data), None, memlet)
            else:
                state.add_edge(state.add_read(rim.data), None, tasklet, f"_{rim.data}", memlet)

    def _windows(self, rim: Rim, begin: str) -> Sequence[str]:
        """Rows of a rim in this block, by those of the iterations that have written them."""
        container = self.inner.arrays[rim.data]
        strides = [f"({sym2cpp(sympy.sympify(s))})" for s in container.strides]
        offsets = [f"({sym2cpp(sympy.sympify(o))})" for o in container.offset]
        first, end = self._ends("row")
        at = [
            f"({rim.sign} * row + ({rim.place}) + {offsets[rim.along]}) * {strides[rim.along]}",
            f"(first + ({rim.offset}) + {offsets[rim.across]}) * {strides[rim.across]}",
            *(f"({low} + {offsets[d]}) * {strides[d]}" for d, low, _ in rim.others),
        ]
        size = f"int64_t(sizeof(*_{rim.data}))"
        extents = sorted(
            [(rim.across, "end - first"), *((d, str(hi - lo + 1)) for d, lo, hi in rim.others)]
        )
        listed = ", ".join(f"{{{count}, {strides[d]} * {size}}}" for d, count in extents)
        row = f"{_ROW} + {begin} - {rim.depth}"
        return [
            f"for (int64_t row = std::max<int64_t>({row}, {self.mark.begin});"
            f" row < {_ROW} + {begin}; ++row) {{",
            f"const int64_t first = {_in_cpp(first)}, end = {_in_cpp(end)};",
            f"auto *const at = _{rim.data} + {' + '.join(at)};",
            f"if (first < end) windows.push_back({{(char *)at, {size}, {{{listed}}}}});",
            "}",
        ]


def _in_cpp(expression: str) -> str:
    return expression.replace("max(", "std::max<int64_t>(").replace("min(", "std::min<int64_t>(")
