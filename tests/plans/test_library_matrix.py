"""Matrices whose columns are dealt to a library: the bytes of textbooks, and their time."""

from __future__ import annotations

import itertools

import pytest

from distspmd.plans.machine import Machine
from distspmd.plans.matrix_calls import evenly, exchange_of, header_of


def rows(n: int, parts: int) -> tuple[tuple[int, int], ...]:
    return tuple(itertools.pairwise([n * p // parts for p in range(parts + 1)]))


@pytest.mark.parametrize(
    ("function", "triangles", "results"),
    [("eigenvectors", 3, 1), ("eigenvalues", 2, 0), ("svd", 3, 2), ("singular_values", 2, 0)],
)
@pytest.mark.parametrize("p", [2, 4])
def test_bytes_are_those_of_textbooks_and_of_the_ends(
    function: str, triangles: int, results: int, p: int
) -> None:
    n = 1024
    call = exchange_of("x", function, 8, n, rows(n, p))
    ends = (1 + results) * n * n * (p - 1) // p * 8
    assert call.expected_bytes == ends + triangles * n * n // 2 * 8 * (p - 1)
    assert f"{ends:,} to and from rows" in call.bytes_text
    assert "by ScaLAPACK" in call.steps
    assert header_of(function) == "scalapack.hpp"


def test_messages_of_each_column_are_what_small_matrices_wait_for() -> None:
    far = Machine(alpha=1e-3, beta=0)
    call = evenly("eigenvalues", 8, (500, 500, 0), 4)
    assert call.seconds(far) == pytest.approx(2 * 500 * 2 * 1e-3, rel=0.1)
    assert evenly("eigenvalues", 8, (500, 500, 0), 1).seconds(far) == 0
