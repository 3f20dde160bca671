"""Random Fourier transforms of lines that lie in parts, compared with SciPy's; run on ranks."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import scipy.fft
from mpi4py.MPI import COMM_WORLD as COMM

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.engine.random_sorts import parts_of

from distspmd.plans.long_transform import LongTransform
from distspmd.runtime.engine.engine import Engine

TYPES = ("float64", "float32", "complex128", "complex64")
LENGTHS = (0, 1, 2, 3, 17, 100, 256, 1000, 1009, 2 * 1009, 24 * 37, 8192, 9973, 3 * 5 * 7 * 11 * 13)


def main(path: str, cases: int) -> None:
    """Compare transforms, and the bytes that move."""
    library = ctypes.CDLL(path)
    rng = np.random.default_rng(5)
    for case in range(cases):
        dtype = np.dtype(rng.choice(TYPES))
        length = int(rng.choice(LENGTHS))
        inverse = bool(rng.integers(0, 2))
        line = rng.standard_normal(length)
        if dtype.kind == "c":
            line = line + 1j * rng.standard_normal(length)
        line, parts = line.astype(dtype), parts_of(rng, length, COMM.size)
        made = np.result_type(dtype, np.complex64)
        transform = LongTransform("x", made.itemsize, tuple(parts))
        engine = Engine(COMM, [], talks=[transform])
        step = int(rng.integers(1, 3))
        begin, end = parts[COMM.rank]
        own = np.repeat(line[begin:end], step)
        found = np.full(end - begin, 9, made)
        function = getattr(library, f"transform_{dtype}")
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        function.argtypes = [number] * 3 + [ctypes.c_bool, pointer, number, pointer]
        function(engine.context, begin, end, inverse, own.ctypes.data, step, found.ctypes.data)
        told = f"case {case}: {length} {dtype} in {parts}"
        if length:
            wanted = scipy.fft.ifft(line, norm="ortho") if inverse else scipy.fft.fft(line)
            size = np.abs(wanted).max()
            atol = (2e-5 if made.itemsize == 8 else 1e-13) * size
            np.testing.assert_allclose(found, wanted[begin:end], 0, atol, err_msg=told)
        received = COMM.allreduce(engine.talk_statistics(0).received_bytes)
        assert received == transform.expected_bytes, (told, received, transform.expected_bytes)
        engine.close()
    if COMM.rank == 0:
        print(f"{cases} transforms agree on {COMM.size} ranks")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
