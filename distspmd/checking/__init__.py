"""Proof and trial: plans are verified, and lowered programs are compared with their originals.

Imports `pipeline` and what stands left of it.
"""
