"""Gradients that a program asks for are those of torch, on ranks; what has none is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from conftest import UNOPTIMISED
from parsed_by_dace import numpy_program

import distspmd
from autodiff.programs import GRADIENTS, D, perceptron
from distspmd.errors import UnsupportedProgram
from distspmd.runtime.launch.mpiexec import launch

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("ranks", "step"), [(3, 2), *(pytest.param(n, 1, marks=pytest.mark.slow) for n in (1, 3))]
)
def test_gradients_are_those_of_torch(ranks: int, step: int, tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = launch(
        ["-m", "autodiff.run_gradients", str(step)],
        ranks=ranks,
        timeout=900,
        capture=True,
        env={"PYTHONPATH": path, **UNOPTIMISED, "MALLOC_PERTURB_": "165"},
        cwd=tmp_path,
    ).check()
    outcomes = [line for line in done.stdout.splitlines() if ": " in line]
    assert outcomes == [f"{case.name}: right" for case in GRADIENTS[::step]], done.stdout


def test_gradients_of_a_batch_that_is_split_are_each_reduced_once() -> None:
    lowering = distspmd.lower(numpy_program(perceptron), {"hidden": (3, 1)})
    inside = [m for m in lowering.memlets if not m.from_caller]
    found = {m.data: (m.steps, m.solution.cost.nbytes) for m in inside}
    assert len(inside) == len(found)
    assert found.pop("loss") == ("all_reduce", 2 * 2 * 8)
    assert found == {f"__return_{n}": ("reduce", 2 * 8 * k) for n, k in enumerate((20, 4, 12, 3))}


@dace.program
def looped(x: D[6]):
    x.requires_grad_()
    y = np.zeros((6,))
    y[:] = x
    for _ in range(3):
        y[:] = np.sin(y)
    loss = np.sum(y)
    loss.backward()
    return x.grad


@dace.program
def branching(x: D[6], n: dace.int64):
    x.requires_grad_()
    y = x * 2
    if n > 0:
        y[:] = x * 3
    loss = np.sum(y)
    loss.backward()
    return x.grad


@dace.program
def inside(x: D[6]):
    x.requires_grad_()
    for _ in range(3):
        loss = np.sum(x**2)
        loss.backward()
    return x.grad


@dace.program
def overwritten(x: D[6]):
    x.requires_grad_()
    y = np.exp(x)
    total = np.sum(y**2)
    y[:] = 1.0
    loss = total + np.sum(y)
    loss.backward()
    return x.grad


@dace.program
def remainders(x: D[6]):
    x.requires_grad_()
    loss = np.sum(x % 2.0)
    loss.backward()
    return x.grad


@dace.program
def gathered(x: D[6], k: dace.int64[3]):
    x.requires_grad_()
    y = np.zeros((3,))
    for i in dace.map[0:3]:
        y[i] = x[k[i]]
    loss = np.sum(y)
    loss.backward()
    return x.grad


@dace.program
def triangular(x: D[6]):
    x.requires_grad_()
    y = np.zeros((6,))
    for i in dace.map[0:6]:
        for j in dace.map[0:i]:
            y[i] += x[j]
    loss = np.sum(y)
    loss.backward()
    return x.grad


@dace.program
def greatest(x: D[6]):
    x.requires_grad_()
    y = np.zeros((6,))
    for i, j in dace.map[0:6, 0:6]:
        with dace.tasklet:
            a << x[i]  # noqa: F821
            b << x[j]  # noqa: F821
            out >> y(1, lambda p, q: max(p, q))[i]  # noqa: F821
            out = a * b + a  # noqa: F821, F841
    loss = np.sum(y)
    loss.backward()
    return x.grad


@dace.program
def replaced(x: D[6]):
    x.requires_grad_()
    y = np.zeros((6,))
    y[1:5] = x[0:4]
    y[2:6] = 2 * x[2:6]
    loss = np.sum(y)
    loss.backward()
    return x.grad


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (looped, "asked through a loop or a branch, which writes y, y_slice. Write out its"),
        (branching, "asked through a loop or a branch, which writes y"),
        (inside, "backward() stands inside of a loop, a branch or a function. Write it behind"),
        (overwritten, "'y' is written over, and the gradient of line test_gradients.py:"),
        (remainders, "whose derivative is not known. Write it with functions that have one"),
        (triangular, "asked through a map whose range j others choose"),
        (greatest, "a maximum or minimum of an expression, or with other values that were there"),
        (replaced, "'y' is written over, and the gradient of line test_gradients.py:"),
        (gathered, "asked through a loop, a branch or an index that data decide, in a map"),
    ],
    ids=lambda value: getattr(getattr(value, "f", None), "__name__", ""),
)
def test_what_has_no_known_gradient_is_refused_with_its_line(program: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=rf"test_gradients.py:\d+: .*{re.escape(message)}"):
        distspmd.lower(numpy_program(program), {})


def test_a_function_that_asks_for_gradients_is_lowered_as_it_is() -> None:
    lowering = distspmd.lower(perceptron, {"hidden": (3, 1)})
    assert lowering.ranks == 3
    assert {home.data for home in lowering.homes} >= {"loss"}


def test_an_sdfg_that_asks_for_gradients_is_lowered() -> None:
    @dace.program
    def squares(x: D[6], g: D[6]):
        x.requires_grad_()
        loss = np.sum(x * x)
        loss.backward()
        g[:] = x.grad

    assert distspmd.lower(squares.to_sdfg(), {"g": (3,)}).ranks == 3
