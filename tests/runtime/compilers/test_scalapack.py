"""Which ScaLAPACK is found, and for which MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from distspmd.errors import ToolchainError
from distspmd.runtime.compilers import scalapack
from distspmd.runtime.compilers.scalapack import VARIABLE, find_scalapack
from distspmd.runtime.compilers.toolchain import find_mpi


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only one in which libraries are looked for."""
    monkeypatch.setattr(scalapack, "library_folders", lambda *_: [tmp_path])
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def made_for(name: str) -> bytes:
    return b"\x7fELF...\0" + name.encode() + b"\0"


def test_a_library_for_the_same_mpi_is_found(folder: Path) -> None:
    mpi = find_mpi()
    own = folder / "libscalapack.so.2.2"
    own.write_bytes(made_for(mpi.library.resolve().name))
    found = find_scalapack()
    assert found is not None
    assert found.libraries == (own,)
    assert str(own) in str(found)


def test_a_library_for_another_mpi_is_not_taken(folder: Path) -> None:
    (folder / "libscalapack.so.2.2").write_bytes(made_for("libmpi_of_others.so.7"))
    assert find_scalapack() is None


def test_a_script_of_the_linker_is_no_library(folder: Path) -> None:
    name = find_mpi().library.resolve().name
    (folder / "libscalapack.so").write_text(f"INPUT({name})")
    assert find_scalapack() is None


def test_the_one_that_is_asked_for_comes_behind_what_it_needs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [folder / "libblas.so.3", folder / "libscalapack.so"]
    for file in files:
        file.touch()
    monkeypatch.setenv(VARIABLE, ":".join(map(str, files)))
    found = find_scalapack()
    assert found is not None
    assert found.libraries == tuple(files)
    monkeypatch.setenv(VARIABLE, "none")
    assert find_scalapack() is None
    monkeypatch.setenv(VARIABLE, str(folder / "missing.so"))
    with pytest.raises(ToolchainError, match=r"missing\.so is no file"):
        find_scalapack()
