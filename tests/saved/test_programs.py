"""Lowered programs in files: another process goes on with them, or says why it cannot."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from conftest import Launch
from lowering.harness import Case, parsed
from lowering.programs import CASES

import distspmd
from distspmd import saved
from distspmd.codegen import build
from distspmd.errors import ArgumentError, SavedError, ScheduleError
from distspmd.lowering import Lowering, lowering_of
from distspmd.saved import envelope

N = dace.symbol("N")
Pair = namedtuple("Pair", "product total")


def products(a: dace.float64[12, 9], b: dace.float64[9, 7]) -> Any:
    c = a @ b
    return np.exp(c), c.sum()


def doubled(a: dace.float64[N, 9]) -> Any:
    return a * 2.0


def paired(a: dace.float64[12, 9], b: dace.float64[9, 7]) -> Any:
    c = a @ b
    return Pair(c, c.sum())


PAIRS = """
from collections import namedtuple

import dace

Pair = namedtuple("Pair", "product total")


def paired(a: dace.float64[12, 9], b: dace.float64[9, 7]):
    c = a @ b
    return Pair(c, c.sum())
"""


@functools.cache
def lowered() -> Lowering:
    found = distspmd.lower(products, {"c": (2, 2, 1)})
    assert isinstance(found, Lowering)
    return found


class _Key(Exception):
    """The key of a program that would be compiled."""


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What tells the code of one lowered program from that of another."""

    def stop(_: str, key: str, make: Any) -> Path:
        raise _Key(key)

    monkeypatch.setattr(build, "ensure_entry", stop)

    def key(lowering: Lowering) -> str:
        with pytest.raises(_Key) as found:
            build.build_program(lowering.sdfg, lowering, lowering.ranks)
        return str(found.value)

    return key


SOME = [case for number, case in enumerate(CASES) if number % 29 == 3]


@pytest.mark.parametrize(
    "case",
    [*SOME, *(pytest.param(c, marks=pytest.mark.slow) for c in CASES if c not in SOME)],
    ids=lambda case: case.name,
)
def test_a_program_that_was_read_is_the_one_that_was_written(
    case: Case, keys: Any, tmp_path: Path
) -> None:
    sdfg = case.lowered(parsed(case.program, case.frontend))
    before = lowering_of(sdfg)
    read = distspmd.saved.from_bytes(saved.to_bytes(before))
    assert isinstance(read, Lowering)
    assert read == before
    for shown in (str, distspmd.explain, distspmd.predict):
        assert str(shown(read)) == str(shown(before))
    assert keys(read) == keys(before)
    assert saved.to_bytes(read) == saved.to_bytes(saved.from_bytes(saved.to_bytes(read)))
    file = tmp_path / "program.sdfg"
    sdfg.save(str(file))
    again = lowering_of(dace.SDFG.from_file(str(file)))
    assert again == before
    assert keys(again) == keys(before)


def test_the_program_as_it_was_lowers_as_it_did() -> None:
    before = lowered()
    read = saved.from_bytes(saved.to_bytes(before))
    assert isinstance(read, Lowering)
    assert distspmd.lower(read.original, {"c": (2, 2, 1)}) == before


def test_symbolic_sizes_are_lowered_behind_the_file() -> None:
    before = distspmd.lower(doubled, {"__return": (3, 1)})
    read = saved.from_bytes(saved.to_bytes(before))
    assert str(read) == str(before)
    assert read.at(N=20) == before.at(N=20)


def test_a_symbolic_sdfg_that_dace_saves_is_the_program_and_lowers_again(
    tmp_path: Path,
) -> None:
    before = distspmd.lower(doubled, {"__return": (3, 1)})
    before.sdfg.save(str(tmp_path / "g.sdfg"))
    again = dace.SDFG.from_file(str(tmp_path / "g.sdfg"))
    assert lowering_of(again) is None
    assert distspmd.lower(again, {"__return": (3, 1)}).at(N=20).schedule == before.at(N=20).schedule


def test_classes_of_the_user_are_found_where_their_module_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "pair.lowered"
    distspmd.lower(paired, {"__return_0": (2, 1, 1)}).save(file)
    assert distspmd.load(file).call_form.returned.__class__ is Pair
    there = f"import distspmd; distspmd.load({str(file)!r})"
    done = subprocess.run([sys.executable, "-c", there], capture_output=True, text=True)
    assert "'Pair' of" in done.stderr
    assert "is not imported. Import that module first" in done.stderr


