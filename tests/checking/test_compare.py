"""Comparisons: which element differs first, by how much, and what rounding may change."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.checking.compare import compare, tolerance_of


def test_the_first_element_that_differs_is_named_with_both_values() -> None:
    wanted = np.arange(12.0).reshape(3, 4)
    found = wanted.copy()
    found[1, 2], found[2, 0] = 6.5, -1
    compared = compare("y", found, wanted)
    assert compared.first == ((1, 2), "6.5", "6.0")
    assert compared.wrong == 2
    assert compared.largest == 9 / 11
    assert str(compared).startswith("y[1, 2] is 6.5, not 6.0 (2 of 12 elements of float64 differ")


def test_rounding_is_allowed_relative_to_the_largest_value() -> None:
    for dtype in ("float16", "float32", "float64", "complex64", "complex128"):
        wanted = np.array([1000, 1], dtype)
        step = 1000 * tolerance_of(dtype)
        assert compare("y", wanted + np.array([0, 0.5 * step], dtype), wanted).first is None
        assert compare("y", wanted + np.array([0, 4 * step], dtype), wanted).first is not None


def test_integers_and_bools_must_be_equal() -> None:
    wanted = np.array([2**62, 0])
    assert compare("n", wanted + 1, wanted, tolerance=0.5).wrong == 2
    assert compare("b", np.array([True, False]), np.array([True, True])).first == (
        (1,),
        "False",
        "True",
    )


def test_nan_equals_nan_and_infinities_are_no_rounding() -> None:
    wanted = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare("y", wanted.copy(), wanted).first is None
    for wrong in ([0, np.inf, -np.inf, 1], [np.nan, 1, -np.inf, 1], [np.nan, np.inf, np.inf, 1]):
        assert compare("y", np.array(wrong, float), wanted).wrong == 1
    assert compare("y", np.array([np.nan, np.inf, -np.inf, np.nan]), wanted).largest == np.inf


def test_another_shape_differs_and_one_element_has_any() -> None:
    assert "is of the shape [3], not of the shape [4]" in str(compare("y", np.ones(3), np.ones(4)))
    assert compare("s", np.ones((1, 1)), 1.0).first is None
    assert str(compare("s", 2.0, np.float64(1))).startswith("s is 2.0, not 1.0")


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int16", "bool"])
@given(data=st.data())
def test_arrays_equal_themselves(dtype: str, data: st.DataObject) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=0, min_side=0))
    values = data.draw(arrays.arrays(dtype, shape))
    compared = compare("y", values.copy(), values)
    assert (compared.first, compared.wrong, compared.largest) == (None, 0, 0)
