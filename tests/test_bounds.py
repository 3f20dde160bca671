"""Bounds of index expressions against the values that they really take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import sympy
from dace import symbolic
from hypothesis import given
from hypothesis import strategies as st

from distspmd.bounds import Range, bounds, is_dense

Ends = tuple[str, str]
"""First and last value of a symbol, as text that may name symbols before it."""


def values(expression: str, scope: dict[str, Ends]) -> list[int]:
    """All values over the scope, by enumeration."""
    return [evaluate(expression, point) for point in points(scope)]


def points(scope: dict[str, Ends]) -> Iterator[dict[str, int]]:
    def extend(point: dict[str, int], names: list[str]) -> Iterator[dict[str, int]]:
        if not names:
            yield point
            return
        lower, upper = (evaluate(end, point) for end in scope[names[0]])
        for value in range(lower, upper + 1):
            yield from extend({**point, names[0]: value}, names[1:])

    return extend({}, list(scope))


def evaluate(expression: str, point: dict[str, int]) -> int:
    known = {"min": min, "max": max, "abs": abs, "int_ceil": lambda a, b: -(-a // b)}
    return int(eval(expression, known, point))


def bounded(expression: str, scope: dict[str, Ends]) -> Range | None:
    ranges = {name: Range(parsed(lo), parsed(hi)) for name, (lo, hi) in scope.items()}
    return bounds(parsed(expression), ranges)


def parsed(expression: str) -> sympy.Expr:
    return sympy.sympify(symbolic.pystr_to_symbolic(expression))


BOX = {"i": ("2", "9"), "j": ("0", "4")}
TRIANGLE = {"i": ("2", "9"), "j": ("i", "12")}


@pytest.mark.parametrize("scope", [BOX, TRIANGLE])
@pytest.mark.parametrize(
    "expression",
    ["7", "i", "-i", "i - j", "2*i - 3*j + 1", "3*i + 2*j", "i//2", "(i + j)//3", "4 - j//2"],
)
def test_affine_forms_and_their_quotients_are_bounded_exactly(
    expression: str, scope: dict[str, Ends]
) -> None:
    found = bounded(expression, scope)
    taken = values(expression, scope)
    assert found is not None
    assert (int(found.lower), int(found.upper)) == (min(taken), max(taken))


@pytest.mark.parametrize(
    "expression", ["i % 4", "(3*i) % 8", "abs(i - 5)", "(i - 5)**2", "(i - 3)*j", "i*j - j"]
)
def test_what_is_not_monotone_is_bounded_soundly_or_not_at_all(expression: str) -> None:
    found = bounded(expression, BOX)
    taken = values(expression, BOX)
    if found is not None:
        assert int(found.lower) <= min(taken)
        assert int(found.upper) >= max(taken)


def test_a_symbol_of_which_nothing_is_known_has_no_bound() -> None:
    assert bounds(parsed("i + c"), {"i": Range(parsed("0"), parsed("9")), "c": None}) is None


def test_symbols_outside_the_scope_are_constants() -> None:
    found = bounded("N*i + k", {"i": ("0", "N - 1")})
    assert found is not None
    assert str(found.lower) == "k"
    assert sympy.simplify(found.upper - parsed("N*(N - 1) + k")) == 0


terms = st.sampled_from(["i", "j", "k", "1", "i//2", "min(i, j)", "max(j, 3)", "(i + k)//3"])
coefficients = st.integers(-3, 3)


@given(
    st.lists(st.tuples(coefficients, terms), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=3),
    st.booleans(),
)
def test_bounds_are_sound_and_exact_for_affine_forms(
    summands: list[tuple[int, str]], ranges: list[tuple[int, int]], triangular: bool
) -> None:
    expression = " + ".join(f"({c})*({term})" for c, term in summands)
    scope = {
        name: (str(lower), str(lower + extent))
        for name, (lower, extent) in zip("ijk", ranges, strict=True)
    }
    if triangular:
        scope["j"] = ("i", f"i + {ranges[1][1]}")
    found = bounded(expression, scope)
    taken = values(expression, scope)
    assert found is not None
    assert int(found.lower) <= min(taken)
    assert int(found.upper) >= max(taken)
    if all(term in "ijk1" for _, term in summands):
        assert (int(found.lower), int(found.upper)) == (min(taken), max(taken))


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=3),
)
def test_what_is_called_dense_has_no_hole(window: int, parts: list[tuple[int, int]]) -> None:
    names = "ijk"[: len(parts)]
    scope = {name: ("0", str(n - 1)) for name, (_, n) in zip(names, parts, strict=True)}
    first = " + ".join(f"{c}*{name}" for name, (c, _) in zip(names, parts, strict=True))
    ranges = {name: Range(parsed(lo), parsed(hi)) for name, (lo, hi) in scope.items()}
    if is_dense(parsed(first), parsed(f"{first} + {window - 1}"), ranges):
        taken = {v + t for v, t in itertools.product(values(first, scope), range(window))}
        assert taken == set(range(min(taken), max(taken) + 1))


def test_a_single_step_and_a_mixed_radix_are_dense() -> None:
    ranges = {"i": Range(parsed("lo"), parsed("hi")), "j": Range(parsed("0"), parsed("3"))}
    for first, last in (("i", "i"), ("4*i + j", "4*i + j"), ("4*i", "4*i + 3"), ("-i", "-i")):
        assert is_dense(parsed(first), parsed(last), ranges)
    for first, last in (("2*i", "2*i"), ("5*i + j", "5*i + j"), ("i*j", "i*j")):
        assert not is_dense(parsed(first), parsed(last), ranges)
