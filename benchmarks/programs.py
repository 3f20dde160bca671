"""Whole programs over ranks, beside NumPy, plain C and plain DaCe in the same run.

``python benchmarks/programs.py [jacobi softmax attention matmul]`` starts its own ranks, 1 and then
2, of one thread each. Arguments are distributed: each rank passes its tiles, so that a call is the
program and the communication between its steps. Per program it prints the best time of a call and
the share of communication in it. On 1 rank the peers run too: NumPy, C (``kernels.c``, `cc -O3
-march=native -ffast-math`), and DaCe with the same compiler, without lowering.
"""

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dace
import numpy as np

import distspmd
from distspmd.codegen.build import plain
from distspmd.runtime.launch import launch, launched_ranks

N, STEPS = 4000, 50
ROWS, COLUMNS = 8 * 16 * 512, 512
B, S, H, P = 8, 512, 16, 64
M = 4096


@dace.program
def jacobi(a: dace.float32[N, N], b: dace.float32[N, N]):
    for _t in range(STEPS // 2):
        for i, j in dace.map[1 : N - 1, 1 : N - 1]:
            b[i, j] = np.float32(0.2) * (
                a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j]
            )
        for i, j in dace.map[1 : N - 1, 1 : N - 1]:
            a[i, j] = np.float32(0.2) * (
                b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i - 1, j] + b[i + 1, j]
            )


@dace.program
def softmax(x: dace.float32[ROWS, COLUMNS], y: dace.float32[ROWS, COLUMNS]):
    for r in dace.map[0:ROWS]:
        e = np.exp(x[r, :] - np.max(x[r, :]))
        y[r, :] = e / np.sum(e)


@dace.program
def attention(
    x: dace.float32[B, S, H * P],
    wq: dace.float32[H, P, H * P],
    wk: dace.float32[H, P, H * P],
    wv: dace.float32[H, P, H * P],
    wo: dace.float32[H, P, H * P],
):
    q = np.einsum("bse,hpe->bhsp", x, wq)
    k = np.einsum("bse,hpe->bhsp", x, wk)
    v = np.einsum("bse,hpe->bhsp", x, wv)
    scores = np.einsum("bhsp,bhtp->bhst", q, k) * np.float32(P**-0.5)
    top = np.maximum.reduce(scores, axis=-1, keepdims=True)
    e = np.exp(scores - top)
    weights = e / np.add.reduce(e, axis=-1, keepdims=True)
    heads = np.einsum("bhst,bhtp->bhsp", weights, v)
    return np.einsum("bhsp,hpe->bse", heads, wo)


@dace.program
def matmul(a: dace.float32[M, M], b: dace.float32[M, M]):
    return a @ b


def numpy_jacobi(a, b):
    for _ in range(STEPS // 2):
        for old, new in ((a, b), (b, a)):
            np.add(old[1:-1, :-2], old[1:-1, 2:], out=new[1:-1, 1:-1])
            new[1:-1, 1:-1] += old[1:-1, 1:-1]
            new[1:-1, 1:-1] += old[:-2, 1:-1]
            new[1:-1, 1:-1] += old[2:, 1:-1]
            new[1:-1, 1:-1] *= np.float32(0.2)


def numpy_softmax(x, y):
    np.subtract(x, x.max(axis=-1, keepdims=True), out=y)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)


def numpy_attention(x, wq, wk, wv, wo):
    flat = x.reshape(B * S, H * P)
    q, k, v = (
        (flat @ w.reshape(H * P, H * P).T).reshape(B, S, H, P).transpose(0, 2, 1, 3)
        for w in (wq, wk, wv)
    )
    e = q @ k.swapaxes(-1, -2) * np.float32(P**-0.5)
    numpy_softmax(e, e)
    heads = (e @ v).transpose(0, 2, 1, 3).reshape(B * S, H * P)
    return (heads @ wo.reshape(H * P, H * P)).reshape(B, S, H * P)


def numpy_matmul(a, b):
    return a @ b


