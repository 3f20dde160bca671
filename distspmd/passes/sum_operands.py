"""Sums of partial values: each rank adds up its operands, and their sum is reduced once.

before -> after:  ``p -> [all-reduce]``, ``q -> [all-reduce]``, ``y = f(p + q)``  ->
``s = p + q`` on the operands, ``s -> [all-reduce]``, ``y = f(s)``

A map that is linear in partial values runs on the operands itself, and its result is partial. If
code depends on partial values through their sum alone (:mod:`distspmd.expressions.linear`), the
sum gets a map of its own, for all its readers. Both happen only if homes then have less traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.sdfg import nodes

from distspmd.analysis.constraints import uses
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange, Source, parameters_of
from distspmd.analysis.linear_uses import Reading, read_sum, reading
from distspmd.analysis.loop_runs import times
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Use, Write
from distspmd.expressions.ir import Argument, Constant, Expression, apply
from distspmd.expressions.linear import Number, weights
from distspmd.expressions.operations import DType
from distspmd.expressions.python import PythonPrinter
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import Reason
from distspmd.passes.compilation import Compilation
from distspmd.passes.graph_queries import last_written
from distspmd.passes.partial_values import WHY, PartialValues, Weigh, reads_operands, without
from distspmd.passes.tiles import new_name
from distspmd.placement.homes import same_operands
from distspmd.placement.propagation import Tiled, axes_of

Sum = tuple[tuple[str, Number], ...]
"""Containers with their weights, of which the first is 1."""


@dataclass(frozen=True)
class SumOperands:
    """Sums of partial values are made before they are reduced, where that spares traffic."""

    name: str = "sum-operands"

    def apply(self, compilation: Compilation) -> None:
        """Change the tilings of spaces, and add maps to the SDFG, in place."""
        ranks = compilation.ranks

        def weigh(data: str, uses: Sequence[Use]) -> float:
            return compilation.choose_home(data, uses, ranks).traffic

        compilation.spaces, compilation.tiled = add_operands(
            compilation.sdfg, compilation.spaces, compilation.tiled, weigh
        )


def add_operands(
    sdfg: SDFG, spaces: Sequence[IterationSpace], tiled: Mapping[str, Tiled], weigh: Weigh
) -> tuple[list[IterationSpace], dict[str, Tiled]]:
    """Let sums of partial values be made before they are reduced, where that spares traffic.

    Args:
        sdfg: in which sums may get maps of their own.
        spaces: in program order.
        tiled: all of them.
        weigh: what decides; knows the containers of the SDFG.

    Returns:
        The spaces, new ones among them, and their tilings.
    """
    partial = _Sums(sdfg, list(spaces), dict(tiled), weigh)
    if len(partial.layouts) > 1:
        for space in spaces:
            partial.run_on_operands(space)
        partial.gather()
        partial.take_back()
    return partial.spaces, {space.name: partial.tiled[space.name] for space in partial.spaces}


@dataclass
class _Sums(PartialValues):
    """What is made of the partial values of a program."""

    def __post_init__(self) -> None:
        self.tried: dict[str, Tiled] = {}
        """How spaces ran before that run on operands and spare nothing, unless others do by it."""
        super().__post_init__()

    # -- maps that are linear -------------------------------------------------------------------

    def run_on_operands(self, space: IterationSpace) -> None:
        """Let a space that is linear in partial values run on operands, if that costs no traffic.

        If it spares none by itself, as a copy does not, others may that read what it writes.
        """
        own = self.tiled[space.name]
        read = self.read(space)
        if not read or own.chosen_by.reason is Reason.SCHEDULE or space.moving:
            return
        found = reading(space, read, self.sdfg.arrays[read[0]].dtype)
        made = self.on_operands(space, read) if found is not None and found.is_linear else None
        spared = -1.0 if made is None else self.spared(own.uses, made.uses, {})
        if made is None or spared < 0:
            return
        if spared == 0:
            self.tried[space.name] = own
        self.tiled[space.name] = made
        self.index()

    def take_back(self) -> None:
        """Let spaces run as they did of which nobody needs that they run on operands."""
        for space in reversed(self.spaces):
            if space.name not in self.tried:
                continue
            written = {u.data for u in self.tiled[space.name].uses if not isinstance(u, Read)}
            needed = any(reads_operands(use) for data in written for use in self.uses[data])
            if not needed:
                self.tiled[space.name] = self.tried[space.name]
                self.index()

    # -- sums -----------------------------------------------------------------------------------

    def gather(self) -> None:
        """Give sums that others read maps of their own, if that spares traffic."""
        readers: dict[Sum, list[Reading]] = {}
        for found in [found for space in self.spaces for found in self._readings(space)]:
            for added in found.sums:
                for part in self._fitting(added):
                    readers.setdefault(part, []).append(found)
        for part, those in readers.items():
            self._gather(part, those)

    def _readings(self, space: IterationSpace) -> Iterator[Reading]:
        """How a space reads partial values, those of each type together."""
        by_type: dict[dtypes.typeclass, list[str]] = {}
        for data in self.read(space):
            by_type.setdefault(self.sdfg.arrays[data].dtype, []).append(data)
        for dtype, names in by_type.items():
            found = reading(space, names, dtype) if len(names) > 1 else None
            if found is not None:
                yield found

    def _fitting(self, added: Mapping[str, Number]) -> list[Sum]:
        """The parts of a sum whose containers have one shape, and one layout of operands."""
        parts: list[list[str]] = []
        for data in sorted(added, key=lambda data: (abs(added[data]), data)):
            for part in parts:
                alike = same_operands(self.layouts[data], self.layouts[part[0]])
                if alike and self.layouts[data].extents == self.layouts[part[0]].extents:
                    part.append(data)
                    break
            else:
                parts.append([data])
        found = []
        for part in parts:
            ratios = weights([added[data] for data in part], self.kind(part[0]) in "iu")
            pairs = zip(part, ratios, strict=True)
            found.append(tuple((data, weight) for data, weight in pairs if weight is not None))
        return [part for part in found if len(part) > 1]

    def _gather(self, added: Sum, readers: Sequence[Reading]) -> None:
        names = [data for data, _ in added]
        written = [last_written(self.sdfg, data) for data in names]
        origins = [node for node in written if node is not None]
        if len(origins) < len(names) or len({state for state, _ in origins}) > 1:
            return
        state = origins[0][0]
        last = [node for _, node in origins]
        fit = [r for r in readers if r.space.state is not state or r.reads_from(last)]
        tiling = self._of_all(names[0])
        if not fit or tiling is None:
            return
        before = [u for r in fit for u in self.tiled[r.space.name].uses if u.data in names]
        reads = [u for r in fit for u in self.tiled[r.space.name].uses if u.data == names[0]]
        often, like = times(state), fit[0].space
        own = [Read(like, data, self.layouts[data], (), times=often) for data in names]
        new = new_name(f"{names[0]}_sum", {*self.sdfg.arrays, *self.sdfg.symbols, *self.tiled})
        made = Write(like, new, self.layouts[names[0]], (), times=often)
        after = [*own, made, *(replace(use, data=new) for use in reads)]
        if self.spared(before, after, {new: names[0]}) > 0:
            space, node = _sum_map(self.sdfg, new, added, last, state, like.source)
            self._add(space, tiling, names)
            self._let_read(fit, names, node, state)

    def _of_all(self, data: str) -> Tiling | None:
        """The tiling of a map over a container in which each rank runs over its operand's box."""
        layout = self.layouts[data]
        writer, made = self.writer(data)
        ranges = [ParameterRange.up_to(n) for n in layout.extents]
        tiling = without(Tiling.of(ranges, layout.mesh, axes_of(made, writer.tiling)), layout)
        pairs = zip(tiling.boxes, layout.boxes, strict=True)
        fits = all(a == b or (intervals.is_empty(a) and intervals.is_empty(b)) for a, b in pairs)
        return tiling if fits else None

    def _add(self, space: IterationSpace, tiling: Tiling, names: Sequence[str]) -> None:
        """Add the map of a sum, after those that write what it adds up."""
        places = [n for n, other in enumerate(self.spaces) if {*other.writes} & {*names}]
        self.spaces.insert(max(places) + 1, space)
        layout = self.layouts[names[0]]
        found = []
        for use in uses(space, tiling):
            boxes = use.layout.boxes
            on = Layout.of_boxes(layout.mesh, layout.extents, boxes, layout.partial)
            found.append(replace(use, layout=on))
        self.tiled[space.name] = Tiled(tiling, found, WHY)

    def _let_read(
        self,
        readers: Sequence[Reading],
        names: Sequence[str],
        node: nodes.AccessNode,
        state: SDFGState,
    ) -> None:
        """Let spaces read a sum instead of what it is made of."""
        for reader in readers:
            here = reader.space.state
            read_sum(reader, names, node if here is state else here.add_read(node.data))
            own = self.tiled[reader.space.name]
            self.tiled[reader.space.name] = replace(own, uses=uses(reader.space, own.tiling))
        self.index()


