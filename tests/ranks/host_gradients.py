"""Run under mpiexec: gradients through functions of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

comm = MPI.COMM_WORLD
RUNS: list[int] = []


def _sine(gradient, x):
    RUNS.append(len(x))
    return gradient * np.cos(x)


@distspmd.host(like=lambda x: x, vjp=_sine)
def sine(x):
    return np.sin(x)


def _scaled(gradients, x, factor):
    scaled, total = gradients
    return scaled * factor + total * 2 * x, (scaled * x).sum()


@distspmd.host(like=lambda x, _: (x, x.sum()), vjp=_scaled)
def scaled(x, factor):
    return x * factor, np.sum(x * x)


@distspmd.host(signature="(n),(n)->(n)", vjp=lambda g, x, w: (g * w, g * x))
def products(x, w):
    RUNS.append(len(x))
    return x * w


@distspmd.host(signature="(n),(n)->(n)", vjp=lambda g, x, w: (g * w, (g * x).sum(axis=0)))
def weighted(x, w):
    return x * w


@distspmd.host(like=lambda x, **_: x, vjp=lambda g, x, *, bias, w: (g * w, None, g * x))
def by_name(x, *, bias, w):
    return x * w + bias


def whole(x, w):
    x.requires_grad_()
    loss = np.sum(sine(x) * x * w)
    loss.backward()
    return x.grad


def several(x, w):
    x.requires_grad_()
    w.requires_grad_()
    y, total = scaled(x, w[0, 0])
    loss = np.sum(y * y) * total
    loss.backward()
    return x.grad, w.grad


def split(x, w):
    x.requires_grad_()
    w.requires_grad_()
    loss = np.sum(products(x, w) * x)
    loss.backward()
    return x.grad, w.grad


def broadcast(x, w):
    x.requires_grad_()
    w.requires_grad_()
    row = w[0] * 2
    loss = np.sum(weighted(x, row) * x)
    loss.backward()
    return x.grad, w.grad


def named(x, w):
    x.requires_grad_()
    w.requires_grad_()
    loss = np.sum(by_name(w=w, x=x, bias=2.0) * x)
    loss.backward()
    return x.grad, w.grad


def _several(x, w):
    y, total = x * w[0, 0], (x * x).sum()
    of_w = np.zeros_like(w)
    of_w[0, 0] = (2 * y * x).sum() * total
    return 2 * y * w[0, 0] * total + 2 * x * (y * y).sum(), of_w


def _broadcast(x, w):
    of_w = np.zeros_like(w)
    of_w[0] = 2 * (x * x).sum(axis=0)
    return 4 * x * w[0], of_w


CASES: dict[Callable[..., Any], Callable[..., Any]] = {
    whole: lambda x, w: ((np.cos(x) * x + np.sin(x)) * w,),
    several: _several,
    split: lambda x, w: (2 * w * x, x * x),
    broadcast: _broadcast,
    named: lambda x, w: (2 * w * x + 2.0, x * x),
}
"""Programs, and the gradients that they have by hand."""


def main() -> None:
    rng = np.random.default_rng(0)
    for dtype, close in ((np.float64, 1e-12), (np.float32, 1e-4)):
        x, w = rng.random((7, 3)).astype(dtype), rng.random((7, 3)).astype(dtype)
        for function, by_hand in CASES.items():
            RUNS.clear()
            sdfg = numpy_program(function, x, w)
            spaces = {"products": (comm.size,)} if function is split else {}
            program = distspmd.compile(distspmd.lower(sdfg, spaces), comm)
            found = program(x.copy(), w.copy())
            if comm.rank == 0:
                found = found if isinstance(found, tuple) else (found,)
                for mine, true in zip(found, by_hand(x, w), strict=True):
                    assert mine.dtype == dtype
                    np.testing.assert_allclose(mine, true, rtol=close)
            rows = comm.gather(list(RUNS))
            if comm.rank == 0 and function is whole:
                assert rows == [[7], *([] for _ in range(1, comm.size))]
            if comm.rank == 0 and function is split:
                assert sum(sum(each) for each in rows) == 7
                assert all(rows)


main()
if comm.rank == 0:
    print("right")
