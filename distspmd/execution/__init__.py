"""Compiled programs and their calls: arguments, results, tiles that stay on the ranks.

Imports `codegen` and what stands left of it.
"""
