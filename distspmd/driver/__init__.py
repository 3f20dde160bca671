"""Driver mode: one process runs the script, and ranks that it has started serve its calls."""
