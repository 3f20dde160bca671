"""Keys of dictionaries, which have to be known while a program is read.

A value that the run decides stands for many. Python would take the object that stands for it as the
key, which is equal to no other one: each ``found[int(x[i])]`` would be an entry of its own, and
``found.get(int(x[i]))`` would never find one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from distspmd.frontend.from_numpy.kinds import has_data
from distspmd.frontend.from_numpy.transcript import CannotRoll


def known_key(key: Any, does: str = "gets") -> Any:
    """A key of a dictionary.

    Args:
        key: of it.
        does: what the dictionary does with the key: it gets it, or is asked for it.

    Raises:
        CannotRoll: it is not known, unless a loop is written out.
    """
    if has_data(key):
        raise CannotRoll(
            f"a dictionary {does} a key that is not known before the run (write an array instead, "
            "with the keys as its indices)"
        )
    return key


def known_pairs(pairs: Iterable[Any]) -> list[Any]:
    """Pairs of keys and values, as ``dict`` takes them.

    Raises:
        CannotRoll: a key is not known.
    """
    found = list(pairs)
    for pair in found:
        if isinstance(pair, Sequence) and pair:
            known_key(pair[0])
    return found


def check_call(method: str, arguments: Sequence[Any]) -> None:
    """Look at what a method of a dictionary is given.

    Raises:
        CannotRoll: a key is not known.
    """
    if not arguments:
        return
    if method == "update":
        if isinstance(arguments[0], list | tuple):
            known_pairs(arguments[0])
    else:
        known_key(arguments[0], "gets" if method == "setdefault" else "is asked for")
