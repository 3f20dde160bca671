"""All ranks redistribute random arrays through `distspmd.redistribute` and check every element.

Usage: run_redistributions.py SEED COUNT

The oracle is one whole array on each rank, drawn from the seed: what a box of the target must hold
is cut out of it. Nothing of the plans, the simulator or the runtime has a part in it.
"""

from __future__ import annotations

import math
import sys
import time
from random import Random
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.layouts import Layout, Mesh, Partial, Split

Array = np.ndarray[Any, Any]
DTYPES = ("float64", "float32", "int64", "int32", "int16", "uint8", "complex128", "bool", "float16")
PARTIAL = tuple(map(np.dtype, ("float64", "float32", "int64", "int32", "int16")))
UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def main(seed: int, count: int) -> None:
    comm = MPI.COMM_WORLD
    done = refused = 0
    start = time.monotonic()
    for number in range(seed, seed + count):
        case = Case(number, comm.size)
        try:
            case.run(comm)
            done += 1
        except DistSPMDError as error:
            refused += 1
            if comm.rank == 0 and "operand" not in str(error):
                print(f"seed {number}: {case}: {error}", flush=True)
    if comm.rank == 0:
        rate = count / (time.monotonic() - start)
        print(f"{done} right, {refused} refused, {rate:.0f}/s on {comm.size} ranks", flush=True)


