"""What code makes of leaves: sums that stand for them, against the code run with them replaced."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.expressions.from_python import assigned
from distspmd.expressions.ir import Expression
from distspmd.expressions.linear import Factor, Form, Tracker, linear_in, sums, weights
from distspmd.expressions.python import PythonPrinter
from distspmd.expressions.text import parse_assignments

LEAVES = ("p", "q", "r")


REAL = np.dtype(np.float64)
TYPES = {"i": np.dtype(np.int64), "f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def read(text: str) -> Expression:
    return assigned(ast.parse(f"y = {text}").body, {}, other=REAL)["y"]


def tracked(code: str, kind: str = "f") -> Tracker:
    tracker = Tracker(TYPES[kind])
    assigned_names = assigned(ast.parse(code).body, {}, other=TYPES[kind])
    forms = {leaf: Form({leaf: Factor()}) for leaf in LEAVES}
    tracker.leave(tracker.form(assigned_names["y"], forms, "0"))
    return tracker


def found(code: str, kind: str = "f") -> list[dict[Any, Any]]:
    return list(sums(tracked(code, kind).consumed))


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("y = p + q", {"p": 1, "q": 1}),
        ("y = p - q", {"p": 1, "q": -1}),
        ("y = -(q - p) * 3", {"q": -3, "p": 3}),
        ("y = p + u + q", {"p": 1, "q": 1}),
        ("t = p + q\ny = t * t + sin(t)", {"p": 1, "q": 1}),
        ("t = 2 * p\ns = t - u\ny = tanh(s - 3 * q)", {"p": 2, "q": -3}),
        ("y = u * p + q * u", {"p": 1, "q": 1}),
        ("y = (p + q) / 4 + (p + q + 1) * v", {"p": 0.25, "q": 0.25}),
        ("y = dace.float64(p) + q", {"p": 1, "q": 1}),
        ("y = (p if c else u) + (q + r)", {"q": 1, "r": 1}),
        ("y = abs(p - q + r)", {"p": 1, "q": -1, "r": 1}),
    ],
)
def test_sums_stand_for_their_leaves(code: str, wanted: dict[str, float]) -> None:
    assert found(code) == [wanted]


@pytest.mark.parametrize(
    "code",
    [
        "y = p * q",
        "y = p + q * q",
        "y = sin(p) + sin(q)",
        "y = u * p + v * q",
        "y = p / q",
        "y = p + q + sin(p)",
        "t = p + q\ny = t + 2 * p",
        "y = max(p, q)",
        "y = float32(p) + float32(q)",
        "y = p if q > u else r",
        "y = p[q]",
    ],
)
def test_what_needs_more_of_its_leaves_has_no_sums(code: str) -> None:
    assert found(code) == []
    assert not tracked(code).is_linear or "v *" in code


def test_products_of_whole_numbers_with_fractions_are_not_linear() -> None:
    assert found("y = p * 2 + q * 2", "i") == [{"p": 2, "q": 2}]
    assert found("y = p * 0.5 + q * 0.5", "i") == []
    assert found("y = p / 2 + q / 2", "i") == []
    assert found("y = p * u + q * u", "i") == []


def test_real_leaves_have_no_complex_weights() -> None:
    assert found("y = p + 2j * q", "f") == []
    assert found("y = p + 2j * q", "c") == [{"p": 1, "q": 2j}]


@pytest.mark.parametrize(
    ("code", "linear"),
    [
        ("y = p - 2 * q * u", True),
        ("y = p + u", False),
        ("y = u", False),
        ("y = (p + q) * r", False),
        ("t = p + q\ny = -t / 3", True),
    ],
)
def test_linear_is_what_adds_up_leaves_and_nothing_else(code: str, linear: bool) -> None:
    assert tracked(code).is_linear == linear


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (
            "t = add(p@float32, q@float32)\n"
            "y = where(greater(t, u@float32), add(t, 1.0@float32), sqrt(t))",
            [{"p": 1, "q": 1}],
        ),
        ("y = cast(add(p@float32, q@float32)@float64)@float32", [{"p": 1, "q": 1}]),
        ("t = cast(p@float32)@float64; y = cast(add(t, q@float32))@float32", []),
        ("y = where(c@bool, p@float32, q@float32)", []),
    ],
)
def test_leaves_are_followed_in_their_own_type(code: str, wanted: list[Any]) -> None:
    tracker = Tracker(np.dtype(np.float32))
    forms = {leaf: Form({leaf: Factor()}) for leaf in LEAVES}
    ((_, value),) = parse_assignments(code)
    tracker.leave(tracker.form(value, forms, "0"))
    assert list(sums(tracker.consumed)) == wanted


@pytest.mark.parametrize(
    ("code", "factor", "rest"),
    [
        ("p + q", "1", "q"),
        ("(p + u) * 2 - q / u", "(1 * 2)", "((u * 2) - (q / u))"),
        ("-(q - p)", "(-(-1))", "(-q)"),
        ("p / u", "(1 / u)", None),
        ("q * u", None, "(q * u)"),
    ],
)
def test_factors_and_rests(code: str, factor: str | None, rest: str | None) -> None:
    found = linear_in(read(code), "p")
    assert found is not None
    assert [part and PythonPrinter().text(part) for part in found] == [factor, rest]


@pytest.mark.parametrize("code", ["p * p", "sin(p)", "u / p", "p if u > 0 else u", "max(p, u)"])
def test_what_is_no_sum_has_no_factor(code: str) -> None:
    assert linear_in(read(code), "p") is None


def test_weights_are_ratios_that_are_whole_where_they_shall_be() -> None:
    assert weights([2, 4, -6], whole=True) == [1, 2, -3]
    assert weights([2, 3], whole=True) == [1, None]
    assert weights([2, 3, 1j], whole=False) == [1, 1.5, 0.5j]
    assert weights([3, 3 * 2**60], whole=True) == [1, 2**60]


EXPRESSIONS = st.recursive(
    st.sampled_from([*LEAVES, "u", "v", "2", "0.5"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda x: f"({' '.join(x)})"),
        st.tuples(inner, st.sampled_from(["/ 4", "/ u"])).map(lambda x: f"({' '.join(x)})"),
        st.tuples(st.sampled_from(["sin", "dace.float64", "-"]), inner).map(
            lambda x: f"{x[0]}({x[1]})"
        ),
    ),
    max_leaves=12,
)


class Types:
    """Stands for DaCe in the code."""

    float64 = float


@given(EXPRESSIONS, EXPRESSIONS, st.integers(0, 99))
def test_code_computes_the_same_from_the_sum(first: str, second: str, seed: int) -> None:
    code = f"t = {first}\ny = {second} + t * {second}"
    rng = np.random.default_rng(seed)
    values = dict(zip((*LEAVES, "u", "v"), rng.uniform(0.5, 1.5, 5).tolist(), strict=True))

    def computed(leaves: dict[Any, float]) -> float:
        names: dict[str, Any] = {"sin": np.sin, "dace": Types, **values, **leaves}
        exec(code, {}, names)
        return float(names["y"])

    wanted = computed({})
    for added in found(code):
        kept, *others = added
        ratios = weights([*added.values()], whole=False)
        total = sum(ratio * values[leaf] for leaf, ratio in zip(added, ratios, strict=True))
        given = computed({kept: total, **dict.fromkeys(others, 0.0)})
        assert given == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    if tracked(code).is_linear:
        apart = [computed({n: values[n] * (n == leaf) for n in LEAVES}) for leaf in LEAVES]
        assert sum(apart) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
