"""DaCe nodes of a lowered program."""
