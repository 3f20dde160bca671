"""SDFGs that users wrote, or transformed, for GPUs: cut over their blocks on any number of ranks.

Rows do not divide by ranks, nor by the rows of a block.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import numpy as np
from dace import Memlet
from dace.dtypes import Language, ScheduleType, StorageType
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
M, K, N, TILE = 70, 48, 64, 16
ROWS, COLUMNS, LANES = 7, 96, 32


def example() -> Any:
    """The module of the softmax of warps, in its small size."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    sys.argv = [sys.argv[0], "--small"]
    import warp_softmax

    return warp_softmax


def _tasklet(state: Any, label: str, inputs: set[str], output: str, code: str) -> Any:
    return state.add_tasklet(label, inputs, {output}, code, language=Language.CPP)


def tiled_product() -> Any:
    """A product in tiles of 16 x 16; threads of a block share rows of the first factor."""
    sdfg = dace.SDFG("tiled_product")
    for name, shape in {"a": [M, K], "b": [K, N], "c": [M, N]}.items():
        sdfg.add_array(name, shape, dace.float32)
    sdfg.add_transient("panel", [TILE, K], dace.float32, storage=StorageType.GPU_Shared)
    state = sdfg.add_state()
    tiles = {"bi": f"0:{M}:{TILE}", "bj": f"0:{N}:{TILE}"}
    blocks, end = state.add_map("blocks", tiles, schedule=ScheduleType.GPU_Device)
    inner = {"i": f"bi:min({M}, bi + {TILE})", "j": f"bj:bj + {TILE}"}
    fill, filled = state.add_map("fill", inner, schedule=ScheduleType.GPU_ThreadBlock)
    code = f"for (int k = 0; k < {K}; k += {TILE}) y[k] = x[k];"
    move = _tasklet(state, "move", {"x"}, "y", code)
    own = f"j - bj:j - bj + {K - TILE + 1}:{TILE}"
    panel = state.add_access("panel")
    read, write = Memlet(f"a[i, {own}]"), Memlet(f"panel[i - bi, {own}]")
    state.add_memlet_path(state.add_read("a"), blocks, fill, move, dst_conn="x", memlet=read)
    state.add_memlet_path(move, filled, panel, src_conn="y", memlet=write)
    threads, joined = state.add_map("threads", inner, schedule=ScheduleType.GPU_ThreadBlock)
    code = f"r = 0; for (int k = 0; k < {K}; ++k) r += x[k] * y[{N} * k];"
    sums = _tasklet(state, "sums", {"x", "y"}, "r", code)
    row, column = Memlet(f"panel[i - bi, 0:{K}]"), Memlet(f"b[0:{K}, j]")
    state.add_memlet_path(panel, threads, sums, dst_conn="x", memlet=row)
    state.add_memlet_path(state.add_read("b"), blocks, threads, sums, dst_conn="y", memlet=column)
    out = Memlet("c[i, j]")
    state.add_memlet_path(sums, joined, end, state.add_write("c"), src_conn="r", memlet=out)
    return sdfg


