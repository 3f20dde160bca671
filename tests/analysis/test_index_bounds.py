"""Bounds of index expressions against all values that they take."""

import math
from collections.abc import Iterator, Mapping, Sequence

import pytest
import sympy
from dace import symbolic
from hypothesis import given
from hypothesis import strategies as st

from distspmd.analysis.index_bounds import Range, bound_index, constant, stepping

FUNCTIONS = {
    "min": min,
    "max": max,
    "abs": abs,
    "int_floor": lambda a, b: a // b,
    "int_ceil": lambda a, b: -(-a // b),
    "remainder": lambda a, b: int(math.fmod(a, b)),
}
Loops = Sequence[tuple[str, str, str]]
"""Symbols with the ends of their ranges, both included, outermost first."""


def values_of(expression: str, loops: Loops) -> Iterator[int]:
    """Values of a Python expression for all values of its symbols."""
    for at in points(loops, {}):
        yield eval(expression, {}, {**FUNCTIONS, **at})


def points(loops: Loops, at: Mapping[str, int]) -> Iterator[dict[str, int]]:
    if not loops:
        yield dict(at)
        return
    (name, lower, upper), *inner = loops
    for value in range(eval(lower, {}, dict(at)), eval(upper, {}, dict(at)) + 1):
        yield from points(inner, {**at, name: value})


def scope_of(loops: Loops) -> dict[str, Range | None]:
    parse = symbolic.pystr_to_symbolic
    return {
        name: Range(sympy.sympify(parse(lower)), sympy.sympify(parse(upper)))
        for name, lower, upper in loops
    }


def found(expression: str, loops: Loops) -> tuple[int, int] | None:
    result = bound_index(symbolic.pystr_to_symbolic(expression), scope_of(loops))
    if result is None:
        return None
    lower, upper = sympy.sympify(result.lower), sympy.sympify(result.upper)
    functions = {**FUNCTIONS, "__int_floor": FUNCTIONS["int_floor"]}
    known = {
        "Min": min,
        "Abs": abs,
        "Max": max,
        "floor": sympy.floor,
        "ceiling": sympy.ceiling,
        **functions,
    }
    return eval(str(lower), {}, known), eval(str(upper), {}, known)


@st.composite
def loops(draw: st.DrawFn) -> Loops:
    """Two or three symbols; the ends of inner ones may be affine in outer ones."""
    made: list[tuple[str, str, str]] = []
    for name in "ijk"[: draw(st.integers(2, 3))]:
        lower, extent = draw(st.integers(-3, 3)), draw(st.integers(0, 4))
        kind = draw(st.sampled_from(["box", "box", "lower", "upper", "around"])) if made else "box"
        outer = draw(st.sampled_from([known for known, _, _ in made])) if made else ""
        ends = {
            "box": (str(lower), str(lower + extent)),
            "lower": (outer, str(lower + extent + 2)),
            "upper": (str(lower), outer),
            "around": (f"{outer} - {extent}", f"{outer} + {extent}"),
        }
        made.append((name, *ends[kind]))
    return made


@st.composite
def affine(draw: st.DrawFn, names: str = "ijk") -> str:
    terms = [f"{draw(st.integers(-4, 4))} * {name}" for name in names]
    return " + ".join([*terms, str(draw(st.integers(-5, 5)))])


@st.composite
def anything(draw: st.DrawFn, depth: int = 2) -> tuple[str, str]:
    """An expression as indices have it, for DaCe and for Python (``%`` is that of C)."""
    if depth == 0:
        leaf = draw(st.sampled_from(["i", "j", "k", "1", "3", "-2", "5"]))
        return leaf, leaf
    operands = draw(anything(depth - 1)), draw(anything(depth - 1))
    number = draw(st.integers(1, 5))
    form = draw(
        st.sampled_from(
            [
                *("({x} + {y})", "({x} - {y})", "({x}) * ({y})", "{n} * ({x})", "-({x})"),
                *("({x}) // {n}", "({x}) % {n}", "min({x}, {y})", "max({x}, {y})", "abs({x})"),
                *("({x}) ** 2", "int_ceil({x}, {n})", "({x}) // ({y})"),
            ]
        )
    )
    forms = form, form.replace("({x}) % {n}", "remainder({x}, {n})")
    dace, python = (f.format(x=x, y=y, n=number) for f, x, y in zip(forms, *operands, strict=True))
    return dace, python


def with_all_symbols(made: Loops) -> Loops:
    known = {name for name, _, _ in made}
    return [*made, *((name, "2", "3") for name in "ijk" if name not in known)]


@given(expressions=anything(), made=loops())
def test_bounds_hold_all_values(expressions, made):
    made = with_all_symbols(made)
    expression, oracle = expressions
    try:
        values = list(values_of(oracle, made))
    except ZeroDivisionError:
        return
    if not values:
        return
    ends = found(expression, made)
    if ends is not None:
        assert ends[0] <= min(values)
        assert max(values) <= ends[1]


@given(expression=affine(), made=loops())
def test_bounds_of_affine_forms_are_known_and_hold_all_values(expression, made):
    made = with_all_symbols(made)
    ends = found(expression, made)
    assert ends is not None
    values = list(values_of(expression, made))
    if values:
        assert ends[0] <= min(values)
        assert max(values) <= ends[1]


@given(expression=affine(), ends=st.lists(st.integers(-4, 4), min_size=6, max_size=6))
def test_bounds_of_affine_forms_over_boxes_are_exact(expression, ends):
    pairs = [sorted(ends[d : d + 2]) for d in (0, 2, 4)]
    made = [(name, str(lo), str(hi)) for name, (lo, hi) in zip("ijk", pairs, strict=True)]
    values = list(values_of(expression, made))
    assert found(expression, made) == (min(values), max(values))


@given(coefficients=st.tuples(*[st.integers(-4, 4)] * 3), extent=st.integers(0, 5))
def test_bounds_of_affine_forms_over_triangles_are_exact(coefficients, extent):
    a, b, c = coefficients
    made = [("i", "0", str(extent)), ("j", "i", str(extent))]
    expression = f"{a} * i + {b} * j + {c}"
    values = list(values_of(expression, made))
    assert found(expression, made) == (min(values), max(values))


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("i - j", (-7, 2)),
        ("2 * i - 3 * j", (-21, 3)),
        ("i // 2", (0, 1)),
        ("int_ceil(i, 2)", (0, 2)),
        ("min(i, 1) + 2", (2, 3)),
        ("max(i - 3, j)", (1, 7)),
        ("5 - i", (2, 5)),
        ("7", (7, 7)),
    ],
)
def test_bounds_of_what_programs_write_are_exact(expression, wanted):
    assert found(expression, [("i", "0", "3"), ("j", "1", "7")]) == wanted


