"""What runs on the ranks: launching, the C++ engine and its headers, shared memory, errors.

Imports `planning` and what stands left of it; no DaCe, and MPI only when it is used.
"""
