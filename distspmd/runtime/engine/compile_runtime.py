"""The C++ runtime as a library of its own, compiled once for a machine and cached.

One process compiles it, and all others that need it meanwhile wait.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

from distspmd.cache.entries import ensure_entry
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers.failures import compilation_error
from distspmd.runtime.compilers.toolchain import MPI, Compiler, find_compiler, find_mpi, home

INCLUDE = Path(__file__).parent / "include"
"""Folder to give to a compiler (``-I``) for ``#include <distspmd/api/execute.hpp>``."""

FLAGS = ("-std=c++17", "-O3", "-fPIC", "-DNDEBUG")

_SOURCES = {
    "runtime": "#define DISTSPMD_REDUCTIONS_APART\n#include <distspmd/api/runtime.hpp>\n",
    "reductions": "#include <distspmd/memory/reductions.hpp>\n",
}
"""Compiled side by side."""

_LIBRARY = "runtime.so"


def build_runtime() -> Path:
    """Compile the runtime unless the cache has it; its path.

    Raises:
        CompilationError: with what the compiler said.
        ToolchainError: there is no compiler or no MPI.
    """
    mpi, compiler = find_mpi(), find_compiler()
    found = (mpi.kind, mpi.version, mpi.library, compiler.command, FLAGS, _SOURCES)
    key = hashlib.sha256(repr(found).encode())
    key.update(version(compiler.command))
    for header in sorted(INCLUDE.glob("distspmd/**/*.hpp")):
        key.update(header.name.encode() + b"\0" + header.read_bytes() + b"\0")

    def make(folder: Path) -> list[str]:
        _compile(mpi, compiler, folder)
        return [_LIBRARY]

    key_text = key.hexdigest()[:32]
    return ensure_entry("runtime", key_text, make, compiler_processes.goes_on) / _LIBRARY


def _compile(mpi: MPI, compiler: Compiler, work: Path) -> None:
    for name, text in _SOURCES.items():
        (work / f"{name}.cpp").write_text(text)
    library = work / _LIBRARY
    objects = [str(work / f"{name}.o") for name in _SOURCES]
    start = [str(mpi.mpicxx), *FLAGS, f"-I{INCLUDE}"]
    commands = [[*start, "-c", str(Path(o).with_suffix(".cpp")), "-o", o] for o in objects]
    named = dict.fromkeys(("OMPI_CXX", "MPICH_CXX", "I_MPI_CXX"), shlex.join(compiler.command))
    environ = {**os.environ, "HOME": home(), "TMPDIR": str(work.parent), **named}
    done = compiler_processes.run_all(commands, environ)
    if done.returncode == 0:
        done = compiler_processes.run_command(
            [*start, "-shared", *objects, "-o", str(library)], environ
        )
    if done.returncode != 0:
        raise compilation_error("the runtime", done, work)


@cache
def version(command: tuple[str, ...]) -> bytes:
    """What a compiler says of itself."""
    done = subprocess.run([*command, "--version"], capture_output=True, check=False)
    return done.stdout
