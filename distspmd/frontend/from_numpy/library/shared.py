"""Variables that functions of a program share."""

from __future__ import annotations


class Cells:
    """What holds them, as its attributes."""
