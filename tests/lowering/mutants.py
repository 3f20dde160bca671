"""Lowered programs that are wrong: what a fault of the lowering could make of a right one.

A mutant differs in one number or one node from the program: an end of a tile or of a range on one
rank, a redistribution that is left out or comes twice, a plan of another layout that is right by
itself, storage that begins elsewhere. Those that still do what the program does are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dace import SDFG, SDFGState, subsets
from dace.sdfg import nodes

import distspmd
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import ATTRIBUTE, Graphs, Lowering
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.planning.select import select_plan
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers.exchange import Exchange

Generator = np.random.Generator


@dataclass(frozen=True)
class Mutant:
    """A wrong program, and in words what is wrong with it."""

    what: str
    lowering: Lowering


def mutants(lowering: Lowering, rng: Generator, count: int) -> Iterator[Mutant]:
    """Some mutants of a lowered program, of all kinds by turns."""
    made = 0
    for _ in range(20 * count):
        kind = KINDS[int(rng.integers(len(KINDS)))]
        found = kind(lowering, rng)
        if found is not None:
            yield found
            made += 1
        if made == count:
            return


def _twin(lowering: Lowering) -> Lowering:
    """A copy with an SDFG of its own, whose nodes are those of the record."""
    sdfg = copy.deepcopy(lowering.sdfg)
    for mine, its in zip(_nodes(sdfg), _nodes(lowering.sdfg), strict=True):
        mine[0].guid = its[0].guid
    twin = replace(lowering, graphs=Graphs(sdfg))
    setattr(sdfg, ATTRIBUTE, twin)
    return twin


def _nodes(sdfg: SDFG) -> list[tuple[Any, SDFGState]]:
    return [(node, state) for state in sdfg.states() for node in state.nodes()]


def _any(rng: Generator, items: list[Any]) -> Any:
    return items[int(rng.integers(len(items)))] if items else None


def _by_one(rng: Generator) -> int:
    return int(rng.choice([-1, 1]))


def symbol(lowering: Lowering, rng: Generator) -> Mutant | None:
    """An end of a tile or of a part differs by one on one rank."""
    read = _read_symbols(lowering.sdfg)
    busy = [
        (name, rank)
        for name, values in lowering.symbols.items()
        if name in read
        for rank, value in enumerate(values)
        if value or name.endswith("_hi")
    ]
    chosen = _any(rng, busy)
    if chosen is None:
        return None
    name, rank = chosen
    values = list(lowering.symbols[name])
    values[rank] += _by_one(rng)
    what = f"{name} is {values[rank]} on rank {rank} and not {lowering.symbols[name][rank]}"
    return Mutant(what, replace(lowering, symbols={**lowering.symbols, name: values}))


def _read_symbols(sdfg: SDFG) -> set[str]:
    """Symbols that decide what the program does: others stand in memlets around maps alone."""
    found: set[str] = set()
    for node, state in _nodes(sdfg):
        if isinstance(node, nodes.MapEntry):
            found |= {str(s) for s in node.map.range.free_symbols}
            found |= {
                str(s)
                for e in state.edges()
                if state.entry_node(e.src) is not None and state.entry_node(e.dst) is not None
                for s in e.data.free_symbols
            }
        elif isinstance(node, nodes.LibraryNode) and not isinstance(
            node, (DistributedMemlet, FetchedMemlet)
        ):
            found |= {str(s) for e in state.all_edges(node) for s in e.data.free_symbols}
    for container in sdfg.arrays.values():
        found |= {str(s) for s in container.free_symbols}
    return found


def span(lowering: Lowering, rng: Generator) -> Mutant | None:
    """A range of a space begins or ends elsewhere, on all ranks."""
    known = {space.node for space in lowering.spaces}
    twin = _twin(lowering)
    entry = _any(
        rng,
        [n for n, s in _nodes(twin.sdfg) if isinstance(n, nodes.MapEntry) and n.guid in known],
    )
    if entry is None:
        return None
    ranges = list(entry.map.range.ranges)
    d, end, by = int(rng.integers(len(ranges))), int(rng.integers(2)), _by_one(rng)
    changed = list(ranges[d])
    changed[end] += by
    ranges[d] = tuple(changed)
    before = str(entry.map.range)
    entry.map.range = subsets.Range(ranges)
    return Mutant(f"{entry.map.label} runs {entry.map.range} and not {before}", twin)


def left_out(lowering: Lowering, rng: Generator) -> Mutant | None:
    """A redistribution is not made."""
    twin = _twin(lowering)
    found = _any(rng, [p for p in _nodes(twin.sdfg) if isinstance(p[0], DistributedMemlet)])
    if found is None:
        return None
    node, state = found
    if all(m.solution.cost.nbytes == 0 for m in lowering.memlets[node.index :][: node.plans]):
        return None  # each rank has it already, in the same storage
    state.remove_node(node)
    return Mutant(f"nothing makes the redistribution {node}", twin)


def _with_memlet(lowering: Lowering, index: int, **changes: Any) -> Lowering:
    memlets = list(lowering.memlets)
    memlets[index] = replace(memlets[index], **changes)
    return replace(lowering, memlets=tuple(memlets))


def layout(lowering: Lowering, rng: Generator) -> Mutant | None:
    """A plan, right by itself, brings one row less to a rank."""
    if not lowering.memlets:
        return None
    index = int(rng.integers(len(lowering.memlets)))
    move = lowering.memlets[index].solution.plan.redistribution
    side = "target" if rng.integers(2) else "source"
    of = getattr(move, side)
    full = [rank for rank in range(of.ranks) if of.volume(rank)]
    rank = _any(rng, full)
    if rank is None or not of.extents:
        return None
    boxes = list(of.boxes)
    d = int(rng.integers(len(of.extents)))
    lo, hi = boxes[rank][d]
    shrunk = (lo + 1, hi) if rng.integers(2) else (lo, hi - 1)
    boxes[rank] = (*boxes[rank][:d], shrunk, *boxes[rank][d + 1 :])
    if intervals.is_empty(boxes[rank]):
        boxes[rank] = intervals.empty(len(of.extents))
    try:
        other = Layout.of_boxes(of.mesh, of.extents, boxes, of.partial)
        wrong: Redistribution = replace(move, **{side: other})
        solution = select_plan(wrong, [Exchange()], lowering.machine)
        distspmd.verify(solution.plan)
    except distspmd.DistSPMDError:
        return None
    if _brings(wrong, move) == _brings(move, move):
        return None
    what = f"the plan of {lowering.memlets[index].data} is {wrong} and not {move}"
    return Mutant(what, _with_memlet(lowering, index, solution=solution))


def _brings(move: Redistribution, right: Redistribution) -> list[int]:
    """How many elements, or operands of them, each rank gets that it has not in its place."""
    operands: dict[int, list[intervals.Box]] = {}
    for rank, box in enumerate(move.source.boxes):
        operands.setdefault(move.source.operand(rank), []).append(box)
    found = []
    for rank, wanted in enumerate(move.target.boxes):
        own = right.source.box(rank) if move.in_place and rank < right.source.ranks else None
        parts = (
            [piece for box in boxes for piece in _lacking(intervals.intersect(wanted, box), own)]
            for boxes in operands.values()
        )
        found.append(sum(map(intervals.union_volume, parts)))
    return found


def _lacking(box: intervals.Box, own: intervals.Box | None) -> tuple[intervals.Box, ...]:
    return (box,) if own is None else intervals.subtract(box, own)


def other_plan(lowering: Lowering, rng: Generator) -> Mutant | None:
    """A redistribution carries out the plan of another one."""
    twin = _twin(lowering)
    found = [n for n, _ in _nodes(twin.sdfg) if isinstance(n, DistributedMemlet) and n.plans == 1]
    node = _any(rng, found)
    if node is None:
        return None
    mine = lowering.memlets[node.index]
    others = [
        n.index
        for n in found
        if lowering.memlets[n.index].layouts != mine.layouts
        and lowering.memlets[n.index].solution.plan.redistribution.dtype
        == mine.solution.plan.redistribution.dtype
    ]
    index = _any(rng, others)
    if index is None:
        return None
    what = f"{node} carries out {lowering.memlets[index].layouts}"
    node.index = index
    return Mutant(what, twin)


def storage(lowering: Lowering, rng: Generator) -> Mutant | None:
    """A tile begins elsewhere, or is stored in less."""
    twin = _twin(lowering)
    moved = {
        e.data.data
        for n, s in _nodes(twin.sdfg)
        if isinstance(n, DistributedMemlet)
        for e in s.all_edges(n)
        if e.data.data
    }
    names = [
        name
        for name, container in twin.sdfg.arrays.items()
        if container.transient and name in moved and np.prod([int(n) for n in container.shape]) > 1
    ]
    name = _any(rng, names)
    if name is None:
        return None
    container = twin.sdfg.arrays[name]
    d = int(rng.integers(len(container.shape)))
    if rng.integers(2) and int(container.shape[d]) > 1:
        shape = list(container.shape)
        shape[d] -= 1
        container.shape = tuple(shape)
        return Mutant(f"{name} is stored in {container.shape}", twin)
    offset = list(container.offset)
    offset[d] += _by_one(rng)
    container.offset = offset
    return Mutant(f"{name} begins at {[-o for o in offset]}", twin)


def window(lowering: Lowering, rng: Generator) -> Mutant | None:
    """A library node works on a window that lies elsewhere."""
    known = {space.node for space in lowering.spaces}
    twin = _twin(lowering)
    edges = [
        e
        for n, s in _nodes(twin.sdfg)
        if isinstance(n, nodes.LibraryNode) and n.guid in known
        for e in s.all_edges(n)
        if e.data.data and e.data.subset is not None
    ]
    edge = _any(rng, edges)
    if edge is None:
        return None
    ranges = list(edge.data.subset.ranges)
    d, by = int(rng.integers(len(ranges))), _by_one(rng)
    begin, end, step = ranges[d]
    ranges[d] = (begin + by, end + by, step)
    before = str(edge.data.subset)
    edge.data.subset = subsets.Range(ranges)
    return Mutant(f"{edge.data.data}[{edge.data.subset}] and not [{before}]", twin)


KINDS: tuple[Callable[[Lowering, Generator], Mutant | None], ...] = (
    symbol,
    symbol,
    span,
    left_out,
    layout,
    layout,
    other_plan,
    storage,
    window,
)
