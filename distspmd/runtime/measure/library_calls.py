"""Measures library calls on the ranks of this host: each kind at two sizes, for its two rates.

Routines on lines are those of the runtime's headers, compiled for the purpose; functions of LAPACK
are those that NumPy calls.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distspmd.cache.entries import ensure_entry
from distspmd.plans.machine import Kind
from distspmd.runtime.compilers import processes
from distspmd.runtime.compilers.failures import compilation_error
from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import FLAGS, INCLUDE, version

_LIBRARY = "lines.so"
_SOURCE = """
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numeric>
#include <vector>
#include "distspmd/kernels/lines.hpp"
#include "distspmd/kernels/fourier.hpp"
extern "C" {
void line(const double *a, double *out, int64_t n) {
  distspmd::lines::scan(a, out, n, [](double x, double y) { return x + y; });
}
void sort(const double *a, double *out, int64_t n) { distspmd::lines::sort(a, out, n); }
void order(const double *a, int64_t *out, int64_t n) { distspmd::lines::argsort(a, out, n); }
void search(const double *a, int64_t *out, int64_t n) {
  for (int64_t k = 0; k < n; ++k) out[k] = distspmd::lines::search(a + n, n, a[k], true);
}
void transform(const std::complex<double> *a, std::complex<double> *out, int64_t n) {
  distspmd::fourier::complex_to_complex({}, a, n, out, n, false, 1.0);
}
}
"""


@dataclass(frozen=True)
class Call:
    """A library call of some size.

    Attributes:
        operations: that the cost model counts.
        nbytes: of its operands.
        run: calls it.
    """

    operations: float
    nbytes: float
    run: Callable[[], Any]


Made = Callable[[int], Call]
"""A call of a size."""


def build_lines() -> Path:
    """Compile the routines that are measured, unless the cache has them; the library's path.

    Raises:
        CompilationError: with what the compiler said.
        ToolchainError: there is no compiler.
    """
    compiler = find_compiler()
    key = hashlib.sha256(repr((compiler.command, FLAGS, _SOURCE)).encode())
    key.update(version(compiler.command))
    for name in ("kernels/lines", "kernels/fourier", "third_party/pocketfft_hdronly"):
        key.update((INCLUDE / "distspmd" / f"{name}.hpp").read_bytes())

    def make(folder: Path) -> list[str]:
        (folder / "lines.cpp").write_text(_SOURCE)
        command = [*compiler.command, *FLAGS, "-march=native", f"-I{INCLUDE}", "-shared"]
        done = processes.run_command(
            [*command, str(folder / "lines.cpp"), "-o", str(folder / _LIBRARY)]
        )
        if done.returncode != 0:
            raise compilation_error("what is measured", done, folder)
        return [_LIBRARY]

    return ensure_entry("measured", key.hexdigest()[:32], make, processes.goes_on) / _LIBRARY


def measure_calls(library: Path, least: Callable[[Callable[[], Any]], float]) -> dict[Kind, Any]:
    """Seconds for an operation and for a byte, by kind of library call.

    Args:
        library: what :func:`build_lines` has made.
        least: the least seconds of some calls, of the slowest rank.
    """
    found = {}
    for kind, (made, sizes) in _measured(ctypes.CDLL(str(library))).items():
        calls = [made(size) for size in sizes]
        found[kind] = rate([(c.operations, c.nbytes) for c in calls], [least(c.run) for c in calls])
    return found


def rate(works: Sequence[tuple[float, float]], seconds: Sequence[float]) -> tuple[float, float]:
    """Seconds for an operation and for a byte, of what one or two calls take.

    Args:
        works: operations and bytes of each.
        seconds: that each takes.
    """
    operations, nbytes = works[-1]
    if len(works) == 1:
        return seconds[0] / operations, 0.0
    few, little = works[0]
    apart = few * nbytes - operations * little
    byte = (few * seconds[-1] - operations * seconds[0]) / apart if apart else 0.0
    byte = min(max(0.0, byte), seconds[-1] / nbytes / 2)  # noise is no call for nothing
    return (seconds[-1] - byte * nbytes) / operations, byte


def _measured(library: ctypes.CDLL) -> dict[Kind, tuple[Made, tuple[int, ...]]]:
    """What is called for each kind, and of which sizes."""
    logarithmic = (1 << 13, 1 << 18)
    small_and_large = (64, 320)
    return {
        Kind.LINE: (_line(library.line, lambda n: n), (1 << 14,)),
        Kind.SORT: (_line(library.sort, _times_logarithm), logarithmic),
        Kind.ORDER: (_line(library.order, _times_logarithm), logarithmic),
        Kind.SEARCH: (_line(library.search, _times_logarithm, in_order=True), (1 << 18,)),
        Kind.TRANSFORM: (
            _line(library.transform, _times_logarithm, width=2),
            (1 << 13, 1 << 20),
        ),
        Kind.LU: (_matrix(np.linalg.inv, 8 / 3, 2), small_and_large),
        Kind.CHOLESKY: (_matrix(np.linalg.cholesky, 1 / 3, 2), small_and_large),
        Kind.QR: (_matrix(np.linalg.qr, 8 / 3, 3), small_and_large),
        Kind.EIGEN: (_matrix(np.linalg.eigh, 9.0, 2), small_and_large),
        Kind.GENERAL_EIGEN: (_matrix(np.linalg.eig, 25.0, 2, is_symmetric=False), (48, 160)),
        Kind.SVD: (_matrix(np.linalg.svd, 21.0, 3), small_and_large),
    }


def _times_logarithm(n: int) -> float:
    return n * float(np.log2(n))


def _line(
    function: Any, operations: Callable[[int], float], width: int = 1, in_order: bool = False
) -> Made:
    """A routine on a line of elements of so many numbers; of another one in order, too."""

    def made(n: int) -> Call:
        given = np.random.default_rng(0).random(2 * n)
        if in_order:
            given[n:].sort()
        out = np.zeros(width * n)
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in (given, out)]
        function.restype = None

        def run() -> None:
            function(*pointers, ctypes.c_int64(n))

        run.__dict__["held"] = given, out  # as long as it is called
        return Call(operations(n), 16.0 * width * n, run)

    return made


def _matrix(function: Any, each: float, matrices: int, is_symmetric: bool = True) -> Made:
    """A function of LAPACK on a symmetric matrix, which is definite, or on another one."""

    def made(n: int) -> Call:
        a = np.random.default_rng(0).random((n, n))
        given = a @ a.T / n + np.eye(n) if is_symmetric else a
        return Call(each * n**3, 8.0 * matrices * n**2, lambda: function(given))

    return made
