"""One matrix on ranks of one thread: ``python benchmarks/matrices.py [names] [--ranks 1 2]``.

For each function: the time of a call beside what is predicted, with the matrix on rank 0 before and
a sum of the result after it; bytes that ranks receive in it, and those that textbooks count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from on_ranks import best_of, measure_on_ranks

import distspmd
from distspmd.frontend import numpy_program

EDGE, ROWS, COLUMNS = 2000, 200_000, 60
_comm = MPI.COMM_WORLD


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Each function with its arguments."""
    rng = np.random.default_rng(0)
    a, tall = rng.standard_normal((EDGE, EDGE)), rng.standard_normal((ROWS, COLUMNS))
    definite = a @ a.T / EDGE + np.eye(EDGE)
    return {
        "cholesky": (lambda a: np.linalg.cholesky(a).sum(), (definite,)),
        "solve": (lambda a, b: np.linalg.solve(a, b).sum(), (a, a[0])),
        "det": (lambda a: np.linalg.slogdet(a)[1], (a,)),
        "inv": (lambda a: np.linalg.inv(a).sum(), (a,)),
        "qr": (lambda a: np.linalg.qr(a)[0].sum(), (tall,)),
        "svd": (lambda a: np.linalg.svd(a, full_matrices=False)[0].sum(), (tall,)),
        "qr_square": (lambda a: np.linalg.qr(a)[0].sum(), (a,)),
        "eigh": (lambda a: np.linalg.eigh(a)[1].sum(), (definite,)),
        "svdvals": (lambda a: np.linalg.svd(a, compute_uv=False).sum(), (a,)),
        "svd_square": (lambda a: np.linalg.svd(a)[0].sum(), (a,)),
        "lstsq": (lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0].sum(), (tall, tall[:, 0] + 1)),
    }


def _lowered(function: Callable[..., Any], given: Sequence[Any]) -> Any:
    sdfg = numpy_program(function, *given, host="refuse")
    return distspmd.lower(sdfg, ranks=_comm.size) if _comm.size > 1 else distspmd.lower(sdfg, {})


def measure(names: Sequence[str]) -> None:
    """Print a line for each function."""
    for name, (function, given) in programs().items():
        if names and name not in names:
            continue
        make = functools.partial(_lowered, function, given)
        with distspmd.compile(make, _comm) as program:
            lowering = program.lowering
            own = given if _comm.rank == 0 else ()
            program(*own)
            seconds = best_of(functools.partial(_call, program, own), 7)
        if _comm.rank == 0:
            predicted = distspmd.predict(lowering).seconds
            calls = [call for call in lowering.matrices if call.is_split]
            numpy = f", NumPy {best_of(lambda: function(*given), 3):.3f}" if _comm.size == 1 else ""  # noqa: B023
            print(
                f"{name:9} {_comm.size} ranks: {seconds:.3f} s (predicted {predicted:.3f}{numpy}), "
                f"{1 - lowering.whole:.0%} split, {sum(c.expected_bytes for c in calls):,} bytes, "
                f"{sum(c.textbook for c in calls):,} in textbooks",
                flush=True,
            )


def _call(program: Any, own: Sequence[Any]) -> None:
    _comm.Barrier()
    program(*own)
    _comm.Barrier()


if __name__ == "__main__":
    measure_on_ranks(__file__, __doc__, measure, (1, 2))
