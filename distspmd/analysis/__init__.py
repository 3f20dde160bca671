"""What a program touches: iteration spaces, accesses, and the boxes of each rank.

Imports `nodes` and what stands left of it; changes no SDFG.
"""
