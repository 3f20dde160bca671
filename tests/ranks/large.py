"""A lowered program over more than 2^31 elements: shifted reads, a reduction, rows by index."""

import sys

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

ROWS, COLUMNS = 65_540, 32_771


def shifted(x, y, at):
    y[1:] = x[:-1] + np.int8(1)
    y[0] = x[-1]
    return np.max(x), np.sum(x), x[at]


def main(comm):
    assert ROWS * COLUMNS > 2**31
    x = y = at = None
    if comm.rank == 0:
        x = np.empty((ROWS, COLUMNS), np.int8)
        for number, row in enumerate(x):
            row[...] = (np.arange(COLUMNS) * 3 + number * 7) % 100 - 50
        x[-1, -1] = 77  # the greatest lies behind 2^31 elements
        y = np.zeros_like(x)
        at = np.array([ROWS - 1, 0, ROWS - 2])
    examples = [np.broadcast_to(np.int8(0), (ROWS, COLUMNS))] * 2
    sdfg = numpy_program(shifted, *examples, np.zeros(3, np.int64))
    grids = {
        space.name: (comm.size, *[1] * (len(space.parameters) - 1))
        for space in distspmd.iteration_spaces(sdfg)
        if space.name == "y"
    }
    with distspmd.compile(distspmd.lower(sdfg, grids), comm) as program:
        found = program(x=x, y=y, at=at)
    if comm.rank == 0:
        greatest, total, rows = found
        assert greatest == 77
        assert total == sum(int(row.sum()) for row in x)
        np.testing.assert_array_equal(rows, x[at])
        np.testing.assert_array_equal(y[0], x[-1])
        for one, other in zip(y[1:], x[:-1], strict=True):
            assert np.array_equal(one, other + np.int8(1))
        print("all right", flush=True)


if __name__ == "__main__":
    main(MPI.COMM_WORLD)
    sys.exit(0)
