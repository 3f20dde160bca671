"""Banners of Open MPI in what a launch prints: those that say nothing new are left out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from distspmd.runtime.launch.banners import Lines, without_banners

DASHES = "-" * 74 + "\n"
ABORTED = f"{DASHES}MPI_ABORT was invoked on rank 1 in communicator\n\nNOTE: it ends.\n{DASHES}"
NO_SLOTS = f"{DASHES}There are not enough slots available in the system\n{DASHES}"


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_banners_that_say_nothing_new_are_left_out_in_whatever_pieces_they_come(step: int) -> None:
    text = f"before\n{ABORTED}{NO_SLOTS}between\n--- a line of mine ---\n{ABORTED}after, no end"
    lines, found = Lines(), b""
    for n in range(0, len(text), step):
        found += lines.take(text[n : n + step].encode())
    found += lines.end()
    assert found.decode() == (f"before\n{NO_SLOTS}between\n--- a line of mine ---\nafter, no end")
    assert found.decode() == without_banners(text)


def test_part_of_a_line_comes_out_at_once() -> None:
    lines = Lines()
    assert lines.take(b"50 %\r") == b"50 %\r"
    assert lines.take(b"60 %\r") == b"60 %\r"
    assert lines.take(b"-") == b""  # it may become a line of dashes
    assert lines.take(b"1\n") == b"-1\n"
    assert lines.end() == b""


EARLY = f"{DASHES}prterun has exited due to process rank 3 with PID 7 on node a exiting\n{DASHES}"


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_banner_names_the_rank_that_ended_early_unless_a_rank_has_told_why(step: int) -> None:
    for before, rank in (("before\n", 3), ("a\ndistspmd: rank 1 failed.\n", None)):
        lines, text = Lines(), f"{before}{EARLY}after"
        for n in range(0, len(text), step):
            lines.take(text[n : n + step].encode())
        assert lines.ended_early == rank


def test_what_is_cut_in_a_banner_is_lost_and_dashes_alone_are_not() -> None:
    assert without_banners(f"a\n{DASHES}") == f"a\n{DASHES}"
    assert without_banners(f"a\n{DASHES}MPI_ABORT was invoked on rank 1\nmore") == "a\n"


def test_a_launch_prints_what_ranks_say_and_no_banner() -> None:
    code = (
        "import sys; from distspmd import launch; sys.exit(launch(['-c', "
        "'import sys; from mpi4py import MPI; print(\"told\", file=sys.stderr); sys.exit(3)'], "
        "ranks=2).returncode)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3
    assert "told" in done.stderr
    assert "-----" not in done.stderr
