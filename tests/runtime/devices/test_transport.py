"""Tiles of a device move as plans say, and not without any of the transport's waits."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Launch

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.devices.kinds import EMULATION
from distspmd.runtime.engine.compile_runtime import INCLUDE

WAIT = re.compile(r"\n    wait\(\w+\);[^\n]*")


def transports(header: str) -> list[str]:
    """The text of the transport in a namespace of its own: as it is, and without each wait."""
    body = header.replace("#pragma once", "").replace("namespace distspmd {", "namespace NAME {")
    body = body.replace(
        "inline namespace v1 {", "using namespace distspmd;\ninline namespace own {"
    )
    found = [body]
    found += [body[: wait.start()] + body[wait.end() :] for wait in WAIT.finditer(body)]
    return [text.replace("NAME", f"variant_{n}") for n, text in enumerate(found)]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transport")
    variants = transports((INCLUDE / "distspmd" / "device" / "transport.hpp").read_text())
    calls = [
        f'check<variant_{n}::Transport>("{n}", {place});'
        for n in range(len(variants))
        for place in ("false", "true")
    ]
    text = (Path(__file__).parent / "emulation" / "transport_checks.cpp").read_text()
    text = text.replace("\nTRANSPORTS\n", "\n".join(variants)).replace("CHECKS\n", "\n".join(calls))
    (folder / "checks.cpp").write_text(text)
    command = [*find_compiler().command, "-std=c++17", "-O0", f"-I{EMULATION}", f"-I{INCLUDE}"]
    sources = [str(folder / "checks.cpp"), str(EMULATION / "emulated_device.cpp")]
    subprocess.run([*command, *sources, "-o", str(folder / "checks")], check=True)
    return folder / "checks"


def lines(checks: Path, **settings: str) -> list[str]:
    named = {f"DISTSPMD_EMULATED_{key.upper()}": value for key, value in settings.items()}
    done = subprocess.run(
        [checks], env={**os.environ, **named}, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def test_each_wait_of_the_transport_is_needed(checks: Path) -> None:
    found = lines(checks, streams="lazy")
    assert found[:2] == [
        "0: right, 32 bytes out, 32 bytes in",
        "0 in place: right, 32 bytes out, 32 bytes in",
    ]
    assert found[-1] == "done"
    without = found[2:-1]
    assert len(without) == 2 * 3, "the transport waits three times"
    assert all(": wrong" in line for line in without)


def test_eager_streams_need_no_wait(checks: Path) -> None:
    found = lines(checks, streams="eager")
    assert found[-1] == "done"
    assert all(": right" in line for line in found[:-1])


def test_an_error_of_the_device_ends_all_ranks_with_its_message(checks: Path) -> None:
    found = lines(checks, bytes="100")
    assert found == ["ended: the device: cudaMalloc: out of memory."]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "cases"),
    [(3, 20), *(pytest.param(n, 150, marks=pytest.mark.slow) for n in (1, 2, 4))],
)
def test_random_redistributions_of_tiles_on_devices_agree_with_the_simulator(
    launch: Launch, ranks: int, cases: int
) -> None:
    program = Path(__file__).with_name("redistributions.py")
    done = launch(program, str(ranks), str(cases), ranks=ranks)
    assert "all is right" in done.stdout


@pytest.mark.parametrize(
    "ranks", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4))]
)
def test_sums_over_ranks_have_the_same_bits_by_each_transport(launch: Launch, ranks: int) -> None:
    program = Path(__file__).parents[2] / "ranks" / "device_bits.py"
    assert "all is right" in launch(program, ranks=ranks).stdout
