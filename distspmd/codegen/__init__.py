"""From a lowered SDFG to a shared library, compiled once.

May import `distspmd.passes` and whatever that may import.
"""
