"""Library nodes and their expansions: memlets between ranks, contractions, BLAS, LAPACK.

May import `distspmd.dace_compat` and whatever that may import.
"""
