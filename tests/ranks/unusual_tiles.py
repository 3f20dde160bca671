"""Tiles as NumPy makes them: broadcast, reversed, of other bytes, records, with one place for two.

Each is moved as plain slicing moves it, or all ranks get an ArgumentError with a sentence.
"""

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError
from distspmd.layouts import Layout, Mesh
from distspmd.plans.simulator import tiles_of

comm = MPI.COMM_WORLD
mesh = Mesh(x=comm.size)
THIRD = -(-4 // comm.size)
ROWS = Layout.parse(f"[{6 // comm.size}{{x}}6, 4]", mesh)
COLUMNS = Layout.parse(f"[6, {THIRD}{{x}}4]", mesh)
LAYOUTS = [ROWS, COLUMNS, Layout.root((6, 4)), Layout.parse("[6, 4]", mesh)]
rng = np.random.default_rng(0)
whole = rng.integers(-99, 99, (6, 4))


def mine(layout, array):
    return tiles_of(layout, array)[comm.rank] if comm.rank < layout.ranks else None


def check(found, layout, array):
    wanted = mine(layout, array)
    if wanted is not None and wanted.size:
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, wanted)


def move(tile, source, target, **options):
    return distspmd.redistribute(comm, tile, source, target, **options)


# Stride 0: along rows, along columns, along both, and along a dimension of one element.
for array in (
    np.broadcast_to(whole[0], (6, 4)),
    np.broadcast_to(whole[:, :1], (6, 4)),
    np.broadcast_to(np.float32(2.5), (6, 4)),
):
    for source in LAYOUTS:
        for target in LAYOUTS:
            box = source.box(comm.rank) if comm.rank < source.ranks else None
            tile = None if box is None else array[tuple(slice(lo, hi) for lo, hi in box)]
            if tile is not None and tile.size == 0:
                tile = None
            assert tile is None or 0 in tile.strides
            check(move(tile, source, target, dtype=array.dtype), target, array)

# Views of one element, reversed or broadcast, of each number of dimensions.
one = Layout.root((1,) * 3)
everywhere = Layout.of_boxes(mesh, (1, 1, 1), [((0, 1),) * 3] * comm.size)
base = np.arange(24.0).reshape(2, 3, 4)
for view in (
    base[::-1, ::-1, ::-1][:1, :1, :1],
    base[:1, ::-1, :1][:, 1:2],
    np.broadcast_to(7.0, (1, 1, 1)),
    np.lib.stride_tricks.as_strided(base, (1, 1, 1), (0, -8, 3)),
):
    tile = view if comm.rank == 0 else None
    found = move(tile, one, everywhere, dtype=float)
    assert found.item() == view.item()
    held = np.zeros((3, 1, 4))[:, ::-1, ::-1][1:2, :, 2:3]
    assert move(tile, one, everywhere, out=held, dtype=float).item() == view.item()

# Overlapping windows, reversed and transposed arrays, a read-only one, one at an odd address.
windows = np.lib.stride_tricks.sliding_window_view(np.arange(9), 4)
locked = whole.copy()
locked.flags.writeable = False
odd = np.frombuffer(b"x" + whole.tobytes(), np.int64, offset=1).reshape(6, 4)
assert not odd.flags.aligned
for array in (windows, whole[::-1, ::-1], np.asfortranarray(whole), locked, odd):
    source = Layout.root((6, 4))
    check(move(array if comm.rank == 0 else None, source, ROWS, dtype=np.int64), ROWS, array)

# Bytes in another order, records, bytes, dates, half and long floats: whatever has no objects.
for dtype in (
    *(">f8", "<i2", ">c16", "V1", "V3", "S5", "U2", "M8[s]", "f2", "g", "G"),
    [("a", "i4"), ("b", "f8", (2,))],
    np.dtype([("a", ">i2"), ("b", "S3")], align=True),
):
    kind = np.dtype(dtype)
    array = np.frombuffer(rng.bytes(24 * kind.itemsize), np.uint8)
    array = (array % 64).tobytes()
    array = np.frombuffer(array, kind).reshape(6, 4)
    if kind.kind in "fc":
        array = whole.astype(kind)
    found = move(mine(ROWS, array), ROWS, COLUMNS, dtype=kind)
    wanted = mine(COLUMNS, array)
    if wanted.size:
        assert found.dtype == kind
        assert np.all(found == wanted), kind  # bytes between fields need not arrive

# Nothing to move at all, and tiles of no element of whatever shape.
nothing = Layout.parse(f"[0, {THIRD}{{x}}4]", mesh)
assert move(np.zeros((0, 9)), nothing, Layout.parse("[0, 4]", mesh)) is None

# A tile and an out in the same memory: where elements keep their place, and where they do not.
buffer = np.zeros((9, 4), np.int64)
full = Layout.of_boxes(mesh, (6, 4), [((0, 6), (0, 4))] * comm.size)
for first, order in ((0, 1), (2, 1), (0, -1)):
    (lo, hi), _ = ROWS.box(comm.rank)
    out = buffer[first : first + 6]
    tile = buffer[lo:hi] if order == 1 else buffer[lo:hi][::-1]
    tile[...] = whole[lo:hi]
    check(move(tile if hi > lo else None, ROWS, full, out=out, dtype=np.int64), full, whole)
partial = Layout.parse("[6, 4] + partial(sum){x}", mesh)
same = whole * (comm.rank + 1)
move(same, partial, full, out=same)
np.testing.assert_array_equal(same, whole * (comm.size * (comm.size + 1) // 2))


# What is refused, with one sentence on all ranks, which go on.
def refused(text, tile, source=ROWS, target=COLUMNS, **options):
    with pytest.raises(ArgumentError, match=text):
        move(tile, source, target, **options)
    comm.Barrier()


tile, wanted = mine(ROWS, whole), mine(COLUMNS, whole)
refused("objects of one process", tile.astype(object))
refused("a MaskedArray; pass a NumPy array without a mask", np.ma.masked_array(tile))
refused("is no type of NumPy", tile, dtype="no such type")
refused("is no type of NumPy", tile, dtype=3.5)
refused("is a str; a layout is a distspmd.layouts.Layout", tile, target="[6, 4]")
refused("is a list; a layout is a distspmd.layouts.Layout", tile, source=[3, 4])
refused("elements without a byte", np.zeros(tile.shape, "V0"))
refused("is a int64; pass a NumPy array", np.int64(3), dtype=int)
refused("cannot be written in place", tile, out=np.zeros(wanted.shape, np.int64)[::-1, ::-1])
if comm.size == 1:
    refused("cannot be written in place", tile, out=np.broadcast_to(0, wanted.shape))
    fields = np.lib.stride_tricks.as_strided(np.zeros(40, np.int64), wanted.shape, (8, 8))
    refused("has elements in one place", tile, out=fields)
refused(
    "in another order than this machine's",
    whole.astype(">f8"),
    source=partial,
    target=full,
)
check(move(tile, ROWS, COLUMNS), COLUMNS, whole)
comm.Barrier()
if comm.rank == 0:
    print("all arrays were taken or refused")
