"""Maps as kernels of our own: each thread has some neighbours of the result, in vectors if it can.

before -> after:  ``map[i, j] -> body``  ->  a call of the host that launches the kernel

The variable along which the result is contiguous runs fastest from thread to thread, whichever
place it has among the parameters. Where addresses and steps are multiples of 16 bytes, which the
host sees at each launch, elements are read and written in vectors of so many bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sympy
from dace import Memlet, SDFGState
from dace.sdfg import nodes

from distspmd.codegen.device_stages import Access, Stage, permuted
from distspmd.codegen.kernel_text import INT, Indices, Parameters
from distspmd.codegen.map_stages import map_stage
from distspmd.nodes.device_calls import DeviceCall

_VECTOR_BYTES = 16
"""Of the widest load of a device."""


def replace_map(state: SDFGState, entry: nodes.MapEntry, exact: bool) -> DeviceCall | None:
    """Replace a map by the call of a kernel of our own, in place; None where it has none."""
    stage = map_stage(state, entry, exact)
    if stage is None or not stage.writes:
        return None
    kernel = _ElementKernel(_fastest_last(stage), Parameters())
    text = kernel.text()
    call = kernel.to.replace(state, stage.label, kernel.remark, text)
    leaving = state.exit_node(entry)
    for edge in state.in_edges(entry):
        if edge.data.is_empty():
            state.add_nedge(edge.src, call, Memlet())
    for edge in state.out_edges(leaving):
        if edge.data.is_empty():
            state.add_nedge(call, edge.dst, Memlet())
    state.remove_nodes_from(state.scope_subgraph(entry).nodes())
    return call


def _fastest_last(stage: Stage) -> Stage:
    """The stage with its variables in the order of the result's strides."""
    steps = stage.writes[0].steps
    if not all(sympy.sympify(step).is_Integer for step in steps):
        return stage
    order = sorted(range(len(steps)), key=lambda n: -abs(int(steps[n])))
    return permuted(stage, order)


