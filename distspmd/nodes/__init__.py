"""Library nodes of our own and how they expand: memlets between ranks, contractions, BLAS, LAPACK.

Imports `dace_compat` and what stands left of it.
"""
