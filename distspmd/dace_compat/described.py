"""What an SDFG says of its code, as keys compare it: without lines, and without identifiers."""

from __future__ import annotations

import json
from typing import Any

from dace import SDFG

VOLATILE = {
    "debuginfo",
    "guid",
    "hash",
    "orig_sdfg",
    "transformation_hist",
    "build_folder",
    "cfg_list_id",
    "seconds",
}


def described(sdfg: SDFG) -> Any:
    """What decides the code of an SDFG, as JSON has it."""
    found = json.loads(json.dumps(sdfg.to_json()))
    _strip(found)
    return found


def _strip(described: object, is_attributes: bool = False) -> None:
    """Take out what does not change the code: lines of the source, and random identifiers.

    Only what DaCe itself writes of an element has such entries. A dictionary by the user's names,
    of arrays, constants or symbols, keeps all of them, whatever these are called.
    """
    if isinstance(described, dict):
        is_element = isinstance(described.get("type"), str) and not is_attributes
        if is_element or is_attributes:
            for key in [k for k in described if k in VOLATILE or str(k).startswith("_meta_")]:
                del described[key]
        for key, value in described.items():
            _strip(value, is_element and key == "attributes")
    elif isinstance(described, list):
        for value in described:
            _strip(value)
