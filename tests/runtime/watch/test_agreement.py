"""Ranks that disagree, end, stop or wait for each other end all ranks, with who stands where."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Launch

from distspmd.errors import ArgumentError, CacheError
from distspmd.runtime.compilers.toolchain import find_mpi
from distspmd.runtime.launch import mpiexec as launching
from distspmd.runtime.launch.mpiexec import environment
from distspmd.runtime.watch import agreement, board, watchdog
from distspmd.runtime.watch.agreement import Call, disagreement
from distspmd.runtime.watch.board import Board, Posted
from distspmd.runtime.watch.rank_state import Movements, RankState, calling_line, ranks_text

RANKS = Path(__file__).parents[2] / "ranks"
PATIENCE = "3"
"""Seconds after which ranks that wait are ended, where a test has one that never comes."""


def test_ranks_that_call_different_things_all_hear_of_it_and_go_on(launch: Launch) -> None:
    assert "all disagreements were told" in launch(RANKS / "disagreeing.py", ranks=3).stdout


@pytest.mark.parametrize(
    ("how", "texts"),
    [
        ("exits", ["rank 1 ended while rank 0 waits in redistribute(", "ending.py:"]),
        ("finalizes", ["rank 1 ended while rank 0 waits in redistribute("]),
        (
            "only rank 0 calls",
            ["rank 1 ended while rank 0 waits in doubled(...) at ", "ending.py:"],
        ),
        ("ends at once", ["rank 1 ended while rank 0 waits in redistribute("]),
        ("only rank 0 compiles", ["rank 1 ended while rank 0 waits in compile(...)"]),
        ("thread", ["rank 1 failed", "ZeroDivisionError"]),
        ("crossed", ["ranks 0, 1 wait for each other in different calls"]),
    ],
)
def test_a_rank_that_comes_no_more_ends_all(how: str, texts: list[str], launch: Launch) -> None:
    done = launch(RANKS / "ending.py", how, ranks=2, check=False)
    assert done.returncode != 0
    assert not done.timed_out
    for text in texts:
        assert text in done.stderr
    assert "a rank came to the end" not in done.stdout


@pytest.mark.parametrize(
    ("how", "ranks", "text"),
    [
        ("stopped", 4, "rank 1: is stopped"),
        ("a call fewer", 2, "rank 1: is at "),
    ],
)
def test_a_rank_that_does_not_answer_ends_all_when_the_time_is_up(
    how: str, ranks: int, text: str, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, PATIENCE)
    done = launch(RANKS / "ending.py", how, ranks=ranks, check=False)
    assert done.returncode != 0
    assert not done.timed_out
    assert done.stderr.count("ending all ranks") == 1, done.stderr
    assert " waits in redistribute(" in done.stderr
    assert "DISTSPMD_TIMEOUT is 3" in done.stderr
    assert text in done.stderr


@pytest.mark.parametrize(
    ("how", "ranks"),
    [
        ("stopped at the end", 2),
        pytest.param("stopped at the end", 3, marks=pytest.mark.slow),
        ("stopped beside Finalize", 3),
        ("stopped behind Python", 3),
        pytest.param("stopped behind Python", 2, marks=pytest.mark.slow),
    ],
)
def test_a_rank_that_is_stopped_while_others_finalize_ends_all(
    how: str, ranks: int, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, PATIENCE)
    done = launch(RANKS / "ending.py", how, ranks=ranks, check=False)
    assert done.returncode not in (0, launching.TIMED_OUT)
    assert done.stderr.count("distspmd: ") == 1, done.stderr
    assert "distspmd: rank 1 (process " in done.stderr
    assert "is stopped" in done.stderr
    assert "DISTSPMD_TIMEOUT is 3" in done.stderr


def test_a_rank_may_stop_when_all_have_finalized_and_work_on(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, "1")
    done = launch(RANKS / "ending.py", "stopped after Finalize", ranks=2)
    assert (done.stdout.count("the end"), done.stderr) == (2, "")


def test_a_rank_that_ends_long_before_others_is_left_alone(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, "1")
    code = "import distspmd, time\nfrom mpi4py import MPI\ntime.sleep(5 * MPI.COMM_WORLD.rank)"
    assert launch(code, ranks=2).stderr == ""


def test_a_rank_that_works_in_a_call_is_waited_for(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, "2")
    assert launch(RANKS / "ending.py", "works long", ranks=2).stdout.count("the end") == 2


@pytest.mark.parametrize("how", ["all end", "finalized"])
def test_ranks_that_end_together_are_left_alone(how: str, launch: Launch) -> None:
    done = launch(RANKS / "ending.py", how, ranks=3)
    assert done.stdout.count("the end" if how == "all end" else "refused: ") == 3
    assert "distspmd" not in done.stderr


def test_the_code_of_a_rank_that_exits_is_that_of_the_launch(launch: Launch) -> None:
    assert launch(RANKS / "ending.py", "exits with 7", ranks=2, check=False).returncode == 7


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "how",
    [pytest.param("exits", marks=SLOW), "only rank 0 calls", pytest.param("stopped", marks=SLOW)],
)
def test_so_it_is_under_a_bare_mpiexec(how: str, tmp_path: Path) -> None:
    mpi = find_mpi()
    around = environment(mpi, 2, environ={**os.environ, watchdog.VARIABLE: PATIENCE})
    command = [mpi.mpiexec, "-n", "2", sys.executable, RANKS / "ending.py", how]
    done = subprocess.run(
        command, env=around, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode != 0
    assert ("is stopped" if how == "stopped" else "rank 1 ended while rank 0 waits") in done.stderr


def test_a_timeout_says_where_each_rank_stood(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"

    class Process(subprocess.Popen[bytes]):
        """Its time is up when a rank waits for the other."""

        def wait(self, timeout: float | None = None) -> int:
            while timeout == 600 and self.poll() is None and not seen.exists():
                time.sleep(0.05)
            return super().wait(0.1 if timeout == 600 else timeout)

    monkeypatch.setattr(launching.subprocess, "Popen", Process)
    done = launch(RANKS / "ending.py", "watched", str(seen), ranks=2, check=False)
    assert done.timed_out
    assert "2 rank(s) did not end within 600 s (timeout); all are ended." in done.stderr
    assert "rank 0: waits in redistribute(" in done.stderr
    assert "rank 1: is at " in done.stderr
    assert ", in no call of distspmd" in done.stderr


# --- parts ---


def test_calls_with_other_texts_or_details_have_other_tags() -> None:
    calls = [Call.of("mm(...)"), Call.of("mv(...)"), Call.of("mm(...)", 1), Call.of("mm(...)", "1")]
    tags = {call.tag for call in calls}
    assert len(tags) == len(calls)
    assert Call.of("mm(...)").tag in tags
    assert all(agreement.REDISTRIBUTION < tag < 2**62 for tag in tags)
    assert all(tag % 2**32 == 0 for tag in tags)


def test_who_called_what_is_told_by_rank() -> None:
    texts = ["mm(...) at a.py:1", "mv(...) at a.py:2", "mm(...) at a.py:1"]
    told = disagreement(texts, "call different things", (0, 1, 2))
    assert told.startswith("the ranks call different things:\n  ranks 0, 2: mm(...) at a.py:1\n")
    assert "  rank 1: mv(...) at a.py:2\n" in told
    ended = disagreement(["mm(...)", "ended", "ended", "mm(...)"], "", (4, 5, 6, 7))
    assert ended.startswith("ranks 5, 6 ended while ranks 4, 7 wait in mm(...).\n")


def test_ranks_are_told_in_runs() -> None:
    assert ranks_text([3]) == "rank 3"
    assert ranks_text([1, 0]) == "ranks 0, 1"
    assert ranks_text([0, 2, 3, 4, 7]) == "ranks 0, 2 to 4, 7"


def posted(**given: object) -> Posted:
    pid = os.getpid()
    return Posted(**{"pid": pid, "started": board.process(pid)[1], "beat": 1, "text": "", **given})


def waits(key: str, meeting: int, members: tuple[int, ...], **counts: int) -> Posted:
    return posted(waits=(key, meeting, 0), members=members, counts={**counts, key: meeting})


def test_ranks_that_wait_for_each_other_cannot_move() -> None:
    crossed = {0: waits("a", 3, (0, 1), b=2), 1: waits("b", 3, (0, 1), a=2)}
    assert watchdog.cannot_move(crossed) == [0, 1]
    # A third one waits for one of them; a fourth one for somebody who may still come.
    more = {**crossed, 2: waits("c", 1, (0, 2)), 3: waits("d", 1, (3, 4)), 4: posted()}
    assert watchdog.cannot_move(more) == [0, 1, 2]
    assert watchdog.cannot_move({3: waits("d", 1, (3, 4))}) == []
    # Who has come to a meeting already only has not been told that it took place.
    past = {0: waits("a", 3, (0, 1)), 1: waits("b", 3, (0, 1), a=3)}
    assert watchdog.cannot_move(past) == []
    together = {0: waits("a", 3, (0, 1)), 1: waits("a", 3, (0, 1))}
    assert watchdog.cannot_move(together) == []
    moves = {0: posted(waits=("a", 3, 7), members=(0, 1)), 1: waits("b", 3, (0, 1), a=2)}
    assert watchdog.cannot_move(moves) == []


def test_a_rank_that_ended_never_comes_to_later_meetings() -> None:
    ended = posted(ended=True, counts={"a": 3})
    assert not watchdog.never_comes(ended, "a", 3)
    assert watchdog.never_comes(ended, "a", 4)
    assert watchdog.never_comes(ended, "b", 1)
    assert not watchdog.never_comes(posted(counts={"a": 3}), "a", 4)


@pytest.mark.parametrize("given", ["soon", "-1", "inf", "nan"])
def test_a_timeout_that_is_no_time_is_refused(given: str) -> None:
    with pytest.raises(ArgumentError, match=f"DISTSPMD_TIMEOUT='{given}' is no time"):
        watchdog.limit({watchdog.VARIABLE: given})


def test_a_timeout_is_on_unless_it_is_0() -> None:
    assert watchdog.limit({}) == watchdog.limit({watchdog.VARIABLE: ""}) == 1800
    assert watchdog.limit({watchdog.VARIABLE: "0"}) == 0
    assert watchdog.limit({watchdog.VARIABLE: "2.5"}) == 2.5


def test_a_board_has_what_was_posted_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(board, "boards_folder", lambda place: tmp_path)
    job = Board("job")
    assert job.all() == {}
    first = posted(text="runs", counts={"a": 2}, waits=("a", 2, 0), members=(0, 1))
    job.post(0, first)
    gone = posted(pid=2**22 + 1, started=5, text="waits")
    job.post(10, gone)
    assert job.all() == {0: first, 10: gone}
    assert first.lives
    assert not gone.lives
    assert gone.told().startswith("is gone: its process 4194305")
    job.remove_if_all_ended()
    assert job.read(0) == first
    job.post(0, posted(ended=True))
    job.remove_if_all_ended(3)  # the third has not been here: it looks for those that have ended
    assert list(job.all()) == [0, 10]
    job.remove_if_all_ended(2)
    assert job.all() == {}


def test_a_rank_that_ends_looks_no_further_than_one_that_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(board, "boards_folder", lambda place: tmp_path)
    job, looked = Board("job"), []
    for rank in range(10):
        job.post(rank, posted(ended=rank != 7))
    read = Board.read
    monkeypatch.setattr(Board, "read", lambda own, rank: looked.append(rank) or read(own, rank))
    job.remove_if_all_ended(10)
    assert looked == [9, 8, 7]


@pytest.mark.parametrize(("members", "at_once"), [(2, 64), (8, 64), (64, 8), (1000, 8)])
def test_ranks_that_wait_take_turns_in_looking_at_the_others(members: int, at_once: int) -> None:
    thread = watchdog._Watchdog()
    thread._of_node = 64
    looks = set()
    for thread._beat in range(8):
        now = set()
        for thread._rank in range(64):
            if thread._has_turn(members):
                now.add(thread._rank)
        assert len(now) == at_once
        looks |= now
    assert looks == set(range(64))  # none waits for its turn for ever


def test_what_a_board_holds_that_is_no_post_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(board, "boards_folder", lambda place: tmp_path)
    job = Board("job")
    job.post(0, posted())
    for rank, text in enumerate(["", "{}", "[1]", '{"pid": 1}', "\xff"], start=1):
        (job.folder / str(rank)).write_bytes(text.encode("latin-1"))
    assert list(job.all()) == [0]


def test_the_folder_of_boards_is_the_users_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISTSPMD_SHARED_MEMORY", str(tmp_path))
    folder = board.boards_folder()
    assert folder.parent.parent == tmp_path
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.touch()
    with pytest.raises(CacheError):
        board.boards_folder()
    assert board.stood("mark", tmp_path) == {}


def test_a_shell_that_runs_a_rank_is_of_the_same_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(board.MARK, raising=False)
    code = "from distspmd.runtime.watch.board import job_key; print(job_key())"
    around = {**os.environ, "PMI_RANK": "1"}

    def key(command: list[str]) -> str:
        done = subprocess.run(command, env=around, capture_output=True, text=True, check=True)
        return done.stdout

    plain = key([sys.executable, "-c", code])
    wrapped = key(["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", code])
    assert plain == wrapped
    assert plain.startswith(f"process-{os.getpid()}-")


def test_a_standing_tells_the_call_and_the_line() -> None:
    rank_state = RankState((0, 1))
    assert rank_state.waits is None
    rank_state.begin(Call.of("mm(...)"))
    assert rank_state.waits == (rank_state.key, 1, 0)
    assert rank_state.text().startswith("waits in mm(...) at ")
    assert f"{Path(__file__).name}:" in rank_state.text()
    rank_state.met = 1
    assert rank_state.text().startswith("runs mm(...)")
    movements = Movements(["x"], ["y"])
    rank_state.movements.append(movements)
    movements.numbers[:] = 0, 5, 4
    assert rank_state.waits == (rank_state.key, 1, 5)
    assert rank_state.text().startswith("moves x in mm(...)")
    movements.numbers[:] = -1, 6, 5
    assert rank_state.text().startswith("moves y in mm(...)")
    assert RankState((0, 1)).key != rank_state.key
    assert f"{Path(__file__).name}:" in calling_line()
