"""Functions of ``math``, as loops. Whole numbers have at most 63 bits."""

from __future__ import annotations


def factorial(n: int) -> int:
    """The product of the numbers up to one."""
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 20:
        raise OverflowError("a factorial of more than 20 has more than 63 bits")
    found = 1
    for k in range(2, n + 1):
        found *= k
    return found


def perm(n: int, k: int) -> int:
    """The number of ways to choose k of n things in order."""
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    found = 1
    if k > n:
        found = 0
    for each in range(k):
        found *= n - each
    return found


def comb(n: int, k: int) -> int:
    """The number of ways to choose k of n things."""
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    fewer = min(k, n - k)
    found = 1
    if k > n:
        found = 0
    for each in range(fewer):
        found = found * (n - each) // (each + 1)
    return found


def isqrt(n: int) -> int:
    """The whole part of a square root."""
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    found = int(n**0.5)
    if found * found > n:
        found -= 1
    if (found + 1) * (found + 1) <= n:
        found += 1
    return found


def isclose(a: float, b: float, rel_tol: float, abs_tol: float) -> bool:
    """Whether two numbers are equal, or differ by little."""
    return a == b or abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)
