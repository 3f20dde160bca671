"""The folder of everything that is made once for a machine: compiled libraries and measurements."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """DISTSPMD_CACHE, else a folder in the user's cache."""
    if os.environ.get("DISTSPMD_CACHE"):
        return Path(os.environ["DISTSPMD_CACHE"])
    home = os.environ.get("HOME") or tempfile.gettempdir()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(home) / ".cache") / "distspmd"
