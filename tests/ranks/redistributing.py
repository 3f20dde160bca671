"""NumPy tiles from layout to layout on the ranks of the launch, against plain slicing."""

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, NoSolver
from distspmd.layouts import Layout, Mesh
from distspmd.plans.machine import Machine
from distspmd.plans.simulator import tiles_of
from distspmd.runtime.redistribution.redistribute import known_of
from distspmd.runtime.shared_memory import windows as shared_memory

comm = MPI.COMM_WORLD
two, four = Mesh(x=2), Mesh(x=2, y=2)
shape = (7, 10)
array = np.random.default_rng(0).random(shape)

layouts = [
    Layout.parse("[4{x}7, 10]", two),
    Layout.parse("[7, 5{x}10]", two),
    Layout.parse("[7, 10]", two),
    Layout.root(shape),
    Layout.parse("boxes[7, 10]{0: 0:5, 0:10; 1: 3:7, 0:10}", two),
]
if comm.size >= 4:
    layouts += [
        Layout.parse("[4{x}7, 5{y}10]", four),
        Layout.parse("[4{y}7, 5{x}10]", four),
        Layout.parse("[2{x,y}7, 10]", four),
        Layout.parse("[2{y,x}7, 10]", four),
    ]


def mine(layout: Layout, whole: np.ndarray) -> np.ndarray | None:
    return tiles_of(layout, whole)[comm.rank] if comm.rank < layout.ranks else None


def same(tile: np.ndarray | None, layout: Layout, whole: np.ndarray) -> None:
    expected = mine(layout, whole)
    if expected is not None and expected.size:
        np.testing.assert_array_equal(tile, expected)


for dtype in ("float64", "int16", "complex64", "V5"):
    whole = (
        np.frombuffer((array * 1e3).astype("i8").tobytes()[: 70 * 5], "V5").reshape(shape)
        if (dtype == "V5")
        else (array * 100).astype(dtype)
    )
    for source in layouts:
        for target in layouts:
            for _ in range(2):
                tile = distspmd.redistribute(comm, mine(source, whole), source, target, dtype=dtype)
                same(tile, target, whole)

source, target = layouts[0], layouts[1]
tile = mine(source, array)
if tile is not None:
    wide = np.zeros((2 * tile.shape[0], 3 * tile.shape[1]))
    for strided in (np.asfortranarray(tile), wide[::2, ::3], wide[::-2, ::3]):
        strided[...] = tile
        same(distspmd.redistribute(comm, strided, source, target), target, array)
else:
    for _ in range(3):
        distspmd.redistribute(comm, None, source, target, dtype=float)

out = np.full(tuple(hi - lo for lo, hi in target.box(comm.rank)), -1.0)
given = distspmd.redistribute(comm, tile, source, target, out=out)
assert given is out
same(out, target, array)

# One rank alone changes the strides of its tile: all of them go on with one engine.
if tile is not None:
    orders = [tile, np.asfortranarray(tile)] if comm.rank == 0 else [tile, tile]
    for now in (*orders, *orders):
        same(distspmd.redistribute(comm, now, source, target), target, array)
else:
    for _ in range(4):
        distspmd.redistribute(comm, None, source, target, dtype=float)


# What was right before says nothing of other tiles, whatever their class.
class Matrix(np.ndarray):
    pass


rows, columns = layouts[:2]
for kind in (np.ndarray, Matrix):
    if comm.rank < 2:
        tile = mine(rows, array).copy()
        out = np.zeros_like(mine(columns, array))
    else:
        tile = out = None

    def again(tile, out, kind=kind):
        given = [None if comm.rank > 1 else np.asanyarray(a).view(kind) for a in (tile, out)]
        return distspmd.redistribute(comm, given[0], rows, columns, out=given[1], dtype=array.dtype)

    same(again(tile, out), columns, array)
    same(again(tile if tile is None else np.asfortranarray(tile), out), columns, array)
    for wrong in ((np.ones((2, 2)), out), (tile, np.ones((1, 1))), (np.float32(array[:4]), out)):
        with pytest.raises(ArgumentError):
            again(*wrong)

# Tiles in memory that the ranks share, used again when they are gone.
known = known_of(comm)
counts = []
held = (0, 0) if tile is None else tile.shape
for number in range(3):
    sent = distspmd.runtime.allocate(comm, held)
    got = distspmd.runtime.allocate(comm, [hi - lo for lo, hi in target.box(comm.rank)])
    windows = len(known.node.windows)
    if tile is not None:
        sent[...] = tile + number
    for _ in range(2):
        options = {"out": got, "machine": Machine(single_copy_bytes=0)}
        distspmd.redistribute(comm, sent, source, target, dtype=float, **options)
        same(got, target, array + number)
        got[...] = -1
    assert comm.size == 1 or [*known.engines.values()][-1].single_copies == 1
    del sent, got, options
    counts.append(windows)
assert counts[1] == counts[2]
scalar = distspmd.runtime.allocate(comm, 3, "int16")
assert scalar.shape == (3,)
assert not scalar.any()

