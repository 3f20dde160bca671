"""Functions under the decorator: shapes from arrays, other shapes, defaults, tiles, mistakes."""

from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD


@distspmd.program(schedule={"hidden": (3, 1)})
def perceptron(x, w, b):
    hidden = x @ w + b
    return np.maximum(hidden, 0)


@distspmd.program(
    schedule={"y": (3,)},
    arguments={"x": "distributed", "y": "distributed"},
    arithmetic="strict",
)
def doubled(x: dace.float64[10], y: dace.float64[10]):
    y[:] = x * 2


@distspmd.program(schedule={"__return": (2,)})
def scaled(x, factor=2.0, offset=1):
    return x * factor + offset


@distspmd.program
@dace.program
def alone(x: dace.float64[6]):
    return x + 1


N, STEPS = dace.symbol("N"), dace.symbol("STEPS")


@distspmd.program(schedule={"y": (3,)})
def smoothed(x: dace.float64[N], y: dace.float64[N]):
    for _ in range(1, STEPS):
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
        x[1:-1] = y[1:-1]


def whole(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(len(shape)).random(shape).astype(dtype)


def check_shapes() -> None:
    for rows, dtype in ((7, np.float64), (5, np.float64), (7, np.float32), (7, np.float64)):
        x, w, b = whole(rows, 4, dtype=dtype), whole(4, 8, dtype=dtype), whole(8, dtype=dtype)
        found = perceptron(x, w, b=b)
        if comm.rank == 0:
            wanted = np.maximum(x @ w + b, 0)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        else:
            assert isinstance(found, distspmd.runtime.MissingResult)
    assert len(perceptron._programs) == 3  # the last call finds the first one's
    assert perceptron.__name__ == "perceptron"


def check_others_pass_nothing() -> None:
    x, w, b = whole(7, 4), whole(4, 8), whole(8)
    found = perceptron(x, w, b) if comm.rank == 0 else perceptron()
    assert isinstance(found, distspmd.runtime.MissingResult) == (comm.rank > 0)
    found = alone(whole(6)) if comm.rank == 0 else alone()
    if comm.rank == 0:
        np.testing.assert_array_equal(found, whole(6) + 1)


def check_numbers() -> None:
    for given in ({}, {"factor": 0.5}, {"offset": 3, "factor": 4.0}):
        found = scaled(whole(9), **given)
        if comm.rank == 0:
            wanted = whole(9) * given.get("factor", 2.0) + given.get("offset", 1)
            np.testing.assert_allclose(found, wanted)
    assert len(scaled._programs) == 3  # arguments with defaults are part of the code


def check_sizes_of_no_shape() -> None:
    for steps in (2, 4, 2):
        x, y = whole(9), np.zeros(9)
        smoothed(x, y, STEPS=steps)
        wanted = whole(9)
        for _ in range(1, steps):
            wanted[1:-1] = (wanted[:-2] + wanted[1:-1] + wanted[2:]) / 3
        if comm.rank == 0:
            np.testing.assert_allclose(x, wanted)
    assert len(smoothed._programs) == 2
    with pytest.raises(distspmd.errors.ArgumentError, match="STEPS"):
        smoothed(whole(9), whole(9))


RATE, WEIGHTS = 2.0, np.arange(6.0)


@distspmd.program(schedule={"__return": (3,)})
def weighed(x):
    return x * RATE + WEIGHTS


def check_values_from_outside() -> None:
    """A program is not called for other globals than those for which it was made."""
    global RATE
    x = whole(6)
    for rate, element in ((2.0, 0.0), (3.0, 0.0), (3.0, 5.0), (2.0, 0.0)):
        RATE, WEIGHTS[2] = rate, element
        found = weighed(x)
        if comm.rank == 0:
            np.testing.assert_allclose(found, x * rate + WEIGHTS)
    assert len(weighed._programs) == 3


def check_tiles() -> None:
    layout = doubled.lower().argument_layouts["x"]
    box = layout.box(comm.rank)[0]
    x, y = whole(10)[slice(*box)].copy(), np.zeros(box[1] - box[0])
    doubled(x=x, y=y)
    np.testing.assert_array_equal(y, whole(10)[slice(*box)] * 2)


def check_mistakes() -> None:
    with pytest.raises(
        distspmd.errors.ArgumentError, match=r"perceptron.* was called with other argum"
    ):
        perceptron(whole(7, 4))
    with pytest.raises(distspmd.DistSPMDError):
        perceptron(whole(7, 4), whole(5, 8), whole(8))


def check_decisions() -> None:
    x, w, b = whole(7, 4), whole(4, 8), whole(8)
    assert "hidden" in {space.name for space in perceptron.spaces(x, w, b)}
    assert perceptron.lower(x, w, b).ranks == 3
    assert "scatter" in str(perceptron.explain(x, w, b))


if __name__ == "__main__":
    check_shapes()
    check_others_pass_nothing()
    check_numbers()
    check_sizes_of_no_shape()
    check_values_from_outside()
    check_tiles()
    check_mistakes()
    check_decisions()
    perceptron.close()
