"""What a batch system has given to a job, as its variables tell, and whether ranks fit into it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from distspmd.errors import LaunchError

OVERSUBSCRIBE = "DISTSPMD_OVERSUBSCRIBE"
"""The variable that lets a launch start more ranks than a job has tasks."""

_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE")
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK")
_OF_NODE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")


def is_job(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a batch system, or a file of hosts that a variable names, decides where ranks run.

    The cores of this node tell nothing then.
    """
    return any(name in environ for name in _JOBS) or any(
        "hostfile" in name.lower().replace("_", "") for name in environ
    )


def launched_ranks(environ: Mapping[str, str] = os.environ) -> int | None:
    """The number of ranks that were started together with this process; None if it is no rank."""
    for name in _SIZES:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return _step_tasks(environ) if "PMIX_RANK" in environ else None


def rank_of_launch(environ: Mapping[str, str] = os.environ) -> int:
    """The rank of this process; 0 if it is no rank."""
    return next((int(environ[name]) for name in _RANKS if environ.get(name, "").isdigit()), 0)


def ranks_of_node(ranks: int, environ: Mapping[str, str] = os.environ) -> int:
    """How many of the ranks are on the node of this one; all of them where that is not told."""
    given = next((environ[name] for name in _OF_NODE if environ.get(name, "").isdigit()), "")
    return int(given) if given else ranks


def _step_tasks(environ: Mapping[str, str]) -> int | None:
    """How many processes one `srun` started, of which this one is one."""
    given = environ.get("SLURM_STEP_NUM_TASKS", "")
    return int(given) if given.isdigit() and "SLURM_PROCID" in environ else None


def started_ranks(environ: Mapping[str, str] = os.environ) -> int:
    """How many processes were started together with this one to be ranks, also if MPI knows not."""
    known = launched_ranks(environ)
    if known is None and not any(name in environ for name in _RANKS):
        known = _step_tasks(environ)
    return known or 1


def check_started_together(size: int, environ: Mapping[str, str] = os.environ) -> None:
    """See to it that processes that were started together are ranks of one program.

    Args:
        size: of ``MPI.COMM_WORLD``.
        environ: of this process.

    Raises:
        LaunchError: each of them is alone; it would run the whole program by itself.
    """
    started = started_ranks(environ)
    if size > 1 or started == 1:
        return
    if "SLURM_PROCID" in environ:
        raise LaunchError(
            f"srun started {started} processes, but MPI joins none of them: each would run the "
            "whole program alone. Write srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH) "
            "before python; srun --mpi=list says what there is. Or let the MPI start the ranks: "
            f"distspmd run program.py -n {started} in the job, without srun."
        )
    raise LaunchError(
        f"mpiexec started {started} processes, but MPI joins none of them: each would run the "
        "whole program alone. This mpiexec is of another MPI than mpi4py has loaded; start the "
        f"program with distspmd run program.py -n {started}, which takes the right one."
    )


def check_launch(ranks: int, what: str, environ: Mapping[str, str] = os.environ) -> None:
    """See to it that ranks can be started here.

    Args:
        ranks: how many.
        what: is launched.
        environ: of this process, and what the launch adds.

    Raises:
        LaunchError: this process is a rank itself, or a task of Slurm, or the job has no room.
    """
    if launched_ranks(environ) is not None:
        raise LaunchError(
            f"cannot launch {what} from a rank of another launch.\n"
            "  Start the program without mpiexec, or do not launch where launched_ranks() is set."
        )
    started = started_ranks(environ)
    if started > 1:
        raise LaunchError(
            f"srun started {started} processes, each of which would launch {ranks} ranks of {what}."
            "\n  Launch without srun, once in the job; or start the program itself with srun "
            "--mpi=pmix or --mpi=pmi2."
        )
    tasks = allocated_tasks(environ)
    if tasks is not None and ranks > sum(tasks) and not environ.get(OVERSUBSCRIBE):
        raise LaunchError(
            f"cannot launch {ranks} ranks of {what}: the Slurm job {environ['SLURM_JOB_ID']} has "
            f"{sum(tasks)} tasks on {len(tasks)} node(s) (SLURM_TASKS_PER_NODE="
            f"{environ['SLURM_TASKS_PER_NODE']}).\n  Ask for them with sbatch --ntasks={ranks} "
            f"(or salloc), launch {sum(tasks)} ranks, or set {OVERSUBSCRIBE}=1 to let ranks share "
            "cores."
        )


def allocated_tasks(environ: Mapping[str, str] = os.environ) -> list[int] | None:
    """How many tasks the Slurm job has on each of its nodes; None in no such job."""
    return _per_node(environ, "SLURM_TASKS_PER_NODE")


def cores_of_rank(ranks: int, environ: Mapping[str, str] = os.environ) -> float | None:
    """How many cores a rank has in the Slurm job, where all have as many; None in no such job."""
    cores = _per_node(environ, "SLURM_JOB_CPUS_PER_NODE")
    if cores is None:
        return None
    given = environ.get("SLURM_CPUS_PER_TASK", "")
    tasks = allocated_tasks(environ) or [1]
    if given.isdigit() and ranks <= sum(tasks):
        return int(given)
    return sum(cores) / ranks


def _per_node(environ: Mapping[str, str], name: str) -> list[int] | None:
    """Numbers by node, which Slurm writes as ``4(x2),3``; None where they are not known."""
    if "SLURM_JOB_ID" not in environ:
        return None
    found: list[int] = []
    for part in environ.get(name, "").split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            return None
        found += [int(match[1])] * int(match[2] or 1)
    return found
