"""The ScaLAPACK by which ranks work on one matrix together, where the site has one.

Programs load it themselves when they need it. It calls MPI, so that it must be built for the one
that programs use.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from distspmd.errors import ToolchainError
from distspmd.runtime.compilers.toolchain import ENVIRONMENT, MPI, find_mpi, library_folders

VARIABLE = "DISTSPMD_SCALAPACK"
NO_SCALAPACK = (
    "load or install ScaLAPACK for this MPI (Debian, Ubuntu: apt install libscalapack-openmpi-dev, "
    f"or libscalapack-mpich-dev), or set {VARIABLE} to its library"
)
_NAMES = {
    "openmpi": ("scalapack-openmpi", "scalapack"),
    "mpich": ("scalapack-mpich", "scalapack"),
    "mvapich": ("scalapack-mvapich2", "scalapack"),
    "intel": ("scalapack",),
}


@dataclass(frozen=True, slots=True)
class ScaLAPACK:
    """A ScaLAPACK: the files to be loaded, those first that the last one needs."""

    libraries: tuple[Path, ...]
    origin: str

    def __str__(self) -> str:
        return f"{self.libraries[-1]} ({self.origin})"


def find_scalapack(environ: Mapping[str, str] = os.environ) -> ScaLAPACK | None:
    """The ScaLAPACK: ``DISTSPMD_SCALAPACK``, else that of the Python environment or of the site.

    ``DISTSPMD_SCALAPACK`` is the library, behind others that it needs and the loader does not
    find, with colons between them; or ``none``.

    Returns:
        None where there is none for the MPI that programs use.

    Raises:
        ToolchainError: a file that was asked for is not there.
    """
    asked = environ.get(VARIABLE, "").strip()
    if asked:
        return _asked(asked)
    try:
        mpi = find_mpi(environ)
    except ToolchainError:
        return None
    folders = tuple(map(str, library_folders("scalapack", environ)))
    return _found(mpi, folders)


def _asked(asked: str) -> ScaLAPACK | None:
    if asked == "none":
        return None
    files = tuple(Path(os.path.expanduser(file)) for file in asked.split(":") if file)
    for file in files:
        if not file.is_file():
            raise ToolchainError(
                f"{VARIABLE} is {asked!r}: {file} is no file.\n"
                "  Set it to the library of ScaLAPACK, to none, or unset it."
            )
    return ScaLAPACK(files, VARIABLE)


@functools.cache
def _found(mpi: MPI, folders: tuple[str, ...]) -> ScaLAPACK | None:
    for folder in folders:
        for file in _files(Path(folder), mpi.kind):
            if _is_built_for(file, mpi):
                is_own = Path(sys.prefix) in file.parents
                return ScaLAPACK((file,), ENVIRONMENT if is_own else "the site")
    return None


def _files(folder: Path, kind: str) -> Iterator[Path]:
    for name in _NAMES.get(kind, ("scalapack",)):
        for pattern in (f"lib{name}.so", f"lib{name}.so.*"):
            yield from sorted(folder.glob(pattern))


def _is_built_for(file: Path, mpi: MPI) -> bool:
    """Whether a library asks for the library of an MPI by the name that this one has."""
    name = re.match(r"(lib.*\.so\.\d+)", mpi.library.resolve().name)
    try:
        data = file.read_bytes()
    except OSError:
        return False
    return name is not None and data.startswith(b"\x7fELF") and name[1].encode() in data
