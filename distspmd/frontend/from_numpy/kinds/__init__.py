"""Kinds of variables over branches and loops: what they carry, join, and may stand for."""
