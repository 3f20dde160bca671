"""A launch hears which ranks have come and which have ended, from nobody else than its ranks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest

from distspmd.runtime.launch import attendance as module
from distspmd.runtime.launch.attendance import Attendance, own_addresses, signed, taken_attendance


class Speaker:
    """A rank, as start_rank.py speaks."""

    def __init__(self, attendance: Attendance) -> None:
        port, self.secret, _, *_ = attendance.address.split(" ")
        self.connection = socket.create_connection(("127.0.0.1", int(port)), 10)
        self.answers = self.connection.makefile()
        self.number = self.answers.readline().strip()

    def says(self, word: str, secret: str = "") -> str:
        signature = signed(secret or self.secret, f"{self.number} {word}")
        self.connection.sendall(f"{signature} {word}\n".encode())
        return self.answers.readline().strip()

    def close(self) -> None:
        self.answers.close()
        self.connection.close()


@pytest.fixture
def attendance() -> Iterator[Attendance]:
    with taken_attendance(4) as opened:
        yield opened


def test_ranks_come_and_end(attendance: Attendance) -> None:
    speakers = [Speaker(attendance) for _ in range(4)]
    for rank, speaker in enumerate(speakers):
        assert speaker.says(f"comes {rank} {70 + rank} n{rank // 2}") == "heard"
    assert attendance.missing() == [0, 1, 2, 3]
    for rank in (0, 3):
        assert speakers[rank].says(f"ends {rank} {70 + rank} n{rank // 2}") == "heard"
    assert attendance.missing() == [1, 2]
    assert attendance.text([0, 1, 2]) == "ranks 0, 1 on n0 and rank 2 on n1"
    for speaker in speakers:
        speaker.close()


def test_the_host_that_was_lost_first_is_told(attendance: Attendance) -> None:
    speakers = [Speaker(attendance) for _ in range(4)]
    for rank, speaker in enumerate(speakers):
        speaker.says(f"comes {rank} {70 + rank} n{rank // 2}")
    for rank in (3, 2, 0, 1):
        speakers[rank].close()
        wait_until(partial(attendance.lost.__contains__, rank))
    assert attendance.lost_first() == [2, 3]


def test_a_host_that_went_down_leaves_its_connections_open(attendance: Attendance) -> None:
    speakers = [Speaker(attendance) for _ in range(4)]
    for rank, speaker in enumerate(speakers):
        speaker.says(f"comes {rank} {70 + rank} n{rank // 2}")
    for rank in (0, 1):
        speakers[rank].close()
        wait_until(partial(attendance.lost.__contains__, rank))
    assert attendance.lost_first() == [2, 3]
    for rank in (2, 3):
        speakers[rank].close()


def test_a_rank_that_never_began_has_no_host(attendance: Attendance) -> None:
    assert attendance.text(attendance.missing()) == "ranks 0 to 3, which never began"
    assert attendance.lost_first() == []


def test_a_launch_ends_where_ranks_wait_in_mpi_init_for_others(attendance: Attendance) -> None:
    ended = threading.Event()
    attendance.watch(1.0, ended.set)
    speakers = [Speaker(attendance) for _ in range(3)]
    for rank, speaker in enumerate(speakers):
        speaker.says(f"comes {rank} {70 + rank} n0")
    speakers[0].says("enters 0 70 n0")
    speakers[1].says("enters 1 71 n0")
    assert ended.wait(60)
    assert attendance.problem == (
        "ranks 0, 1 wait in MPI_Init, but rank 2 (process 72 on n0) has not come to it and rank 3 "
        "never began"
    )
    assert attendance.advice.startswith("DISTSPMD_TIMEOUT is 1; ")
    for speaker in speakers:
        speaker.close()


def test_ranks_that_leave_mpi_init_are_not_watched_further(attendance: Attendance) -> None:
    ended = threading.Event()
    attendance.watch(0.5, ended.set)
    speaker = Speaker(attendance)
    for word in ("comes", "enters", "leaves"):
        speaker.says(f"{word} 0 70 n0")
    assert not ended.wait(2.0)
    speaker.close()


def test_ranks_wait_in_mpi_init_for_ever_where_no_time_is_set(attendance: Attendance) -> None:
    ended = threading.Event()
    attendance.watch(0.0, ended.set)
    speaker = Speaker(attendance)
    speaker.says("enters 0 70 n0")
    assert not ended.wait(2.0)
    speaker.close()


def test_words_without_the_secret_are_not_heard(attendance: Attendance) -> None:
    speaker = Speaker(attendance)
    assert speaker.says("ends 0 70 n0", secret="guessed") == ""  # it is closed
    speaker.close()
    other = Speaker(attendance)
    assert other.says("comes 1 71 n0") == "heard"  # nobody else is disturbed
    other.close()
    assert attendance.hosts == {1: "n0"}
    assert attendance.ended == set()


def test_words_cannot_be_said_again_by_somebody_else(attendance: Attendance) -> None:
    first, second = Speaker(attendance), Speaker(attendance)
    second.number, number = first.number, second.number
    assert number != first.number
    assert second.says("ends 0 70 n0") == ""
    assert attendance.ended == set()
    first.close()
    second.close()


@pytest.mark.parametrize("said", [b"\n", b"a b c\n", b"x" * 5000, b"\xff\xfe\n", b""])
def test_whoever_speaks_otherwise_is_left(attendance: Attendance, said: bytes) -> None:
    stranger = Speaker(attendance)
    with suppress(OSError):  # it is cut off before the end
        stranger.connection.sendall(said)
        stranger.connection.shutdown(socket.SHUT_WR)
        assert stranger.connection.recv(10) == b""
    stranger.close()
    speaker = Speaker(attendance)
    assert speaker.says("comes 0 70 n0") == "heard"
    speaker.close()


def test_nobody_is_heard_when_the_roll_is_closed() -> None:
    with taken_attendance(1) as attendance:
        speaker = Speaker(attendance)
    assert speaker.answers.read() == ""
    speaker.close()


def test_the_name_of_the_host_is_its_last_address() -> None:
    found = own_addresses()
    assert found[-1] == module.platform.node()
    assert not any(address.startswith("127.") for address in found)


def wait_until(comes: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not comes():
        assert time.monotonic() < end
        time.sleep(0.01)
