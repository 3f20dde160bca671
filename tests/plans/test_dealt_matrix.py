"""Matrices in parts whose columns are dealt: the bytes that move, as formulas, and their time."""

from __future__ import annotations

import itertools

import pytest

from distspmd.plans.dealt_matrix import TOGETHER, WIDEST, DealtMatrix, block_of
from distspmd.plans.machine import Machine
from distspmd.plans.matrix_calls import evenly


def rows(n: int, parts: int) -> tuple[tuple[int, int], ...]:
    cuts = [n * p // parts for p in range(parts + 1)]
    return tuple(itertools.pairwise(cuts))


@pytest.mark.parametrize(("n", "p"), [(1024, 2), (1536, 3), (2048, 4), (3072, 6)])
def test_a_panel_goes_to_all_others_and_rows_go_to_the_blocks_and_back(n: int, p: int) -> None:
    call = DealtMatrix("x", "cholesky", 8, n, rows(n, p))
    assert call.block == WIDEST
    panels = (n * n + n * WIDEST) // 2 * 8 * (p - 1)
    assert sum(nbytes * others for nbytes, others in call.panels) == panels
    assert call.ends == 2 * n * n * (p - 1) // p * 8
    assert call.expected_bytes == call.ends + panels
    assert call.textbook == n * n // 2 * 8 * (p - 1)


@pytest.mark.parametrize(("n", "p", "c"), [(1024, 2, 1), (1536, 3, 1), (1024, 4, 2000)])
def test_substitution_sends_panels_to_those_that_have_right_hand_sides(
    n: int, p: int, c: int
) -> None:
    call = DealtMatrix("x", "solve", 4, n, rows(n, p), c)
    exchanges = 8 * (n + n // WIDEST) * (p - 1)
    panels = (n * n + n * WIDEST) // 2 * 4
    of_sides = panels * (p - 1)
    if c == 1:  # one rank has it, and needs the panels of the others
        own = call.workers.index((n // WIDEST) % p)
        its = sum((k + 1) * WIDEST**2 for k in range(own, n // WIDEST, p))
        of_sides = panels - its * 4
    assert sum(nbytes * others for nbytes, others in call.panels) == (
        panels * (p - 1) + exchanges + of_sides
    )


def test_a_determinant_brings_nothing_back() -> None:
    call = DealtMatrix("x", "diagonal_of_factor", 8, 1024, rows(1024, 4))
    assert call.ends == 1024 * 1024 * 3 // 4 * 8


@pytest.mark.parametrize(("m", "n"), [(1024, 1024), (2048, 1024), (1024, 2048)])
@pytest.mark.parametrize("p", [2, 4])
def test_reflections_go_to_all_others_and_back_to_the_columns_that_they_change(
    m: int, n: int, p: int
) -> None:
    call = DealtMatrix("x", "qr_by_columns", 8, n, rows(m, p), min(m, n))
    assert call.block == WIDEST
    own = min(m, n)
    each = m * own - own * (own - WIDEST) // 2 + own  # what is below the diagonal, and the factors
    blocks = own // WIDEST  # the last ones change blocks of fewer ranks than all
    back = [(m - k * WIDEST + 1) * WIDEST * (min(blocks - k, p) - 1) for k in range(blocks)]
    found = sum(nbytes * others for nbytes, others in call.panels)
    assert found == (each * (p - 1) + sum(back)) * 8
    assert call.textbook == 2 * (m * own - own**2 // 2) * (p - 1) * 8
    into, out = m * n * (p - 1) // p, m * own * (p - 1) // p
    of_triangle = own * n * (p - 1) // p if m <= n else 0  # else it is summed
    assert call.ends == (into + out + of_triangle) * 8
    alone = DealtMatrix("x", "triangle_by_columns", 8, n, rows(m, p))
    assert sum(nbytes * others for nbytes, others in alone.panels) == each * (p - 1) * 8
    assert alone.ends == (into + of_triangle) * 8


@pytest.mark.parametrize("function", TOGETHER)
def test_one_part_does_not_move(function: str) -> None:
    for parts in (((0, 9), (0, 9)), ((0, 9), (0, 0))):
        call = DealtMatrix("x", function, 8, 9, parts, 9)
        assert not call.is_split
        assert call.expected_bytes == call.seconds(Machine()) == 0


def test_ranks_with_the_same_rows_give_them_once_and_all_get_their_results() -> None:
    halves = ((0, 512), (512, 1024))
    twice = DealtMatrix("x", "cholesky", 8, 1024, halves * 2)
    assert len(twice.workers) == 4
    assert twice.ends == 2 * (1024 * 1024 * 3 // 4 * 8) + 1024 * 1024 * 3 // 4 * 8


def test_blocks_are_narrower_where_each_rank_would_have_few() -> None:
    assert [block_of(n, 4) for n in (1, 16, 100, 1024, 9999)] == [1, 1, 7, 64, 64]


def test_what_is_expected_of_even_parts_is_what_moves() -> None:
    own = DealtMatrix("", "solve", 8, 1000, rows(1000, 4), 3)
    assert evenly("solve", 8, (1000, 1000, 3), 4).expected_bytes == own.expected_bytes


@pytest.mark.parametrize("lower", [True, False])
def test_one_triangle_goes_to_those_that_have_right_hand_sides(lower: bool) -> None:
    n, p, c = 1024, 4, 2000
    call = DealtMatrix("x", "solve_triangle", 8, n, rows(n, p), c, lower=lower)
    panels = (n * n + n * WIDEST) // 2 * 8 * (p - 1)
    assert sum(nbytes * others for nbytes, others in call.panels) == panels
    assert call.textbook == n * n // 2 * 8 * (p - 1)
