"""What a program touches: iteration spaces, accesses, and the boxes of each rank.

May import `distspmd.nodes` and whatever that may import; changes no SDFG.
"""
