"""Exchanges of rows: what they mean, what they move, and the runtime on ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from distspmd.errors import PlanError
from distspmd.plans.row_exchange import RowExchange, RowSet

PROGRAM = Path(__file__).with_name("random_row_exchanges.py")
SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=SLOW) for n in (1, 2, 4, 7))])
def test_random_exchanges_bring_what_they_mean(launch, ranks):
    done = launch(PROGRAM, str(ranks), "100", ranks=ranks)
    assert f"100 exchanges agree on {ranks} ranks" in done.stdout


def exchange(has: RowSet, needs: RowSet, rows: int = 6) -> RowExchange:
    return RowExchange("y", np.dtype(np.float32), rows, 5, has, needs, (0,) * len(has.parts), rows)


def test_rows_go_to_the_ranks_whose_member_they_have():
    moved = exchange(RowSet(((0, 3), (3, 6))), RowSet(((0, 1), (1, 2)), member="m"))
    arrays = {"m": np.array([0, 1, 1, 1, 0, 7])}
    found = {pair: rows.tolist() for pair, rows in moved.messages(arrays).items()}
    assert found == {(0, 0): [0], (0, 1): [1, 2], (1, 0): [4], (1, 1): [3]}
    assert moved.received_bytes(arrays) == 3 * 5 * 4


def test_a_row_that_is_needed_several_times_by_a_rank_comes_once():
    moved = exchange(RowSet(((0, 3), (3, 6))), RowSet(((0, 4), (4, 4)), index="i"))
    arrays = {"i": np.array([5, 5, 4, -1])}
    assert {pair: rows.tolist() for pair, rows in moved.messages(arrays).items()} == {
        (1, 0): [4, 5]
    }


def test_of_a_scatter_add_all_ranks_that_have_a_row_send_theirs():
    moved = exchange(RowSet(((0, 2), (2, 4)), index="i"), RowSet(((0, 6), (6, 6))))
    arrays = {"i": np.array([3, 0, 3, 3])}
    found = {pair: rows.tolist() for pair, rows in moved.messages(arrays).items()}
    assert found == {(0, 0): [0, 3], (1, 0): [3]}


def test_of_replicas_those_who_ask_take_turns():
    parts = (0, 3), (0, 3), (3, 6), (3, 6)
    moved = exchange(RowSet(parts), RowSet(((0, 6),) * 4))
    senders = {to: [a for a, b in moved.messages({}) if b == to] for to in range(4)}
    assert senders == {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]}


def test_the_expected_bytes_are_those_of_an_even_choice():
    pairs = np.arange(8) % 4
    parts = tuple((n, n + 1) for n in range(4))
    has = RowSet(tuple((2 * n, 2 * n + 2) for n in range(4)))
    moved = exchange(has, RowSet(parts, member="m"), rows=8)
    assert moved.expected_bytes == 8 * 5 * 4 * 3 // 4
    assert moved.received_bytes({"m": pairs}) == moved.expected_bytes


def test_each_rank_needs_a_part_on_both_sides():
    with pytest.raises(PlanError, match="rows of 'y': each rank needs a part on both sides"):
        exchange(RowSet(((0, 3), (3, 6))), RowSet(((0, 1),)))


def test_rows_of_a_type_that_has_no_sum_are_refused():
    whole = RowSet(((0, 6),))
    with pytest.raises(PlanError, match="rows of 'y': float16 cannot be added up"):
        RowExchange("y", np.dtype(np.float16), 6, 5, whole, whole, (0,), 6)
