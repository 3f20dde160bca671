"""The function by which a compiled program is called."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from distspmd.codegen.entry import entry_of, with_entry
from distspmd.runtime.compilers.toolchain import find_compiler

PROGRAM = """
#include <cstdint>
#define DACE_EXPORTED extern "C"
struct many_state_t {{ int64_t calls; }};
DACE_EXPORTED void __program_many(many_state_t *__state, {parameters}) {{
    ++__state->calls;
    {sums}
}}
"""


def test_more_arguments_than_ctypes_passes_arrive(tmp_path: Path) -> None:
    n = 1200
    kinds = ["double * __restrict__ x{}", "const float y{}", "int64_t z{}"]
    parameters = ", ".join(kinds[k % 3].format(k) for k in range(n))
    sums = " ".join(f"x{k}[1] = y{k + 1} + z{k + 2};" for k in range(0, n, 3))
    file, library = tmp_path / "many.cpp", tmp_path / "libmany.so"
    file.write_text(with_entry(PROGRAM.format(parameters=parameters, sums=sums), "many"))
    build = ["-std=c++14", "-shared", "-fPIC", str(file), "-o", str(library)]
    subprocess.run([*find_compiler().command, *build], check=True)
    state = np.array([5])
    kept: list[np.ndarray] = [state]
    for first in range(0, n, 3):
        numbers = np.array(first + 1, "f4"), np.array(-3 * (first + 2), "i8")
        kept += [np.zeros(2), *numbers]
    table = (ctypes.c_void_p * len(kept))(*(each.ctypes.data for each in kept))
    ctypes.CDLL(str(library))[entry_of("many")](table)
    assert state[0] == 6
    for k in range(0, n, 3):
        assert list(kept[1 + k]) == [0, (k + 1) - 3 * (k + 2)]


def test_code_without_a_program_stays() -> None:
    assert with_entry("int f() { return __program_others; }", "many").endswith("others; }")
