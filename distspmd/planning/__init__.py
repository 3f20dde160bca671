"""Asking the solvers: the cheapest plan for a redistribution, also block-cyclic and on paper.

May import `distspmd.solvers` and whatever that may import; no DaCe, no MPI.
"""
