"""Redistribution of NumPy arrays on the ranks of a communicator."""
