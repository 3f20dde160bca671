"""Arguments and results that each rank holds in a layout that the caller gives.

With ``--all``, more layouts and grids.
"""

import sys

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ScheduleError
from distspmd.layouts import Layout, Mesh

comm = MPI.COMM_WORLD
M, N = 11, 7
LINE, GRID = Mesh(x=4), Mesh(x=2, y=2)


def product(a: dace.float64[M, 5], b: dace.float64[5, N]):
    return a @ b


def two(x: dace.float64[M, N], s: dace.float64):
    return x * s, np.sum(x, axis=0)


def in_place(x: dace.float64[M, N]):
    for _t in range(3):
        x[1:-1] = (x[:-2] + x[2:]) * 0.5


def halved_until(x: dace.float64[M, N]):
    while np.max(x) > 1:
        x[:] = x * 0.5
    return x + 1


def run(function, schedule, layouts, arguments):
    """Call it with the tiles that this rank holds; compare all that it has then with NumPy."""
    wanted = {name: np.array(value) for name, value in arguments.items()}
    results = function(**wanted)
    results = results if isinstance(results, tuple) else () if results is None else (results,)
    names = ["__return"] if len(results) == 1 else [f"__return_{k}" for k in range(len(results))]
    lowering = distspmd.lower(function, schedule, arguments=layouts)
    distspmd.verify(lowering)
    with distspmd.compile(lowering, comm) as program:
        mine = {
            n: cut(layouts.get(n, Layout.root(np.shape(v) or (1,))), v)
            for n, v in arguments.items()
        }
        found = program(**{name: tile for name, tile in mine.items() if tile is not None})
        found = found if isinstance(found, tuple) else (found,)
        for name, result, tile in zip(names, results, found, strict=False):
            layout = layouts.get(name, Layout.root(result.shape))
            assert program.layout(name) == layout
            compare(name, tile, cut(layout, result))
        for name, tile in mine.items():
            compare(name, tile, cut(program.layout(name), wanted[name]))


def compare(name, tile, expected):
    if expected is None:
        assert tile is None or isinstance(tile, distspmd.runtime.MissingResult), name
    else:
        assert np.shape(tile) == expected.shape, name
        np.testing.assert_allclose(tile, expected, err_msg=name)


def cut(layout, array):
    """The tile of this rank, by slicing."""
    if comm.rank >= layout.ranks:
        return None
    if not np.ndim(array):
        return array
    return np.array(array[tuple(slice(lo, hi) for lo, hi in layout.box(comm.rank))], order="C")


rng = np.random.default_rng(0)
a, b, x = rng.random((M, 5)), rng.random((5, N)), 3 * rng.random((M, N))
layouts = [
    Layout.parse("[3{x}11, 7]", LINE),
    Layout.parse("[11, 2{x}7]", LINE),
    Layout.parse("[6{y}11, 4{x}7]", GRID),
    Layout.parse("[6{y}11, 7]", GRID),  # replicated along x
    Layout.parse("[11, 7]", LINE),
    Layout.parse("[6{x}11~1, 7]", GRID),  # with a halo
    Layout.parse("[6{x}11, 7]", Mesh(x=2)),  # idle ranks
    Layout.parse("boxes[11, 7]{0: 0:11, 0:2; 1: 5:11, 2:7; 3: 0:5, 2:7}", LINE),
    Layout.root((M, N)),
]
grids = [(4, 1, 1), (1, 2, 2), (1, 1, 1)]
sweep = "--all" in sys.argv
for layout, grid in [*zip(layouts, 3 * grids, strict=True)][:: 1 if sweep else 2]:
    run(product, {"__return": grid}, {"__return": layout}, {"a": a, "b": b})
columns = Layout.parse("[2{x}7]", LINE)
readers = layouts[1::2] + layouts[:1]
for result, reader in [*zip(layouts[::2], readers, strict=True)][:: 1 if sweep else 3]:
    given = {"x": reader, "__return_0": result, "__return_1": columns}
    run(two, {"__return_0": (4, 1)}, given, {"x": x, "s": np.float64(2)})
for reader in (layouts[5], layouts[2], layouts[3])[: 3 if sweep else 1]:
    run(in_place, {"x": (3, 1)}, {"x": reader}, {"x": x})
run(halved_until, {"x": (2, 1)}, {"x": layouts[0], "__return": layouts[1]}, {"x": x})

lowering = distspmd.lower(product, {"__return": (4, 1, 1)}, arguments={"__return": layouts[0]})
assert "__return" not in {memlet.data for memlet in lowering.memlets if memlet.to_caller}

with distspmd.compile(
    lambda: distspmd.lower(product, {"__return": (4, 1, 1)}, results=layouts[1]), comm
) as program:
    assert program.layout("__return") == layouts[1]
    rows = program(*((a, b) if comm.rank == 0 else ()))
    np.testing.assert_allclose(rows, cut(layouts[1], a @ b))
with pytest.raises(ScheduleError, match=r"held in .* by 8 ranks, but the communicator has 4"):
    distspmd.compile(
        lambda: distspmd.lower(product, {}, results=Layout.parse("[11, 1{x}7]", Mesh(x=8))), comm
    )
if comm.rank == 0:
    print("in the layouts that were given")
