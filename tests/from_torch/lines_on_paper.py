"""The code of C++ of kernels of lines, compiled alone and run in the memory of NumPy."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from distspmd.frontend.tensor_ir.lines import headers_of
from distspmd.runtime.engine.compile_runtime import INCLUDE

_TYPES = {
    "float32": "float",
    "float64": "double",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "bool",
    "complex64": "std::complex<float>",
    "complex128": "std::complex<double>",
}
_POINTER = ctypes.c_void_p


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def _compiled(source: str) -> Any:
    path = Path(_folder().name) / hashlib.sha256(source.encode()).hexdigest()[:16]
    path.with_suffix(".cpp").write_text(source)
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{INCLUDE / 'distspmd'}"]
    files = ["-o", str(path.with_suffix(".so")), str(path.with_suffix(".cpp"))]
    subprocess.run([*command, *files], check=True)
    return ctypes.CDLL(str(path.with_suffix(".so"))).on_lines


def run_on_lines(code: str, lines: list[tuple[Any, Any]], results: list[tuple[Any, Any]]) -> None:
    """Run code for each of several lines.

    Args:
        code: of one line; it knows pointers to first elements as ``_line0`` and ``_result0``, ...
        lines: arrays, and in each the number of the first element of each line.
        results: the same of what is written.
    """
    named = [(f"_line{n}", *pair) for n, pair in enumerate(lines)]
    named += [(f"_result{n}", *pair) for n, pair in enumerate(results)]
    takes = [f"{_TYPES[array.dtype.name]} *m{name}, int64_t *o{name}" for name, array, _ in named]
    own = "".join(f"auto {name} = m{name} + o{name}[_k]; " for name, _, _ in named)
    source = "".join(f'#include "{header}"\n' for header in headers_of(code))
    source += f'extern "C" void on_lines(int64_t _n, {", ".join(takes)}) '
    source += f"{{ for (int64_t _k = 0; _k < _n; ++_k) {{ {own}{code} }} }}\n"
    offsets = [np.ascontiguousarray(places, np.int64).ravel() for _, _, places in named]
    pointers = [
        _POINTER(p)
        for (_, array, _), places in zip(named, offsets, strict=True)
        for p in (array.ctypes.data, places.ctypes.data)
    ]
    _compiled(source)(ctypes.c_int64(len(offsets[0])), *pointers)
