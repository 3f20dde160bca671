"""The emulated device does what CUDA says, and is strict where hardware is not."""

import os
import subprocess
from pathlib import Path

import pytest

from distspmd.runtime.compilers.toolchain import find_compiler

HERE = Path(__file__).resolve().parent / "emulation"


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    device = root / "distspmd" / "runtime" / "devices" / "emulation"
    built = tmp_path_factory.mktemp("emulation") / "checks"
    command = [*find_compiler().command, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror"]
    sources = [str(HERE / "checks.cpp"), str(device / "emulated_device.cpp")]
    subprocess.run([*command, f"-I{device}", *sources, "-o", str(built)], check=True)
    return built


def run(checks: Path, name: str, **settings: str) -> subprocess.CompletedProcess[str]:
    named = {f"DISTSPMD_EMULATED_{key.upper()}": value for key, value in settings.items()}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DISTSPMD_EMULATED_")}
    return subprocess.run(
        [checks, name], env={**kept, **named}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("streams", ["eager", "lazy", "random:1", "random:2"])
@pytest.mark.parametrize("name", ["kernels", "barriers", "limits", "memory"])
def test_the_device_computes_the_same_whenever_its_streams_run(
    checks: Path, name: str, streams: str
) -> None:
    done = run(checks, name, streams=streams)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


@pytest.mark.parametrize(
    ("streams", "missing", "early"), [("eager", "4", "8"), ("lazy", "0", "-1"), ("", "0", "-1")]
)
def test_lazy_streams_show_each_missing_wait(
    checks: Path, streams: str, missing: str, early: str
) -> None:
    done = run(checks, "streams", **({"streams": streams} if streams else {}))
    assert done.stdout == f"without a wait: {missing}\nbefore the wait: {early}\ndone\n"


def test_random_streams_show_a_missing_wait_for_some_seeds(checks: Path) -> None:
    found = {run(checks, "streams", streams=f"random:{seed}").stdout for seed in range(12)}
    assert {text.splitlines()[0] for text in found} == {"without a wait: 0", "without a wait: 4"}
    assert all(text.count("\n") == 3 and text.endswith("done\n") for text in found)


@pytest.mark.parametrize("name", ["touched_by_host", "behind_the_end", "after_free"])
def test_memory_faults_where_it_is_not_the_devices_to_touch(checks: Path, name: str) -> None:
    done = run(checks, name)
    assert done.returncode != 0
    assert "memory of the device was accessed by the host" in done.stderr


def test_the_host_may_touch_memory_that_is_not_guarded(checks: Path) -> None:
    assert run(checks, "touched_by_host", guard="0").stdout == "done\n"
    assert run(checks, "behind_the_end", guard="0").returncode != 0


def test_threads_that_wait_for_ended_ones_end_the_process(checks: Path) -> None:
    done = run(checks, "ended_threads")
    assert done.returncode != 0
    assert "wait for others that have ended" in done.stderr


def test_the_device_has_as_much_memory_as_it_is_given(checks: Path) -> None:
    assert run(checks, "memory", bytes="1000").stdout == "done\n"
    assert "cudaMalloc" in run(checks, "memory", bytes="399").stdout
