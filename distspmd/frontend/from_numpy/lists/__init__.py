"""Lists whose content the run decides: containers with room, and a count."""
