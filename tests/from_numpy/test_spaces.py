"""Names of the spaces of NumPy programs: what the source says, stable under edits elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program

SQUARE, ROW = np.ones((4, 4)), np.ones(4)


def names(function: Callable[..., Any], *examples: Any) -> list[str]:
    return [space.name for space in distspmd.iteration_spaces(numpy_program(function, *examples))]


def layer(x, w, b):
    hidden = np.tanh(x @ w + b)
    return hidden.sum(axis=0), np.add.reduce(hidden * 2, axis=1)


def layer_with_edits(x, w, b):
    shifted = x - x.mean()
    hidden = np.tanh(x @ w + b)
    return hidden.sum(axis=0), np.add.reduce(hidden * 2, axis=1), shifted


def test_spaces_are_called_after_variables_and_what_is_computed() -> None:
    found = names(layer, SQUARE, SQUARE, ROW)
    assert found == ["x_matmul_w", "hidden", "__return_0", "__return_1"]


def test_names_stay_where_other_lines_are_written() -> None:
    before, after = names(layer, SQUARE, SQUARE, ROW), names(layer_with_edits, SQUARE, SQUARE, ROW)
    assert [name for name in after if name in before] == before
    assert set(after) - set(before) == {"mean_x", "__return_2"}


def product(a, b):
    return a @ b


def calls_it(a, b):
    first = product(a, b)
    return first + product(b, a)


def test_the_result_of_a_function_is_called_as_the_caller_does() -> None:
    assert names(calls_it, SQUARE, SQUARE) == ["first", "product_b", "__return"]


def written_twice(x):
    y = x + 1
    y[0] = 5
    y[1:] = x[1:] * 2
    return y[0] + y


def test_a_space_that_writes_again_has_an_ordinal() -> None:
    assert names(written_twice, ROW)[:3] == ["y", "y.2", "y.3"] or names(written_twice, ROW)[
        :3
    ] == ["__return", "__return.2", "__return.3"]


@pytest.mark.parametrize(
    ("subscripts", "parameters"), [("ik,kj->ij", "ijk"), ("bnm,bmp->bnp", "bnpm")]
)
def test_letters_of_einsum_are_parameters(subscripts: str, parameters: str) -> None:
    def contracted(a, b):
        return np.einsum(subscripts, a, b)

    shape = (4,) * len(subscripts.partition(",")[0])
    (space,) = distspmd.iteration_spaces(numpy_program(contracted, np.ones(shape), np.ones(shape)))
    assert "".join(p.rstrip("_") for p in space.parameters) == parameters


def test_spaces_have_the_lines_of_their_statements() -> None:
    spaces = distspmd.iteration_spaces(numpy_program(layer, SQUARE, SQUARE, ROW))
    first = layer.__code__.co_firstlineno
    lines = [int(str(space.source).rpartition(":")[2]) - first for space in spaces]
    assert lines == [1, 1, 2, 2]