# Where shared memory has no room, tiles are memory of their ranks, and messages carry them.
free_bytes, shared_memory.free_bytes = shared_memory.free_bytes, lambda: 10**5
apart = distspmd.runtime.allocate(comm, 10**5)
shared_memory.free_bytes = free_bytes
assert apart.shape == (10**5,)
assert known.node.place(apart) is None

# Windows are given back with their communicator; those that an array is left of stay.
twin = comm.Dup()
kept, gone = distspmd.runtime.allocate(twin, 5), distspmd.runtime.allocate(twin, 6)
mirrored = mine(source, array)
if mirrored is not None:
    mirrored = distspmd.runtime.allocate(twin, mirrored.shape)
    mirrored[...] = tile
else:
    mirrored = distspmd.runtime.allocate(twin, (0, 0))
copies = Machine(single_copy_bytes=0)
same(
    distspmd.redistribute(twin, mirrored, source, target, dtype=float, machine=copies),
    target,
    array,
)
del gone, mirrored
twin.Free()
kept[...] = 1

partial = Layout.parse("[7, 10] + partial(sum){x}", two)
operand = array * (comm.rank + 1) if comm.rank < 2 else None
total = distspmd.redistribute(comm, operand, partial, target, dtype=float)
if comm.rank < 2:
    np.testing.assert_allclose(total, mine(target, 3 * array))

# A ufunc of a user combines as any other, also where MPI reduces to one rank.
distspmd.layouts.reductions.define("gcd", np.gcd, 0)
for dtype, extents in (("int64", shape), ("int16", (300, 700))):
    whole = np.random.default_rng(1).integers(1, 9, extents) * 12
    operands = [(whole * factor).astype(dtype) for factor in (5, 7)]
    partial = Layout.parse(f"{list(extents)} + partial(gcd){{x}}", two)
    operand = operands[comm.rank] if comm.rank < 2 else None
    for target in (
        Layout.parse(f"[{extents[0]}, {extents[1] // 2}{{x}}{extents[1]}]", two),
        Layout.parse(f"{list(extents)}", two),
        Layout.root(extents),
    ):
        for solver in (None, "exchange"):
            total = distspmd.redistribute(
                comm, operand, partial, target, dtype=dtype, solver=solver
            )
            same(total, target, np.gcd(*operands))
target = layouts[1]


# A block-cyclic tile has the elements of a rank in their order, whatever the extents.
def cyclic_tile(layout: Layout) -> np.ndarray | None:
    if comm.rank >= layout.ranks:
        return None
    at = layout.mesh.coordinates(comm.rank)
    held = []
    for split in layout.splits:
        block, parts = split.block or split.tile(layout.mesh), split.parts(layout.mesh)
        kept = np.arange(split.extent) // block % parts == split.index(layout.mesh, at)
        held.append(np.flatnonzero(kept))
    return array[np.ix_(*held)]


columns = Layout.parse("[7, 5{x}10]", two)
for text, to in (
    ("[4{x}7/2, 10]", columns),
    ("[4{x}7/1, 10]", Layout.parse("[4{x}7/2, 10]", two)),
    ("[7, 6{x}10/3]", Layout.parse("[4{x}7/2, 10]", two)),
    ("[7, 6{x}10/3]", Layout.root(shape)),
    ("[7, 10]", Layout.parse("[7, 6{x}10/3]", two)),
):
    dealer = Layout.parse(text, two)
    for one, other in ((dealer, to), (to, dealer)):
        sent, wanted = cyclic_tile(one), cyclic_tile(other)
        for order in "CF":
            given = None if sent is None else np.array(sent, order=order)
            found = distspmd.redistribute(comm, given, one, other, dtype=float)
            if wanted is not None:
                np.testing.assert_array_equal(found, wanted)
with pytest.raises(NoSolver, match="block-cyclic layouts are exchanged"):
    distspmd.redistribute(comm, given, one, other, dtype=float, max_memory=1)

# Runs of memory go as messages from so many bytes on, as the machine says, and as packets below.
swapped = Layout.parse("boxes[7, 10]{0: 4:7, 0:10; 1: 0:4, 0:10}", two)
for least, packets in ((0, 0), (71 * 8, 1)):
    options = {"dtype": float, "machine": Machine(run_bytes=least)}
    same(distspmd.redistribute(comm, tile, source, swapped, **options), swapped, array)
    assert [*known.engines.values()][-1].copies_in_out == packets


def refused(text: str, *arguments: object, **options: object) -> None:
    with pytest.raises(ArgumentError, match=text) as raised:
        distspmd.redistribute(comm, *arguments, **options)
    assert comm.rank == 0 or str(raised.value).startswith("rank 0: ")


first = comm.rank == 0
refused("source tile of rank 0 is missing", None if first else tile, source, target, dtype=float)
refused("has the shape", tile[:2] if first else tile, source, target, dtype=float)
refused("has the type float32", tile.astype("f") if first else tile, source, target, dtype=float)
refused("is a list", [1.0] if first else tile, source, target, dtype=float)
large = Layout.parse("[1{x}9]", Mesh(x=9))
refused("have 9 ranks, but the communicator has", np.zeros(1), large, large)
if comm.rank == 0:
    print("all tiles arrived")
