"""Random programs and redistributions against NumPy, and faults; `scripts/torture` runs them."""
