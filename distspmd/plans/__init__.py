"""What moves, at which price, and the proof: redistributions, plans, cost, simulator, verifier.

Imports `layouts` and what stands left of it; no DaCe, no MPI.
"""
