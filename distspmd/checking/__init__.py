"""Proof and trial: plans are verified, and lowered programs are compared with their originals.

May import `distspmd.pipeline`, `distspmd.execution` and whatever those may import.
"""
