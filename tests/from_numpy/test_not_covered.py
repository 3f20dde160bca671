"""What is not covered of NumPy is refused by name, with what to write instead."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.numpy.registry import REFUSED, by_name


def text(x: Any) -> Any:
    return np.array2string(x, precision=3)


def drawn_while_reading(x: Any) -> Any:
    return x + len(np.random.bytes(3))  # noqa: NPY002


def bytes_of(x: Any) -> Any:
    return x.getfield(np.int32)


def counted_days(x: Any) -> Any:
    return x + np.busday_count(x, x)


def shared(x: Any) -> Any:
    return np.shares_memory(x, x)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (text, "a text of an array with options; set them by np.set_printoptions"),
        (drawn_while_reading, "bytes is not covered: draw it before the program"),
        (bytes_of, "getfield is not covered: .*use astype"),
        (
            counted_days,
            r"np.busday_count is not covered; a function that @distspmd.host marks runs",
        ),
        (shared, "it is known where the program is written"),
    ],
)
def test_the_error_says_what_to_write(program: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message) as refused:
        numpy_program(program, np.ones(3), host="refuse")
    assert "test_not_covered.py:" in str(refused.value)


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    MATRIX = np.matrix([[1.0, 2.0, 3.0]])


def of_a_matrix(x: Any) -> Any:
    return MATRIX * x


def of_a_masked_array(x: Any) -> Any:
    return x + MASKED


@pytest.mark.parametrize(
    ("program", "message"),
    [(of_a_matrix, "a matrix, .*write @"), (of_a_masked_array, "its data and its mask")],
)
def test_arrays_of_classes_with_other_operators_are_none_of_a_program(
    program: Any, message: str
) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(program, np.ones(3))


def test_of_numbers_that_are_known_numpy_computes_the_result() -> None:
    def program(x: Any) -> Any:
        return x + np.poly([0, 2]).sum()

    assert "__return" in numpy_program(program, np.ones(3)).arrays


def test_each_refusal_is_a_sentence_about_something_of_numpy() -> None:
    for each, instead in REFUSED.items():
        assert instead, each
        assert not isinstance(each, str) or hasattr(np.ndarray, each)
    assert by_name({}, np.unique) is None
