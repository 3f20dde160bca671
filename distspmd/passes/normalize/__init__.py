"""Rewrites before any decision: they give a program the forms that the analysis understands.

May import `distspmd.placement` and whatever that may import.
"""
