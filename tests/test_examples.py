"""The examples and the benchmarks run as the README says, on small sizes where they take one."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import TEST_DEVICE

import distspmd
from distspmd.runtime.compilers.cuda_toolkit import missing_for_runs


def printed_by(folder: Path, *argv: str) -> str:
    done = subprocess.run(
        [sys.executable, *argv], cwd=folder, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo_partitions_runs_and_agrees_with_numpy(root: Path, tmp_path: Path) -> None:
    printed = printed_by(tmp_path, str(root / "examples" / "demo.py"))
    assert "root [2000, 784] -> [1000{i}2000, 784]" in printed
    assert "[1000{i}2000, 10] + partial(sum){k} -> root [2000, 10]" in printed
    assert "The schedule was searched for" in printed
    assert printed.count("largest difference from NumPy") == 2
    assert printed.count("one run on 4 ranks") == 2


def test_a_sparse_product_fetches_exactly_what_its_rows_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = printed_by(tmp_path, str(root / "examples" / "spmv.py"))
    lines = [line for line in printed.splitlines() if "each rank received" in line]
    received = [
        [int(n.replace(",", "")) for n in line.partition(":")[2].split(", ")] for line in lines
    ]
    monkeypatch.syspath_prepend(root / "examples")
    import spmv

    row, columns, _ = spmv.matrix()
    bounds = [(rank * spmv.ROWS // 4, (rank + 1) * spmv.ROWS // 4) for rank in range(4)]
    slices = [columns[row[lo] : row[hi]] for lo, hi in bounds]
    slices[0] = slices[0][:0]  # rank 0 has the matrix
    assert received[0] == [4 * len(part) for part in slices]
    assert received[1] == [8 * len(part) for part in slices]
    named = [np.unique(columns[row[lo] : row[hi]]) for lo, hi in bounds]
    foreign = [
        np.count_nonzero((part < lo) | (part >= hi))
        for part, (lo, hi) in zip(named, bounds, strict=True)
    ]
    assert received[2] == [8 * count for count in foreign]
    assert "x: 800,000 bytes in all, fetched 10 times" in printed


def test_the_matrix_product_receives_the_fewest_bytes(root: Path, tmp_path: Path) -> None:
    file = str(root / "benchmarks" / "matmul.py")
    printed = printed_by(tmp_path, file, "--size", "130", "--repeat", "1", "--ranks", "2")
    lines = [line.split() for line in printed.splitlines() if " received " in line]
    assert len(lines) == 6
    assert all(words[3] == words[6] for words in lines)


@pytest.mark.slow
def test_whole_programs_are_timed_beside_their_peers(root: Path, tmp_path: Path) -> None:
    file = str(root / "benchmarks" / "programs.py")
    peers = ["C", "JAX", "NumPy+MPI"]
    arguments = ("--small", "--repeat", "1", "--ranks", "2", "--peers", *peers)
    first, *others = printed_by(tmp_path, file, "jacobi", *arguments).splitlines()
    assert re.match(r"jacobi +2 rank\(s\): +[\d.]+ ms, +[\d.]+% of it communication", first)
    for peer, line in zip(peers, others, strict=True):
        missing = r"|not installed \(jax\)" if peer == "JAX" else ""
        assert re.match(rf" +{re.escape(peer)} +([\d.]+ ms{missing})$", line)


def test_redistributions_arrive_by_all_methods_that_are_installed(
    root: Path, tmp_path: Path
) -> None:
    file = str(root / "benchmarks" / "redistribution.py")
    arguments = ("--megabytes", "0.1", "--ranks", "8", "--sample", "2", "--repeat", "1")
    methods = ("--methods", "limit", "distspmd", "Alltoallw", "pack+Alltoallv", "mpi4py-fft")
    printed = printed_by(tmp_path, file, *arguments, *methods)
    for case in ("row to column", "pencils x-y-z", "partial to split", "P4", "sample 1"):
        assert f"\n{case} " in printed
    assert "skipped: mpi4py-fft" in printed or " mpi4py-fft " in printed
    assert "time / distspmd" in printed


@pytest.mark.slow
def test_programs_on_devices_are_timed_and_what_is_not_here_is_said(
    root: Path, tmp_path: Path
) -> None:
    file = str(root / "benchmarks" / "gpu.py")
    results = tmp_path / "results.json"
    how = ("--device", "emulated", "--small", "--repeat", "1", "--ranks", "2")
    printed = printed_by(
        tmp_path, file, "total", "matmul", "training", *how, "--json", str(results)
    )
    found = json.loads(results.read_text())
    assert {(row["program"], row["arithmetic"]) for row in found["rows"]} >= {
        ("copy on the device", ""),
        ("tiles, rows to columns", ""),
        ("runs of 4096 bytes", ""),
        ("total", "vector"),
        ("training", "vector"),
        ("matmul", "vector"),
        ("matmul", "tf32"),
        ("matmul", "bfloat16"),
    }
    assert all(row["seconds"] > 0 for row in found["rows"])
    for peer, module in (("torch eager", "torch"), ("torch.compile", "torch"), ("JAX", "jax")):
        timed = {row["program"] for row in found["rows"] if row["by"] == f"{peer}, host"}
        if importlib.util.find_spec(module):
            assert timed == {"total", "matmul"} | ({"training"} if module == "torch" else set())
        else:
            assert f"not here: {peer}: " in printed
    missing = missing_for_runs()
    if missing:
        printed = printed_by(tmp_path, file, "call", "--small")
        assert "not here: device 'cuda': device='cuda' was asked for" in printed
        assert missing in printed


EXAMPLES = sorted(
    file.name
    for file in (Path(__file__).parents[1] / "examples").glob("*.py")
    if file.name not in ("showing.py", "learning.py", "heat.py")  # shared, and a plain script
)


BY_HAND = 1.005
"""Of seconds by hand, most that a search may find."""

NOT_COMPARED = {"digits.py", "llama.py", "warp_softmax.py"}
"""Of these no search is made: they show one schedule, and `warp_softmax.py` a device's kernel."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*EXAMPLES} - NOT_COMPARED))
def test_what_is_searched_for_takes_no_longer_than_by_hand(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(root / "examples")
    module = importlib.import_module(name.removesuffix(".py"))
    pairs = []
    for example in getattr(module, "EXAMPLES", []):
        by_hand = example.lowered()[1]
        pairs.append((replace(example, schedule=None).lowered(by_hand.ranks)[1], by_hand))
    if training := getattr(module, "EXAMPLE", None):
        made = importlib.import_module("learning").made
        steps = [made(training.build)[2] for _ in range(2)]
        pairs.append((training.searched(steps[0])[1], training.lowered(steps[1])[1]))
    if name == "demo.py":
        parsed = distspmd.lower(module.perceptron, ranks=4)
        pairs.append((parsed, distspmd.lower(module.perceptron, module.SCHEDULE)))
    if name == "spmv.py":
        rows = distspmd.lower(module.iterated, {"y": (4,)})
        pairs.append((distspmd.lower(module.iterated, ranks=4), rows))
    for found, by_hand in pairs:
        assert distspmd.predict(found).seconds <= BY_HAND * distspmd.predict(by_hand).seconds


@pytest.mark.gpu(ranks=4)
@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_on_devices(root: Path, tmp_path: Path, name: str) -> None:
    if name == "llama.py":
        pytest.importorskip("transformers")
    if name == "digits.py":
        pytest.importorskip("sklearn")
    device = os.environ.get(TEST_DEVICE, "emulated")
    printed_by(tmp_path, str(root / "examples" / name), "--small", "--device", device)
