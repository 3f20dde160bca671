"""How generated code is compiled: by the compiler alone, or by CMake, with what is said."""

from __future__ import annotations

from conftest import Launch


def test_programs_compile_by_the_compiler_or_by_cmake_and_what_fails_is_told(
    launch: Launch,
) -> None:
    launch(
        """
import dace, numpy as np, os, pytest, distspmd
from dace import config
from mpi4py import MPI
from distspmd.cache import entries
from distspmd.codegen import build, compile_program
from distspmd.errors import CompilationError

comm = MPI.COMM_WORLD
number = iter(range(9))
build.ensure_entry = lambda kind, key, make: entries.ensure_entry(
    kind, f"{key}-{os.getpid()}-{next(number)}", make  # as if nothing was compiled before
)
asked = []
configure = compile_program.dace_compiler.configure_and_compile

def counting(*arguments, **named):
    asked.append(arguments)
    return configure(*arguments, **named)

compile_program.dace_compiler.configure_and_compile = counting

def program(code):
    sdfg = dace.SDFG("said")
    sdfg.add_array("a", [9], dace.float64)
    sdfg.add_array("b", [9], dace.float64)
    sdfg.add_state().add_mapped_tasklet(
        "said", {"i": "0:9"}, {"x": dace.Memlet("a[i]")}, code, {"y": dace.Memlet("b[i]")},
        language=dace.Language.CPP, external_edges=True,
    )
    sdfg = distspmd.lower(sdfg, {"b": (1,)}).sdfg
    return sdfg

def run():
    a, b = np.arange(9.0), np.empty(9)
    with distspmd.compile(program("y = 2 * x;"), comm) as twice:
        twice(a=a, b=b)
    np.testing.assert_array_equal(b, 2 * a)

run()
assert not asked
with config.set_temporary("compiler", "extra_cmake_args", value="-DSOMETHING=1"):
    run()
assert len(asked) == 1

with pytest.raises(CompilationError) as caught:
    distspmd.compile(program("y = not_declared(x);"), comm)
told = str(caught.value)
assert told.startswith("the program 'said' does not compile:")
assert "error: " in told and "not_declared" in told and "distspmd doctor" in told
assert len(asked) == 1

def fails(script):
    works = 'case "$*" in *--version*|*header*) exec g++ "$@";; esac'  # it compiles no program
    with open("compiler", "w") as file:
        file.write(f"#!/bin/sh\\n{works}\\n{script}\\n")
    os.chmod("compiler", 0o755)
    os.environ["CXX"] = os.path.abspath("compiler")
    with pytest.raises(CompilationError) as caught:
        distspmd.compile(program("y = 3 * x;"), comm)
    assert "SDFG may use something" not in str(caught.value), caught.value
    return str(caught.value)

told = fails("kill -9 $$")
assert told.startswith("the program 'said' does not compile: ")
assert "compiler was ended by SIGKILL (by somebody, or by the system because memory" in told
assert " MB left." in told
told = fails("exit 5")
assert "compiler ended with code 5 and names no error in the code" in told
told = fails("echo 'final link failed: No space left on device' >&2; exit 1")
assert "compiler found no room for what it writes" in told
assert "Make room there" in told
""",
        ranks=1,
    )


def test_the_key_of_a_program_notices_what_changes_its_code(launch: Launch) -> None:
    launch(
        """
import dace, numpy as np, distspmd
from mpi4py import MPI
from distspmd.execution.builds import build_for

def library(factor=2, size=9, name="keyed", **options):
    @dace.program
    def keyed(a: dace.float64[size]):
        return a * factor
    sdfg = keyed.to_sdfg()
    sdfg.name = name
    sdfg = distspmd.lower(sdfg, {}, deterministic=options.pop("deterministic", False)).sdfg
    return build_for(sdfg, 1, **options)[0].library

variants = [
    {}, {"factor": 3}, {"size": 8}, {"name": "other"},
    {"arithmetic": "fast"}, {"deterministic": True},
]
libraries = [library(**variant) for variant in variants]
assert libraries == [library(**variant) for variant in variants]
assert len(set(libraries)) == len(variants)
""",
        ranks=1,
    )