@dataclass
class _ElementKernel:
    """The kernel of one stage."""

    stage: Stage
    to: Parameters

    def __post_init__(self) -> None:
        self.accesses = [(one, False) for one in self.stage.reads]
        self.accesses += [(one, True) for one in self.stage.writes]
        self.indices = Indices.of_accesses(
            self.stage.extents, (one for one, _ in self.accesses), self.stage.counted
        )

    @property
    def lanes(self) -> int:
        """Elements of a vector; 1 if there are none."""
        steps = [self._step(one) for one, _ in self.accesses]
        if not self.stage.extents or not all(step in (0, 1) for step in steps):
            return 1
        sizes = [one.dtype.bytes for one, _ in self.accesses if self._step(one) == 1]
        return max(1, _VECTOR_BYTES // max(sizes)) if sizes else 1

    @property
    def remark(self) -> str:
        """How it works, for the user."""
        lanes = self.lanes
        if lanes == 1:
            return "an own kernel: a thread for each element of the result"
        return f"an own kernel: a thread for {lanes} neighbours, in vectors where they are aligned"

    def _step(self, access: Access) -> sympy.Expr:
        """How far an access moves with the fastest variable."""
        return sympy.expand(access.steps[-1]) if access.steps else sympy.Integer(0)

    def _body(self) -> list[str]:
        """What a thread does for its vector, whose first element has the variables' indices."""
        before, inside, behind = [], [], []
        for one, writes in self.accesses:
            ctype, place = one.dtype.ctype, self.to.place(one, self.indices)
            pointer = self.to.pointer(one, writes)
            name = f"__v{one.local[2:]}_{'out' if writes else 'in'}"
            if writes:
                before.append(f"distspmd::Lanes<{ctype}, __lanes> {name};")
                inside.append(f"{ctype} {one.local};")
                behind.append(f"distspmd::store_lanes<__lanes>({pointer} + {place}, {name});")
            elif self._step(one) == 1:
                before.append(
                    f"const auto {name} = distspmd::load_lanes<__lanes>({pointer} + {place});"
                )
                inside.append(f"const {ctype} {one.local} = {name}.of[__lane];")
            else:
                before.append(f"const {ctype} {name} = {pointer}[{place}];")
                inside.append(f"const {ctype} {one.local} = {name};")
        values = self.to.values(self.stage.values, self.indices)
        if self.indices.groups:
            fastest = self.indices.names[-1]
            here = re.compile(rf"\b{fastest}\b")
            inside += [here.sub(f"({fastest} + __lane)", line) for line in values]
        else:
            inside += values
        inside.append(self.stage.text)
        inside += [f"__v{one.local[2:]}_out.of[__lane] = {one.local};" for one in self.stage.writes]
        loop = "#pragma unroll\nfor (int __lane = 0; __lane < __lanes; ++__lane) {"
        return [*before, loop, *inside, "}", *behind]

    def _aligned(self, lanes: int) -> str:
        """Whether vectors of so many elements begin where they can be read."""
        found = [f"{self._fastest_extent} % {lanes} == 0"]
        for one, writes in self.accesses:
            if self._step(one) != 1:
                continue
            pointer, behind = self.to.pointer(one, writes), self.to.number(one.behind)
            found.append(f"distspmd::is_aligned<{lanes}>({pointer} + {behind})")
            for group in self.indices.groups[:-1]:
                step = sympy.expand(one.steps[group[-1]])
                if step != 0:
                    found.append(f"{self.to.number(step)} % {lanes} == 0")
        return " && ".join(dict.fromkeys(found))

    @property
    def _fastest_extent(self) -> str:
        return self.to.number(self.indices.count(self.indices.groups[-1:]))

    def text(self) -> str:
        """The kernel and the function that launches it, whose names begin with NAME."""
        body = self._body()
        groups, lanes = self.indices.groups, self.lanes
        if len(groups) == 1:
            decoded = [f"const {INT} {self.indices.names[-1]} = __n * __lanes;"]
        elif groups:
            decoded = self.indices.decoded("__n", groups[:-1], self.to)
            fastest, name = self._fastest_extent, self.indices.names[-1]
            taken = f"distspmd::take_index(__n, {fastest} / __lanes)"
            decoded = [f"const {INT} {name} = {taken} * __lanes;", *decoded]
        else:
            decoded = []
        count = self.to.number(self.indices.count())
        choice = f"({self._aligned(lanes)}) ? {lanes} : 1" if lanes > 1 else "1"
        own = ", ".join(f"{kind}{name}" for kind, name in self.to.declared)
        names = ", ".join(f"(void *)&{name}" for _, name in self.to.declared)
        lines = "\n".join([*decoded, *body])
        launch = (
            "cudaLaunchKernel((void *)NAME_elements<LANES>, distspmd::blocks_for(__vectors), "
            "dim3(distspmd::threads_of_block), __arguments, 0, cudaStream_t(__stream));"
        )
        wide = f"if (__lanes > 1) {launch.replace('LANES', str(lanes))}\nelse " if lanes > 1 else ""
        return f"""namespace {{
template <int __lanes>
__global__ void __launch_bounds__(distspmd::threads_of_block) NAME_elements({own}, \
{INT} __vectors) {{
const {INT} __step = {INT}(gridDim.x) * blockDim.x;
for ({INT} __at = {INT}(blockIdx.x) * blockDim.x + threadIdx.x; __at < __vectors; __at += __step) {{
{INT} __n = __at;
{lines}
}}
}}
}}  // namespace
extern "C" void NAME(void *__stream, {own}) {{
const int __lanes = {choice};
{INT} __vectors = {count} / __lanes;
if (__vectors <= 0) return;
void *__arguments[] = {{{names}, (void *)&__vectors}};
{wide}{launch.replace("LANES", "1")}
}}
"""