def _sum_map(
    sdfg: SDFG,
    name: str,
    added: Sum,
    origins: Sequence[nodes.AccessNode],
    state: SDFGState,
    source: Source | None,
) -> tuple[IterationSpace, nodes.AccessNode]:
    """A map that adds containers up, and the node that it writes."""
    first = sdfg.arrays[added[0][0]]
    sdfg.add_array(name, first.shape, first.dtype, transient=True)
    node = state.add_access(name)
    parameters = [f"__i{d}" for d in range(len(first.shape))]
    index = ", ".join(parameters)
    dtype = np.dtype(first.dtype.as_numpy_dtype())
    total, *terms = [_term(f"__in{n}", weight, dtype) for n, (_, weight) in enumerate(added)]
    for term in terms:
        total = apply("add", total, term)
    _, entry, _ = state.add_mapped_tasklet(
        name,
        {p: f"0:{n}" for p, n in zip(parameters, first.shape, strict=True)},
        {f"__in{n}": Memlet(data=data, subset=index) for n, (data, _) in enumerate(added)},
        f"__out = {PythonPrinter().text(total)}",
        {"__out": Memlet(data=name, subset=index)},
        external_edges=True,
        input_nodes={node.data: node for node in origins},
        output_nodes={name: node},
    )
    names, ranges = parameters_of(entry)
    return IterationSpace(name, name, names, ranges, source, (name,), state, entry, None), node


def _term(name: str, weight: Number, dtype: DType) -> Expression:
    argument = Argument(name, dtype)
    if weight in (1, -1):
        return argument if weight == 1 else -argument
    number = Constant(weight, np.asarray(weight).dtype)
    return apply("cast", number, dtype=dtype) * argument
