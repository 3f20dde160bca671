"""The table of peers: what is stored of a run, what counts as lost, and a run at small sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def table(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(root / "benchmarks")
    import table

    return table


def measured(table: Any, ours: float, **peers: float) -> Any:
    return table.Measured("row", ours, peers, {"JAX": "no jax"}, 8e6, 20.0)


def test_a_ratio_below_the_stored_one_by_more_than_its_tolerance_is_lost(table: Any) -> None:
    stored = table.to_store([measured(table, 2.0, C=3.0, numba=2.4)], {})
    assert stored == {"row": {"ratio": 1.2, "tolerance": 0.2, "peers": ["C", "numba"]}}
    assert not table.losses([measured(table, 2.4, C=3.0, numba=2.4)], stored)
    (said,) = table.losses([measured(table, 2.6, C=3.0, numba=2.4)], stored)
    assert said.startswith("row: the best peer takes 0.92 of our time, and 1.20 were stored")
    (said,) = table.losses([measured(table, 1.0, C=3.0)], stored)
    assert said == "row: the peers numba were not measured"


def test_what_is_stored_keeps_tolerances_and_other_rows(table: Any) -> None:
    before = {"row": {"ratio": 1.0, "tolerance": 0.5, "peers": ["C"]}, "other": {"ratio": 2.0}}
    stored = table.to_store([measured(table, 1.0, C=3.0)], before)
    assert stored["row"] == {"ratio": 3.0, "tolerance": 0.5, "peers": ["C"]}
    assert stored["other"] == {"ratio": 2.0}
    assert table.to_store([measured(table, 1.0)], {}) == {}


def test_a_line_has_peers_that_are_missing_and_bytes_beside_stream(table: Any) -> None:
    line = measured(table, 2.0, C=3.0).line(wanted=1.1)
    assert "2.00 ms, ratio 1.50 (wanted 1.10); 4.0 GB/s, STREAM 20.0; C 3.00" in line
    assert line.endswith("JAX not installed (no jax)")


def test_rows_run_beside_their_peers(root: Path) -> None:
    rows = ["filter by FFT, 20 of 512 x 512", "uneven, plain tiles"]
    command = [sys.executable, root / "benchmarks" / "peers.py", "--small", "--repeat", "1"]
    done = subprocess.run([*command, "--rows", *rows], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for row, peer in zip(rows, ("NumPy", "pull"), strict=True):
        (line,) = (each for each in lines if each.startswith(row))
        assert f" {peer} " in line
    assert json.loads((root / "benchmarks" / "peers.json").read_text()).keys()
