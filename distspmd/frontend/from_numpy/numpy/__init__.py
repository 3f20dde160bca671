"""The functions of NumPy and Python that programs call: one table, filled by the modules here.

Imports the rest of `from_numpy` but its interface.
"""
