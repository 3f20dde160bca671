"""A program in several files, with each kind of block once, is the program."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Launch

from distspmd.codegen import outline
from distspmd.codegen.outline import repeatable, split_into_files
from distspmd.plans.heuristics import HEURISTICS

BEGIN = """#include <cmath>
#include <cstdint>
struct small_state_t {
    double * __restrict__ __0_a_tile;
    double * __restrict__ __0_b_tile;
    int64_t count;
};
void __program_small_internal(small_state_t*__state, double * __restrict__ x, double * y, int n)
{
"""
END = """
}
extern "C" void __program_small(double *x, double *y, double *a, double *b, int n) {
    small_state_t state{a, b, 0};
    __program_small_internal(&state, x, y, n);
}
"""


@pytest.fixture(autouse=True)
def cut_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs, too."""
    small = replace(HEURISTICS, file_characters=1, block_characters=30)
    monkeypatch.setattr(outline, "HEURISTICS", small)


def code(body: str) -> str:
    return BEGIN + body + END


def calls(files: list[str]) -> list[tuple[str, str]]:
    """Names and arguments of the functions that the program's function calls."""
    return re.findall(r"(distspmd_block_\d+)\(__state(.*?)\);", files[0])


def test_blocks_that_differ_in_arrays_alone_are_one_function() -> None:
    body = """
    {
        {
            for (int i = 0; i < n; ++i) { double v = x[i]; __state->__0_a_tile[i] = v; }
        }
        {
            for (int i = 0; i < n; ++i) { double v = y[i]; __state->__0_a_tile[i] = v; }
        }
        {
            for (int i = 0; i < n; ++i) { double v = x[i]; __state->__0_b_tile[i] = v; }
        }
    }"""
    files = split_into_files(code(body), "small", 2)
    one, other, again = calls(files)
    assert one[0] == again[0]  # y is not declared as x is, with __restrict__
    assert one[0] != other[0]
    assert again[1] == ", n, x, __state->__0_b_tile"
    assert len(files) == 2


@pytest.mark.parametrize(
    "inside",
    [
        "__state->__0_a_tile = x;",  # another pointer
        "f(&__state->__0_a_tile);",
        "goto end;",
        "s += x[0];",  # a variable around it
        "y[0] = t[1];",
        "y[0] = i;",
        "n = 2;",
        "y[0] = x[0];",  # too little for a call in each turn
    ],
)
def test_what_a_function_could_not_do_stays(inside: str) -> None:
    around = "double s = 0;\ndouble t[2];\nfor (int i = 0; i < 2; ++i) {"
    body = f"{around}\n {{\n {inside} }}\n {{\n for (;;) y[1] = x[1]; }}\n }}"
    (text,) = split_into_files(code(body), "small", 1)
    assert f"{{\n {inside} }}" in text
    assert len(calls([text])) == 1


def test_braces_in_text_and_comments_are_none() -> None:
    body = """{ { printf("}{%s", '}'); /* } */ y[0] = 1; // }
    } { y[1] = std::max(x[0], x[1]); } }"""
    (text,) = split_into_files(code(body), "small", 1)
    assert [names for _, names in calls([text])] == [", y", ", y, x"]


def test_code_that_is_not_as_expected_is_left() -> None:
    for text in ("int main() { return 0; }", code(""), code("{ y[0] = 1; ")):
        assert split_into_files(text, "small", 4) == [text]


def test_only_what_is_inline_may_stand_in_several_files() -> None:
    assert repeatable("#include <cmath>\n// none }\ninline int f() { return 1; }\ninline int g();")
    assert repeatable("")
    assert not repeatable("inline int f() { return 1; }\nstatic int calls = 0;")
    assert not repeatable("int f() { return 1; }")
    alone = split_into_files(code("{ { y[0] = 1; } { y[1] = x[1]; } }"), "small", 4, share=False)
    assert len(alone) == 1
    assert len(calls(alone)) == 2


def test_files_compile_and_compute_the_same(tmp_path: Path) -> None:
    body = """
    double s = 0;
    for (int t = 0; t < 3; ++t) {
        {
            {
                for (int i = 0; i < n; ++i) { double v = x[i]; __state->__0_a_tile[i] = v * v; }
            }
            {
                for (int i = 0; i < n; ++i) s += __state->__0_a_tile[i];
            }
            {
                for (int i = 0; i < n; ++i) {
                    auto f = [&] { return std::sqrt(__state->__0_a_tile[i]); };
                    __state->__0_b_tile[i] = f();
                }
            }
            {
                for (int i = 0; i < n; ++i) { double v = x[i]; __state->__0_b_tile[i] += v * v; }
            }
            {
                for (int i = 0; i < n; ++i) x[i] = __state->__0_b_tile[i] + t;
            }
        }
    }
    y[0] = s;"""
    whole = code(body)
    files = split_into_files(whole, "small", 3)
    assert len(files) == 3
    assert len(calls(files)) == 3  # two name a variable of the loops
    main = """
extern "C" void __program_small(double *x, double *y, double *a, double *b, int n);
#include <cstdio>
int main() {
    double x[3] = {0.5, -2, 3}, y[1], a[3], b[3];
    __program_small(x, y, a, b, 3);
    std::printf("%a %a %a %a\\n", x[0], x[1], x[2], y[0]);
}"""
    printed = set()
    for number, sources in enumerate(([whole], files)):
        names = [str(tmp_path / f"{number}_{i}.cpp") for i in range(len(sources) + 1)]
        for name, text in zip(names, [*sources, main], strict=True):
            Path(name).write_text(text)
        program = tmp_path / f"program{number}"
        subprocess.run(["g++", "-w", *names, "-o", str(program)], check=True)
        printed.add(subprocess.run([program], capture_output=True, check=True).stdout)
    assert len(printed) == 1


def test_programs_of_several_files_compute_what_numpy_computes(launch: Launch) -> None:
    launch(
        """
import dataclasses, uuid
import dace, numpy as np, distspmd
from mpi4py import MPI
from distspmd.codegen import build, compile_program, outline

outline.HEURISTICS = dataclasses.replace(
    outline.HEURISTICS, file_characters=1, block_characters=200
)
build.key_of = lambda *_: uuid.uuid4().hex  # as if nothing was compiled before
compiled, compile_files = [], compile_program._compile_files

def counting(files, *rest):
    compiled.append(len(files))
    return compile_files(files, *rest)

compile_program._compile_files = counting
numbers = np.random.default_rng(3)
comm = MPI.COMM_WORLD
a, b = numbers.normal(size=(7, 5)), numbers.normal(size=(5, 6))
c = a @ b
for t in range(2):
    c = np.tanh(c) + a.sum(axis=1)[:, None] * t

@dace.program
def many_files(a: dace.float64[7, 5], b: dace.float64[5, 6], steps: dace.int64):
    s = np.sum(a, axis=1)
    c = a @ b
    for t in range(steps):
        c[:] = np.tanh(c) + s[:, np.newaxis] * t
    return c, np.max(c)

for parts in ((1, 1, 1), (2, 1, 1)):
    sdfg = many_files.to_sdfg()
    if comm.rank == 0:
        sdfg = distspmd.lower(sdfg, {"_MatMult_": parts}).sdfg
    with distspmd.compile(sdfg if comm.rank == 0 else None, comm) as program:
        found = program(a=a, b=b, steps=2)
    if comm.rank == 0:
        np.testing.assert_allclose(found[0], c, rtol=1e-12)
        np.testing.assert_allclose(found[1], c.max(), rtol=1e-12)
assert comm.rank > 0 or compiled == [2, 2], compiled
""",
        ranks=2,
    )
