"""The outside of a lowered program in a file: what it is, of which versions, and if it is whole.

::

    distspmd lowered program
    {"format": 1, "distspmd": "0.1.0", "dace": "2.0.0b1", "parts": {...}, "sha256": "..."}
    parts, one behind the other

Every version reads the first two lines of files of all others, and says which version wrote them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import distspmd
from distspmd.errors import SavedError

FIRST_LINE = b"distspmd lowered program\n"
FORMAT = 1
"""Of what follows the second line; another one is read by another version."""


def versions() -> dict[str, str]:
    """What has to be the same where a lowered program is read."""
    try:
        of_dace = version("dace")
    except PackageNotFoundError:
        of_dace = "none"
    return {"distspmd": distspmd.__version__, "dace": of_dace}


def wrap(parts: Mapping[str, bytes]) -> bytes:
    """Parts by name as one text of bytes."""
    body = b"".join(parts.values())
    lengths = {name: len(part) for name, part in parts.items()}
    head = {"format": FORMAT, **versions(), "parts": lengths}
    head["sha256"] = _checksum(head, body)
    return FIRST_LINE + json.dumps(head).encode() + b"\n" + body


def unwrap(content: bytes) -> dict[str, bytes]:
    """The parts of what :func:`wrap` made.

    Raises:
        SavedError: it is something else, of another version, or damaged.
    """
    if not content.startswith(FIRST_LINE):
        raise SavedError("it is no lowered program; lowering.save(...) writes one")
    line, _, body = content[len(FIRST_LINE) :].partition(b"\n")
    try:
        head: dict[str, Any] = json.loads(line)
        checksum, lengths = head.pop("sha256"), head["parts"]
        made = {"format": head["format"], **{name: head[name] for name in versions()}}
        is_whole = checksum == _checksum(head, body) and sum(lengths.values()) == len(body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise SavedError("it is damaged or not whole: its checksum is another one. Write it again")
    here = {"format": FORMAT, **versions()}
    if made != here:
        raise SavedError(
            f"it was written by {_listed(made)}, and this is {_listed(here)}: lower the program "
            "again, and save that"
        )
    found, start = {}, 0
    for name, length in lengths.items():
        found[name] = body[start : start + length]
        start += length
    return found


def _checksum(head: Mapping[str, Any], body: bytes) -> str:
    digest = hashlib.sha256(json.dumps(dict(head), sort_keys=True).encode())
    digest.update(body)
    return digest.hexdigest()


def _listed(made: Mapping[str, Any]) -> str:
    return (
        f"distspmd {made['distspmd']} with dace {made['dace']} (format {made['format']} of files)"
    )
