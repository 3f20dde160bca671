"""All that patches DaCe or uses its private parts, so that a new version is met in one place.

May import `distspmd.lowering`, `distspmd.runtime` and whatever those may import.
"""
