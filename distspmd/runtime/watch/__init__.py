"""Watching over ranks: what they agree on, where each waits, and the end of all if one fails."""
