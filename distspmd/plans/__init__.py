"""What moves, at which price, and the proof: redistributions, plans, cost, simulator, verifier.

May import `distspmd.layouts` and whatever that may import; no DaCe, no MPI.
"""
