"""A cold start: of all ranks of all jobs that begin at once, one compiles what all need."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from distspmd.runtime.launch.mpiexec import launch

RANK = """
import subprocess, sys, time
from pathlib import Path
from distspmd.runtime.compilers import processes as compiler_processes

def run_all(commands, env=None):  # as compilers do, but at once
    for command in commands:
        made = Path(command[command.index("-o") + 1])
        with open(sys.argv[1], "a") as file:
            file.write(f"{made.name}\\n")
        time.sleep(0.2)
        made.write_text("compiled")
    return subprocess.CompletedProcess(command, 0, "", "")

compiler_processes.run_all = run_all

from mpi4py import MPI
from distspmd.codegen import build, compile_program
from distspmd.errors import CacheError
from distspmd.runtime.engine import engine
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.watch.agreement import Agreement

try:
    engine.shared_library(Agreement.of(MPI.COMM_WORLD))
    raise AssertionError("a text was loaded")
except CacheError as error:
    assert "the runtime cannot be loaded: " in str(error), error
    assert "DISTSPMD_CACHE" in str(error), error
engine._load = lambda path: None

build.warm_up()
library = engine.shared_library(Agreement.of(MPI.COMM_WORLD))
assert library.read_text() == "compiled"
compile_program.precompile_headers(toolchain.find_compiler(), ["-O1"])
print(library, flush=True)
"""


def test_one_rank_of_all_jobs_compiles(tmp_path: Path) -> None:
    program, made = tmp_path / "program.py", tmp_path / "made"
    program.write_text(RANK)
    cold = {"DISTSPMD_CACHE": str(tmp_path / "cache")}
    with ThreadPoolExecutor() as jobs:
        started = [
            jobs.submit(launch, [program, made], ranks=2, env=cold, capture=True, timeout=600)
            for _ in range(2)
        ]
    libraries = [line for job in started for line in job.result().check().stdout.split()]
    assert len(libraries) == 4
    assert len(set(libraries)) == 1
    counted = Counter(made.read_text().split())
    assert counted["dace_program.hpp.gch"] in (1, 2)  # those of warm_up, and of -O1
    del counted["dace_program.hpp.gch"]
    assert counted == {"runtime.o": 1, "reductions.o": 1, "runtime.so": 1}
    assert not [*(tmp_path / "cache/work").iterdir()]
