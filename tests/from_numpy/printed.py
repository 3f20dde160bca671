"""What programs print, beside what Python prints: the same words, and numbers but for rounding."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)")
_DIGITS = 1e-6
"""What rounding may change of a number with many digits, relative to it."""
_TINY = 1e-9
"""What is rounding itself, of sums that are zero."""


def printed_differences(found: str, wanted: str) -> Iterator[str]:
    """The first line in which a text is another one."""
    lines = found.splitlines(), wanted.splitlines()
    if len(lines[0]) != len(lines[1]):
        yield f"{len(lines[0])} lines are printed, not {len(lines[1])}: {found!r}"
    for one, other in zip(*lines, strict=False):
        if not _is_same(one, other):
            yield f"{one!r} is printed, not {other!r}"
            return


def _is_same(one: str, other: str) -> bool:
    if _NUMBER.sub("#", one).split() != _NUMBER.sub("#", other).split():
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(a == b or _are_close(a, b) for a, b in pairs)


def _are_close(one: str, other: str) -> bool:
    """Whether two numbers differ by rounding, or by one in the last digit that is written."""
    if one.lstrip("+-").isdigit() and other.lstrip("+-").isdigit():
        return False
    a, b = float(one), float(other)
    mantissa, _, exponent = other.lower().partition("e")
    last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    most = max(abs(a), abs(b))
    return abs(a - b) <= max(_DIGITS * most, 1.01 * last) or most < _TINY
