"""More than 2^31 elements in the memory of the emulated device, by kernels and from rank to rank.

On one rank a program computes on all of them; on two, the last rows of the first rank's tile, which
begin behind 2^31 elements, go to the second.
"""

import gc

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh

COLUMNS, MORE = 1024, 3
FIRST = 2**31 // COLUMNS
ROWS = FIRST + MORE
comm = MPI.COMM_WORLD


def values(first: int, last: int) -> np.ndarray:
    """Some of the rows."""
    rows = (np.arange(first, last) % 53).astype(np.int8)
    return np.add.outer(rows, (np.arange(COLUMNS) % 59).astype(np.int8))


def whole() -> distspmd.runtime.DeviceArray:
    found = distspmd.runtime.DeviceArray((ROWS, COLUMNS), np.int8, "emulated")
    for first in range(0, ROWS, 2**17):
        last = min(first + 2**17, ROWS)
        found[first:last].write(values(first, last))
    return found


def computed() -> None:
    """Elements, and the sum of all."""

    def changed(x):
        return x + np.int8(3), np.sum(x.astype(np.int64))

    def lowered() -> distspmd.lowering.Lowering:
        given = np.broadcast_to(np.int8(0), (ROWS, COLUMNS))
        return distspmd.lower(distspmd.frontend.numpy_program(changed, x=given), {})

    with distspmd.compile(lowered, comm, device="emulated") as program:
        x = whole()
        more, total = program(x=x)
        remarks = {remark for _, place, remark in program.device.spaces if place == "device"}
        assert not any("DaCe" in remark for remark in remarks), remarks
    wanted = 0
    for first in range(0, ROWS, 2**17):
        last = min(first + 2**17, ROWS)
        part = values(first, last)
        assert np.array_equal(more[first:last].numpy(), part + np.int8(3)), first
        wanted += part.sum(dtype=np.int64)
    assert int(total.numpy().reshape(())) == wanted
    print("kernels are right")


def moved() -> None:
    source = Layout.root((ROWS, COLUMNS))
    ends = (0, FIRST, ROWS)
    boxes = [((ends[r], ends[r + 1]), (0, COLUMNS)) for r in range(2)]
    target = Layout.of_boxes(Mesh(p=2), (ROWS, COLUMNS), boxes)
    tile = whole() if comm.rank == 0 else None
    out = distspmd.runtime.DeviceArray(target.shape(comm.rank), np.int8, "emulated")
    distspmd.redistribute(comm, tile, source, target, out=out)
    begin = FIRST * comm.rank
    for first in {0, max(0, out.shape[0] - 5)}:
        last = min(first + 5, out.shape[0])
        assert np.array_equal(out[first:last].numpy(), values(begin + first, begin + last))
    comm.Barrier()
    if comm.rank == 0:
        print("what moved is right")


(computed if comm.size == 1 else moved)()
gc.collect()
