"""The ways by which an array gets from layout to layout: ours, the limit, raw MPI, and the peers.

Each is a function of a communicator, a case and the tiles of this rank, one for each layout; it
returns a :class:`Prepared`. It raises ``Unsuited`` where it has no such redistribution, and
``ImportError`` where its library is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from cases import Case, operand, values
from mpi4py import MPI

import distspmd
from distspmd.errors import LayoutError
from distspmd.layouts import Layout, intervals
from distspmd.layouts.notations import placements, spec

Box = intervals.Box
Tiles = list[np.ndarray]


class Unsuited(Exception):
    """A method has no such redistribution."""


@dataclass
class Prepared:
    """What is timed, and afterwards the box that this rank has, and its content.

    Attributes:
        alone: only rank 0 runs it, and the others sleep.
    """

    run: Callable[[], Any]
    result: Callable[[], tuple[Box, np.ndarray] | None]
    alone: bool = False


def _in_place(run: Callable[[], Any], case: Case, tiles: Tiles) -> Prepared:
    """Of a method that fills the last tile."""
    box = case.layouts[-1].box(MPI.COMM_WORLD.rank)
    return Prepared(run, lambda: (box, tiles[-1]))


def ours(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    def run() -> None:
        for (source, target), tile, out in zip(case.hops, tiles, tiles[1:], strict=False):
            distspmd.redistribute(comm, tile, source, target, out=out)

    return _in_place(run, case, tiles)


def shared(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """Ours, of tiles in memory that the ranks share."""
    mine = [distspmd.runtime.allocate(comm, tile.shape, tile.dtype) for tile in tiles]
    mine[0][...] = tiles[0]
    return ours(comm, case, mine)


# --- the limit ---


def limit(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """One process has all tiles and copies the same boxes; it adds the operands of a sum."""
    if comm.rank:
        return Prepared(lambda: None, lambda: None, alone=True)
    memory = [
        [operand(case.layouts[0], rank) for rank in range(comm.size)],
        *(
            [np.zeros(intervals.shape(layout.box(rank)), np.float32) for rank in range(comm.size)]
            for layout in case.layouts[1:]
        ),
    ]
    work = _summed(case, memory) if case.partial else _copied(case, memory)

    def run() -> None:
        for call, arrays in work:
            call(*arrays)

    return Prepared(run, lambda: (case.layouts[-1].box(0), memory[-1][0]), alone=True)


Work = list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]]


def _copied(case: Case, memory: list[Tiles]) -> Work:
    work: Work = []
    for (source, target), sources, targets in zip(case.hops, memory, memory[1:], strict=False):
        for m in messages(source, target):
            from_view = _view(sources[m.sender], source.box(m.sender), m.box)
            into = _view(targets[m.receiver], target.box(m.receiver), m.box)
            work.append((np.copyto, (into, from_view)))
    return work


def _summed(case: Case, memory: list[Tiles]) -> Work:
    """Each different box of the target is summed once, and copied to its replicas."""
    ((source, target),) = case.hops
    work: Work = []
    summed: dict[Box, np.ndarray] = {}
    for rank, into in enumerate(memory[1]):
        box = target.box(rank)
        if box in summed:
            work.append((np.copyto, (into, summed[box])))
            continue
        summed[box] = into
        views = [_view(tile, source.box(at), box) for at, tile in enumerate(memory[0])]
        # In pieces that stay in the cache while all operands are added.
        for lo in range(0, len(into), piece := max(1, 2**16 // max(1, into[0].size))):
            rows = slice(lo, lo + piece)
            work.append((np.add, (views[0][rows], views[1][rows], into[rows])))
            work += [(np.add, (into[rows], view[rows], into[rows])) for view in views[2:]]
    return work


# --- raw MPI ---


def alltoallw(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    _only_values(case)
    calls = []
    for (source, target), tile, out in zip(case.hops, tiles, tiles[1:], strict=False):
        sides = []
        for layout, sends in ((source, True), (target, False)):
            mine, types = layout.box(comm.rank), []
            by_peer = _by_peer(comm, source, target, sends)
            for boxes in by_peer:
                if len(boxes) > 1:
                    raise Unsuited("several boxes for one rank")
                box = boxes[0] if boxes else None
                types.append(_subarray(mine, box))
            counts = [int(bool(boxes)) for boxes in by_peer]
            sides.append((counts, [0] * comm.size, types))
        calls.append(([tile, *sides[0]], [out, *sides[1]]))

    def run() -> None:
        for sent, received in calls:
            comm.Alltoallw(
                [sent[0], (sent[1], sent[2]), sent[3]],
                [received[0], (received[1], received[2]), received[3]],
            )

    return _in_place(run, case, tiles)


def _subarray(mine: Box, box: Box | None) -> MPI.Datatype:
    if box is None:
        return MPI.FLOAT
    starts = [lo - start for (lo, _), (start, _) in zip(box, mine, strict=True)]
    made = MPI.FLOAT.Create_subarray(intervals.shape(mine), intervals.shape(box), starts)
    return made.Commit()


def packed(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """NumPy packs, Alltoallv, NumPy unpacks."""
    _only_values(case)
    calls = []
    for (source, target), tile, out in zip(case.hops, tiles, tiles[1:], strict=False):
        sides = []
        for layout, whole, sends in ((source, tile, True), (target, out, False)):
            by_peer = _by_peer(comm, source, target, sends)
            counts = [sum(map(intervals.volume, boxes)) for boxes in by_peer]
            staging = np.zeros(sum(counts), np.float32)
            boxes = [box for held in by_peer for box in held]
            ends = np.cumsum([intervals.volume(box) for box in boxes]).tolist()
            mine = layout.box(comm.rank)
            pairs = [
                (staging[end - intervals.volume(box) : end].reshape(intervals.shape(box)), view)
                for box, end in zip(boxes, ends, strict=True)
                for view in [_view(whole, mine, box)]
            ]
            sides.append(([staging, counts], pairs))
        calls.append(sides)

    def run() -> None:
        for (sent, packs), (received, unpacks) in calls:
            for staged, view in packs:
                np.copyto(staged, view)
            comm.Alltoallv(sent, received)
            for staged, view in unpacks:
                np.copyto(view, staged)

    return _in_place(run, case, tiles)


def isend(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """Messages of subarrays that do not wait for each other; a rank's own boxes are copied."""
    _only_values(case)
    calls = []
    for (source, target), tile, out in zip(case.hops, tiles, tiles[1:], strict=False):
        sides = []
        for layout, sends in ((source, True), (target, False)):
            mine = layout.box(comm.rank)
            by_peer = _by_peer(comm, source, target, sends)
            boxes = [(peer, box) for peer, held in enumerate(by_peer) for box in held]
            sides.append([(p, b, _subarray(mine, b)) for p, b in boxes if p != comm.rank])
            own = by_peer[comm.rank]
        copies = [
            (_view(out, target.box(comm.rank), b), _view(tile, source.box(comm.rank), b))
            for b in own
        ]
        calls.append((tile, out, *sides, copies))

    def run() -> None:
        for tile, out, sent, received, copies in calls:
            waits = [comm.Irecv([out, 1, kind], peer) for peer, _, kind in received]
            waits += [comm.Isend([tile, 1, kind], peer) for peer, _, kind in sent]
            for into, value in copies:
                np.copyto(into, value)
            MPI.Request.Waitall(waits)

    return _in_place(run, case, tiles)


