"""Damaged builds are built again: nothing is loaded that is not what the compiler wrote."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import dace
import numpy as np
import pytest
from dace import config
from dace.codegen.compiler import load_precompiled_sdfg

from distspmd import lower
from distspmd.codegen import compile_program
from distspmd.codegen.build import build_unlowered
from distspmd.codegen.build_record import Build
from distspmd.execution.builds import build_for


@dace.program
def twice(x: dace.float64[8]):
    return 2 * x


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unoptimised: None) -> Iterator[Path]:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_program, "precompile_headers", lambda *of: [])  # for one program
    with config.set_temporary("compiler", "precompiled_header", value=False):
        yield tmp_path / "cache"


def built() -> Build:
    sdfg = twice.to_sdfg()
    sdfg = lower(sdfg, {}).sdfg
    return build_for(sdfg, 1)[0]


def scribbled(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4000:4100] = os.urandom(100)
    file.write_bytes(bytes(content))


def test_whatever_happens_to_a_build_it_is_made_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built()
    library, record = Path(first.library), cache / "programs" / Path(first.library).parts[-3]
    record = record / "program.json"
    kept, wanted = tmp_path / "kept.so", record.read_bytes()
    shutil.copy(library, kept)
    compiled = []

    def compile_again(sdfg: object, folder: Path, *others: object) -> Path:
        compiled.append(folder)
        made = folder / library.relative_to(record.parent)
        made.parent.mkdir(parents=True)
        shutil.copy(kept, made)
        return made

    monkeypatch.setattr(compile_program, "compile_program", compile_again)
    assert built() == first
    assert not compiled
    damages: list[Callable[[], object]] = [
        lambda: os.truncate(library, 4096),
        lambda: os.truncate(library, 0),
        lambda: scribbled(library),
        library.unlink,
        lambda: record.write_text("{}"),
        lambda: record.write_text(""),
        lambda: record.write_bytes(wanted.replace(b"[8]", b"[9]")),
        lambda: record.write_bytes(b"\xff"),
        record.unlink,
        lambda: shutil.rmtree(library.parent),
    ]
    for number, damage in enumerate(damages, start=1):
        damage()
        with pytest.warns(RuntimeWarning, match=r"of the cache is damaged: .* It is made again"):
            assert built() == first
        assert len(compiled) == number
        assert library.read_bytes() == kept.read_bytes()
        assert record.read_bytes() == wanted
    assert ctypes.CDLL(first.library)[f"__program_{first.name}"]


def test_the_original_of_a_check_is_made_again_and_dace_keeps_nothing_damaged(cache: Path) -> None:
    sdfg = twice.to_sdfg()
    folder = build_unlowered(sdfg)
    assert build_unlowered(sdfg) == folder
    for library in folder.glob("build/*.so"):
        os.truncate(library, 4096)
    for kept in (cache / "dace").rglob("*"):
        if kept.is_file():
            kept.write_bytes(b"{}")
    with pytest.warns(RuntimeWarning, match="is damaged: .* It is made again"):
        assert build_unlowered(sdfg) == folder
    np.testing.assert_array_equal(load_precompiled_sdfg(folder)(x=np.ones(8)), np.full(8, 2.0))
