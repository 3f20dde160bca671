"""What goes between ranks is counted, at the calls of MPI and in shared memory, as predicted."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import Launch

from distspmd.runtime.compilers.toolchain import find_compiler, find_mpi

RANKS = Path(__file__).parents[2] / "ranks"


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that counts the calls of MPI, compiled."""
    mpi, library = find_mpi(), tmp_path_factory.mktemp("counter") / "counted_calls.so"
    named = dict.fromkeys(
        ("OMPI_CXX", "MPICH_CXX", "I_MPI_CXX"), shlex.join(find_compiler().command)
    )
    command = [mpi.mpicxx, "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [*command, RANKS / "counted_calls.cpp", "-o", library],
        env={**os.environ, **named},
        check=True,
    )
    return str(library)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_steps_of_each_kind_carry_the_bytes_that_their_plans_say(
    ranks: int, counter: str, launch: Launch
) -> None:
    """As messages, as packets, and as single copies."""
    said = launch(RANKS / "counted_bytes.py", counter, "transports", ranks=ranks).stdout
    assert "plans carry what they say" in said


@pytest.mark.parametrize("how", ["free", "named"])
def test_a_library_sends_as_many_bytes_as_the_rule_for_its_calls_says(
    how: str, counter: str, launch: Launch
) -> None:
    """Open MPI counts what it sends; in a chain and a ring exactly so much, and never less."""
    done = launch(RANKS / "counted_bytes.py", counter, how, ranks=4, check=False)
    if find_mpi().kind == "openmpi":
        assert "plans carry what they say" in done.check().stdout
    else:
        assert "the library has no counters of what it sends" in done.stderr
