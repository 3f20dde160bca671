"""Tall matrices whose rows ranks have: the bytes that move along the tree, as formulas."""

from __future__ import annotations

import itertools

import pytest

from distspmd.plans.machine import Machine
from distspmd.plans.matrix_calls import evenly
from distspmd.plans.tall_matrix import TallMatrix


def rows(m: int, parts: int) -> tuple[tuple[int, int], ...]:
    cuts = [m * p // parts for p in range(parts + 1)]
    return tuple(itertools.pairwise(cuts))


@pytest.mark.parametrize("p", [2, 3, 4, 6, 7])
def test_each_rank_but_the_first_sends_a_triangle_and_gets_its_factor(p: int) -> None:
    n = 20
    triangle = TallMatrix("r", "triangle_of_qr", 8, n, rows(1000, p))
    both = TallMatrix("q", "qr", 8, n, rows(1000, p))
    assert triangle.expected_bytes == (p - 1) * n * n * 8
    assert both.expected_bytes == 2 * triangle.expected_bytes
    assert triangle.textbook == (p - 1) * n * (n + 1) // 2 * 8


def test_ranks_with_fewer_rows_than_columns_send_these_and_their_first_rows() -> None:
    call = TallMatrix("r", "triangle_of_qr", 8, 10, ((0, 4), (4, 8), (8, 12), (12, 16)))
    assert call.sent == (4 * 10, 8 * 10, 4 * 10)
    assert call.ends == 6 * 10 * 8  # six of the first ten rows are on others
    assert call.expected_bytes == (16 + 6) * 10 * 8


def test_ranks_with_the_same_rows_get_those_of_the_factor() -> None:
    call = TallMatrix("q", "qr", 8, 10, rows(200, 2) * 2)
    assert call.holders == (0, 1)
    assert call.expected_bytes == (2 * 10 * 10 + 200 * 10) * 8


def test_one_part_does_not_move() -> None:
    call = TallMatrix("q", "qr", 8, 10, ((0, 100), (0, 100), (0, 0)))
    assert not call.is_split
    assert call.expected_bytes == call.seconds(Machine()) == 0


def test_what_is_expected_of_even_parts_is_what_moves() -> None:
    assert evenly("qr", 8, (1000, 20, 0), 4) == TallMatrix("", "qr", 8, 20, rows(1000, 4))
