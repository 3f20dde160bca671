"""Solvers: each turns a redistribution into a plan, or refuses with a reason.

May import `distspmd.plans` and whatever that may import; no DaCe, no MPI.
"""

if __name__ != "distspmd.solvers":
    raise ImportError("this package is imported as distspmd.solvers")

from distspmd.plans.solver import Solver
from distspmd.solvers.collectives.solver import Collectives
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped
from distspmd.solvers.local import LocalSlice, Nothing
from distspmd.solvers.reduce_first import ReduceFirst

SOLVERS: tuple[Solver, ...] = (
    Nothing(),
    LocalSlice(),
    GridMapped(),
    Collectives(),
    ReduceFirst(),
    Exchange(),
)
"""All solvers, in the order in which equally cheap plans are preferred."""
