"""One choice for each of many variables: weighted constraint satisfaction, with a proven bound.

May import `distspmd.errors`; no DaCe, no MPI.
"""
