"""How ranks combine what a conflict resolution made of a neutral element, found by trying it."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.analysis.wcr import operation_of
from distspmd.errors import LayoutError
from distspmd.layouts import reductions, user_reductions
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import simulate
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS

ANY = "lambda a, b: a + b - a * b"
COMPOSED = "lambda a, b: a * b + a + b"
LOGSUM = "lambda a, b: math.log(math.exp(a) + math.exp(b))"


@pytest.mark.parametrize(
    ("resolution", "dtype", "operation"),
    [
        ("Sum", "float64", "sum"),
        ("Logical_Xor", "bool", "xor"),
        ("Bitwise_And", "uint8", "bitand"),
        ("Bitwise_Xor", "float32", None),
        ("Max", "complex64", None),
        ("Exchange", "int32", None),
        ("lambda a, b: a - b", "int16", "sum"),
        ("lambda a, b: a / b", "complex128", "prod"),
        ("lambda a, b: a / b", "int32", None),
        ("lambda a, b: a + 2 * b", "float32", "sum"),
        ("lambda a, b: a + math.exp(b)", "float64", "sum"),
        ("lambda a, b: a + math.exp(b)", "int64", None),
        ("lambda a, b: a & ~b", "int64", "bitand"),
        ("lambda a, b: a if a < b else b", "float64", "min"),
        (ANY, "float32", ANY),
        (COMPOSED, "uint16", COMPOSED),
        (LOGSUM, "float64", LOGSUM),
        ("lambda a, b: a * 2 + b", "float64", None),
        ("lambda a, b: b", "float64", None),
        ("lambda a, b: a * a + b * b", "float64", None),
        ("lambda a, b: math.sqrt(a * a + b * b)", "float64", None),
        ("lambda a, b: min(a + b, 100000)", "float64", None),
        ("lambda a, b: a + b if a < 5000 else a", "int64", None),
        ("lambda a, b: a if abs(a) >= abs(b) else b", "float64", None),
        ("lambda a, b: somewhere(a, b)", "float64", None),
        ("lambda a, b: (a + b) / 2", "float64", None),
    ],
)
def test_operations_are_found_or_are_none(
    resolution: str, dtype: str, operation: str | None
) -> None:
    assert operation_of(resolution, np.dtype(dtype)) == operation


def test_a_lambda_has_one_name_however_it_is_written() -> None:
    assert user_reductions.canonical("(lambda x, y: (x + y) - (x*y))") == ANY
    for wrong in ("a + b", "lambda a: a", "lambda a, b, c: a", "lambda a, b:"):
        with pytest.raises(ValueError, match=r"no lambda"):
            user_reductions.canonical(wrong)


@given(st.lists(st.lists(st.integers(-9, 9), min_size=4, max_size=4), min_size=3, max_size=3))
def test_ranks_combine_with_a_lambda(rows: list[list[int]]) -> None:
    mesh = Mesh(x=3)
    source = Layout.parse(f"[4] + partial({COMPOSED}){{x}}", mesh)
    assert Layout.parse(str(source), mesh) == source
    wanted = np.prod(np.array(rows) + 1, axis=0) - 1
    for target in (Layout.parse("[4]", mesh), Layout.parse("[2{x}4]", mesh), Layout.root((4,))):
        move = Redistribution(source, target, np.dtype("int64"))
        for plan in (solver.plan(move) for solver in SOLVERS):
            if hasattr(plan, "steps"):
                verify(plan)
                found = simulate(plan, [np.array(row) for row in rows])
                for rank in range(target.ranks):
                    ((lo, hi),) = target.box(rank)
                    np.testing.assert_array_equal(found[rank], wanted[lo:hi])
    assert pickle.loads(pickle.dumps(source)) == source


def test_neutral_elements_change_nothing() -> None:
    assert reductions.find_reduction(ANY).identity("float32") == 0
    assert reductions.find_reduction(LOGSUM).identity("float64") == -np.inf
    assert reductions.find_reduction("bitand").identity("uint8") == 255
    assert reductions.find_reduction("bitand").identity("bool")
    assert reductions.find_reduction("bitxor").identity("int32") == 0
    with pytest.raises(LayoutError, match="no lambda a, b: a - b of float64 values"):
        reductions.find_reduction("lambda a, b: a - b").identity("float64")
    with pytest.raises(LayoutError, match="no bitor of float32 values"):
        Redistribution(
            Layout.parse("[4] + partial(bitor)", Mesh(x=2)), Layout.root((4,)), np.dtype("f4")
        )


@pytest.mark.parametrize(
    "text",
    [
        "lambda a, b: ().__class__.__base__.__subclasses__()",
        "lambda a, b: a.__class__",
        "lambda a, b: [x for x in (a, b)]",
        "lambda a, b: print(a)",
        "lambda a, b: math.__loader__",
        "lambda a, b: (lambda: a)()",
        "lambda a, b: 'x' * a",
        "lambda a, b: c",
        "lambda a, b: a < b in (a, b)",
        "lambda a, b: math.factorial(a)",
        "lambda a, b: max()",
        "lambda a, b: int(a, base=b)",
    ],
)
def test_text_of_a_function_is_arithmetic_and_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match="Write a lambda of arithmetic"):
        user_reductions.function(text)


def test_arithmetic_and_known_functions_are_taken() -> None:
    text = "lambda a, b: max(a, abs(b)) if a > 0 and not b == 1 else -math.hypot(a, math.pi * b)"
    assert user_reductions.function(text)(2, -3) == 3


def test_functions_of_text_are_those_of_python() -> None:
    texts = [
        "a if a < b <= 3 else b % 2",
        "(a and b) or not a",
        "a + True - (b << 2) // 3 ^ ~a & b | 1",
        "min(a, b, 0) + math.floor(math.e * a) ** 2",
        "abs(-a) - +b * 2.5 >= 1 != (a == b)",
    ]
    for text in texts:
        python = eval(f"lambda a, b: {text}", {"math": math})
        for a, b in itertools.product((-3, 0, 1, 7), repeat=2):
            found, wanted = user_reductions.function(f"lambda a, b: {text}")(a, b), python(a, b)
            assert (found, type(found)) == (wanted, type(wanted)), text


@pytest.mark.parametrize("chosen", ["max", "min"])
def test_a_nan_wins_every_comparison_of_a_function(chosen: str) -> None:
    function = user_reductions.function(f"lambda a, b: {chosen}(a, b, 0.0)")
    assert math.isnan(function(math.nan, 1.0))
    assert math.isnan(function(1.0, math.nan))


@pytest.mark.parametrize(
    "text",
    [
        "lambda a, b: a + 9 ** 9 ** 9 ** 9",
        "lambda a, b: a + (1 << (1 << 60))",
        "lambda a, b: a" + " + b" * 30,
        "lambda a, b: a" + " + b" * 100_000,
        "lambda a, b: " + "(" * 900 + "a",
        "lambda a, b: " + "-" * 900 + "a",
        "lambda a, b: \0",
        "lambda a, b: " + "a if b else " * 80 + "a",
    ],
)
def test_text_that_would_compute_for_ever_is_refused_at_once(text: str) -> None:
    if user_reductions.is_function(text):
        reductions.find_reduction(text).supports("int64")
        assert user_reductions.neutral(text, "i") in (None, 0)
    else:
        with pytest.raises(LayoutError, match="lambda"):
            reductions.find_reduction(text)


def test_a_layout_whose_text_would_run_code_is_refused() -> None:
    text = "[4] + partial(lambda a, b: ().__class__.__base__.__subclasses__()){x}"
    with pytest.raises(LayoutError, match="lambda"):
        Layout.parse(text, Mesh(x=3))
