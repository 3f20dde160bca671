"""Memory that the ranks of a node share, and the files that a launch keeps it in."""
