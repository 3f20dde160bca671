"""Where elements are: boxes, meshes, layouts and their notations.

Imports only `distspmd.errors` and `distspmd.tables`; no DaCe, no MPI.
"""
