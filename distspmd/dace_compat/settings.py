"""Settings of DaCe while we use it, put back afterwards."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from dace import config
from dace.libraries.blas.environments import openblas

from distspmd.runtime.toolchain import BLAS


@contextmanager
def placed_by_us() -> Iterator[None]:
    """Nodes get the lines that they are given, and no others.

    For a node without one DaCe looks into the stack, where it would find us; and that takes longer
    than all of lowering where a frame has no file, as below ``python -m mpi4py``.
    """
    with config.set_temporary("compiler", "lineinfo", value="given"):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Keep to ourselves what DaCe prints and warns of while it expands and compiles.

    Nor does it keep a history of that: a copy of the whole program, which each copy copies.
    """
    with (
        placed_by_us(),
        warnings.catch_warnings(),
        redirect_stdout(io.StringIO()),
        config.set_temporary("store_history", value=False),
    ):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def linked_to(blas: BLAS, header: Path) -> Iterator[None]:
    """Let DaCe's OpenBLAS environment stand for a BLAS, while code is generated and compiled.

    DaCe finds OpenBLAS through CMake in system folders alone, and wants LAPACKE's headers. The
    given header declares what programs call.
    """
    environment = openblas.OpenBLAS
    settings = {
        "cmake_packages": [],
        "cmake_variables": {},
        "cmake_includes": [str(blas.include_dir)],
        "cmake_libraries": [str(blas.library)],
        "cmake_compile_flags": [],
        "cmake_link_flags": [],
        "headers": [str(header), "../include/dace_blas.h"],
    }
    before = {name: environment.__dict__[name] for name in settings}
    for name, value in settings.items():
        setattr(environment, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(environment, name, value)
