"""Tiles that go from device to device as packed buffers are right, and not without the waits."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Launch
from runtime.devices.test_waits import HEADERS, Mutation, copied, mutated, without

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.encoding import Storage
from distspmd.plans.packed_table import MOST_BYTES, packed_table
from distspmd.runtime.devices.groups import VARIABLE as NCCL
from distspmd.runtime.devices.transports import MPI_VARIABLE, PIECE_VARIABLE, VARIABLE

__all__ = ["copied", "mutated"]  # fixtures

HERE = Path(__file__).parent
MOVES, EXCHANGE = HERE / "pulls.py", HERE.parents[1] / "ranks" / "pulled.py"
BITS = HERE.parents[1] / "ranks" / "device_bits.py"
MESSAGES = f"{HEADERS}/messages.hpp"
SLOW = pytest.mark.slow

END = "    keep(cudaStreamSynchronize(stream_));\n    count_"
PACKED = "own_.keep(cudaEventSynchronize(own_.packed_[packed++]));"
MUTATIONS = (
    (
        "nccl",
        Mutation(
            "for the program", f"{HEADERS}/transport.hpp", "self->wait(nullptr);  // likewise", ""
        ),
    ),
    ("nccl", Mutation("for the end", MESSAGES, END, "    count_")),
    ("staged", Mutation("for the end", MESSAGES, END, "    count_")),
    ("mpi", Mutation("for what is packed", MESSAGES, PACKED, "++packed;")),
    ("staged", Mutation("for what is packed", MESSAGES, PACKED, "++packed;")),
)


def use(monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    monkeypatch.setenv(VARIABLE, transport)
    monkeypatch.setenv(PIECE_VARIABLE, "48")  # a few elements
    if transport == "mpi":  # as one that knows the device's memory, which the host may read then
        monkeypatch.setenv(MPI_VARIABLE, "aware")
        monkeypatch.setenv("DISTSPMD_EMULATED_GUARD", "0")


@pytest.mark.parametrize(
    ("transport", "ranks", "cases"),
    [
        ("nccl", 3, 10),
        ("staged", 3, 15),
        *(pytest.param("staged", n, 150, marks=SLOW) for n in (1, 2, 4)),
        *(pytest.param("nccl", n, 150, marks=SLOW) for n in (2, 4)),
        *(pytest.param("mpi", n, 150, marks=SLOW) for n in (2, 3, 4)),
    ],
)
def test_random_moves_by_messages_between_devices_agree_with_the_simulator(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, transport: str, ranks: int, cases: int
) -> None:
    use(monkeypatch, transport)
    done = launch(MOVES, str(ranks), str(cases), ranks=ranks)
    assert "all is right" in done.stdout
    assert "right: 0 moves" not in done.stdout


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=SLOW) for n in (1, 2, 4))])
def test_sums_over_ranks_have_the_same_bits_by_each_transport(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, ranks: int
) -> None:
    use(monkeypatch, "mpi")
    monkeypatch.delenv(PIECE_VARIABLE)
    monkeypatch.setenv("DISTSPMD_TRIED", "pulls,nccl,mpi,staged")
    assert "all is right" in launch(BITS, ranks=ranks).stdout


@SLOW
@pytest.mark.parametrize("transport", ["nccl", "mpi", "staged"])
def test_with_all_waits_messages_are_right(
    mutated: Path, monkeypatch: pytest.MonkeyPatch, launch: Launch, transport: str
) -> None:
    use(monkeypatch, transport)
    assert launch(EXCHANGE, ranks=2).stdout.strip() == "what was pulled: right"


@SLOW
@pytest.mark.parametrize(
    ("transport", "mutation"), MUTATIONS, ids=lambda case: getattr(case, "name", case)
)
def test_without_a_wait_messages_are_wrong(
    mutated: Path,
    monkeypatch: pytest.MonkeyPatch,
    launch: Launch,
    transport: str,
    mutation: Mutation,
) -> None:
    use(monkeypatch, transport)
    with without(mutated, mutation):
        done = launch(EXCHANGE, ranks=2, check=False)
    assert "wrong" in done.stdout, done.stdout + done.stderr


@SLOW
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({VARIABLE: "nccl", NCCL: "none"}, "NCCL is not used"),
        ({VARIABLE: "nccl", "DISTSPMD_EMULATED_GROUPS": "0"}, "NCCL: invalid usage"),
        ({VARIABLE: "mpi"}, "MPI does not say that it knows the memory of devices"),
        ({VARIABLE: "mpi", MPI_VARIABLE: "aware"}, "the memory of the emulated device is guarded"),
    ],
)
def test_what_cannot_carry_messages_is_said(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = launch(MOVES, "2", "1", ranks=2, check=False)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_rank_packs_what_it_sends() -> None:
    mesh = Mesh(p=2)
    layouts = [Layout.parse(text, mesh) for text in ("[2{p}4, 6]", "[4, 3{p}6]")]
    plan = distspmd.plan(*layouts, np.dtype(float))
    held = [Storage.of(layout.box(1)) for layout in plan.buffers[:2]]
    words = packed_table([plan], [held], 1, 2).tolist()
    assert words[:3] == [1, 2, 1]
    assert words[3:6] == [1, 0, 8]
    assert words[6:13] == [0, 0, 0, 6, 6, MOST_BYTES // 8, 1], "six elements go out, and six come"
    assert words[13:18] == [6, 1, 0, 0, 6]
    assert words[18:24] == [2, 1, 0, 0, 0, -1], "first its own part goes from tile to tile"
    assert words[24:29] == [0, 0, 6, 1, 0], "then what has come, from the first element on"
    assert words[29:35] == [1, 0, 11, 2, 3, 1], "one launch packs one box, into the outbox"
    assert words[35:46] == [0, 0, 0, 0, 0, 2, 3, 6, 1, 3, 1]


def test_pieces_of_a_message_are_unpacked_each_for_itself() -> None:
    mesh = Mesh(p=2)
    layouts = [Layout.parse(text, mesh) for text in ("[2{p}4, 6]", "[4, 3{p}6]")]
    plan = distspmd.plan(*layouts, np.dtype(float))
    held = [Storage.of(layout.box(1)) for layout in plan.buffers[:2]]
    words = packed_table([plan], [held], 1, 2, [32]).tolist()
    assert words[11] == 4
    assert words[14:21] == [2, 0, 0, 4, 0, 4, 2], "six elements go as four and two"
    assert words[27:37] == [0, 0, 4, 1, 0, 0, 4, 2, 1, 4]
    assert packed_table([plan], [held], 1, 2, [0]).tolist()[3] == 0, "it goes otherwise"


def test_what_several_ranks_get_is_packed_once() -> None:
    mesh = Mesh(p=4)
    plan = distspmd.plan(
        *(Layout.parse(text, mesh) for text in ("[2{p}8]", "[8]")), np.dtype(float)
    )
    held = [Storage.of(layout.box(1)) for layout in plan.buffers[:2]]
    words = packed_table([plan], [held], 1, 4).tolist()
    assert words[9] == 2, "the outbox has two elements"
    assert words[14:24] == [3, 0, 0, 2, 2, 0, 2, 3, 0, 2], "which three ranks get"


@pytest.mark.parametrize("itemsize", [1, 8, 16])
def test_no_message_has_more_bytes_than_mpi_counts(itemsize: int) -> None:
    """Nor has one fewer elements than there are, of which each rank gets more than 2^32."""
    mesh = Mesh(p=2)
    layouts = [
        Layout.parse(t, mesh) for t in ("[65537{p}131074, 131074]", "[131074, 65537{p}131074]")
    ]
    plan = distspmd.plan(*layouts, np.dtype({1: "int8", 8: "float64", 16: "complex128"}[itemsize]))
    held = [Storage.of(layout.box(1)) for layout in plan.buffers[:2]]
    words = packed_table([plan], [held], 1, 2).tolist()
    count, messages = words[14], words[15 : 15 + 3 * words[14]]
    sizes = messages[2::3]
    assert sum(sizes) == 65537**2 > 2**32
    assert len(sizes) == count
    assert max(sizes) * itemsize <= MOST_BYTES < 2**31
    assert messages[1::3] == [MOST_BYTES // itemsize * n for n in range(count)]
