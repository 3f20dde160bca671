"""Arrays that a program sees from outside: their elements are read, and changes are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.harness import RIGHT, Case, on_paper

FIELD = np.zeros(3)
TABLES = {"weights": [np.arange(3.0)]}


class Model:
    def __init__(self) -> None:
        self.state = np.zeros(3)


MODEL = Model()


def an_element(x: Any) -> Any:
    FIELD[0] = x[0]
    return FIELD + x


def elements_in_a_loop(x: Any) -> Any:
    for n in range(3):
        FIELD[n] = x[n]
    return FIELD + x


def a_part_with_a_name(x: Any) -> Any:
    part = FIELD[1:]
    part[0] = 7
    return FIELD + x


def another_name(x: Any) -> Any:
    field = FIELD
    field += x
    return FIELD


def by_a_function(x: Any) -> Any:
    np.copyto(FIELD, x)
    return FIELD + x


def by_a_method(x: Any) -> Any:
    FIELD.fill(2)
    return FIELD + x


def in_an_inner_function(x: Any) -> Any:
    def write(into: Any) -> None:
        into[1] = x[0]

    write(FIELD)
    return FIELD + x


def of_an_object(x: Any) -> Any:
    MODEL.state[0] = x[0]
    return MODEL.state + x


def in_a_list(x: Any) -> Any:
    TABLES["weights"][0][1] += x[0]
    return TABLES["weights"][0] + x


@pytest.mark.parametrize(
    "function",
    [
        an_element,
        elements_in_a_loop,
        a_part_with_a_name,
        another_name,
        by_a_function,
        by_a_method,
        in_an_inner_function,
        of_an_object,
        in_a_list,
    ],
)
def test_changes_of_arrays_from_outside_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedProgram, match="an array from outside of the program is changed"):
        numpy_program(function, np.ones(3))
    assert not FIELD.any()
    assert not MODEL.state.any()


def read_and_copied(x: Any) -> Any:
    own, state = FIELD.copy(), np.array(MODEL.state)
    own[0] = x[0]
    state += x
    changed = FIELD
    changed = changed + 1
    return own, state, changed, TABLES["weights"][0] * x


def test_arrays_from_outside_are_read_and_copies_changed() -> None:
    case = Case("read_and_copied", read_and_copied, "", "", lambda _: [np.ones(3)], ())
    found = on_paper(case)
    assert found.kind == RIGHT, found
