"""From a lowered SDFG to a shared library, compiled once.

Imports `passes` and what stands left of it.
"""
