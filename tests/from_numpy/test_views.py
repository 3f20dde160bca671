"""Which results are views of an array and which are copies, and arguments that are not covered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.codegen.build import load_unlowered
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program


def every(a):
    made = [
        a.conj(),
        np.conj(a),
        a.real,
        np.real(a),
        np.asarray(a),
        np.ascontiguousarray(a),
        a.ravel(),
        a.flatten(),
        np.atleast_2d(a),
        a.astype(float),
        a.astype(float, copy=False),
        np.squeeze(a),
        np.broadcast_to(a, (2, *a.shape)),
        a.T.reshape(-1),
        a.T.ravel(),
        np.diagonal(a),
        np.flip(a),
        np.rot90(a),
        np.roll(a, 0),
        np.split(a, 2)[0],
        np.expand_dims(a, 0),
        np.nan_to_num(a),
        np.triu(a),
        np.clip(a, 0, 1),
        np.repeat(a, 1, axis=0),
        np.moveaxis(a, 0, 1),
        a.reshape(2, 2, order="F"),
        np.positive(a),
        +a,
        a.T.copy().T,
        np.hsplit(a, 2)[1],
        np.round(a),
        np.take(a, [0], axis=0),
        np.where(a > 0, a, a),
        a[...],
        np.broadcast_arrays(a, a[0])[0],
        a.max(axis=0, keepdims=True),
        np.ascontiguousarray(a.T),
        np.asfortranarray(a),
        a.reshape(4).reshape(2, 2).T.ravel(),
        a[:, ::2].reshape(-1),
        np.take(a, [0, 5, -3], mode="clip"),
        np.take(a, [0, 5, -3], mode="wrap"),
        np.array(a, ndmin=3),
    ]
    a[0] = 9
    return made


@pytest.fixture(scope="module")
def results() -> tuple[list[Any], list[Any]]:
    given = np.arange(1.0, 5).reshape(2, 2)
    program = load_unlowered(numpy_program(every, given.copy()))
    return list(program(a=given.copy())), every(given.copy())


def test_what_is_written_later_is_seen_through_views_alone(
    results: tuple[list[Any], list[Any]],
) -> None:
    found, wanted = results
    assert len(found) == len(wanted)
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_array_equal(one.reshape(np.shape(other)), other, err_msg=str(place))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda a: np.broadcast_to(a, (2, 2, 2)).fill(1), "read-only"),
    ],
)
def test_what_is_not_covered_is_refused(program: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(program, np.ones((2, 2)))


def test_arrays_of_other_shapes_are_not_equal() -> None:
    def program(a: Any) -> Any:
        return a + np.array_equal(a, a[:1])

    given = np.ones((2, 2))
    np.testing.assert_array_equal(load_unlowered(numpy_program(program, given))(a=given), given)
