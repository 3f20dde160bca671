"""Expressions of elements: their typed form, the table of operations, derivatives, and printers.

Imports NumPy alone: neither DaCe nor torch, and no other folder.
"""
