"""The letters of whole numbers, as ``format`` writes them."""

from __future__ import annotations

from typing import Any

import numpy as np


def count_of_letters(n: Any, base: Any, most: Any, width: Any, prefix: Any) -> Any:
    """How many letters a number has, and how many of them are digits."""
    count = np.array([1, 0])
    powers = base ** np.arange(most)
    count[1] = np.maximum(np.count_nonzero(powers <= np.abs(n)), 1)
    count[0] = np.maximum(count[1] + prefix + (n < 0), width)
    return count


def letters(n: Any, base: Any, digits: Any, length: Any, prefix: Any, fill: Any) -> Any:
    """The numbers that the letters have in Unicode, of a number that is not the least one.

    Args:
        n: the number.
        base: of its digits, the letters from ten on being small.
        digits: how many there are.
        length: of the text.
        prefix: the numbers of the letters before the digits.
        fill: ``"0"``, between them and the digits, or a blank before all.
    """
    place = np.arange(length)
    above = length - 1 - place
    digit = (np.abs(n) // base ** np.minimum(above, digits - 1)) % base
    found = np.where(digit < 10, 48 + digit, 87 + digit)
    found = np.where(above < digits, found, ord(fill))
    sign = 1 if n < 0 else 0
    before = 0 if fill == "0" else length - digits - len(prefix) - sign
    for k, code in enumerate(prefix):
        found = np.where(place == before + sign + k, code, found)
    if n < 0:
        found = np.where(place == before, 45, found)
    return found


def number_of(codes: Any, base: Any, most: Any) -> Any:
    """The number that letters say, whether one of them is no digit, and whether it is too large."""
    length = codes.shape[0]
    place = np.arange(length)
    is_sign = (place == 0) & ((codes == 45) | (codes == 43))
    small = np.where(codes >= 97, codes - 87, 99)
    large = np.where((codes >= 65) & (codes <= 90), codes - 55, small)
    digit = np.where((codes >= 48) & (codes <= 57), codes - 48, large)
    above = length - 1 - place
    value = np.sum(np.where(is_sign, 0, digit * base ** np.minimum(above, most)))
    found = np.array([0, 0, 0])
    found[0] = np.where(np.count_nonzero((codes == 45) & is_sign) > 0, -value, value)
    found[1] = np.count_nonzero((digit >= base) & ~is_sign) + (np.count_nonzero(~is_sign) == 0)
    found[2] = np.count_nonzero((above > most) & (digit > 0) & ~is_sign)
    return found
