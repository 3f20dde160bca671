"""What lowering costs at one rank: the time of a call, and of whole programs, beside plain DaCe.

``python benchmarks/overhead.py`` starts its own rank, of one thread. Both sides are compiled with
the same compiler, flags and BLAS; calls of the two alternate. With ``--device emulated`` (or
``cuda``) it says what a call with two arrays of the device and one result takes the processor, with
eager streams and without the guard: the least of seven parts of 1,000 calls.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import dace
import numpy as np

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.frontend import numpy_program
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch

N = 3000


@dace.program
def tiny(x: dace.float64[8], y: dace.float64[8]):
    y[:] = x + 1


@dace.program
def elementwise(x: dace.float64[N, N], y: dace.float64[N], z: dace.float64[N, N]):
    z[:] = np.sin(x) * 2 + y


@dace.program
def row_sums(x: dace.float64[N, N], y: dace.float64[N]):
    y[:] = np.sum(x, axis=1)


@dace.program
def product(x: dace.float64[1000, 1000], y: dace.float64[1000, 1000], z: dace.float64[1000, 1000]):
    z[:] = x @ y


@dace.program
def stencil(x: dace.float64[N, N], y: dace.float64[N, N]):
    y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def arguments_of(sdfg: dace.SDFG) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        name: rng.random(tuple(map(int, container.shape)))
        for name, container in sdfg.arrays.items()
        if not container.transient
    }


def compare(program, repeat: int) -> tuple[float, float, float]:
    """Median seconds of a call lowered and of a call plain, and the median of their ratios."""
    from mpi4py import MPI

    sdfg = numpy_program(program)
    given, before = arguments_of(sdfg), load_unlowered(sdfg)
    sdfg = distspmd.lower(sdfg, {}).sdfg
    after = distspmd.compile(sdfg, MPI.COMM_WORLD)
    ours, theirs = [], []
    for _ in range(repeat):
        for call, seconds in ((after, ours), (before, theirs)):
            start = time.perf_counter()
            call(**given)
            seconds.append(time.perf_counter() - start)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return statistics.median(ours), statistics.median(theirs), ratio


def pointwise(x, y):
    return x * y + np.exp(-x)


def on_device(device: str) -> tuple[float, float]:
    """Seconds of the processor of a call with arrays of a device, and of its compiled part."""
    from mpi4py import MPI

    def lowered():
        return distspmd.program(pointwise).lower(np.ones(64), np.ones(64))

    def seconds(call, repeat: int = 1000) -> float:
        start = time.thread_time()
        for _ in range(repeat):
            call()
        return (time.thread_time() - start) / repeat

    program = distspmd.compile(lowered, MPI.COMM_WORLD, device=device)
    x, y = (distspmd.runtime.DeviceArray.of(np.ones(64), device) for _ in range(2))
    held = [program(x=x, y=y)]  # a result lives until the next one is there

    def call() -> None:
        held[0] = program(x=x, y=y)

    return min(seconds(call) for _ in range(7)), min(
        seconds(lambda: program._executable.run({})) for _ in range(7)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--device", choices=["emulated", "cuda"])
    options = parser.parse_args()
    if launched_ranks() is None:
        argv = [Path(__file__).resolve(), *sys.argv[1:]]
        if options.device:
            os.environ["DISTSPMD_EMULATED_STREAMS"] = "eager"
            os.environ["DISTSPMD_EMULATED_GUARD"] = "0"
        sys.exit(launch(argv, ranks=1, threads=1).returncode)
    if options.device:
        whole, compiled = on_device(options.device)
        print(
            f"a call: {whole * 1e6:.1f} us, {compiled * 1e6:.1f} of these in the compiled program"
        )
        return
    print(f"{'program':<12} {'lowered ms':>11} {'plain DaCe ms':>14} {'ratio':>6}")
    for program in (elementwise, row_sums, product, stencil):
        ours, theirs, ratio = compare(program, options.repeat)
        row = f"{program.name:<12} {ours * 1e3:11.2f} {theirs * 1e3:14.2f} {ratio:6.3f}"
        print(row, flush=True)
    ours, theirs, _ = compare(tiny, 1000)
    print(f"a call of a tiny program: {ours * 1e6:.1f} us, plain DaCe {theirs * 1e6:.1f} us")


if __name__ == "__main__":
    main()
