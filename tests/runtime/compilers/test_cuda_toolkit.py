"""The compiler for CUDA is looked for in an order, and what is missing is said."""

from pathlib import Path

import pytest

from distspmd.errors import DeviceError, ToolchainError
from distspmd.runtime.compilers import cuda_toolkit
from distspmd.runtime.compilers.cuda_toolkit import (
    ARCHITECTURES,
    CudaDriver,
    architectures,
    find_cuda,
    rank_on_node,
)
from distspmd.runtime.devices.kinds import check_can_run

H200 = CudaDriver("13.0", (("NVIDIA H200", "sm_90"),))


def toolkit(prefix: Path, version: str = "13.0.88", runtime: str = "lib64/libcudart.so") -> Path:
    """A compiler that says its version, and no more."""
    for file in (prefix / "bin/nvcc", prefix / "include/cuda_runtime.h", prefix / runtime):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (prefix / "bin/nvcc").write_text(f"#!/bin/sh\necho 'release 13.0, V{version}'\n")
    (prefix / "bin/nvcc").chmod(0o755)
    return prefix


def test_the_sites_compiler_comes_before_the_one_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, home = toolkit(tmp_path / "named", "12.9.1"), toolkit(tmp_path / "home", "13.1.0")
    toolkit(tmp_path / "site/nvidia/cu13", runtime="lib/libcudart.so.13")
    monkeypatch.setattr(cuda_toolkit.site, "getsitepackages", lambda: [str(tmp_path / "site")])
    monkeypatch.setattr(cuda_toolkit.sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    every = {"CUDA_HOME": str(home), "PATH": str(named / "bin")}
    assert find_cuda(every).version == "13.1.0"
    assert find_cuda({"PATH": every["PATH"]}).origin == "PATH"
    packaged = find_cuda({})
    assert (packaged.version, packaged.origin) == ("13.0.88", "packages of pip")
    assert packaged.runtime == tmp_path / "site/nvidia/cu13/lib/libcudart.so.13"
    (home / "lib64/libcudart.so").unlink()
    assert find_cuda(every).origin == "PATH", "what is not whole is passed over"


def test_packages_of_an_environment_below_have_compilers_and_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that shares packages has their folder on the path of modules alone."""
    prefix = toolkit(tmp_path / "below/nvidia/cu13", runtime="lib/libcudart.so.13")
    (prefix / "lib/libcublas.so.13").touch()
    monkeypatch.setattr(cuda_toolkit.sys, "path", ["", str(tmp_path / "below")])
    assert find_cuda({}).nvcc == prefix / "bin/nvcc"
    found = cuda_toolkit.find_library("cuBLAS", ["libcublas.so.13"], "UNSET", {})
    assert found == str(prefix / "lib/libcublas.so.13")


def test_a_script_of_the_site_that_starts_a_compiler_is_asked_where_that_is(tmp_path: Path) -> None:
    prefix = toolkit(tmp_path / "cuda-13.0")
    script = tmp_path / "bin/nvcc"
    script.parent.mkdir()
    says = f"echo '#$ TOP={prefix}/bin/..' >&2; exec {prefix}/bin/nvcc"
    script.write_text(f"#!/bin/sh\n{says}\n")
    script.chmod(0o755)
    found = find_cuda({"PATH": str(script.parent)})
    assert (found.nvcc, found.origin) == (prefix / "bin/nvcc", "PATH")


def test_a_compiler_that_is_missing_is_told_with_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_toolkit.site, "getsitepackages", list)
    monkeypatch.setattr(cuda_toolkit.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(cuda_toolkit.sys, "path", [])
    with pytest.raises(ToolchainError, match=r"no nvcc. To have one, load .* 'distspmd\[cuda\]'"):
        find_cuda({})
    with pytest.raises(ToolchainError, match=r"CUDA_HOME: /nowhere/bin/nvcc is no program"):
        find_cuda({"CUDA_HOME": "/nowhere"})
    monkeypatch.setattr(cuda_toolkit, "find_driver", lambda: H200)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "")
    check_can_run("cuda", compiles=False)
    with pytest.raises(DeviceError, match="a GPU of NVIDIA, but no compiler for CUDA was found"):
        check_can_run("cuda", compiles=True)


def test_a_driver_or_a_device_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_toolkit, "find_driver", lambda: "there is no driver")
    with pytest.raises(DeviceError, match="but there is no driver"):
        check_can_run("cuda", compiles=False)
    monkeypatch.setattr(cuda_toolkit, "find_driver", lambda: CudaDriver("13.0", ()))
    with pytest.raises(DeviceError, match=r"but the driver for CUDA 13.0; no devices"):
        check_can_run("cuda", compiles=False)


def test_kernels_are_compiled_for_what_is_named_or_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert architectures({ARCHITECTURES: "sm_80, 90a"}) == ("sm_80", "sm_90a")
    with pytest.raises(ToolchainError, match="names 'hopper', which is no architecture"):
        architectures({ARCHITECTURES: "hopper"})
    monkeypatch.setattr(cuda_toolkit, "find_driver", lambda: H200)
    assert architectures({}) == ("sm_90",)
    monkeypatch.setattr(cuda_toolkit, "find_driver", lambda: "there is no driver")
    with pytest.raises(ToolchainError, match=f"Name the architecture, {ARCHITECTURES}=sm_90"):
        architectures({})


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"])
def test_ranks_know_their_number_on_the_node(name: str) -> None:
    assert rank_on_node({name: "3"}) == 3
    assert rank_on_node({}) == 0
