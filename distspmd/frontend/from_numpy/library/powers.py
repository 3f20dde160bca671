"""Powers of integers in the arithmetic of a modulus."""

from __future__ import annotations

from typing import Any

LARGEST = 3_037_000_499
"""The largest modulus of which products of residues are 64-bit integers."""


def power(base: Any, exponent: Any, modulus: Any) -> Any:
    """``pow(base, exponent, modulus)`` by squaring (Knuth, TAOCP 2, 4.6.3)."""
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    if exponent < 0:
        raise ValueError("pow() of a negative exponent and a modulus is not covered")
    if modulus > LARGEST or modulus < -LARGEST:
        raise OverflowError("pow() of a modulus above 3037000499 does not fit 64-bit integers")
    found = 1 % modulus
    factor = base % modulus
    while exponent > 0:
        if exponent % 2 == 1:
            found = found * factor % modulus
        exponent = exponent // 2
        if exponent > 0:
            factor = factor * factor % modulus
    return found
