"""Automatic schedules: candidates of each space, what they cost in arrays, and the best of them.

May import everything up to the pipeline, and `distspmd.wcsp`; no MPI.
"""
