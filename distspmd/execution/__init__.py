"""Compiled programs and their calls: arguments, results, tiles that stay on the ranks.

May import `distspmd.codegen` and whatever that may import.
"""
