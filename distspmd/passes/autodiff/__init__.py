"""Gradients of programs: `backward()` becomes maps and contractions like any others.

Imports `placement` and what stands left of it.
"""
