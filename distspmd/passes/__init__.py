"""Rewrites of an SDFG, one idea a file, in the order in which the pipeline runs them."""
