"""All that patches DaCe or uses its private parts, so that a new version is met in one place.

Imports `runtime` and what stands left of it.
"""
