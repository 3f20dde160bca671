"""Redistributions whose targets are partial, called twice, beside NumPy's own reductions."""

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.layouts import Layout, Mesh, intervals
from distspmd.layouts.reductions import find_reduction

comm = MPI.COMM_WORLD
MESH = Mesh(x=2, y=3)
CASES = [
    ("[7, 5] + partial(sum){x,y}", "[7, 5] + partial(sum){x}", "float64"),
    ("[7, 5] + partial(sum){x,y}", "[3{y}7, 5] + partial(sum){x}", "float32"),
    ("[4{x}7, 5] + partial(prod){y}", "[7, 3{x}5] + partial(prod){y}", "int64"),
    ("[4{x}7, 2{y}5]", "[7, 5] + partial(sum){y}", "complex128"),
    ("[7, 5]", "[4{x}7, 5] + partial(min){y}", "int32"),
    ("[7, 5] + partial(max){x}", "[7, 5] + partial(max){y}", "float64"),
    ("boxes[7, 5]{0: 0:3, 0:5; 4: 3:7, 0:5}", "[7, 2{y}5] + partial(sum){x}", "int16"),
    ("[4{x}7/2, 5] + partial(sum){y}", "[7, 5] + partial(sum){y}", "float64"),
    ("[7, 5]", "[4{x}7/2, 5] + partial(max){y}", "float64"),
]


def own_part(layout, array):
    if layout.is_block_cyclic:
        root = Layout.root(array.shape)
        plain = Layout(layout.mesh, layout.extents, splits=layout.splits)
        return distspmd.redistribute(
            comm, array if comm.rank == 0 else None, root, plain, dtype=array.dtype
        )
    return array[intervals.slices(layout.box(comm.rank))].copy()


def value_of(layout, tile):
    """The value on all ranks, by a redistribution of operands to values."""
    return distspmd.redistribute(comm, tile, layout, Layout.parse("[7, 5]", MESH), dtype=tile.dtype)


for source, target, dtype in CASES:
    source, target = Layout.parse(source, MESH), Layout.parse(target, MESH)
    reduction = find_reduction(target.partial.reduction)
    numbers = np.random.default_rng(0)
    operands = [numbers.integers(1, 4, (7, 5)).astype(dtype) for _ in range(6)]
    ids = source.operands.tolist()
    for _ in range(3):
        mine = own_part(source, operands[ids[comm.rank]])
        if source.is_block_cyclic:
            for k in range(6):
                part = own_part(source, operands[k])
                mine = part if ids[comm.rank] == k else mine
        shape = target.shape(comm.rank)
        out = np.full(shape, 77, dtype)
        found = distspmd.redistribute(comm, mine, source, target, out=out)
        assert found is out
        wanted = operands[0]
        for k in sorted({*ids} - {0}):
            wanted = reduction.ufunc(wanted, operands[k]).astype(dtype)
        np.testing.assert_array_equal(
            value_of(target, out), wanted, err_msg=f"{source} -> {target}"
        )
        fresh = distspmd.redistribute(comm, mine, source, target)
        np.testing.assert_array_equal(fresh, out)

kept = distspmd.redistribute(
    comm,
    np.full(4, 10.0**comm.rank),
    Layout.parse("[4] + partial(sum){x,y}", MESH),
    Layout.parse("[4] + partial(sum){x}", MESH),
)
np.testing.assert_array_equal(kept, sum(10.0 ** (comm.rank // 3 * 3 + y) for y in range(3)))
with pytest.raises(DistSPMDError, match="operands of sum are none of max"):
    distspmd.redistribute(
        comm,
        np.ones(4),
        Layout.parse("[4] + partial(sum){x}", MESH),
        Layout.parse("[4] + partial(max){x}", MESH),
    )
if comm.rank == 0:
    print("operands arrived")
