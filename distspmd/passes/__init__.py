"""The passes that rewrite an SDFG into one that each rank runs; `pipeline.py` has their order.

Imports `placement` and what stands left of it.
"""
