"""Asking the solvers: the cheapest plan for a redistribution, also block-cyclic and on paper.

Imports `solvers` and what stands left of it; no DaCe, no MPI.
"""
