"""Where the environments of library nodes have their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def folder_of(environment: Any) -> Path:
    """The folder of an environment of DaCe, in which its headers may stand."""
    return Path(environment._dace_file_path).parent
