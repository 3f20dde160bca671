"""Settings of DaCe while we use it, put back afterwards."""

from __future__ import annotations

import gc
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path

from dace import config
from dace.libraries.blas.environments import openblas

from distspmd.dace_compat.kept_by_dace import kept_by_dace
from distspmd.errors import CacheError
from distspmd.runtime.compilers.toolchain import BLAS
from distspmd.runtime.guard import marked

_SELDOM = 50_000, 10, 10
"""Objects that are made between two looks at the youngest; looks of each kind between the next."""


@contextmanager
def placed_by_us() -> Iterator[None]:
    """Nodes get the lines that they are given, and no others.

    For a node without one DaCe looks into the stack, where it would find us; and that takes longer
    than all of lowering where a frame has no file, as below ``python -m mpi4py``.
    """
    with config.set_temporary("compiler", "lineinfo", value="given"):
        yield


@contextmanager
def rare_collections() -> Iterator[None]:
    """Python looks for unused objects in what is made meanwhile alone, and seldom.

    A program is a graph whose parts all refer to each other: hundreds of thousands of objects are
    made, and most of them stay, as does what PyTorch and DaCe have made before.
    """
    thresholds = gc.get_threshold()
    is_first = gc.isenabled() and not gc.get_freeze_count()
    if is_first:
        gc.freeze()
        gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        if is_first:
            gc.set_threshold(*thresholds)
            gc.unfreeze()


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


@contextmanager
def compiling_in(work: Path | None, path: str) -> Iterator[None]:
    """The environment of compilers that DaCe starts.

    What DaCe keeps between builds is compiled and run, so it lies in the user's own cache: DaCe
    would look for it below ``/dev/shm``, where everybody may have put it. No process that is
    started here outlives this one.

    Args:
        work: folder for files that compilers write for a moment; that of the system if left out.
        path: on which they are found.

    Raises:
        CacheError: DaCe has read settings that somebody else may have written.
    """
    _check_settings()
    tempfile.gettempdir()  # which remembers what it finds
    values = {"PATH": path, "DACE_BUILD_CACHE_DIR": str(kept_by_dace())}
    if work is not None:
        values["TMPDIR"] = str(work)
    if not {"LOGNAME", "USER"} & os.environ.keys():
        values["LOGNAME"] = str(os.geteuid())  # who has no name: DaCe asks for one
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        with marked() if work else nullcontext():
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _check_settings() -> None:
    """Refuse settings of others: DaCe reads flags of compilers in the folder where it was started.

    Raises:
        CacheError: the file belongs to another user, or everybody may write it.
    """
    file = config.Config.cfg_filename()
    if not file or not os.path.exists(file):
        return
    status = os.stat(file)
    if status.st_uid not in (os.geteuid(), 0) or status.st_mode & 0o002:
        raise CacheError(
            f"DaCe has read its settings in {os.path.abspath(file)}, which others may have "
            "written: their flags could run code as yours. Start in another folder."
        )
