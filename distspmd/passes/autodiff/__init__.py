"""Gradients of programs: `backward()` becomes maps and contractions like any others.

May import `distspmd.placement` and whatever that may import.
"""
