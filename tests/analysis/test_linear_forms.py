"""What code makes of leaves: sums that stand for them, against the code run with them replaced."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.analysis.linear_forms import Factor, Form, Tracker, of_cpp, of_python, sums, weights

LEAVES = ("p", "q", "r")


def tracked(code: str, kind: str = "f", language: str = "python") -> Tracker:
    tracker = Tracker(("float", "dace.float64"), kind)
    read = of_python(ast.parse(code).body) if language == "python" else of_cpp(code, "float")
    assert read is not None
    found = tracker.run(read, {leaf: Form({leaf: Factor()}) for leaf in LEAVES}, "0")
    tracker.leave(found["y"])
    return tracker


def found(code: str, kind: str = "f", language: str = "python") -> list[dict[Any, Any]]:
    return list(sums(tracked(code, kind, language).consumed))


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


def test_lines_of_cpp_are_read_as_far_as_they_are_like_python() -> None:
    code = "const float t = (p + q);\nconst bool b = (t >= u && v);\nconst float s = (b ? t : u);"
    assert found(f"{code}\ny = float(s + std::sqrt(t));", "f", "cpp") == [{"p": 1, "q": 1}]
    assert found("const double t = p + q;\ny = float(t);", "f", "cpp") == [{"p": 1, "q": 1}]
    assert found("const double t = p;\ny = float(t + q);", "f", "cpp") == []
    assert found("y = (c ? p : q);", "f", "cpp") == []


@pytest.mark.parametrize(
    "code", ["if (u) { y = p; }", "y += p;", "y = p; y = q;", "y[0] = p;", "return p;"]
)
def test_more_than_assignments_is_not_read(code: str) -> None:
    assert of_cpp(code, "float") is None


@pytest.mark.parametrize("code", ["y += p", "if p:\n    y = q", "y = p\ny = q", "y, z = p, q"])
def test_more_than_assignments_of_names_is_not_read(code: str) -> None:
    assert of_python(ast.parse(code).body) is None


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
