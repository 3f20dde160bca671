"""Rewrites of plans that keep what they compute: rounds, rank order, pieces of reductions.

Imports `plans` and what stands left of it.
"""
