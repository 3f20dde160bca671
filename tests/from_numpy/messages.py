"""Programs that print, and that end with errors of their own; all ranks run them and compare."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramError
from distspmd.frontend import numpy_program

COMM = MPI.COMM_WORLD


PERCENT, FORMAT = "%d: %.2f", "{} {a:6.2f}"


def prints(x: Any, k: Any) -> Any:
    n = len(x) - 1
    total = np.sum(x)
    print("total", total, f"{total:.3f} of {x.shape} {n!r:>4}", k)
    print(x[:2], np.max(x) > 1, [total, n], (total,), sep=" | ", end=";\n")
    for i in range(3):
        if x[i, 0] > 0.5:
            print(i, PERCENT % (i, x[i, 0]), FORMAT.format(k, a=x[i, 1]))
    mean = x.mean(axis=0)
    print(f"{mean}", "text")
    print()
    return total


def checked(x: Any, limit: float) -> Any:
    n = len(x)
    assert np.all(x >= 0), f"negative: {x.min()}"
    y = x
    for i in range(n):
        if x[i] > limit:
            raise ValueError(f"element {i} is {x[i]:.2f}, above {limit}")
        y = y + x[i]
    if y[0] > 100:
        z = y - 1
    elif y[0] > 50:
        raise OverflowError("large")
    else:
        z = y + 1
    assert z[0] != 7
    return z


def factorised(a: Any, b: Any) -> Any:
    low = np.linalg.cholesky(a)
    return np.linalg.solve(low, b)


def stacked(a: Any) -> Any:
    return np.linalg.inv(a)


def run(program: Any, called: Any) -> tuple[Any, str, str]:
    """What a program prints, and its error, on this rank."""
    out = io.StringIO()
    error = ""
    kind = ""
    with contextlib.redirect_stdout(out):
        try:
            called()
        except Exception as problem:
            kind, error = type(problem).__name__, str(problem)
            if not isinstance(problem, ProgramError):
                kind = f"Program{kind}"
    return kind, error, out.getvalue()


def compare(function: Any, *inputs: Any) -> None:
    """Run a function by NumPy and on all ranks, for each of some arguments."""
    lowered = None
    if COMM.rank == 0:
        sdfg = numpy_program(function, *inputs[0])
        spaces = distspmd.iteration_spaces(sdfg)
        split = {s.name: (COMM.size, *[1] * (len(s.parameters) - 1)) for s in spaces}
        lowered = distspmd.lower(sdfg, split)
    with distspmd.compile(lowered, COMM) as program:
        for given in inputs:
            kind, error, text = run(function, lambda given=given: function(*given))
            mine = given if COMM.rank == 0 else ()
            found = run(function, lambda mine=mine: program(*mine))
            assert found[2] == (text if COMM.rank == 0 else ""), (COMM.rank, found, text)
            if kind != found[0]:
                raise AssertionError((kind, error, found))
            assert not error or error in found[1], (COMM.rank, error, found)
            assert not error or "messages.py:" in found[1]


def main() -> None:
    """All programs; each once without an error, and again after one."""
    x = np.random.default_rng(0).integers(0, 64, (4, 3)) / 32  # whose sums are exact
    compare(prints, (x, np.int32(5)), (-x, np.int32(7)))
    ok, negative, large = np.full(5, 0.5), np.array([1.0, -1, 1]), np.arange(5.0)
    odd = np.array([30.0, 1, 2, 3, 4])
    seven = np.array([1.0, 2, 1, 1, 0])
    cases = [(v, w) for v, w in ((ok, 1), (-ok, 1), (large, 3), (ok, 1), (odd, 31), (seven, 3))]
    del negative
    compare(checked, *((v, float(w)) for v, w in cases))
    definite = np.eye(4) * 2 + 0.1
    compare(factorised, (definite, np.ones(4)), (-definite, np.ones(4)), (definite, np.ones(4)))
    many = np.stack([definite] * 5)
    singular = many.copy()
    singular[4] = 0
    compare(stacked, (many,), (singular,), (many,))
    if COMM.rank == 0:
        print("all as in Python", flush=True)


if __name__ == "__main__":
    main()
