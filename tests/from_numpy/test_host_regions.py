"""Statements that are no array work: Python runs them, as regions of a compiled program."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import distspmd
from from_numpy import hosted


def _program(function: Any, **options: Any) -> Any:
    from mpi4py import MPI

    return distspmd.program(function, comm=MPI.COMM_SELF, **{"host": "allow", **options})


def _check_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _check_same(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("function", hosted.ARGUMENTS, ids=lambda f: f.__name__)
def test_regions_give_what_python_gives(function: Any) -> None:
    arguments = hosted.ARGUMENTS[function]
    changed = copy.deepcopy(arguments)
    expected = function(*changed)
    program = _program(function)
    for _ in range(2):
        own = copy.deepcopy(arguments)
        found = program(*own)
        _check_same(found, expected)
        _check_same(own, changed)
