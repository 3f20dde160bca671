"""Who runs and who holds what: schedules, their propagation, and the homes of containers.

Imports `analysis` and what stands left of it.
"""
