"""The solver by collectives: the shortest sequence of calls over prime axes.

May import `distspmd.plans` and whatever that may import.
"""
