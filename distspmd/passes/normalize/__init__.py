"""Rewrites before anything is decided: the forms of a program that the analysis understands.

Imports `placement` and what stands left of it.
"""
