"""Rewrites of plans that keep what they compute: rounds, rank order, pieces of reductions.

May import the modules of `distspmd.plans` and whatever those may import.
"""
