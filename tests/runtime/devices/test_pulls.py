"""Tiles that ranks pull out of each other's devices are right, and not without any of the waits."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Launch
from runtime.devices.test_waits import HEADERS, Mutation, copied, mutated, without

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.encoding import Storage
from distspmd.plans.packed_table import packed_table
from distspmd.plans.plan import Plan
from distspmd.plans.pull_table import pull_table, received_by_pulls, why_no_pulls
from distspmd.runtime.engine.engine import runnable

__all__ = ["copied", "mutated"]  # fixtures

HERE = Path(__file__).parent
PULLS = f"{HEADERS}/pulls.hpp"
LATE = "for (volatile long n = 0; n < 60000000L * long(rank_); n = n + 1) {}"
"""The second rank is late, so that what does not wait for it runs before."""

MUTATIONS = (
    Mutation(
        "for the program",
        f"{HEADERS}/transport.hpp",
        "      self->wait(nullptr);  // for what the program does with the tiles",
        "",
    ),
    Mutation("for the kernels", PULLS, "      keep(cudaStreamSynchronize(stream_));", ""),
    Mutation(
        "for the addresses",
        PULLS,
        "keep(cudaMemcpy(bases_, known_.data(), known_.size() * sizeof(char *), "
        "cudaMemcpyHostToDevice));",
        "keep(cudaMemcpyAsync(bases_, known_.data(), known_.size() * sizeof(char *), "
        "cudaMemcpyHostToDevice, nullptr));",
    ),
    Mutation(
        "for the others behind a step",
        PULLS,
        "meet_(engine_, number, &told, 1, heard.data());",
        "",
    ),
)


@pytest.mark.slow
def test_with_all_waits_what_is_pulled_is_right(mutated: Path, launch: Launch) -> None:
    with late(mutated):
        done = launch(HERE.parents[1] / "ranks" / "pulled.py", ranks=2)
    assert done.stdout.strip() == "what was pulled: right"


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_without_a_wait_what_is_pulled_is_wrong(
    mutated: Path, launch: Launch, mutation: Mutation
) -> None:
    with late(mutated), without(mutated, mutation):
        done = launch(HERE.parents[1] / "ranks" / "pulled.py", ranks=2, check=False)
    faults = done.returncode != 0 and "pull_boxes" in done.stderr  # it follows what nobody wrote
    assert "wrong" in done.stdout or faults, done.stdout + done.stderr


def late(package: Path):
    """One rank pulls later than the other one, in a copy of the package."""
    start = "    for (const Step &step : plan.steps) {\n      for (const BoxMove &launch : step"
    return without(package, Mutation("late", PULLS, start, f"    {LATE}\n{start}"))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "cases"),
    [(3, 15), *(pytest.param(n, 150, marks=pytest.mark.slow) for n in (1, 2, 4))],
)
def test_random_moves_that_are_pulled_agree_with_the_simulator(
    launch: Launch, ranks: int, cases: int
) -> None:
    done = launch(HERE / "pulls.py", str(ranks), str(cases), ranks=ranks)
    assert "all is right" in done.stdout


def plan_of(source: str, target: str, **axes: int) -> Plan:
    mesh = Mesh(**axes)
    return distspmd.plan(Layout.parse(source, mesh), Layout.parse(target, mesh), np.dtype(float))


def test_a_rank_pulls_each_box_from_who_has_it() -> None:
    plan = plan_of("[2{p}4, 6]", "[4, 3{p}6]", p=2)
    held = [[[Storage.of(layout.box(rank)) for layout in plan.buffers[:2]]] for rank in range(2)]
    assert why_no_pulls(plan) == ""
    words = pull_table([plan], held, 1).tolist()
    assert words[:4] == [1, 2, 0, 1]
    assert words[4:11] == [1, 0, 8, 0, 0, -1, 1], "its memories differ, so they cannot be one"
    assert words[11:13] == [6, 1], "six elements come from rank 0, in one launch"
    assert words[13:18] == [0, DTYPE, 2, 1, 2]
    boxes = [words[18:29], words[29:40]]
    assert sorted(box[1:] for box in boxes) == [
        [0, 3, 0, 0, 2, 3, 6, 1, 3, 1],
        [3, 3, 6, 0, 2, 3, 6, 1, 3, 1],
    ]


def test_who_pulls_a_small_reduction_reads_all_its_operands() -> None:
    plan = plan_of("[1] + partial(sum){p}", "[1]", p=4)
    held = [[[Storage.of(layout.box(rank)) for layout in plan.buffers[:2]]] for rank in range(4)]
    assert sum(plan.received(rank) for rank in range(4)) == 6 * 8, "a ring moves the fewest"
    assert [received_by_pulls(plan, rank) for rank in range(4)] == [3 * 8] * 4
    assert [pull_table([plan], held, rank)[11] for rank in range(4)] == [3] * 4


def test_large_reductions_move_as_few_bytes_between_devices_as_a_ring() -> None:
    elements, ranks = 1 << 16, 4
    plan = runnable(plan_of(f"[{elements}] + partial(sum){{p}}", f"[{elements}]", p=ranks))
    assert len(plan.steps) == 2, "a reduce-scatter, and an all-gather of the pieces"
    ring = 2 * (ranks - 1) * elements * 8 // ranks
    assert [received_by_pulls(plan, rank) for rank in range(ranks)] == [ring] * ranks
    held = [Storage.of(layout.box(1)) for layout in plan.buffers[:2]]
    words = packed_table([plan], [held], 1, ranks).tolist()
    assert words[13] == ring // 2 // 8, "of a step, likewise by packed messages"


DTYPE = 11
"""Code of float64."""
