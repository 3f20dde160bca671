"""Library calls on one rank, predicted and measured: ``python benchmarks/library_calls.py``.

The machine is measured first, unless ``--assumed`` asks for what is assumed of any.
Each call is a program of its own, compiled as users' are; figures are the least of some runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine

LINE, EDGE = 1 << 20, 400
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def calls() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Each call with its arguments."""
    rng = np.random.default_rng(0)
    x, a = rng.random(LINE), rng.random((EDGE, EDGE))
    s = a @ a.T / EDGE + np.eye(EDGE)
    stack = rng.random((1000, 8, 8))
    return {
        "sort": (lambda x: np.sort(x), (x,)),
        "sort of rows": (lambda x: np.sort(x, axis=1), (x.reshape(1024, -1),)),
        "argsort": (lambda x: np.argsort(x), (x,)),
        "median": (lambda x: np.median(x), (x,)),
        "percentile": (lambda x: np.percentile(x, 90), (x,)),
        "unique": (lambda x: np.unique(x), (x,)),
        "searchsorted": (lambda x, y: np.searchsorted(x, y), (np.sort(x), x[: LINE // 4])),
        "digitize": (lambda x, y: np.digitize(y, x), (np.linspace(0, 1, 64), x)),
        "interp": (lambda x, y: np.interp(y, x, x), (np.linspace(0, 1, 4096), x)),
        "cumsum": (lambda x: np.cumsum(x), (x,)),
        "fft": (lambda x: np.fft.fft(x), (x,)),
        "fft of rows": (lambda x: np.fft.fft(x), (x.reshape(1024, -1),)),
        "rfft": (lambda x: np.fft.rfft(x), (x,)),
        "solve": (lambda a, b: np.linalg.solve(a, b), (a, a[0])),
        "solve, many": (lambda a, b: np.linalg.solve(a, b), (a, a.T.copy())),
        "solve, stack": (lambda a, b: np.linalg.solve(a, b), (stack, stack[:, :, :1].copy())),
        "inv": (lambda a: np.linalg.inv(a), (a,)),
        "det": (lambda a: np.linalg.det(a), (a,)),
        "cholesky": (lambda a: np.linalg.cholesky(a), (s,)),
        "qr": (lambda a: np.linalg.qr(a)[1], (a,)),
        "lstsq": (lambda a, b: np.linalg.lstsq(a, b)[0], (a, a[0])),
        "eigh": (lambda a: np.linalg.eigh(a)[0], (s,)),
        "eigvalsh": (lambda a: np.linalg.eigvalsh(a), (s,)),
        "eig": (lambda a: np.linalg.eig(a)[0], (a[:160, :160].copy(),)),
        "svd": (lambda a: np.linalg.svd(a)[1], (a,)),
        "singular values": (lambda a: np.linalg.svd(a, compute_uv=False), (a,)),
        "matmul": (lambda a: a @ a, (a,)),
        "sum": (lambda x: np.sum(x), (x,)),
        "exp": (lambda x: np.exp(x), (x,)),
        "take": (lambda x, i: x[i], (x, rng.permutation(LINE))),
        "put": (_put, (x.copy(), rng.permutation(LINE))),
        "add.at": (_add_at, (x.copy(), rng.integers(0, LINE, LINE))),
    }


def _put(x: Any, index: Any) -> None:
    x[index] = 1.0


def _add_at(x: Any, index: Any) -> None:
    np.add.at(x, index, 1.0)


def measured(function: Callable[..., Any], given: tuple[Any, ...], machine: Machine) -> Any:
    """Seconds of a call that are predicted, and the least that it takes."""
    lowering = distspmd.lower(numpy_program(function, *given), {}, machine=machine)
    predicted = distspmd.predict(lowering).seconds
    seconds = []
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        program(*given)
        begin = time.perf_counter()
        while len(seconds) < 5 or time.perf_counter() - begin < 0.2:
            start = time.perf_counter()
            program(*given)
            seconds.append(time.perf_counter() - start)
    return predicted, min(seconds)


def main() -> None:
    """Print a line for each call, on one thread."""
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--assumed", action="store_true", help="measure no machine")
    parser.add_argument("names", nargs="*", help="of calls; all where left out")
    options = parser.parse_args()
    machine = Machine()
    if not options.assumed:
        from distspmd.runtime.measure.hosts import measure

        machine = measure(ranks=1)
    print(f"{'':16} predicted  measured  predicted / measured")
    ratios = {}
    for name, (function, given) in calls().items():
        if options.names and name not in options.names:
            continue
        predicted, seconds = measured(function, given, machine)
        ratios[name] = predicted / seconds
        print(f"{name:16} {predicted:9.2e} {seconds:9.2e}  {ratios[name]:.2f}", flush=True)
    within = sum(0.5 <= each <= 2 for each in ratios.values())
    print(f"{within} of {len(ratios)} within a factor of 2")


if __name__ == "__main__":
    main()
