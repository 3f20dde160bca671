"""Chains over rows as one kernel: a softmax, a layer norm, what stands before and behind them.

Threads share a row, each with the same columns in all stages, so that what stages pass on stays in
registers: a row is read once and written once. Sums are combined in an order that the extents
decide (``device/rows.hpp``), without atomic operations. Where a row has too many columns for
registers, stages pass their values on in memory, each thread its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy
from dace.sdfg import nodes

from distspmd.codegen.device_stages import Access, Stage
from distspmd.codegen.kernel_text import INT, Indices, Parameters

MOST_COLUMNS = 1 << 16
"""Columns of the longest rows that a kernel has; longer ones are reduced by many blocks."""

_MOST_EACH = 16
"""Columns of a thread that it keeps in registers, at most."""

_MOST_THREADS = 1024
"""Of a block."""


@dataclass(frozen=True)
class RowGroup:
    """Stages that one kernel computes.

    Attributes:
        rows: extents of the variables that choose a row.
        columns: extents of the others.
        most: columns of a row, at most, on any rank.
        stages: in an order in which they can run; each has the variables of rows, and those of
            columns or none.
        kept: nodes of containers that a stage writes and others outside read.
    """

    rows: tuple[sympy.Expr, ...]
    columns: tuple[sympy.Expr, ...]
    most: int
    stages: tuple[Stage, ...]
    kept: frozenset[nodes.AccessNode]

    def has_columns(self, stage: Stage) -> bool:
        """Whether a stage does something for each column."""
        return len(stage.extents) > len(self.rows)

    @property
    def written(self) -> dict[nodes.AccessNode, Stage]:
        """Nodes that stages write, and which."""
        return {access.node: stage for stage in self.stages for access in stage.writes}


@dataclass
class RowKernel:
    """The kernel of a group."""

    group: RowGroup
    to: Parameters = field(default_factory=Parameters)

    def __post_init__(self) -> None:
        group = self.group
        accesses = [self._whole(a) for s in group.stages for a in (*s.reads, *s.writes)]
        counted = {n for stage in group.stages for n in stage.counted}
        extents = (*group.rows, *group.columns)
        self.indices = Indices.of_accesses(extents, accesses, counted, len(group.rows))
        own = [g for g in self.indices.groups if g[0] < len(group.rows)]
        self.row_groups, self.column_groups = own, self.indices.groups[len(own) :]
        self.wide = self._threads_of_row(accesses)
        each = -(-group.most // self.wide)
        self.each = each if each <= _MOST_EACH else 0  # of registers
        self.written = group.written
        self.loaded: dict[int, str] = self._loaded_once() if self.each else {}

    def _whole(self, access: Access) -> Access:
        """An access of a stage without columns, with steps of 0 along them."""
        missing = len(self.group.rows) + len(self.group.columns) - len(access.steps)
        steps = (*access.steps, *[sympy.Integer(0)] * missing)
        return Access(
            access.node, access.window, access.dtype, access.local, access.origin, access.offset,
            steps,
        )  # fmt: skip

    def _threads_of_row(self, accesses: Sequence[Access]) -> int:
        """How many threads share a row: one where neighbours in memory belong to other rows."""
        last, row = len(self.group.rows + self.group.columns) - 1, len(self.group.rows) - 1
        steps = [sympy.expand(access.steps[last]) for access in accesses]
        if 1 not in steps and any(sympy.expand(a.steps[row]) == 1 for a in accesses):
            return 1
        wide = 1
        while wide < min(32, self.group.most):
            wide *= 2
        while wide < _MOST_THREADS and self.group.most > wide * _MOST_EACH:
            wide *= 2
        return wide

    def _loaded_once(self) -> dict[int, str]:
        """Reads of several stages, by their identity: the registers that have their values."""
        found: dict[int, str] = {}
        groups: list[list[Access]] = []
        for stage in self.group.stages:
            if not self.group.has_columns(stage):
                continue
            for access in stage.reads:
                if access.node in self.written or not any(access.steps[len(self.group.rows) :]):
                    continue
                like = [g for g in groups if g[0].node is access.node and g[0].is_like(access)]
                groups += [] if like else [[]]
                (like[0] if like else groups[-1]).append(access)
        for group in groups:
            if len(group) > 1:
                found |= {id(access): f"__c{self.number_of(group[0])}" for access in group}
        return found

    def number_of(self, access: Access) -> int:
        """A number for the registers of what is loaded."""
        reads = [id(a) for stage in self.group.stages for a in stage.reads]
        return reads.index(id(access))

    @property
    def remark(self) -> str:
        """How it works, for the user."""
        threads = "a thread" if self.wide == 1 else f"{self.wide} threads"
        where = "registers" if self.each else "memory"
        names = ", ".join(dict.fromkeys(stage.label for stage in self.group.stages))
        return f"one own kernel of rows ({names}): {threads} a row, values in {where}"

    # -- values that stages pass on ---------------------------------------------------------------

    def _passed(self, node: nodes.AccessNode) -> str:
        """The name of what a stage passes on."""
        return f"__t{list(self.written).index(node)}"

    def _in_registers(self, node: nodes.AccessNode) -> bool:
        has_columns = self.group.has_columns(self.written[node])
        return bool(self.each) or not has_columns or self.written[node].reduction is not None

    def _is_row(self, node: nodes.AccessNode) -> bool:
        """Whether a stage passes on one value for a row."""
        stage = self.written[node]
        return stage.reduction is not None or not self.group.has_columns(stage)

    def _read(self, access: Access, seen: set[str]) -> str:
        """The value of an element that a stage reads."""
        if access.node in self.written and self._in_registers(access.node):
            name = self._passed(access.node)
            return name if self._is_row(access.node) else f"{name}[__k]"
        writes = access.node in self.written
        element = self._element(access, writes)
        name = self.loaded.get(id(access), "")
        if not name:
            return element
        if name in seen:
            return f"{name}[__k]"
        seen.add(name)
        return f"{name}[__k] = {element}"

    def _element(self, access: Access, writes: bool) -> str:
        whole = self._whole(access)
        if writes:  # what is passed on in memory is read where it is written
            (own,) = (a for a in self.written[access.node].writes if a.node is access.node)
            whole = self._whole(own)
        return self.to.element(whole, writes, self.indices)

    def _is_stored(self, node: nodes.AccessNode) -> bool:
        return node in self.group.kept or not self._in_registers(node)

    # -- stages ------------------------------------------------------------------------------------

    def _stage(self, stage: Stage, seen: set[str]) -> list[str]:
        lines = self.to.values(stage.values, self.indices)
        lines += [f"const {a.dtype.ctype} {a.local} = {self._read(a, seen)};" for a in stage.reads]
        if stage.reduction is not None:
            return self._reduction(stage, lines)
        lines += [f"{access.dtype.ctype} {access.local};" for access in stage.writes]
        lines.append(stage.text)
        for access in stage.writes:
            name, is_row = self._passed(access.node), self._is_row(access.node)
            if self._in_registers(access.node):
                lines.append(f"{name if is_row else f'{name}[__k]'} = {access.local};")
            if self._is_stored(access.node):
                alone = "if (__mine == 0) " if is_row else ""
                lines.append(f"{alone}{self._element(access, True)} = {access.local};")
        if self.group.has_columns(stage):
            return self._loop(lines)
        return ["if (__there) {", *lines, "}"]

    def _loop(self, lines: Sequence[str]) -> list[str]:
        """Lines for each column of a thread."""
        decoded = self.indices.decoded("__column", self.column_groups, self.to)
        count = self.to.number(self.indices.count(self.column_groups))
        if self.each:
            head = [
                "#pragma unroll",
                f"for (int __k = 0; __k < {self.each}; ++__k) {{",
                f"const {INT} __column = __mine + __k * {self.wide};",
                f"if (__there && __column < {count}) {{",
            ]
            return [*head, *decoded, *lines, "}", "}"]
        start = f"for ({INT} __column = __mine; __there && __column < {count}; "
        return [f"{start}__column += {self.wide}) {{", *decoded, *lines, "}"]

    def _reduction(self, stage: Stage, lines: list[str]) -> list[str]:
        how, (result,) = stage.reduction, stage.writes
        assert how is not None, "the stage reduces"
        counts = f"if ({stage.condition}) {{" if stage.condition else "{"
        body = [*lines, counts, stage.text, how.combine.format("__part", "__value"), "}"]
        name = self._passed(result.node)
        combine = how.combine.format("__a", "__b")
        combining = f"[]({how.ctype} &__a, {how.ctype} __b) {{ {combine} }}"
        found = ["{", f"{how.ctype} __part = {how.ctype}({how.neutral});", *self._loop(body)]
        found.append(f"{name} = distspmd::combine_row<{self.wide}>(__part, {combining});")
        if how.start:
            found.append(f"const {how.ctype} __value = {how.start};")
            found.append(how.combine.format(name, "__value"))
        if self._is_stored(result.node):
            stored = self._element(result, True)
            found.append(f"if (__there && __mine == 0) {stored} = {name};")
        return [*found, "}"]

    def _registers(self) -> list[str]:
        """Declarations of what stages pass on and of what is loaded once."""
        lines = []
        for stage in self.group.stages:
            for access in stage.writes:
                if self._in_registers(access.node):
                    size = "" if self._is_row(access.node) else f"[{self.each}]"
                    lines.append(f"{access.dtype.ctype} {self._passed(access.node)}{size};")
            for access in stage.reads:
                name = self.loaded.get(id(access), "")
                if name:
                    lines.append(f"{access.dtype.ctype} {name}[{self.each}];")
        return list(dict.fromkeys(lines))

    def text(self) -> str:
        """The kernel and the function that launches it, whose names begin with NAME."""
        seen: set[str] = set()
        stages = []
        for stage in self.group.stages:
            stages += ["{", *self._stage(stage, seen), "}"]
        rows = self.to.number(self.indices.count(self.row_groups))
        decoded = self.indices.decoded("__there ? __row : 0", self.row_groups, self.to)
        own = ", ".join(f"{kind}{name}" for kind, name in self.to.declared)
        names = ", ".join(f"(void *)&{name}" for _, name in self.to.declared)
        threads = f"distspmd::threads_of_rows({self.wide})"
        body = "\n".join([*decoded, *self._registers(), *stages])
        return f"""namespace {{
__global__ void __launch_bounds__({threads}) NAME_rows({own}, {INT} __rows) {{
constexpr int __together = {threads} / {self.wide};
const int __mine = int(threadIdx.x) % {self.wide};
const {INT} __step = {INT}(gridDim.x) * __together;
for ({INT} __first = {INT}(blockIdx.x) * __together; __first < __rows; __first += __step) {{
const {INT} __row = __first + threadIdx.x / {self.wide};
const bool __there = __row < __rows;
{body}
}}
}}
}}  // namespace
extern "C" void NAME(void *__stream, {own}) {{
{INT} __rows = {rows};
if (__rows <= 0) return;
void *__arguments[] = {{{names}, (void *)&__rows}};
const dim3 __grid = distspmd::blocks_of_rows(__rows, {self.wide}), __block({threads});
cudaLaunchKernel((void *)NAME_rows, __grid, __block, __arguments, 0, cudaStream_t(__stream));
}}
"""
