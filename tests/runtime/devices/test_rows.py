"""Threads of a device that share rows get the whole of each, and not without a barrier."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.devices.kinds import EMULATION
from distspmd.runtime.engine.compile_runtime import INCLUDE

BARRIER = re.compile(r"__syncthreads\(\);[^\n]*")


def variants(header: str) -> list[str]:
    """The text of the header in a namespace of its own: as it is, and without each barrier."""
    body = header.replace("#pragma once", "").replace("namespace distspmd {", "namespace NAME {")
    body = body.replace(
        "inline namespace v1 {", "using namespace distspmd;\ninline namespace own {"
    )
    found = [body]
    found += [body[: one.start()] + body[one.end() :] for one in BARRIER.finditer(body)]
    return [text.replace("NAME", f"variant_{n}") for n, text in enumerate(found)]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    headers = variants((INCLUDE / "distspmd" / "device" / "rows.hpp").read_text())
    spaces = [f"variant_{n}" for n in range(len(headers))]
    text = (Path(__file__).parent / "emulation" / "row_checks.cpp").read_text()
    text = text.replace("\nVARIANTS\n", "\n".join(headers))
    text = text.replace("\nSPACES\n", "\n".join(f"CHECK({space})" for space in spaces))
    text = text.replace("CHECKS\n", "".join(f'{s}_check("{n}");\n' for n, s in enumerate(spaces)))
    (folder / "checks.cpp").write_text(text)
    command = [*find_compiler().command, "-std=c++17", "-O0", f"-I{EMULATION}", f"-I{INCLUDE}"]
    sources = [str(folder / "checks.cpp"), str(EMULATION / "emulated_device.cpp")]
    subprocess.run([*command, *sources, "-o", str(folder / "checks")], check=True)
    return folder / "checks"


def lines(checks: Path, threads: str) -> list[str]:
    """What a run says in which threads go on in an order after a barrier."""
    around = {**os.environ, "DISTSPMD_EMULATED_THREADS": threads}
    done = subprocess.run([checks], env=around, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_rows_are_combined_in_one_order_and_each_barrier_is_needed(checks: Path) -> None:
    found = [lines(checks, threads) for threads in ("forwards", "backwards", "warps")]
    for run in found:
        assert run[0] == "0: right"
        assert run[-1] == "done"
    without = list(zip(*(run[1:-1] for run in found), strict=True))
    assert len(without) == 2, "there are two barriers"
    assert all(any(line.endswith("wrong") for line in runs) for runs in without)
