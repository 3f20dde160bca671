"""Results that live on rank 0: all ranks unpack, print and pass them on; only rank 0 uses them."""

import sys

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD


@distspmd.program(schedule={"a": (2,)})
def simulate(x):
    a = x * 2
    b = a + 1
    return a, {"sum": b.sum()}, [b]


@distspmd.program(schedule={"__return": (2,)})
def raised(x):
    return x + 1


@distspmd.program(schedule={"__return": (2,)}, arguments={"x": "replicated"})
def of_all(x):
    return x + 1


@distspmd.program(schedule={"__return": (3,)}, results="replicated")
def on_all(x):
    return x + 1


h, u, (v,) = simulate(np.ones(12))
again = raised(h)
if comm.rank == 0:
    np.testing.assert_array_equal(h, np.full(12, 2.0))
    np.testing.assert_array_equal(again, np.full(12, 3.0))
else:
    assert all(isinstance(each, distspmd.runtime.MissingResult) for each in (h, u["sum"], v, again))
np.testing.assert_array_equal(on_all(np.ones(12)), np.full(12, 2.0))
try:
    of_all(h)
except distspmd.errors.ArgumentError as error:
    told = str(error)
else:
    told = ""
assert "takes the argument 'x' from rank 1" in told, told
print(f"sum on rank {comm.rank}: {u['sum']}", flush=True)
comm.Barrier()
if sys.argv[1:]:
    print(f"rank {comm.rank}: {u['sum'] * 2}")
    comm.Barrier()