@pytest.mark.parametrize(
    "expression",
    ["i % 4", "(3 * i) % 8", "abs(i - 5)", "i * j", "i * (j - 3)", "j * j", "2 * j * abs(j)"],
)
def test_what_is_not_monotone_has_no_bounds_rather_than_wrong_ones(expression):
    made = [("i", "0", "9"), ("j", "-3", "9")]
    ends = found(expression, made)
    values = list(values_of(expression, made))
    assert ends is None or (ends[0] <= min(values) and max(values) <= ends[1])


def test_a_symbol_of_unknown_values_has_no_bounds_and_one_from_outside_is_a_constant():
    i, n = sympy.Symbol("i"), sympy.Symbol("n")
    assert bound_index(i + 1, {"i": None}) is None
    assert bound_index(i + n, {"i": Range(sympy.Integer(0), n)}) == Range(n, 2 * n)


def test_symbols_of_dace_are_found_by_their_names():
    i = symbolic.symbol("i", positive=True)
    assert bound_index(i, {"i": Range(sympy.Integer(2), sympy.Integer(5))}) == Range(2, 5)


def test_only_integers_are_constants():
    assert constant(sympy.Integer(3)) == 3
    assert constant(sympy.Symbol("n")) is None
    assert constant(sympy.Rational(1, 2)) is None


@given(begin=st.integers(-5, 5), length=st.integers(0, 12), step=st.integers(-4, 4).filter(bool))
def test_the_step_of_a_range_is_known_where_it_leads_to_the_end(begin, length, step):
    end = begin + (length if step > 0 else -length)
    taken = range(begin, end + (1 if step > 0 else -1), step)
    found = stepping(begin, end, step)
    assert (found.lower, found.upper) == (min(begin, end), max(begin, end))
    assert found.step == (abs(step) if taken[-1] == end else None)


def test_ranges_of_unknown_length_keep_the_ends_that_they_may_miss():
    i, n = sympy.symbols("i n")
    assert stepping(i, n, 1) == Range(i, n)
    assert stepping(i, n, 2) == Range(i, n, None)
    assert stepping(n, i, -2) == Range(i, n, None)
    assert stepping(i, i + 7, 4) == Range(i, i + 7, None)
    assert stepping(i, i + 8, 4) == Range(i, i + 8, 4)
    assert stepping(0, 7, n) == Range(0, 7, None)
