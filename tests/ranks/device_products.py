"""Products of matrices by the library of products of emulated devices, beside NumPy."""

import os
import sys
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
rank = comm.Get_rank()
RNG = np.random.default_rng(0)


def real(*shape: int) -> np.ndarray:
    return RNG.random(shape) - 0.5


def batches(q, k):
    return np.einsum("bshd,bthd->bhst", q, k), np.einsum("bshd,bthe->hde", q, k)


BATCHES = {"q": real(2, 7, 3, 4), "k": real(2, 7, 3, 4)}


def of_doubles(x, w, v, u):
    return x @ w, w.T @ x.T, x @ v, np.dot(v, u)


DOUBLES = {"x": real(7, 5), "w": real(5, 6), "v": real(5), "u": real(5)}


def of_others(x, w, z, y):
    return x @ w, np.einsum("ij,kj->ki", y, z)


OTHERS = {
    "x": real(9, 8).astype(np.float32),
    "w": real(8, 11).astype(np.float32),
    "z": (real(6, 4) + 1j * real(6, 4)).astype(np.complex64),
    "y": (real(5, 4) + 1j * real(5, 4)).astype(np.complex64),
}


def of_letters(n, m):
    """Whole numbers, which the library does not take, over letters that kernels have had, too."""
    return np.einsum("re,en->rn", n, m), np.einsum("re,er->e", n, m), np.einsum("ar,rb->ab", n, m)


LETTERS = {"n": RNG.integers(-9, 9, (6, 5)), "m": RNG.integers(-9, 9, (5, 6))}


def of_rank_0(x):
    return x.T.copy(), x[2] @ x[3]


RANK_0 = {"x": real(6, 5)}


def compiled(function: Any, given: dict[str, Any], split: bool, **options: Any) -> Any:
    lowered = None
    if rank == 0:
        program = distspmd.frontend.numpy_program(function, **given)
        spaces = distspmd.iteration_spaces(program)
        parts = comm.size if split else 1
        schedule = {
            space.name: (parts, *(1,) * (len(space.parameters) - 1))
            for space in spaces
            if space.parameters
        }
        if function is of_rank_0:
            schedule = {"__return_0": (1, parts)}
        lowered = distspmd.lower(program, schedule)
    return distspmd.compile(lowered, comm, device=DEVICE, **options)


def results(program: Any, given: dict[str, Any]) -> Any:
    return program(**given) if rank == 0 else program()


def right(function: Any, given: dict[str, Any], split: bool, calls: int) -> None:
    """All products are computed by the library, and right."""
    with compiled(function, given, split) as program:
        found = results(program, given)
        if rank == 0:
            remarks = [remark for _, _, remark in program.device.spaces]
            assert sum("a product by cuBLAS" in remark for remark in remarks) == calls, remarks
            for mine, wanted in zip(found, function(**given), strict=True):
                assert mine.dtype == wanted.dtype
                assert np.allclose(mine, wanted, rtol=1e-5, atol=1e-6), (mine, wanted)


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Single precision with so many bits of the mantissa, to the nearest."""
    whole = values.view(np.uint32).astype(np.uint64)
    lost = 23 - bits
    whole += (1 << (lost - 1)) - 1 + ((whole >> lost) & 1)
    return (whole >> lost << lost).astype(np.uint32).view(np.float32)


def single(x, w):
    return x @ w


def precisions() -> None:
    """Operands are rounded where that is asked for by name, and nowhere else."""
    given = {name: OTHERS[name] for name in "xw"}
    for arithmetic, bits in (("vector", 23), ("strict", 23), ("tf32", 10), ("bfloat16", 7)):
        with compiled(single, given, False, arithmetic=arithmetic) as program:
            found = results(program, given)
            if rank == 0:
                x, w = (rounded(given[name], bits) if bits < 23 else given[name] for name in "xw")
                assert np.allclose(found, x @ w, rtol=1e-6, atol=1e-6)
                assert np.allclose(found, given["x"] @ given["w"], rtol=0, atol=1e-6) == (bits > 20)
    with pytest.raises(distspmd.errors.ArgumentError, match="fast, tf32, bfloat16, but 'half' was"):
        compiled(single, given, False, arithmetic="half")


def failing() -> None:
    """A library that does not start is an error on all ranks; one that fails ends them."""
    given = {name: OTHERS[name] for name in "xw"}
    if os.environ["DISTSPMD_EMULATED_PRODUCTS"] == "0":
        with pytest.raises(
            distspmd.errors.DeviceError, match="cannot be used: the resource allocation"
        ):
            compiled(single, given, False)
        return
    with compiled(single, given, False) as program:
        results(program, given)
        print("the first call is right", flush=True)
        results(program, given)


if "DISTSPMD_EMULATED_PRODUCTS" in os.environ:
    failing()
else:
    split = comm.size > 1
    right(batches, BATCHES, split, 2)
    right(of_letters, LETTERS, split, 0)
    right(of_rank_0, RANK_0, split, 1)  # others write the sum over nothing, and have no result
    if "all" in sys.argv:
        right(of_doubles, DOUBLES, split, 4)
        right(of_others, OTHERS, split, 2)
        precisions()
comm.Barrier()
if rank == 0:
    print("all is right")
