"""Only rank 0 needs DaCe: a call of a function, a program that is compiled, and tiles that stay."""

import sys

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD


@distspmd.program(schedule={"__return": (comm.size,)})
def scaled(x):
    return 2 * x


def lowered():
    from distspmd.frontend import numpy_program

    def summed(a, b):
        c = a @ b
        return c.sum(axis=0)

    sdfg = numpy_program(summed, a=np.zeros((6, 4)), b=np.zeros((4, 5)))
    return distspmd.lower(sdfg, {"c": (comm.size, 1, 1)}, arguments={"b": "replicated"})


x, a = np.arange(9.0), np.ones((6, 4))
found = scaled(x)
program = distspmd.compile(lowered, comm)
sums = program(a=a, b=np.ones((4, 5))) if comm.rank == 0 else program(b=np.ones((4, 5)))
if comm.rank == 0:
    assert (found == 2 * x).all()
    assert (sums == 24).all()
heavy = [name for name in ("dace", "sympy", "networkx", "torch") if name in sys.modules]
told = comm.gather(heavy)
if comm.rank == 0:
    print("imported:", *told, sep="\n")
