"""Sessions: calls by one process, and no rank that outlives it, however it ends."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from conftest import Launch
from driver.processes import finished, started


def wait_until_gone(file: Path) -> None:
    """Wait for the end of all processes that a script has written down."""
    left = [int(pid) for pid in file.read_text().split()]
    assert left
    end = time.monotonic() + 120
    while left := [pid for pid in left if is_alive(pid)]:
        assert time.monotonic() < end, f"{left} outlive the driver"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("ranks", "device"),
    [
        (3, ""),
        pytest.param(1, "", marks=pytest.mark.slow),
        pytest.param(2, "emulated", marks=pytest.mark.slow),
    ],
)
def test_one_process_calls_programs_on_ranks(ranks: int, device: str, tmp_path: Path) -> None:
    code, out, err = finished("calls.py", str(ranks), cwd=tmp_path, DISTSPMD_DEVICE=device)
    assert code == 0, err
    assert out.splitlines()[-1] == "all calls are right"
    assert out.count("scaled 0.6369616873214543\n") == 2  # of the calls that print so, once each


def test_one_process_calls_programs_of_symbolic_sizes_and_of_onnx(tmp_path: Path) -> None:
    code, out, err = finished("sizes.py", cwd=tmp_path)
    assert (code, out) == (0, "all sizes are right\n"), err


@pytest.mark.parametrize(
    ("how", "code", "said"), [("exits", 7, ""), ("raises", 1, "KeyError: 'of the user'")]
)
def test_a_script_that_ends_ends_its_ranks_quietly(
    how: str, code: int, said: str, tmp_path: Path
) -> None:
    found, out, err = finished("ends.py", how, str(tmp_path / "pids"), cwd=tmp_path)
    assert (found, out) == (code, "")
    assert err.strip().endswith(said)
    assert len(err.splitlines()) in (0, 6), err
    wait_until_gone(tmp_path / "pids")


@pytest.mark.parametrize("how", ["sleeps", "runs"])
def test_a_driver_that_is_killed_ends_its_ranks(how: str, tmp_path: Path) -> None:
    process = started("ends.py", how, str(tmp_path / "pids"), cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline().strip() in ("sleeping", "running")
    process.kill()
    wait_until_gone(tmp_path / "pids")
    process.communicate(timeout=60)


def test_an_interrupt_in_a_call_ends_all_with_one_message(tmp_path: Path) -> None:
    process = started("ends.py", "runs", str(tmp_path / "pids"), cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "running"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert err.count("an interrupt from the keyboard ends grow(...), and all ranks with it") == 1
    assert err.count("KeyboardInterrupt") == 1
    wait_until_gone(tmp_path / "pids")


def test_a_rank_that_is_killed_is_named_once_and_later_calls_say_so(tmp_path: Path) -> None:
    code, out, err = finished("ends.py", "a rank is killed", str(tmp_path / "pids"), cwd=tmp_path)
    first, second = out.splitlines()
    assert code == 0, err
    pid = (tmp_path / "pids").read_text().split()[1]
    assert first.startswith(f"0: rank 1 (process {pid} on ")
    assert "was killed by signal 9 (SIGKILL) in grow(...); all ranks are ended." in first
    assert second.startswith("1: grow(...) cannot be called: the ranks are gone, for rank 1 (")
    assert "Start new ones: distspmd.start(ranks=2)." in second
    assert err == ""
    wait_until_gone(tmp_path / "pids")


def test_ranks_may_be_started_anew_after_one_was_killed(tmp_path: Path) -> None:
    how = "an idle rank is killed"
    code, out, err = finished("ends.py", how, str(tmp_path / "pids"), cwd=tmp_path)
    assert code == 0, err
    assert "rank 1 (" in out
    assert out.splitlines()[-1] == "[4.0, 4.0, 4.0, 4.0]"


def test_an_error_that_ranks_do_not_agree_on_is_raised_by_the_driver(tmp_path: Path) -> None:
    code, out, err = finished("ends.py", "fails", str(tmp_path / "pids"), cwd=tmp_path)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("KeyError: 'rank ")
    assert err.count("KeyError: 99") == 1, err  # the traceback of one rank
    wait_until_gone(tmp_path / "pids")


def test_ranks_of_a_launch_are_told_what_to_write(launch: Launch) -> None:
    done = launch("import distspmd\nwith distspmd.ranks(2): pass", ranks=2, check=False)
    assert done.returncode != 0
    assert "this process is one of 2 rank(s) that were launched together" in done.stderr
    assert "`python script.py`" in done.stderr
