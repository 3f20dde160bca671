"""Tiles go through the host's memory in pieces: one is packed while another travels."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.encoding import Storage
from distspmd.plans.packed_table import packed_table
from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.devices.kinds import EMULATION
from distspmd.runtime.engine.compile_runtime import INCLUDE

CHECKS = Path(__file__).parent / "emulation" / "message_checks.cpp"
MESSAGES = INCLUDE / "distspmd" / "device" / "messages.hpp"

WAITS = {
    "for what is packed": (
        "own_.keep(cudaEventSynchronize(own_.packed_[packed++]));",
        "++packed;",
    ),
    "for the inbox": ("own_.keep(cudaStreamSynchronize(own_.stream_));", ""),
    "for what comes": ("unpack(true);", "unpack(false);"),
    "for what goes": ("own_.mpi_.finish(own_.engine_, number_);", ""),
    "for the end": ("    keep(cudaStreamSynchronize(stream_));\n    count_", "    count_"),
}


def table() -> str:
    """The table of rank 0 of a plan of two steps, in pieces of four elements, as C++."""
    mesh = Mesh(p=2)
    layouts = [Layout.parse(text, mesh) for text in ("[4{p}8, 8]", "[8, 4{p}8]")]
    plan = distspmd.plan(*layouts, np.dtype(float))
    plan = replace(plan, steps=plan.steps * 2)
    held = [Storage.of(layout.box(0)) for layout in plan.buffers[:2]]
    words = packed_table([plan], [held], 0, 2, [4 * 8]).tolist()
    return f"{{{', '.join(map(str, words))}}}"


def variants() -> list[str]:
    """The header without each of its waits, each in a namespace of its own."""
    text = MESSAGES.read_text().replace("#pragma once", "")
    text = text.replace(
        "inline namespace v1 {", "using namespace distspmd;\ninline namespace own {"
    )
    found = []
    for number, (wait, instead) in enumerate(WAITS.values(), 1):
        assert text.count(wait) == 1, wait
        body = text.replace(wait, instead)
        found.append(body.replace("namespace distspmd {", f"namespace variant_{number} {{"))
    return found


def checks_of(variants: list[str]) -> str:
    """The text of the checks: of the header as it is, and of others."""
    spaces = ["distspmd", *(f"variant_{n + 1}" for n in range(len(variants)))]
    calls = "".join(f'check<{s}::Messages, {s}::ByMpi>("{n}");\n' for n, s in enumerate(spaces))
    text = CHECKS.read_text().replace("\nVARIANTS\n", "\n".join(variants))
    return text.replace("= TABLE;", f"= {table()};").replace("CHECKS\n", calls)


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "checks.cpp").write_text(checks_of(variants()))
    command = [*find_compiler().command, "-std=c++17", "-O0", f"-I{EMULATION}", f"-I{INCLUDE}"]
    sources = [str(folder / "checks.cpp"), str(EMULATION / "emulated_device.cpp")]
    subprocess.run([*command, *sources, "-o", str(folder / "checks")], check=True)
    return folder / "checks"


def lines(checks: Path, streams: str) -> list[str]:
    settings = {"DISTSPMD_EMULATED_STREAMS": streams, "DISTSPMD_EMULATED_GUARD": "0"}
    around = {**os.environ, **settings}
    done = subprocess.run([checks], env=around, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_piece_is_sent_before_the_next_is_packed_and_unpacked_before_the_next_has_come(
    checks: Path,
) -> None:
    lazy, eager = lines(checks, "lazy")[0], lines(checks, "eager")[0]
    assert lazy.startswith("0: right; packed behind| 0 0 0 0|"), lazy
    assert eager.endswith("; unpacked before| 0 4 8 12| 0 4 8 12"), eager


def test_each_wait_of_packed_messages_is_needed(checks: Path) -> None:
    found = lines(checks, "lazy")
    assert found[0].startswith("0: right")
    assert found[-1] == "done"
    without = [line.split(";")[0] for line in found[1:-1]]
    assert without == [f"{n}: wrong" for n in range(1, len(WAITS) + 1)]
