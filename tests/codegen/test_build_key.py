"""The key of a build is of everything that decides the code, and of nothing else."""

import shutil
from pathlib import Path

import dace
import pytest

from distspmd.codegen import build
from distspmd.codegen.build import _MAKING_CODE, key_of
from distspmd.dace_compat.described import VOLATILE


@dace.program
def scaled(x: dace.float64[8]):
    return x * 2


def with_constant(name: str, value: float) -> dace.SDFG:
    sdfg = dace.SDFG("with_constant")
    sdfg.add_array("x", [4], dace.float64)
    sdfg.add_constant(name, dace.float64(value))
    sdfg.add_state().add_mapped_tasklet(
        "scale",
        {"i": "0:4"},
        {"a": dace.Memlet("x[i]")},
        f"b = a * {name}",
        {"b": dace.Memlet("x[i]")},
        external_edges=True,
    )
    return sdfg


@pytest.mark.parametrize("name", sorted(VOLATILE))
def test_a_constant_decides_whatever_it_is_called(name: str) -> None:
    keys = [key_of(with_constant(name, value)) for value in (2.0, 5.0, 2.0)]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


@pytest.mark.parametrize("name", sorted(VOLATILE))
def test_an_array_decides_whatever_it_is_called(name: str) -> None:
    keys = []
    for shape in ([4], [5]):
        sdfg = with_constant("factor", 2.0)
        sdfg.add_array(name, shape, dace.float64)
        keys.append(key_of(sdfg))
    assert keys[0] != keys[1]


def test_parsing_again_finds_the_same_build() -> None:
    assert key_of(scaled.to_sdfg()) == key_of(scaled.to_sdfg())


@pytest.mark.parametrize("printer", ["expressions/cpp.py", "nodes/contraction_loops.py"])
def test_a_printer_of_code_decides(
    printer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in (*_MAKING_CODE, "plans"):
        shutil.copytree(build._PACKAGE / package, tmp_path / package)
    monkeypatch.setattr(build, "_PACKAGE", tmp_path)
    program = with_constant("factor", 2.0)
    before = key_of(program)
    (tmp_path / printer).write_text("# another form of an operation\n")
    assert key_of(program) != before
