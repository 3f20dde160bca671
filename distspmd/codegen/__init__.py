"""From plans and programs to what the ranks run."""
