"""Measuring the machine model, on the hosts and the devices of the ranks."""
