"""The passes that rewrite an SDFG into one that each rank runs; `pipeline.py` has their order.

May import `distspmd.placement` and whatever that may import.
"""
