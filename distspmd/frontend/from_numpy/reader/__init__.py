"""The syntax of Python: how each kind of statement and expression is read."""
