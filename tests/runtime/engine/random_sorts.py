"""Random sorts of lines that lie in parts on the ranks, compared with NumPy's; run on ranks."""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Any

import numpy as np
from mpi4py.MPI import COMM_WORLD as COMM

from distspmd.plans.sample_sort import SampleSort
from distspmd.runtime.engine.engine import Engine

TYPES = ("float64", "float32", "int64", "uint8", "bool", "complex128")
LENGTHS = (0, 1, 2, 3, 5, 17, 100, 1000, 19_999)


def a_line(rng: Any, dtype: np.dtype[Any], length: int) -> Any:
    """Elements in no order, in order, the same, or few different ones; with NaN and zeros."""
    most = int(rng.choice([1, 2, 7, 250]))
    line = rng.integers(0, most + 1, length).astype(np.float64)
    if dtype.kind in "fc" and rng.random() < 0.5:
        line = rng.standard_normal(length)
    if dtype.kind == "c":
        line = line + 1j * rng.integers(0, 3, length)
    found = line.astype(dtype)
    if dtype.kind in "fc" and length:
        found[rng.random(length) < 0.1] = np.nan
        found[rng.random(length) < 0.1] = -0.0
        found[rng.random(length) < 0.05] = np.inf
    order = rng.integers(0, 3)
    return np.sort(found)[:: 1 if order else -1] if order < 2 else found


def parts_of(rng: Any, length: int, ranks: int) -> list[tuple[int, int]]:
    """Parts of some ranks, of which some are empty; ranks may have the same ones."""
    holders = int(rng.integers(1, ranks + 1))
    ends = np.sort(rng.integers(0, length + 1, holders - 1))
    cuts = [0, *ends.tolist(), length]
    found = list(itertools.pairwise(cuts))
    found += [found[int(rng.integers(0, holders))] for _ in range(ranks - holders)]
    rng.shuffle(found)
    return [(int(a), int(b)) for a, b in found]


def main(path: str, cases: int) -> None:
    """Compare sorts, and the bytes that move."""
    library = ctypes.CDLL(path)
    rng = np.random.default_rng(3)
    for case in range(cases):
        dtype = np.dtype(rng.choice(TYPES))
        length = int(rng.choice(LENGTHS))
        line, parts = a_line(rng, dtype, length), parts_of(rng, length, COMM.size)
        begin, end = parts[COMM.rank]
        for name in ("sort", "argsort", "choose"):
            mask = rng.random(length) < rng.choice([0.1, 0.9])
            itemsize = dtype.itemsize + 8 * (name == "argsort")
            itemsize += -itemsize % 8 if name == "argsort" else 0
            sort = SampleSort("x", itemsize, tuple(parts), chooses=name == "choose")
            engine = Engine(COMM, [], talks=[sort])
            step = int(rng.integers(1, 3))
            own = np.repeat(line[begin:end], step)
            found = np.full(end - begin, 9, np.int64 if name == "argsort" else dtype)
            function = getattr(library, f"{name}_{dtype}")
            pointer, number = ctypes.c_void_p, ctypes.c_int64
            function.argtypes = [number] * 4 + [pointer, number, pointer, pointer]
            chosen = mask[begin:end].copy()
            ends = own.ctypes.data, step, found.ctypes.data, chosen.ctypes.data
            function(engine.context, 0, begin, end, *ends)
            if name == "choose":
                wanted = np.zeros(length, dtype)
                wanted[: mask.sum()] = line[mask]
            else:
                wanted = (np.sort if name == "sort" else np.argsort)(line, kind="stable")
            wanted = wanted[begin:end]
            told = f"case {case}: {name} of {length} {dtype} in {parts}"
            np.testing.assert_array_equal(found, wanted, err_msg=told)
            received = COMM.allreduce(engine.talk_statistics(0).received_bytes)
            assert received == sort.received_bytes(mask if name == "choose" else line), (
                told,
                received,
            )
            assert received <= sort.most_bytes, told
            engine.close()
    if COMM.rank == 0:
        print(f"{cases} sorts agree on {COMM.size} ranks")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