def layer_norm() -> Any:
    """A block has a row: its threads add up what they stride over, and share the sums."""
    sdfg = dace.SDFG("layer_norm")
    for name in ("x", "y"):
        sdfg.add_array(name, [ROWS, COLUMNS], dace.float32)
    sdfg.add_transient("shared", [2, LANES], dace.float32, storage=StorageType.GPU_Shared)
    state = sdfg.add_state()
    blocks, end = state.add_map("blocks", {"i": f"0:{ROWS}"}, schedule=ScheduleType.GPU_Device)
    lanes = {"t": f"0:{LANES}"}
    first, first_end = state.add_map("first", lanes, schedule=ScheduleType.GPU_ThreadBlock)
    second, second_end = state.add_map("second", lanes, schedule=ScheduleType.GPU_ThreadBlock)
    each = f"for (int k = 0; k < {COLUMNS}; k += {LANES})"
    code = f"s[0] = s[{LANES}] = 0; {each} {{ s[0] += v[k]; s[{LANES}] += v[k] * v[k]; }}"
    part = _tasklet(state, "part", {"v"}, "s", code)
    code = f"""
float one = 0, two = 0;
for (int k = 0; k < {LANES}; ++k) {{ one += s[k]; two += s[{LANES} + k]; }}
const float mean = one / {COLUMNS}, variance = two / {COLUMNS} - mean * mean;
{each} r[k] = (v[k] - mean) / sqrtf(variance + 1e-5f);"""
    norm = _tasklet(state, "norm", {"v", "s"}, "r", code)
    own = f"i, t:t + {COLUMNS - LANES + 1}:{LANES}"
    x, shared = state.add_read("x"), state.add_access("shared")
    state.add_memlet_path(x, blocks, first, part, dst_conn="v", memlet=Memlet(f"x[{own}]"))
    sums = Memlet("shared[0:2, t]")
    state.add_memlet_path(part, first_end, shared, src_conn="s", memlet=sums)
    all_sums = Memlet(f"shared[0:2, 0:{LANES}]")
    state.add_memlet_path(shared, second, norm, dst_conn="s", memlet=all_sums)
    state.add_memlet_path(x, blocks, second, norm, dst_conn="v", memlet=Memlet(f"x[{own}]"))
    result = Memlet(f"y[{own}]")
    state.add_memlet_path(norm, second_end, end, state.add_write("y"), src_conn="r", memlet=result)
    return sdfg


@dace.program
def scaled(x: dace.float32[M, K], y: dace.float32[M, K]):
    for i, j in dace.map[0:M, 0:K]:
        y[i, j] = x[i, j] * 2 + 1


def transformed() -> Any:
    """What ``apply_gpu_transformations`` makes of a program: copies to the device and back."""
    sdfg = scaled.to_sdfg()
    sdfg.apply_gpu_transformations()
    return sdfg


def normed(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(wide.var(axis=-1, keepdims=True) + 1e-5)


def of_softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def agrees(
    make: Callable[[], Any],
    parameter: str,
    given: dict[str, tuple[int, ...]],
    result: tuple[str, tuple[int, ...]],
    expected: Callable[..., np.ndarray],
    kind: str = "a kernel as the program has it",
) -> None:
    """Cut one parameter over all ranks; elements that nobody writes are not numbers."""

    def lowered() -> Any:
        sdfg = make()
        spaces = distspmd.iteration_spaces(sdfg)
        (name,) = [space.name for space in spaces if parameter in space.parameters]
        return distspmd.lower(sdfg, {name: {parameter: comm.size}})

    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in given.items()}
    name, shape = result
    found = np.full(shape, np.nan, np.float32)
    with distspmd.compile(lowered, comm, device=DEVICE) as program:
        for _ in range(2):
            found[:] = np.nan
            program(**arrays, **{name: found}) if comm.rank == 0 else program()
            if comm.rank == 0:
                np.testing.assert_allclose(found, expected(**arrays), rtol=1e-4, atol=1e-4)
        kernels = [remark for _, place, remark in program.device.spaces]
    if comm.rank == 0:
        assert any(remark.startswith(kind) for remark in kernels), kernels


softmax = example()
four = (softmax.B, softmax.H, softmax.S, softmax.T)
CASES = {
    "softmax": (softmax.warp_softmax, "b", {"x": four}, ("y", four), of_softmax),
    "product": (
        tiled_product,
        "bi",
        {"a": (M, K), "b": (K, N)},
        ("c", (M, N)),
        lambda a, b: a @ b,
    ),
    "norm": (layer_norm, "i", {"x": (ROWS, COLUMNS)}, ("y", (ROWS, COLUMNS)), normed),
    "transformed": (
        transformed,
        "i",
        {"x": (M, K)},
        ("y", (M, K)),
        lambda x: x * 2 + 1,
        "a kernel of DaCe",
    ),
}
if __name__ == "__main__":
    for case in CASES.values():
        agrees(*case)
    comm.Barrier()
    if comm.rank == 0:
        print("all kernels that were written for devices are right")
