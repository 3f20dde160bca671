"""Devices: their libraries, arrays in their memory, and how tiles travel between them."""
