"""NumPy programs as SDFGs: plain functions and ``@dace.program`` objects mean what NumPy means.

May import all of `distspmd` but the API and the command line. DaCe's parser is called here alone.
"""
