"""NumPy programs as SDFGs: plain functions and ``@dace.program`` objects mean what NumPy means.

Imports `dace_compat`, `nodes` and what stands left of them; DaCe's parser is called here alone.
"""
