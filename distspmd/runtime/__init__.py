"""What runs on the ranks: launching, the C++ engine and its headers, shared memory, errors.

May import `distspmd.planning` and whatever that may import; no DaCe, and MPI only when it is used.
"""
