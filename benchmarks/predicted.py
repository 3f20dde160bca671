"""Whole programs, predicted and measured: ``python benchmarks/predicted.py [--ranks 1 2]``.

Each program runs on one rank, with the schedule that is searched for, and with schedules by hand:
each of its heaviest spaces split along one of its parameters. The machine is measured first. A line
has predicted and measured seconds of what was searched for, and how much longer that takes than the
best of all that ran. Ranks have one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import writes
from mpi4py import MPI
from prediction import FIRST, running_first

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine

HAND = 3
"""Schedules by hand."""
N = 1 << 20


def jacobi(a: Any, b: Any) -> None:
    """A stencil in two dimensions."""
    for _ in range(20):
        b[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 4
        a[1:-1, 1:-1] = (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]) / 4


def mixture(x: Any, mu: Any, s: Any, w: Any) -> None:
    """Expectation and maximisation of a mixture of Gaussians."""
    for _ in range(5):
        q = -0.5 * ((x[:, None, :] - mu[None]) ** 2 / s[None]).sum(2) + np.log(w)
        q = np.exp(q - q.max(1, keepdims=True))
        q /= q.sum(1, keepdims=True)
        nk = q.sum(0)
        mu[:] = (q.T @ x) / nk[:, None]
        s[:] = (q.T @ (x * x)) / nk[:, None] - mu**2 + 1e-3
        w[:] = nk / x.shape[0]


def bodies(x: Any, m: Any, v: Any) -> None:
    """Gravity of all on all."""
    for _ in range(3):
        d = x[None] - x[:, None]
        r = (d**2).sum(2) + 1e-3
        v += 1e-3 * (d * (m[None] / r**1.5)[:, :, None]).sum(1)
        x += 1e-3 * v


def conjugate_gradients(a: Any, b: Any) -> Any:
    """Iterations of the method."""
    x, r = np.zeros(b.shape[0]), b.copy()
    p, rs = r.copy(), r @ r
    for _ in range(20):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        rn = r @ r
        p = r + (rn / rs) * p
        rs = rn
    return x


def pricing(s: Any, k: Any, t: Any) -> Any:
    """Options by Black and Scholes."""
    d = (np.log(s / k) + 0.07 * t) / (0.3 * np.sqrt(t))
    e = d - 0.3 * np.sqrt(t)
    return s / (1 + np.exp(-1.6 * d)) - k * np.exp(-0.05 * t) / (1 + np.exp(-1.6 * e))


def attention(q: Any, k: Any, v: Any) -> Any:
    """One head."""
    s = q @ k.T
    p = np.exp(s - s.max(1, keepdims=True))
    return (p / p.sum(1, keepdims=True)) @ v


def components(x: Any) -> Any:
    """Principal components."""
    y = x - x.mean(0)
    w, u = np.linalg.eigh(y.T @ y / x.shape[0])
    return y @ u[:, -8:], w


def order(x: Any) -> Any:
    """Sorts of a line and what is between."""
    y = np.sort(np.sin(x * 17))
    return np.median(x) + (y[1:] - y[:-1]).max()


def spectrum(a: Any) -> Any:
    """A filter in two dimensions."""
    f = np.fft.fft2(a)
    return np.fft.ifft2(f * 0.5).real


def least_squares(a: Any, b: Any) -> Any:
    """Normal equations."""
    return np.linalg.solve(a.T @ a + 1e-3 * np.eye(a.shape[1]), a.T @ b)


def gathered(x: Any, index: Any, y: Any) -> None:
    """Elements that data choose, and a stencil."""
    for _ in range(10):
        y[:] = x[index] * 2
        x[1:-1] = (y[:-2] + y[2:]) * 0.5


def perceptron(x: Any, w: Any, v: Any, y: Any) -> None:
    """Steps of training."""
    for _ in range(5):
        h = np.maximum(x @ w, 0)
        e = (h @ v - y) / x.shape[0]
        g = (e @ v.T) * (h > 0)
        v -= 0.1 * (h.T @ e)
        w -= 0.1 * (x.T @ g)


def programs() -> dict[Callable[..., Any], tuple[Any, ...]]:
    """Each program with its arguments."""
    rng = np.random.default_rng(0)
    square, line = rng.random((1500, 1500)), rng.random(N)
    points = rng.random((N // 8, 4))
    spd = square @ square.T + 1500 * np.eye(1500)
    return {
        jacobi: (square, square.copy()),
        mixture: (points, rng.random((8, 4)), rng.random((8, 4)) + 1, np.ones(8) / 8),
        bodies: (rng.random((1000, 3)), rng.random(1000), np.zeros((1000, 3))),
        conjugate_gradients: (spd, rng.random(1500)),
        pricing: (line + 1, line + 1.1, line + 0.5),
        attention: tuple(rng.random((3, 1500, 64))),
        components: (rng.random((20000, 64)),),
        order: (line,),
        spectrum: (rng.random((1024, 1024)),),
        least_squares: (rng.random((4000, 300)), rng.random(4000)),
        gathered: (line, rng.integers(0, N, N), line.copy()),
        perceptron: (
            rng.random((4000, 200)),
            rng.random((200, 300)) / 200,
            rng.random((300, 10)) / 300,
            rng.random((4000, 10)),
        ),
        **writes.programs(),
    }


def by_hand(program: Any, alone: Any, ranks: int) -> list[dict[str, Any]]:
    """Schedules that split one of the heaviest spaces along its longest parameter."""
    shares = alone.shares
    heaviest = sorted(alone.spaces, key=lambda space: -shares.get(space.name, 0))
    spaces = {space.name: space for space in distspmd.iteration_spaces(program)}
    found = []
    for space in heaviest:
        if space.name in spaces and space.can_split and len(found) < HAND:
            lengths = [float(each.end - each.begin) for each in spaces[space.name].ranges]
            longest = int(np.argmax(lengths))
            found.append(
                {space.name: tuple(ranks if d == longest else 1 for d in range(len(lengths)))}
            )
    return found


def lowered(
    function: Callable[..., Any], given: tuple[Any, ...], ranks: int, machine: Machine
) -> list[Any]:
    """What was searched for, one rank, and schedules by hand."""
    program = numpy_program(function, *given)
    alone = distspmd.lower(copy.deepcopy(program), {}, machine=machine)
    if ranks == 1:
        return [alone]
    found = [distspmd.lower(copy.deepcopy(program), ranks=ranks, machine=machine), alone]
    for schedule in by_hand(program, alone, ranks):
        with contextlib.suppress(DistSPMDError):  # it cannot be split so
            twin = copy.deepcopy(program)
            found.append(distspmd.lower(twin, schedule, search=False, machine=machine))
    return found


def seconds_of(compiled: list[Any], given: tuple[Any, ...], comm: Any, rounds: int) -> list[float]:
    """The least seconds of each program, called in turn, of the slowest rank."""
    best = [float("inf")] * len(compiled)
    with running_first(comm.rank):
        for turn in range(rounds + 1):
            for number, program in enumerate(compiled):
                own = [each.copy() for each in given]
                comm.Barrier()
                begin = time.perf_counter()
                program(*own)
                taken = comm.allreduce(time.perf_counter() - begin, MPI.MAX)
                best[number] = min(best[number], taken) if turn else best[number]
    return best


def measure(names: list[str], rounds: int) -> None:
    """Print a line for each program, on the ranks that run this."""
    from distspmd.runtime.measure.hosts import measured_on
    from distspmd.runtime.measure.library_calls import build_lines

    comm = MPI.COMM_WORLD
    library = comm.bcast(build_lines() if comm.rank == 0 else None)
    with running_first(comm.rank):
        machine = measured_on(comm, library).shared_by(comm.size, os.cpu_count() or 1)
    ratios, losses = [], []
    for function, given in programs().items():
        if names and function.__name__ not in names:
            continue
        warnings.simplefilter("ignore")
        lowerings = lowered(function, given, comm.size, machine) if comm.rank == 0 else None
        count = comm.bcast(len(lowerings) if lowerings else None)
        compiled = [
            distspmd.compile(lowerings[n] if lowerings else None, comm) for n in range(count)
        ]
        taken = seconds_of(compiled, given, comm, rounds)
        for each in compiled:
            each.close()
        if lowerings:
            predicted = [distspmd.predict(each, machine).seconds for each in lowerings]
            ratios.append(predicted[0] / taken[0])
            losses.append(taken[0] / min(taken))
            others = zip(predicted[1:], taken[1:], strict=True)
            print(
                f"{function.__name__:20} {lowerings[0].ranks} of {comm.size} ranks, "
                f"{1 - lowerings[0].whole:4.0%} split: predicted {predicted[0]:.2e}, measured "
                f"{taken[0]:.2e}, ratio {ratios[-1]:.2f}, to the best {losses[-1]:.2f}; others "
                + ", ".join(f"{one:.1e}/{other:.1e}" for one, other in others),
                flush=True,
            )
    if comm.rank == 0:
        off = [max(each, 1 / each) for each in ratios]
        print(
            f"{comm.size} ranks: off by {np.median(off):.2f} at the median, {max(off):.2f} at "
            f"most; at most {max(losses):.2f} of the best of all that ran"
        )


def main() -> None:
    """Launch the ranks, or be one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of programs; all where left out")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first", action="store_true", help="run before all other processes")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure(options.names, options.rounds)
        return
    own = {"OMP_NUM_THREADS": "1", **({FIRST: "1"} if options.first else {})}
    for ranks in options.ranks:
        command = [sys.executable, "-m", "distspmd", "run", "-n", str(ranks), __file__, "--here"]
        command += [*options.names, f"--rounds={options.rounds}"]
        subprocess.run(command, check=True, env={**os.environ, **own})


if __name__ == "__main__":
    main()
