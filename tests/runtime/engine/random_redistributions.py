"""Run under mpiexec: random redistributions on the C++ runtime, each compared with the simulator.

Usage: random_redistributions.py SEED CASES [shared | packets | nodes]

Shared: most tiles lie in memory that the ranks of the node share. Packets: none does, and the
packets between the ranks are tiny. Nodes: as shared, but only three ranks at a time share memory.
"""

import random
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count

import numpy as np
from mpi4py import MPI

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.reductions import REDUCTIONS
from distspmd.plans.collectives import StepKind
from distspmd.plans.encoding import DTYPES, Storage
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.chunk import chunk
from distspmd.plans.rewrites.split_reductions import split_reductions
from distspmd.plans.simulator import simulate
from distspmd.plans.solver import Refusal
from distspmd.plans.verifier import verify
from distspmd.runtime.engine.engine import Engine
from distspmd.runtime.measure.hosts import NEVER
from distspmd.runtime.shared_memory import windows as shared_memory
from distspmd.runtime.shared_memory.windows import SharedNode
from distspmd.solvers import SOLVERS


def main(seed, cases, how=""):
    tiny = replace(HEURISTICS, least_packet_bytes=32, most_packet_bytes=32)
    shared_memory.HEURISTICS = tiny
    comm = MPI.COMM_WORLD
    rng = random.Random(seed)
    near = comm.Split(comm.rank // 3, comm.rank) if how == "nodes" else None
    node, copies, packets = SharedNode(comm, near), 0, 0
    tried = []
    while len(tried) < cases:
        tried.extend(_cases(rng, comm.size))
    for start in range(0, len(tried), 16):
        batch = tried[start : start + 16]
        if how in ("shared", "nodes"):
            _arena[:] = [None]
            _arena[:] = [node.allocate((1 << 20,), np.dtype(np.uint8))]
        mine = [case.tiles_on(comm.rank) for case in batch]
        plans = [
            (f"case {start + i}", case.plan, tiles.storages)
            for i, (case, tiles) in enumerate(zip(batch, mine, strict=True))
        ]
        with Engine(comm, plans) as engine:
            if how:
                machine = Machine(
                    single_copy_bytes=NEVER if how == "packets" else 0, run_bytes=NEVER
                )
                engine.share(node, [(tiles.source, tiles.target) for tiles in mine], machine)
                copies, packets = copies + engine.single_copies, packets + engine.copies_in_out
            for number, case, tiles in zip(count(), batch, mine, strict=False):
                for _ in range(2 if not tiles.aliased else 1):
                    tiles.reset()
                    engine(number, tiles.source, tiles.target)
                    tiles.check(case, comm.rank)
                found = engine.statistics(number)
                times = 1 if tiles.aliased else 2
                assert found.calls == times
                assert found.received_bytes == times * case.plan.received(comm.rank), str(case.plan)
    kinds = Counter("+".join(sorted({str(s.kind) for s in case.plan.steps})) for case in tried)
    if comm.rank == 0:
        print(f"{len(tried)} plans agree on {comm.size} ranks: {dict(kinds)}")
        print(f"{copies} single copies, {packets} by copy-in/copy-out")


_IN_AN_ORDER_OF_MPI = (StepKind.REDUCE, StepKind.ALL_REDUCE)


class Case:
    def __init__(self, plan, seed, aliased):
        self.plan = plan
        self.seed = seed
        self.aliased = aliased
        numbers = np.random.default_rng(seed)
        move = plan.redistribution
        exact = any(step.kind in _IN_AN_ORDER_OF_MPI for step in plan.steps)
        operands = {}
        for rank in range(move.source.ranks):
            operand = move.source.operand(rank)
            operands.setdefault(operand, _values(numbers, move, exact))
        self.sources = [
            operands[move.source.operand(rank)][intervals.slices(move.source.box(rank))].copy()
            for rank in range(move.source.ranks)
        ]
        before = _values(numbers, move, exact)
        self.before = [
            before[intervals.slices(move.target.box(r))].copy() for r in range(move.target.ranks)
        ]
        if aliased:
            self._share()
        with np.errstate(all="ignore"):
            self.after = simulate(plan, self.sources, self.before)

    def _share(self):
        """What the target held is the source, where both are one memory."""
        move = self.plan.redistribution
        for rank in range(min(move.source.ranks, move.target.ranks)):
            common = intervals.intersect(move.source.box(rank), move.target.box(rank))
            if intervals.is_empty(common):
                continue
            into = intervals.shift(common, [lo for lo, _ in move.target.box(rank)])
            out = intervals.shift(common, [lo for lo, _ in move.source.box(rank)])
            self.before[rank][intervals.slices(into)] = self.sources[rank][intervals.slices(out)]

    def tiles_on(self, rank):
        return Tiles(self, rank)


class Tiles:
    """The tiles of one rank, each in a storage that may be larger."""

    def __init__(self, case, rank):
        rng = random.Random(case.seed * 1000 + rank)
        move = case.plan.redistribution
        boxes = [move.source.box(rank), move.target.box(rank)]
        hull = tuple(
            (min(a_lo, b_lo), max(a_hi, b_hi))
            for (a_lo, a_hi), (b_lo, b_hi) in zip(*boxes, strict=True)
        )
        empty = any(map(intervals.is_empty, boxes))
        self.aliased = case.aliased
        self.rank, self.case = rank, case
        if case.aliased and not empty:
            self.memory = [_storage(rng, hull, move.dtype)] * 2
        else:
            self.memory = [_storage(rng, box, move.dtype) for box in boxes]
        self.storages = [
            Storage(tuple(origin), tuple(s // move.dtype.itemsize for s in memory.strides))
            for memory, origin in self.memory
        ]
        self.source, self.target = (
            memory[intervals.slices(intervals.shift(box, origin))]
            if not intervals.is_empty(box)
            else None
            for box, (memory, origin) in zip(boxes, self.memory, strict=True)
        )

    def reset(self):
        for memory, _ in self.memory:
            memory[...] = _guard(memory.dtype)
        if self.target is not None:
            self.target[...] = self.case.before[self.rank]
        if self.source is not None:
            self.source[...] = self.case.sources[self.rank]

    def check(self, case, rank):
        if self.target is None:
            return
        wanted = case.after[rank]
        if not np.array_equal(self.target, wanted, equal_nan=wanted.dtype.kind in "fc"):
            raise AssertionError(f"rank {rank}: {case.plan}\n{self.target}\nis not\n{wanted}")
        if self.memory[0] is not self.memory[1]:
            self.target[...] = _guard(wanted.dtype)
            assert (self.memory[1][0] == _guard(wanted.dtype)).all(), f"{case.plan} writes outside"
            source = case.sources[rank] if rank < len(case.sources) else None
            if self.source is not None:
                assert np.array_equal(self.source, source, equal_nan=wanted.dtype.kind in "fc")


def _guard(dtype):
    return np.ones((), dtype) if dtype.kind == "b" else np.full((), 77, dtype)


def _storage(rng, box, dtype):
    """Memory for a box and some more around it, and the global index of its first element."""
    pads = [(rng.randint(0, 2), rng.randint(0, 2)) if rng.random() < 0.4 else (0, 0) for _ in box]
    shape = [
        max(hi - lo, 0) + before + after
        for (lo, hi), (before, after) in zip(box, pads, strict=True)
    ]
    order = rng.choice("CCCF")
    return _zeros(rng, shape, dtype, order), [
        lo - before for (lo, _), (before, _) in zip(box, pads, strict=True)
    ]


_arena = []  # what is left of the memory that is shared


def _zeros(rng, shape, dtype, order):
    nbytes = int(np.prod(shape)) * dtype.itemsize
    if not _arena or rng.random() < 0.05:
        return np.zeros(shape, dtype, order=order)
    (left,) = _arena
    taken, _arena[:] = left[:nbytes], [left[-(-nbytes // 64) * 64 :]]
    taken[:] = 0
    return taken.view(dtype).reshape(shape, order=order)


def _values(numbers, move, exact):
    shape, dtype = move.source.extents, move.dtype
    if dtype.kind == "b":
        return numbers.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "fc" and not exact:
        values = numbers.normal(size=shape)
        if dtype.kind == "c":
            return np.round(values * 4 + 1j * numbers.normal(size=shape) * 4).astype(dtype)
        values[numbers.random(shape) < 0.05] = np.nan
        return values.astype(dtype)
    return numbers.integers(0, 5, shape).astype(dtype)


def _cases(rng, ranks):
    """All solvers' plans of a random redistribution, some of them in rounds."""
    kind = rng.choice(
        ["layouts", "layouts", "scatter", "gather", "partial", "partial", "gathered", "halo"]
    )
    move = _redistribution(rng, ranks, kind)
    answers = [solver.plan(move) for solver in SOLVERS]
    for plan in [*_collectives(move), *(p for p in answers if not isinstance(p, Refusal))]:
        if rng.random() < 0.4:
            with suppress(PlanError):  # fewer elements than a rank receives operands of one
                plan = chunk(plan, rng.randint(1, 12))
        if rng.random() < 0.5:
            plan = split_reductions(plan, least=1)
        verify(plan)
        can_alias = move.source.splits == move.target.splits or kind in ("halo", "gathered")
        aliased = can_alias and not move.accumulate and rng.random() < 0.5
        yield Case(plan, rng.randrange(1 << 30), aliased)


def _collectives(move):
    """One call among all ranks of each group, where the layouts allow it."""
    source, target, mesh = move.source, move.target, move.source.mesh
    if target.mesh != mesh or None in (source.splits, target.splits):
        return
    kept = {axis for split in target.splits for axis in split.axes}
    if source.partial:
        over = set(source.partial.axes or ())
        kind = StepKind.ALL_REDUCE
        fits = source.partial.axes is not None and source.boxes == target.boxes
    else:
        over = {axis for split in source.splits for axis in split.axes} - kept
        kind = StepKind.ALL_GATHER
        fits = all(map(intervals.contains, target.boxes, source.boxes))
    groups = {}
    for rank in mesh:
        at = mesh.coordinates(rank)
        groups.setdefault(tuple(at[axis] for axis in mesh.names if axis not in over), []).append(
            rank
        )
    messages = tuple(
        Message(sender, receiver, source.box(sender))
        for group in groups.values()
        for receiver in group
        for sender in group
        if not intervals.is_empty(source.box(sender))
    )
    step = Step(
        kind, 0, 1, tuple(map(tuple, groups.values())), messages, move.reduction, move.accumulate
    )
    plan = Plan(move, "collectives", (step,))
    with suppress(PlanError):
        verify(plan)
        if fits:
            yield plan


def _redistribution(rng, ranks, kind):
    extents = [rng.randint(1, 7) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.03:
        extents[0] = 0
    dtype = rng.choice([*DTYPES, np.dtype("float64"), np.dtype("float32")])
    source, target = _layout(rng, ranks, extents), _layout(rng, ranks, extents)
    accumulate = False
    if kind == "scatter":
        source = Layout.root(extents)
    elif kind == "gather":
        target = Layout.root(extents)
    elif kind == "partial":
        names = [name for name, known in REDUCTIONS.items() if known.supports(dtype)]
        source = _partial(rng, source, rng.choice(names))
        accumulate = rng.random() < 0.4
        target = rng.choice([target, Layout.root(extents), replace(source, partial=None)])
    elif kind == "gathered" and source.splits is not None:
        splits = [
            replace(split, axes=()) if rng.random() < 0.7 else split for split in source.splits
        ]
        target = replace(source, splits=tuple(splits))
    elif kind == "halo":
        target = _halo(rng, source)
        dtype = rng.choice([dtype, np.dtype("float16"), np.dtype("V3")])
    return Redistribution(source, target, dtype, accumulate)


def _mesh(rng, ranks):
    sizes = {}
    left = ranks
    for name in rng.sample("xyz", rng.randint(1, 3)):
        sizes[name] = rng.randint(1, left)
        left //= sizes[name]
    return Mesh(**sizes)


def _layout(rng, ranks, extents):
    mesh = _mesh(rng, ranks)
    if rng.random() < 0.2:
        bounds = [[sorted(rng.choices(range(e + 1), k=2)) for e in extents] for _ in mesh]
        boxes = tuple(tuple((lo, hi) for lo, hi in box) for box in bounds)
        return Layout(mesh, tuple(extents), explicit=boxes)
    return Layout(mesh, tuple(extents), splits=_splits(rng, mesh.names, extents))


def _splits(rng, names, extents):
    left = rng.sample(names, len(names))
    splits = []
    for extent in extents:
        taken = rng.randint(0, len(left))
        splits.append(Split(extent, tuple(left[:taken])))
        left = left[taken:]
    return tuple(splits)


def _partial(rng, layout, reduction):
    """A layout of operands: over some axes, and split by the others; or over all ranks."""
    mesh, extents = layout.mesh, layout.extents
    if layout.splits is None or rng.random() < 0.2:
        return replace(layout, partial=Partial(reduction))
    axes = tuple(rng.sample(mesh.names, rng.randint(0, len(mesh.names))))
    splits = _splits(rng, [name for name in mesh.names if name not in axes], extents)
    return Layout(mesh, extents, splits=splits, partial=Partial(reduction, axes))


def _halo(rng, source):
    width = rng.randint(1, 2)
    boxes = tuple(
        box
        if intervals.is_empty(box)
        else tuple(
            (max(0, lo - width), min(e, hi + width))
            for (lo, hi), e in zip(box, source.extents, strict=True)
        )
        for box in source.boxes
    )
    return Layout.of_boxes(source.mesh, source.extents, boxes)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
