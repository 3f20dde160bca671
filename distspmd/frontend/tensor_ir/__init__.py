"""The typed tensor IR of all front ends: values with affine index maps, kernels, and its SDFGs.

Imports all of `distspmd` but the command line; no other front end.
"""
