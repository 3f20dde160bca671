"""A later process finds what a first call has made, where all that it was made from is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.api.kept_starts import NotKept, _of
from distspmd.runtime.launch.mpiexec import launch

PROGRAM = """
import sys
import numpy as np
import distspmd

SCALE = {scale}

def helped(x):
    return x * {factor}

@distspmd.program(schedule={{"__return": ({ranks},)}})
def scaled(x, n):
    return helped(x) * SCALE + n

@distspmd.program(schedule={{}})
def told(x):
    print("sum", x.sum())
    return x + 1

x = np.arange({length}.0)
from mpi4py import MPI
first = MPI.COMM_WORLD.rank == 0
found = scaled(*((x, 1.5) if first else ()))
print("reads" if "dace" in sys.modules else "finds", MPI.COMM_WORLD.rank, flush=True)
if first:
    assert (found == x * {factor} * SCALE + 1.5).all()
    for n in (1.5, 2.5, 3):
        assert (scaled(x, n) == x * {factor} * SCALE + n).all()
else:
    for _ in range(3):
        scaled()
found = told(*((x,) if first else ()))
if first:
    assert (found == x + 1).all()
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_second_start_neither_reads_nor_lowers(tmp_path: Path, ranks: int) -> None:
    def started(**changes: Any) -> str:
        values = {"scale": 2.0, "factor": 3, "length": 8, "ranks": ranks, **changes}
        file = tmp_path / "program.py"
        file.write_text(PROGRAM.format(**values))
        environ = {"DISTSPMD_CACHE": str(tmp_path / "cache"), "DISTSPMD_KEEP_STARTS": "1"}
        environ["DACE_compiler_build_type"] = "None"
        done = launch([file], ranks=ranks, timeout=300, capture=True, env=environ, cwd=tmp_path)
        text = done.check().stdout
        assert text.count("sum 28.0") == 1 or changes
        return "finds" if "finds 0" in text else "reads"

    assert started() == "reads"
    assert started() == "finds"
    for change in ({"scale": 2.5}, {"factor": 4}, {"length": 9}):
        assert started(**change) == "reads"
    assert started() == "finds"


HERE = [1, 2]


class Own:
    pass


def _sees_a_list(x: Any) -> Any:
    return x * HERE[0]


def _draws(x: Any) -> Any:
    return x + np.random.default_rng().random(4)


def _plain(x: Any, n: Any = 3) -> Any:
    return np.sin(x) + n + sum(k for k in range(4))


def _calls(x: Any) -> Any:
    return _plain(x) + _calls.__code__.co_argcount


@pytest.mark.parametrize("value", [HERE, Own(), Own, np.ones(3), _sees_a_list, _draws, {}])
def test_what_others_cannot_tell_alike_is_not_kept(value: Any) -> None:
    with pytest.raises(NotKept):
        _of(value)


@pytest.mark.parametrize("value", [1, "a", None, (1, 2.0), np, np.sin, np.float64, len])
def test_what_others_have_too_has_a_key(value: Any) -> None:
    assert _of(value) == _of(value)


def test_functions_are_told_apart_by_what_they_see() -> None:
    def by(n: Any) -> Any:
        return lambda x: x * n

    assert _of(by(2)) == _of(by(2)) != _of(by(3))
    assert _of(by(_plain)) != _of(by(_calls))
