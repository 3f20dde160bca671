"""The C++ engine of a rank: its headers, its compilation, and its interface to Python."""
