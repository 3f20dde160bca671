"""The rows of the table of peers (`table.py`): one function each."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from table import Call, Calls, row

import distspmd
from distspmd.frontend import numpy_program

# -- spectral steps -------------------------------------------------------------------------------


def spectral(w: Any, kx: Any, ky: Any) -> None:
    """Decaying vorticity by Fourier transforms, 20 steps."""
    k2 = kx**2 + ky**2
    k2[0, 0] = 1.0
    for _ in range(20):
        wh = np.fft.fft2(w)
        psi = wh / k2
        u = np.real(np.fft.ifft2(1j * ky * psi))
        v = np.real(np.fft.ifft2(-1j * kx * psi))
        wx, wy = np.real(np.fft.ifft2(1j * kx * wh)), np.real(np.fft.ifft2(1j * ky * wh))
        w -= 1e-3 * (u * wx + v * wy)


def filtered(w: Any, k: Any) -> None:
    """A filter in frequencies, 20 times."""
    for _ in range(20):
        w[:] = np.fft.ifft2(np.fft.fft2(w) * k)


def _waves(n: int) -> tuple[np.ndarray, np.ndarray]:
    k = np.fft.fftfreq(n, 1 / n)
    full = np.broadcast_arrays(k[:, None], k[None, :])
    return np.ascontiguousarray(full[0]), np.ascontiguousarray(full[1])


def _compiled(comm: Any, function: Any, given: tuple[Any, ...]) -> Any:
    """A program that rank 0 has lowered for the ranks of a row."""
    lowering = None
    if comm.rank == 0:
        sdfg = numpy_program(function, *given, host="refuse")
        lowering = distspmd.lower(sdfg, ranks=comm.size)
    return distspmd.compile(lowering, comm)


def _alone(comm: Any, call: Call) -> Call:
    """A peer that is one process; the others wait at the end."""
    return call if comm.rank == 0 else lambda: None


def _transforms(comm: Any, function: Any, given: tuple[np.ndarray, ...], nbytes: float) -> Calls:
    """A program of NumPy's transforms, beside itself in NumPy, and with SciPy's threads."""
    compiled = _compiled(comm, function, given)
    first = [a.copy() for a in given]

    def fresh() -> None:
        for a, b in zip(given, first, strict=True):
            a[...] = b

    compiled(*given)
    found = given[0].copy()
    fresh()
    function(*given)
    if comm.rank == 0:
        np.testing.assert_allclose(found, given[0], atol=1e-10)
    peers = {"NumPy": _alone(comm, partial(function, *given))}
    missing = {}
    try:
        import scipy.fft

        peers["NumPy by SciPy's threads"] = _alone(
            comm, partial(_by_scipy, scipy.fft, comm.size, function, given)
        )
    except ImportError as error:
        missing["SciPy"] = str(error)
    try:
        import pyfftw.interfaces.numpy_fft as fftw  # type: ignore[import-not-found]

        peers["FFTW"] = _alone(comm, partial(_by_scipy, fftw, comm.size, function, given))
    except ImportError as error:
        missing["FFTW"] = str(error)
    return Calls(lambda: compiled(*given), peers, nbytes, missing, fresh)


def _by_scipy(library: Any, workers: int, function: Any, given: Any) -> None:
    """The program with the transforms of another library in NumPy's place."""
    own = np.fft.fft2, np.fft.ifft2
    name = "workers" if library.__name__ == "scipy.fft" else "threads"
    np.fft.fft2, np.fft.ifft2 = (
        partial(f, **{name: workers}) for f in (library.fft2, library.ifft2)
    )
    try:
        function(*given)
    finally:
        np.fft.fft2, np.fft.ifft2 = own


@row("spectral step, 20 of 512 x 512", wanted=0.9)
def spectral_step(comm: Any, small: bool) -> Calls:
    n = 64 if small else 512
    given = (np.random.default_rng(0).random((n, n)), *_waves(n))
    return _transforms(comm, spectral, given, 0.0)


@row("filter by FFT, 20 of 512 x 512", wanted=0.9)
def filter_step(comm: Any, small: bool) -> Calls:
    n = 64 if small else 512
    kx, ky = _waves(n)
    w = np.random.default_rng(0).random((n, n)) + 0j
    return _transforms(comm, filtered, (w, np.exp(-1e-4 * (kx**2 + ky**2))), 0.0)


# -- redistributions ------------------------------------------------------------------------------

TRANSPORTS = ("limit", "pull", "isend", "Alltoallw", "mpi4py-fft")
"""What moves the same boxes; JAX and others are in `redistribution.py`."""


def _redistribution(name: str, ours: str, comm: Any, small: bool) -> Calls:
    from cases import cases, operand
    from methods import METHODS, Unsuited

    from distspmd.layouts import intervals

    megabytes = 0.1 if small else 64
    (case,) = (c for c in cases(comm.size, megabytes) if c.name == name)
    tiles = [operand(case.layouts[0], comm.rank)]
    tiles += [
        np.zeros(intervals.shape(layout.box(comm.rank)), np.float32) for layout in case.layouts[1:]
    ]
    peers: dict[str, Call] = {}
    missing: dict[str, str] = {}

    def add(method: str) -> None:
        try:
            with suppress(Unsuited):
                peers[method] = METHODS[method](comm, case, tiles).run
        except ImportError as error:
            missing[method] = str(error)

    for method in TRANSPORTS:
        add(method)
    nbytes = 2 * case.megabytes * 2**20
    return Calls(METHODS[ours](comm, case, tiles).run, peers, nbytes, missing)


for _name in ("row to column", "column to row", "uneven", "split to replicated"):
    for _kind, _ours in (("plain", "distspmd"), ("shared", "shared tiles")):
        row(f"{_name}, {_kind} tiles")(partial(_redistribution, _name, _ours))
