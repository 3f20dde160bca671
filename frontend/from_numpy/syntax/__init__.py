"""The syntax of Python: how statements and expressions are read; its modules enter their readers."""
