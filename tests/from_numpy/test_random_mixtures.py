"""Random programs of array work and objects of Python give what Python gives, or are refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from from_numpy.random_mixtures import source

QUICK, ALL = range(16), range(16, 400)


def made(seed: int, folder: Path) -> Any:
    """A program, from a file: the reader needs its source."""
    path = folder / f"program_{seed}.py"
    path.write_text(source(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def outcome(seed: int, folder: Path) -> str:
    """How a program ends."""
    program, x = made(seed, folder), np.array([1.5, 0.25, 3.0, 2.0, 0.75])
    with np.errstate(all="ignore"):
        expected = program(x.copy())
        try:
            found = distspmd.program(program, comm=MPI.COMM_SELF, host="allow")(x.copy())
        except distspmd.DistSPMDError as refused:
            return f"refused: {refused}"
    pairs = zip(found, expected, strict=True)
    is_right = all(np.allclose(a, b, rtol=1e-9, equal_nan=True) for a, b in pairs)
    return "right" if is_right else f"{found} for {expected}"


def check(seeds: range, folder: Path) -> None:
    """None is wrong, and few are refused."""
    ends = {seed: outcome(seed, folder) for seed in seeds}
    wrong = {s: end for s, end in ends.items() if not end.startswith(("right", "refused"))}
    assert not wrong, "\n".join(f"{source(seed)}{end}" for seed, end in wrong.items())
    refused = [end for end in ends.values() if end.startswith("refused")]
    assert len(refused) <= len(ends) / 8, "\n".join(refused)


def test_random_mixtures_give_what_python_gives(tmp_path: Path) -> None:
    check(QUICK, tmp_path)


@pytest.mark.slow
def test_more_random_mixtures_give_what_python_gives(tmp_path: Path) -> None:
    check(ALL, tmp_path)
