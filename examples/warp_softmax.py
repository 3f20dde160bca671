"""A softmax that was written for GPUs by hand, partitioned as it stands.

Each warp has a row: its threads keep parts of it in registers, and combine what they found by
shuffles. The SDFG says so, with a map over blocks and one over their threads. Cut over the first
dimensions, ranks have blocks of their own, and nothing moves between them; along the last one it
is one kernel, which nothing cuts. It needs a device: without ``--device`` it is the emulated one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from showing import SMALL, on_device

import distspmd
from distspmd import launch
from distspmd.runtime import launched_ranks

B, H, S, T = (3, 4, 6, 64) if SMALL else (8, 16, 512, 512)
LANES = 32
EACH = T // LANES
SCHEDULE = {"y": {"b": 2, "h": 2}}

REDUCTION = """
r = v;
for (int apart = 16; apart > 0; apart /= 2) r = {combine};
"""
ALL = "__shfl_xor_sync(0xffffffffu, r, apart)"


def warp_softmax() -> Any:
    """The SDFG: one map over blocks of a warp each, one over its threads, and five tasklets."""
    import dace
    from dace import Memlet
    from dace.dtypes import Language, ScheduleType, StorageType

    sdfg = dace.SDFG("warp_softmax")
    for name in ("x", "y"):
        sdfg.add_array(name, [B, H, S, T], dace.float32)
    for name, size in {
        "own": EACH,
        "powers": EACH,
        "top": 1,
        "all_top": 1,
        "sum": 1,
        "all": 1,
    }.items():
        sdfg.add_transient(f"row_{name}", [size], dace.float32, storage=StorageType.Register)
    state = sdfg.add_state("rows")
    blocks, blocks_end = state.add_map(
        "blocks", {"b": f"0:{B}", "h": f"0:{H}", "i": f"0:{S}"}, schedule=ScheduleType.GPU_Device
    )
    threads, threads_end = state.add_map(
        "threads", {"lane": f"0:{LANES}"}, schedule=ScheduleType.GPU_ThreadBlock
    )

    def tasklet(label: str, inputs: str, outputs: str, code: str) -> Any:
        names = [dict.fromkeys(names.split()) for names in (inputs, outputs)]
        return state.add_tasklet(label, *names, code, language=Language.CPP)

    each = f"for (int k = 0; k < {EACH}; ++k)"
    load = tasklet(
        "load",
        "row",
        "o t",
        f"t = -INFINITY;\n{each} {{ o[k] = row[{LANES} * k]; t = max(t, o[k]); }}",
    )
    largest = tasklet("largest", "v", "r", REDUCTION.format(combine=f"max(r, {ALL})"))
    power = tasklet(
        "power", "o t", "p s", f"s = 0;\n{each} {{ p[k] = expf(o[k] - t); s += p[k]; }}"
    )
    add = tasklet("add", "v", "r", REDUCTION.format(combine=f"r + {ALL}"))
    divide = tasklet("divide", "p s", "row", f"{each} row[{LANES} * k] = p[k] / s;")
    row = f"b, h, i, lane:lane + {T - LANES + 1}:{LANES}"
    state.add_memlet_path(
        state.add_read("x"), blocks, threads, load, dst_conn="row", memlet=Memlet(f"x[{row}]")
    )
    for name, source, out, target, into in (
        ("own", load, "o", power, "o"),
        ("top", load, "t", largest, "v"),
        ("all_top", largest, "r", power, "t"),
        ("powers", power, "p", divide, "p"),
        ("sum", power, "s", add, "v"),
        ("all", add, "r", divide, "s"),
    ):
        node = state.add_access(f"row_{name}")
        whole = Memlet.from_array(node.data, sdfg.arrays[node.data])
        state.add_edge(source, out, node, None, whole)
        state.add_edge(
            node, None, target, into, Memlet.from_array(node.data, sdfg.arrays[node.data])
        )
    state.add_memlet_path(
        divide,
        threads_end,
        blocks_end,
        state.add_write("y"),
        src_conn="row",
        memlet=Memlet(f"y[{row}]"),
    )
    return sdfg


def lowered() -> Any:
    """The same for four ranks."""
    lowering = distspmd.lower(warp_softmax(), SCHEDULE)
    for memlet in lowering.memlets:
        print(f"  {memlet.data}: {memlet.steps}, {memlet.solution.cost.nbytes:,} bytes")
    return lowering.sdfg


def main() -> None:
    """Run on four ranks, which this process starts, and compare with NumPy."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    device = os.environ.get("DISTSPMD_DEVICE", "emulated")
    x = np.random.default_rng(0).standard_normal((B, H, S, T), np.float32)
    y = np.zeros_like(x)
    with distspmd.compile(lowered if comm.rank == 0 else None, comm, device=device) as program:
        if comm.rank:
            program()
            return
        program(x=x, y=y)
        ((label, place, remark),) = program.device.spaces
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    difference = np.abs(y - powers / powers.sum(axis=-1, keepdims=True)).max()
    print(f"  {label} on the {place}: {remark}\n  largest difference from NumPy {difference:.1e}")
    if not difference < 1e-6:
        sys.exit("a result is wrong")


if __name__ == "__main__":
    if launched_ranks() is None:
        sys.exit(
            launch([Path(__file__).resolve(), *sys.argv[1:]], ranks=4, env=on_device()).returncode
        )
    main()