def pull(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """Tiles in a window that ranks share, out of which each copies its boxes between barriers."""
    _only_values(case)
    windows = [MPI.Win.Allocate_shared(tile.nbytes, 4, comm=comm) for tile in tiles]

    def tile_of(layout: Layout, window: Any, rank: int) -> np.ndarray:
        memory, _ = window.Shared_query(rank)
        flat = np.frombuffer(memory, np.float32)
        shape = intervals.shape(layout.box(rank))
        return flat[: int(np.prod(shape))].reshape(shape)

    shared_tiles = [
        [tile_of(layout, window, rank) for rank in range(comm.size)]
        for layout, window in zip(case.layouts, windows, strict=True)
    ]
    shared_tiles[0][comm.rank][...] = tiles[0]
    hops = []
    for number, (source, target) in enumerate(case.hops):
        out = shared_tiles[number + 1][comm.rank]
        hops.append(
            [
                (
                    _view(out, target.box(comm.rank), box),
                    _view(shared_tiles[number][peer], source.box(peer), box),
                )
                for peer, boxes in enumerate(_by_peer(comm, source, target, False))
                for box in boxes
            ]
        )

    def run() -> None:
        for copies in hops:
            comm.Barrier()
            for into, value in copies:
                np.copyto(into, value)
            comm.Barrier()

    box = case.layouts[-1].box(comm.rank)
    return Prepared(run, lambda: (box, shared_tiles[-1][comm.rank]))


def collective(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """The one call of MPI that a redistribution is, where it is one."""
    if len(case.layouts) != 2 or len(case.layouts[0].mesh.names) != 1:
        raise Unsuited("no single call")
    source, target = ([bool(s.axes) for s in layout.splits] for layout in case.layouts)
    first = [True] + [False] * (len(source) - 1)
    if case.partial:
        call = comm.Reduce_scatter_block if target == first else comm.Allreduce
    elif source == first and not any(target):
        call = comm.Allgather
    else:
        raise Unsuited("no single call")
    return _in_place(lambda: call(tiles[0], tiles[1]), case, tiles)


# --- peers ---


def mpi4py_fft(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    from mpi4py_fft.pencil import Pencil, Subcomm

    _only_values(case)
    mesh = case.layouts[0].mesh
    if any(
        sorted(split.axes for split in layout.splits)
        != sorted([(), *((name,) for name in mesh.names)])
        for layout in case.layouts
    ):
        raise Unsuited("no pencils")
    whole = [[not split.axes for split in layout.splits].index(True) for layout in case.layouts]
    parts = [split.parts(mesh) for split in case.layouts[0].splits]
    pencils = [Pencil(Subcomm(comm, parts), case.layouts[0].extents, axis=whole[0])]
    for axis in whole[1:]:
        pencils.append(pencils[-1].pencil(axis))
    arrays = [np.zeros(pencil.subshape, np.float32) for pencil in pencils]
    arrays[0][...] = values(_pencil_box(pencils[0]))
    transfers = [a.transfer(b, np.float32) for a, b in pairwise(pencils)]

    def run() -> None:
        for transfer, array, out in zip(transfers, arrays, arrays[1:], strict=False):
            transfer.forward(array, out)

    return Prepared(run, lambda: (_pencil_box(pencils[-1]), arrays[-1]))


def _pencil_box(pencil: Any) -> Box:
    return tuple((lo, lo + n) for lo, n in zip(pencil.substart, pencil.subshape, strict=True))


def heat(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    import heat as ht

    _only_values(case)
    splits = []
    for layout in case.layouts:
        at = [d for d, split in enumerate(layout.splits) if split.axes]
        if len(layout.mesh.names) != 1:
            raise Unsuited("more than one axis")
        if any(extent % comm.size for extent in layout.extents):
            raise Unsuited("its Alltoallw cuts off uneven tiles")
        splits.append(at[0] if at else None)
    array = ht.array(tiles[0], is_split=splits[0])
    made: list[Any] = [None]

    def run() -> None:
        made[0] = ht.resplit(array, splits[-1])

    def result() -> tuple[Box, np.ndarray]:
        start, shape, _ = array.comm.chunk(array.shape, splits[-1])
        lows = [0] * array.ndim
        if splits[-1] is not None:
            lows[splits[-1]] = start
        box = tuple((lo, lo + n) for lo, n in zip(lows, shape, strict=True))
        return box, made[0].larray.numpy()

    return Prepared(run, result)


def jax(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """One process with a device for each rank; a jitted reshard."""
    if comm.rank:
        return Prepared(lambda: None, lambda: None, alone=True)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={comm.size}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax as library
    from jax.sharding import NamedSharding, PartitionSpec

    if any(
        split.extent % split.parts(layout.mesh)
        for layout in case.layouts
        for split in layout.splits
    ):
        raise Unsuited("uneven")
    mesh = case.layouts[0].mesh
    devices = np.array(library.devices()[: comm.size]).reshape([mesh[name] for name in mesh.names])
    over = library.sharding.Mesh(devices, mesh.names)
    sides = [PartitionSpec(*_spec(layout)) for layout in case.layouts]
    if case.partial:
        array, move = _jax_sum(library, case, over, sides[-1])
    else:
        array = library.device_put(
            values(intervals.whole(case.layouts[0].extents)), NamedSharding(over, sides[0])
        )
        moves = [
            library.jit(lambda x: x, out_shardings=NamedSharding(over, side)) for side in sides[1:]
        ]

        def move(x: Any) -> Any:
            for step in moves:
                x = step(x)
            return x

    made: list[Any] = [None]

    def run() -> None:
        made[0] = library.block_until_ready(move(array))

    def result() -> tuple[Box, np.ndarray]:
        shard = next(s for s in made[0].addressable_shards if s.device == devices.flat[0])
        return case.layouts[-1].box(0), np.asarray(shard.data)

    return Prepared(run, result, alone=True)


def _jax_sum(library: Any, case: Case, over: Any, target: Any) -> tuple[Any, Any]:
    """Operands along a leading dimension, one on each device, and their sum."""
    from jax.sharding import NamedSharding, PartitionSpec

    layout, (axis,) = case.layouts[0], case.layouts[0].mesh.names
    stacked = PartitionSpec(axis)
    operands = np.stack([operand(layout, rank) for rank in range(layout.ranks)])
    array = library.device_put(operands, NamedSharding(over, stacked))
    if case.layouts[1].splits[0].axes:

        def body(x: Any) -> Any:
            return library.lax.psum_scatter(x[0], axis, scatter_dimension=0, tiled=True)
    else:

        def body(x: Any) -> Any:
            return library.lax.psum(x[0], axis)

    shard_map = library.shard_map
    return array, library.jit(shard_map(body, mesh=over, in_specs=stacked, out_specs=target))


def _spec(layout: Layout) -> tuple[Any, ...]:
    return tuple(spec(Layout(layout.mesh, layout.extents, splits=layout.splits)))


def dtensor(comm: Any, case: Case, tiles: Tiles) -> Prepared:
    """Gloo between the same ranks."""
    import torch
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    mesh = _torch_mesh(comm, case.layouts[0])

    def placed(layout: Layout) -> list[Any]:
        made = {"R": Replicate(), "P": Partial("sum")}
        return [made.get(p[0]) or Shard(int(p[2:-1])) for p in placements(layout)]

    try:
        sides = [placed(layout) for layout in case.layouts]
    except LayoutError as error:
        raise Unsuited(str(error)) from None
    array = DTensor.from_local(
        torch.from_numpy(tiles[0]),
        mesh,
        sides[0],
        shape=torch.Size(case.layouts[0].extents),
        stride=torch.empty(case.layouts[0].extents, device="meta").stride(),
    )
    made: list[Any] = [array]

    def run() -> None:
        made[0] = array
        for side in sides[1:]:
            made[0] = made[0].redistribute(mesh, side)

    return Prepared(
        run, lambda: (case.layouts[-1].box(comm.rank), made[0].to_local().contiguous().numpy())
    )


def _torch_mesh(comm: Any, layout: Layout) -> Any:
    import torch
    from torch.distributed.device_mesh import init_device_mesh

    if not torch.distributed.is_initialized():
        store = torch.distributed.TCPStore if comm.rank == 0 else None
        made = store("127.0.0.1", 0, comm.size, True, wait_for_workers=False) if store else None
        port = comm.bcast(made.port if made else None)
        joined = made or torch.distributed.TCPStore("127.0.0.1", port, comm.size, False)
        torch.distributed.init_process_group(
            "gloo", store=joined, rank=comm.rank, world_size=comm.size
        )
    mesh = layout.mesh
    return _known_mesh(init_device_mesh, tuple((name, mesh[name]) for name in mesh.names))


@cache
def _known_mesh(make: Any, axes: tuple[tuple[str, int], ...]) -> Any:
    names, sizes = zip(*axes, strict=True)
    return make("cpu", sizes, mesh_dim_names=names)


# --- what they share ---


def messages(source: Layout, target: Layout) -> Any:
    """Which box goes from which rank to which, each element of the target once."""
    return _plan(source, target).steps[0].messages


@cache
def _plan(source: Layout, target: Layout) -> Any:
    return distspmd.plan(source, target, solver="exchange")


def _by_peer(comm: Any, source: Layout, target: Layout, sends: bool) -> list[list[Box]]:
    found: list[list[Box]] = [[] for _ in range(comm.size)]
    for m in messages(source, target):
        mine, peer = (m.sender, m.receiver) if sends else (m.receiver, m.sender)
        if mine == comm.rank:
            found[peer].append(m.box)
    return found


def _view(tile: np.ndarray, held: Box, box: Box) -> np.ndarray:
    return tile[intervals.slices(intervals.shift(box, [lo for lo, _ in held]))]


def _only_values(case: Case) -> None:
    if case.partial:
        raise Unsuited("no sums")


METHODS: dict[str, Callable[..., Prepared]] = {
    "limit": limit,
    "distspmd": ours,
    "shared tiles": shared,
    "pull": pull,
    "isend": isend,
    "Alltoallw": alltoallw,
    "pack+Alltoallv": packed,
    "one MPI call": collective,
    "mpi4py-fft": mpi4py_fft,
    "HeAT": heat,
    "JAX": jax,
    "DTensor": dtensor,
}
