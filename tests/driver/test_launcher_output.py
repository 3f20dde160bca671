"""What a launcher says of the end of ranks tells which of them died, and how."""

from __future__ import annotations

import io

import pytest

from distspmd.driver.launcher_output import Said

FENCE = "-" * 74 + "\n"
OPEN_MPI = (
    f"{FENCE}mpiexec noticed that process rank 1 with PID 7 on node n0 exited on signal 9 "
    f"(Killed).\n{FENCE}"
)
MPICH = (
    f"{'=' * 80}\n= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
    f"= PID 11 RUNNING AT n1\n= EXIT CODE: 9\n{'=' * 80}\n"
)
WHERE = {0: (5, "n0"), 1: (7, "n0"), 2: (11, "n1")}


@pytest.mark.parametrize("cut", ["exited on signal", "exited on\nsignal", "exited\non signal"])
@pytest.mark.parametrize("gone", [[], [1], [0, 1], [0, 1, 2]])
def test_the_rank_that_died_first_is_named(gone: list[int], cut: str) -> None:
    """Its line ends alone, or the launcher tells which it was of those that it has ended."""
    said = Said()
    said.listen(io.BytesIO(OPEN_MPI.replace("exited on signal", cut).encode()))
    said.finish()
    expected = "rank 1 (process 7 on n0) was killed by signal 9 (SIGKILL)"
    assert said.death(WHERE, gone, 137) == expected


def test_a_launcher_may_tell_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said()
    said.listen(io.BytesIO(f"printed by a rank\n{MPICH}".encode()))
    said.finish()
    expected = "rank 2 (process 11 on n1) was killed by signal 9 (SIGKILL)"
    assert said.death(WHERE, [0, 2], 9) == expected
    assert capsys.readouterr().err == "printed by a rank\n"


def test_mpich_tells_in_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    fence = "=" * 40 + "\n"
    said = Said()
    tail = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
    tail += "This typically refers to a problem with your application.\n"
    tail += "Please see the FAQ page for debugging suggestions\n"
    text = f"printed\n{fence}a table of C\n{fence}last of it\n\n\n{MPICH}{tail}"
    said.listen_to_output(io.BytesIO(text.encode()))
    said.finish()
    assert (
        said.death(WHERE, [0, 2], 9) == "rank 2 (process 11 on n1) was killed by signal 9 (SIGKILL)"
    )
    assert capfd.readouterr().out == f"printed\n{fence}a table of C\n{fence}last of it\n"


def test_a_launcher_may_tell_nothing() -> None:
    said = Said()
    assert said.death(WHERE, [0, 1], 137).startswith("rank 0 (process 5 on n0) was killed by sig")
    assert said.death({}, [], 3) == "a rank ended (the launcher with code 3)"
    assert said.death({}, [], -9) == "the launcher of the ranks was killed by signal 9 (SIGKILL)"
