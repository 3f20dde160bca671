"""``ndarray.resize`` gives the variable of an array another shape, and refuses other names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.arange(12.0).reshape(3, 4)


def resized(x: Any) -> Any:
    as_many, more, fewer = np.floor(x * 3), x + 1, (10 * x).astype(int)
    as_many.resize((2, 6))
    more.resize(5, 3)
    fewer.resize(7)
    more[4, 2] = -1
    return as_many, more, fewer, more.sum(axis=0)


def test_elements_keep_their_order_before_zeros() -> None:
    found = on_paper(Case("resized", resized, "own", "", lambda _: (X.copy(),), ()))
    assert found.kind == "right", found


def of_argument(x: Any) -> Any:
    x.resize((2, 6))
    return x


def with_another_name(x: Any) -> Any:
    y = x + 1
    z = y[1:]
    y.resize((2, 6))
    return y, z


def of_no_variable(x: Any) -> Any:
    pair = [x + 1, x]
    pair[0].resize((2, 6))
    return pair


def in_a_branch(x: Any) -> Any:
    y = x + 1
    if x[0, 1] > 0:
        y.resize((4, 3))
    return y


@pytest.mark.parametrize("program", [of_argument, with_another_name, of_no_variable, in_a_branch])
def test_other_arrays_are_not_resized(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"np\.resize\(x, shape\)"):
        numpy_program(program, X)
