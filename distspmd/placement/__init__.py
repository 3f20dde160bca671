"""Who runs and who holds what: schedules, their propagation, and the homes of containers.

May import `distspmd.analysis` and whatever that may import.
"""