class Case:
    """One redistribution, the same on all ranks but for how each holds its tiles."""

    def __init__(self, seed: int, ranks: int) -> None:
        self.seed = seed
        draw = Random(seed)
        self.draw = draw
        lengths = (1, 2, 3, 5, 7, 8, 12, 13)
        self.extents = tuple(draw.choice(lengths) for _ in range(draw.randint(1, 4)))
        if draw.random() < 0.02:
            self.extents = (0, *self.extents[1:])
        self.dtype = np.dtype(draw.choice(DTYPES))
        self.source, self.target = self._layout(ranks), self._layout(ranks)
        self.reduction = ""
        if draw.random() < 0.25 and self.dtype in PARTIAL and self.source.splits is not None:
            self._make_partial()
        self.times = draw.choice((1, 1, 2, 3))
        cyclic = self.source.is_block_cyclic or self.target.is_block_cyclic
        self.memory = None if cyclic else draw.choice((None, None, None, 1 << 16))

    def __str__(self) -> str:
        return f"{self.dtype} {self.source} -> {self.target}"

    def _mesh(self, ranks: int) -> Mesh:
        left, sizes = self.draw.randint(1, ranks), {}
        for name in self.draw.sample("wxyz", self.draw.randint(1, 3)):
            sizes[name] = self.draw.randint(1, left)
            left //= sizes[name]
        return Mesh(**sizes)

    def _layout(self, ranks: int) -> Layout:
        draw, mesh = self.draw, self._mesh(ranks)
        if draw.random() < 0.15:
            return Layout.root(self.extents)
        if draw.random() < 0.2:
            boxes = tuple(
                tuple(tuple(sorted(draw.choices(range(e + 1), k=2))) for e in self.extents)
                for _ in mesh
            )
            return Layout(mesh, self.extents, explicit=boxes)
        left = draw.sample(mesh.names, len(mesh.names))
        splits = []
        for extent in self.extents:
            taken = draw.randint(0, len(left))
            axes, left = left[:taken], left[taken:]
            block = halo = 0
            if axes and extent and draw.random() < 0.15:
                block = draw.randint(1, max(1, extent // 2))
            elif axes and draw.random() < 0.1:
                halo = draw.randint(1, 2)
            splits.append(Split(extent, tuple(axes), halo, block))
        return Layout(mesh, self.extents, splits=tuple(splits))

    def _make_partial(self) -> None:
        taken = {axis for split in self.source.splits or () for axis in split.axes}
        free = [name for name in self.source.mesh.names if name not in taken]
        blocks = any(layout.is_block_cyclic for layout in (self.source, self.target))
        if free and not blocks:
            self.reduction = self.draw.choice(sorted(UFUNCS))
            partial = Partial(self.reduction, tuple(free))
            self.source = Layout(
                self.source.mesh, self.extents, splits=self.source.splits, partial=partial
            )

    def whole(self, operand: int) -> Array:
        rng = np.random.default_rng([self.seed, operand])
        found: Array = rng.integers(0, 5, self.extents).astype(self.dtype)
        return found

    def wanted(self) -> tuple[Array, Array]:
        """The array after all operands are reduced, and which elements some rank holds."""
        masks: dict[int, Array] = {}
        for rank in range(self.source.ranks):
            mask = masks.setdefault(self._operand(rank), np.zeros(self.extents, bool))
            mask[indices(self.source, rank)] = True
        value, held = np.zeros(self.extents, self.dtype), np.zeros(self.extents, bool)
        for operand, mask in masks.items():
            one = self.whole(operand)
            combined = UFUNCS[self.reduction](value, one) if self.reduction else one
            value = np.where(mask, np.where(held, combined, one), value).astype(self.dtype)
            held |= mask
        return value, held

    def run(self, comm: Any) -> None:
        value, held = self.wanted()
        mine = Random(self.seed * 1009 + comm.rank)
        tile = self._tile(mine, comm, self.source, self._operand(comm.rank))
        target_shape = self.target.shape(comm.rank) if comm.rank < self.target.ranks else (0,)
        out = None
        if mine.random() < 0.5 and 0 not in target_shape:
            out = storage(mine, target_shape, self.dtype)
        before = np.full(self.extents, out is not None, self.dtype)
        for _ in range(self.times):
            if out is not None:
                out[...] = np.ones((), self.dtype)
            found = distspmd.redistribute(
                comm,
                tile,
                self.source,
                self.target,
                out=out,
                dtype=self.dtype,
                max_memory=self.memory,
            )
            wanted = np.where(held, value, before).astype(self.dtype)
            self._check(comm, found, wanted)

    def _operand(self, rank: int) -> int:
        return self.source.operand(rank) if self.reduction and rank < self.source.ranks else 0

    def _tile(self, mine: Random, comm: Any, layout: Layout, operand: int) -> Array | None:
        if comm.rank >= layout.ranks or 0 in layout.shape(comm.rank):
            return None
        values = self.whole(operand)[indices(layout, comm.rank)]
        tile = storage(mine, values.shape, self.dtype)
        tile[...] = values
        if mine.random() < 0.1:  # the same elements, backwards in memory
            tile = np.flip(np.ascontiguousarray(np.flip(tile)))
        if mine.random() < 0.1:
            tile.flags.writeable = False
        return tile

    def _check(self, comm: Any, found: Array | None, wanted: Array) -> None:
        right = True
        if comm.rank < self.target.ranks and 0 not in self.target.shape(comm.rank):
            mine = wanted[indices(self.target, comm.rank)]
            right = found is not None and np.array_equal(found, mine)
        if not comm.allreduce(right, op=MPI.LAND):
            print(f"WRONG: seed {self.seed} on rank {comm.rank} of {comm.size}: {self}", flush=True)
            if not right:
                print(f"{found}\nis not\n{wanted[indices(self.target, comm.rank)]}", flush=True)
            comm.Abort(3)


def indices(layout: Layout, rank: int) -> Any:
    """What picks the elements of a rank out of the whole array."""
    if not layout.is_block_cyclic:
        return tuple(slice(lo, hi) for lo, hi in layout.box(rank))
    at = layout.mesh.coordinates(rank)
    assert layout.splits is not None
    return np.ix_(*(_held(split, layout.mesh, at) for split in layout.splits))


def _held(split: Split, mesh: Mesh, at: Any) -> list[int]:
    """Indices of a dimension that a rank holds: blocks in turn (ScaLAPACK's numbering)."""
    parts = math.prod(mesh[axis] for axis in split.axes)
    part = 0
    for axis in reversed(split.axes):
        part = part * mesh[axis] + at[axis]
    if split.block:
        return [i for i in range(split.extent) if i // split.block % parts == part]
    tile = -(-split.extent // parts)
    lo, hi = min(part * tile, split.extent), min((part + 1) * tile, split.extent)
    halo = split.halo if lo < hi else 0
    return list(range(max(0, lo - halo), min(split.extent, hi + halo)))


def storage(mine: Random, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory of a shape: contiguous, by columns, or a window of something larger."""
    how = mine.randrange(4)
    if how == 0:
        return np.zeros(shape, dtype, order="F")
    if how == 1:
        larger = np.zeros([n + 3 for n in shape], dtype)
        return larger[tuple(slice(1, n + 1) for n in shape)]
    return np.zeros(shape, dtype)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