PROGRAMS: dict[str, tuple[Any, Callable[[int], dict], dict[str, str], Callable]] = {
    "jacobi": (
        jacobi,
        lambda n: {"a": (n, 1), "b": (n, 1)},
        {"a": "distributed", "b": "distributed"},
        numpy_jacobi,
    ),
    "softmax": (
        softmax,
        lambda n: {"y": (n,)},
        {"x": "distributed", "y": "distributed"},
        numpy_softmax,
    ),
    "attention": (
        attention,
        lambda n: {name: {"h": n} for name in ("q", "k", "v", "__return")},
        {
            "x": "replicated",
            "__return": "replicated",
            **dict.fromkeys(("wq", "wk", "wv", "wo"), "distributed"),
        },
        numpy_attention,
    ),
    "matmul": (
        matmul,
        lambda n: {"_MatMult_": (n, 1, 1)},
        {"a": "distributed", "b": "replicated", "__return": "distributed"},
        numpy_matmul,
    ),
}


def drawn(program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    described = program.to_sdfg().arglist()
    return {
        name: rng.standard_normal([int(n) for n in array.shape], np.float32) / 8
        for name, array in described.items()
        if not name.startswith("__return")
    }


def best(call: Callable[[], Any], repeat: int) -> float:
    """Seconds of the fastest call; the first touches the memory."""
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def ours(name: str, repeat: int) -> tuple[float, float] | None:
    """Seconds of a call, the slowest rank's, and of communication in it; on rank 0."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    program, schedule, arguments, reference = PROGRAMS[name]
    sdfg = program.to_sdfg()
    distspmd.lower(sdfg, schedule(comm.size), arguments=arguments)
    given, runs = drawn(program), []
    with distspmd.compile(sdfg, comm) as compiled:
        mine = {n: compiled.tile(n, array) for n, array in given.items()}
        for turn in range(repeat + 1):
            comm.Barrier()
            compiled.reset_statistics()
            start = time.perf_counter()
            result = compiled(**mine)
            seconds = time.perf_counter() - start
            moving = sum(counted.seconds for _, counted in compiled.statistics())
            runs.append((comm.allreduce(seconds, MPI.MAX), comm.allreduce(moving, MPI.MIN)))
            if turn == 0:
                check(name, compiled, given, mine, result, reference)
    return min(runs[1:]) if comm.rank == 0 else None


def check(name, compiled, given, mine, result, reference) -> None:
    """The first call against NumPy, on every rank."""
    after = {n: array.copy() for n, array in given.items()}
    wanted = reference(**after)
    if wanted is not None:
        wanted = compiled.tile("__return", wanted)
        np.testing.assert_allclose(result, wanted, atol=2e-3, err_msg=name)
        return
    for argument, array in mine.items():
        np.testing.assert_allclose(
            array, compiled.tile(argument, after[argument]), atol=1e-5, err_msg=name
        )


@contextmanager
def kernels() -> Iterator[ctypes.CDLL]:
    source = Path(__file__).with_name("kernels.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, str(source), "-o", str(library), "-lm"], check=True)
        yield ctypes.CDLL(str(library))


def peers(name: str, repeat: int) -> dict[str, float]:
    """Seconds of a call of each peer, in this process."""
    program, _, _, reference = PROGRAMS[name]
    given = drawn(program)
    found = {"NumPy": best(lambda: reference(**given), repeat)}
    compiled = plain(program.to_sdfg())
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        found["DaCe"] = best(lambda: compiled(**given), repeat)
    if name in ("jacobi", "softmax") and shutil.which("cc"):
        sizes = {"jacobi": (N, STEPS), "softmax": (ROWS, COLUMNS)}[name]
        with kernels() as library:
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in given.values()]
            counts = [ctypes.c_size_t(size) for size in sizes]
            found["C"] = best(lambda: library[name](*counts, *pointers), repeat)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="program", choices=[*PROGRAMS, []])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    options = parser.parse_args()
    names = options.programs or list(PROGRAMS)
    if launched_ranks() is None:
        for ranks in options.ranks:
            arguments = [*names, f"--repeat={options.repeat}"]
            done = launch([Path(__file__).resolve(), *arguments], ranks=ranks, threads=1)
            if done.returncode:
                sys.exit(done.returncode)
        return
    for name in names:
        figures = ours(name, options.repeat)
        if figures is None:
            continue
        seconds, moving = figures
        line = f"{name:10} {launched_ranks()} rank(s): {seconds * 1e3:8.1f} ms"
        line += f", {moving / seconds:5.1%} of it communication"
        beside = peers(name, options.repeat) if launched_ranks() == 1 else {}
        line += "".join(f"; {peer} {value * 1e3:.1f} ms" for peer, value in beside.items())
        print(line, flush=True)


if __name__ == "__main__":
    main()
