"""The text of this package, which is part of the key of what its decisions are kept under."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def own_text() -> str:
    """A checksum of this package."""
    digest = hashlib.sha256()
    for folder, inner, names in os.walk(_PACKAGE, followlinks=True):
        inner.sort()
        for name in sorted(names):
            if name.endswith((".py", ".hpp")):
                digest.update(name.encode() + (Path(folder) / name).read_bytes())
    return digest.hexdigest()
