"""The solver by collectives: the shortest sequence of calls over prime axes.

Imports `distspmd.plans` and what stands left of it.
"""
