"""How a program is called: the form of its arguments, results and texts."""