def test_looking_at_a_file_imports_no_dace(tmp_path: Path) -> None:
    lowered().save(tmp_path / "p.lowered")
    code = (
        f"import sys, distspmd\nfound = distspmd.load({str(tmp_path / 'p.lowered')!r})\n"
        "print(len(str(found)) and len(str(distspmd.explain(found))), 'dace' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("False\n"), done.stderr


# --- refusals ---


def test_every_damaged_byte_is_told() -> None:
    content = saved.to_bytes(lowered())
    places = [*range(400), *range(400, len(content), 97)]
    for place in places:
        wrong = bytearray(content)
        wrong[place] ^= 4
        with pytest.raises(SavedError):
            saved.from_bytes(bytes(wrong))
    for length in range(0, len(content), 131):
        with pytest.raises(SavedError):
            saved.from_bytes(content[:length])
    with pytest.raises(SavedError, match="damaged or not whole"):
        saved.from_bytes(content + b" ")


@pytest.mark.parametrize("of", ["distspmd", "dace", "format"])
def test_a_file_of_another_version_is_refused(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = saved.to_bytes(lowered())
    if of == "format":
        monkeypatch.setattr(envelope, "FORMAT", 2)
    else:
        monkeypatch.setattr(envelope, "versions", lambda: {**_versions, of: "9.9"})
    with pytest.raises(SavedError, match=r"it was written by distspmd .*, and this is distspmd"):
        saved.from_bytes(content)


_versions = envelope.versions()


def test_other_files_are_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SavedError, match=r"text: it is no lowered program; lowering.save"):
        distspmd.load(tmp_path / "text")
    with pytest.raises(SavedError, match="cannot be read: No such file"):
        distspmd.load(tmp_path / "none")
    with pytest.raises(SavedError, match="cannot be written"):
        lowered().save(tmp_path / "none" / "file")
    with pytest.raises(SavedError, match="is not lowered"):
        saved.to_bytes(3)


def test_records_that_are_nothing_of_ours_are_refused() -> None:
    forged = b'{"classes": [["os", "PathLike", []]], "value": ["object", 0]}'
    for text in (forged, b"[]", b'{"classes": [], "value": ["same", 7]}'):
        content = envelope.wrap({"record": saved.programs.zlib.compress(text), "arrays": b""})
        with pytest.raises(SavedError):
            saved.from_bytes(content)


def test_code_of_somebody_else_is_not_saved() -> None:
    class Mine:
        name = "mine"

        def plan(self, redistribution: Any) -> Any: ...

    with pytest.raises(SavedError, match=r"Mine.* code of somebody else"):
        saved.to_bytes(distspmd.lower(doubled, {"__return": (3, 1)}, solvers=[Mine()]))


def test_what_is_lowered_is_checked_without_a_schedule() -> None:
    with pytest.raises(ScheduleError, match="Leave out schedule="):
        distspmd.check(lowered(), {"c": (2, 1, 1)}, 4)
    with pytest.raises(ArgumentError, match="the program as it was before is not known"):
        distspmd.check(lowering_of(dace.SDFG.from_json(lowered().sdfg.to_json())))
    with pytest.raises(ArgumentError, match="on how many ranks"):
        distspmd.check(products, {})


def test_a_record_that_has_travelled_has_no_sdfg() -> None:
    import pickle

    with pytest.raises(SavedError, match="travelled without its SDFG"):
        saved.to_bytes(pickle.loads(pickle.dumps(lowered())))


# --- on ranks ---


def test_ranks_run_what_another_process_lowered(
    launch: Launch, tmp_path: Path, unoptimised: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lowered()
    first.save(tmp_path / "p.lowered")
    first.sdfg.save(str(tmp_path / "p.sdfg"))
    distspmd.lower(doubled, {"__return": (3, 1)}).save(tmp_path / "g.lowered")
    (tmp_path / "pairs.py").write_text(PAIRS)
    monkeypatch.syspath_prepend(tmp_path)
    paired = importlib.import_module("pairs").paired
    distspmd.lower(paired, {"__return_0": (2, 1, 1)}, arguments={"a": "distributed"}).save(
        tmp_path / "pair.lowered"
    )
    launch(
        """
        import sys
        import numpy as np
        from mpi4py import MPI
        import distspmd

        comm = MPI.COMM_WORLD
        a, b = np.random.default_rng(1).random((12, 9)), np.random.default_rng(2).random((9, 7))
        given = {"a": a, "b": b} if comm.rank == 0 else {}

        def right(found):
            if comm.rank == 0:
                np.testing.assert_allclose(found[0], np.exp(a @ b))
                np.testing.assert_allclose(found[1], (a @ b).sum())

        def of_sdfg():
            import dace

            return dace.SDFG.from_file("p.sdfg")

        loaded = distspmd.load("p.lowered")
        right(distspmd.compile(loaded, comm)(**given))
        assert comm.rank == 0 or "dace" not in sys.modules
        right(distspmd.compile(of_sdfg, comm)(**given))
        program = distspmd.compile(distspmd.load("g.lowered"), comm)
        for size in (7, 4):
            x = np.random.default_rng(size).random((size, 9))
            found = program(a=x) if comm.rank == 0 else program()
            assert comm.rank or np.array_equal(found, x * 2)

        import pairs

        program = distspmd.compile(distspmd.load("pair.lowered"), comm)
        found = program(a=program.tile("a", a), **{n: v for n, v in given.items() if n != "a"})
        if comm.rank == 0:
            assert type(found) is pairs.Pair
            np.testing.assert_allclose(found.product, a @ b)
        print("right")
        """.replace("\n        ", "\n"),
        ranks=4,
    )
    checked = distspmd.check(distspmd.load(tmp_path / "p.lowered"))
    assert checked.ranks == 4
    assert checked.oracle == "the SDFG in one process"
