"""Where elements are: boxes, meshes, layouts and their notations.

May import `distspmd.errors` and `distspmd.tables`; no DaCe, no MPI.
"""
