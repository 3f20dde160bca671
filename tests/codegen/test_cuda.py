"""Programs compile for GPUs where there is a compiler for CUDA; nothing here runs on one."""

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import distspmd
from distspmd.errors import ToolchainError
from distspmd.execution.builds import build_for
from distspmd.lowering import ATTRIBUTE, Lowering
from distspmd.runtime.compilers.cuda_toolkit import ARCHITECTURES, find_cuda
from distspmd.runtime.devices.kinds import build_device_library, device_kind
from distspmd.runtime.devices.products import VARIABLE


def has_compiler() -> bool:
    try:
        find_cuda()
    except ToolchainError:
        return False
    return True


EXAMPLES = {
    file.stem
    for file in (Path(__file__).parents[2] / "examples").glob("*.py")
    if "__main__" in file.read_text()
}
NEEDS_NVCC = pytest.mark.skipif(not has_compiler(), reason="there is no nvcc on this machine")


def jacobi(x: dace.float64[64, 64], y: dace.float64[64, 64], steps: dace.int64):
    for _ in range(steps):
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        x[1:-1, 1:-1] = y[1:-1, 1:-1]


def attended(x: dace.float32[40, 24], w: dace.float32[24, 40]) -> dace.float32[40, 40]:
    scores = x @ w
    weights = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return weights / np.sum(weights, axis=1, keepdims=True)


def lettered(n: dace.int64[6, 5], m: dace.int64[5, 6]):
    """Contractions of kernels of our own, over letters that such kernels have had themselves."""
    return np.einsum("er,rk->ek", n, m), n * 2, np.einsum("re,ek->rk", n, m)


def of_complex(x: dace.complex128[8, 8], y: dace.complex64[8, 8]):
    """Functions of complex numbers, which are those of thrust in kernels."""
    z = np.sin(x) + np.cos(x) + np.tanh(x) + np.sqrt(x) + np.log(x) + np.exp(1j * x.real)
    return z * np.conj(z) / (np.abs(x) + x.imag), np.abs(np.exp(y)) + np.sinh(y) ** 2


def lowered(function: Callable[..., Any], parts: int) -> Lowering:
    spaces = distspmd.iteration_spaces(function)
    whole = [space for space in spaces if len(space.parameters) == 2]
    return distspmd.lower(function, {whole[0].name: (parts, 1)})


@NEEDS_NVCC
@pytest.mark.slow
@pytest.mark.parametrize("function", [jacobi, attended, lettered, of_complex])
def test_programs_on_four_ranks_compile_for_hopper(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ARCHITECTURES, "sm_90")
    monkeypatch.setenv(VARIABLE, __file__)  # it is not loaded before the program is
    made = lowered(function, 4)
    assert getattr(made.sdfg, ATTRIBUTE) is made
    built, _ = build_for(made.sdfg, 4, device="cuda")
    assert built.device is not None
    assert built.device.kind == "cuda"
    assert any(place == "device" for _, place, _ in built.device.spaces)
    names = subprocess.run(["nm", "-D", built.library], capture_output=True, text=True).stdout
    assert f"__program_{built.name}" in names
    assert "U cudaLaunchKernel" in names
    assert built.device.products == (function is attended)
    assert ("U _ZN8distspmd2v18multiply" in names) == (function is attended)
    assert "U distspmd_device_number" in names, "DaCe's device is the one of the rank"


def programs_of(name: str) -> dict[str, Any]:
    """The programs of an example, each under the first schedule that it names."""
    module = importlib.import_module(name)
    if training := getattr(module, "EXAMPLE", None):
        made = importlib.import_module("learning").made
        return {name: training.lowered(made(training.build)[2])[0]}
    if examples := getattr(module, "EXAMPLES", []):
        first = {example.name: example for example in reversed(examples)}
        return {label: example.lowered()[0] for label, example in first.items()}
    if name == "demo":
        sdfg = distspmd.frontend.numpy_program(module.perceptron)
        sdfg = distspmd.lower(sdfg, module.SCHEDULE).sdfg
        return {name: sdfg}
    if name == "spmv":
        sdfg = distspmd.frontend.numpy_program(module.iterated)
        sdfg = distspmd.lower(sdfg, {"y": (4,)}).sdfg
        return {name: sdfg}
    return {name: module.lowered()}


@NEEDS_NVCC
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(EXAMPLES - {"digits", "llama"}))  # as data_parallel, hybrid
def test_the_programs_of_the_examples_compile_for_hopper(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root / "examples")
    monkeypatch.setenv(ARCHITECTURES, "sm_90")
    monkeypatch.setenv(VARIABLE, __file__)
    for label, sdfg in programs_of(name).items():
        built, _ = build_for(sdfg, 8, device="cuda")
        names = subprocess.run(["nm", "-D", built.library], capture_output=True, text=True).stdout
        works = "U cudaLaunchKernel" in names or "U _ZN8distspmd2v18multiply" in names
        assert works, f"{label} has neither a kernel nor a product"


@NEEDS_NVCC
@pytest.mark.slow
def test_the_library_of_the_device_compiles_for_several_architectures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ARCHITECTURES, "sm_80,90")
    library = build_device_library(device_kind("cuda"))
    found = subprocess.run(["strings", "-n", "4", library], capture_output=True, text=True).stdout
    assert "sm_80" in found
    assert "sm_90" in found
    names = subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout
    assert "T distspmd_transport_create" in names


@pytest.mark.slow
@pytest.mark.parametrize("device", ["emulated", pytest.param("cuda", marks=NEEDS_NVCC)])
def test_the_benchmark_of_compilers_has_a_row_for_each_text(root: Path, device: str) -> None:
    script = root / "benchmarks" / "device_compile_times.py"
    command = [sys.executable, script, "softmax", "--small", "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"  +", line) for line in done.stdout.splitlines()[1:]]
    found = [(row[0], row[1]) for row in rows[:-1]]
    own = ("softmax", "our kernels")
    assert found == [("(library)", "of the device"), *[("softmax", "frame")] * 2, own]
    assert all(float(row[-1]) > 0 for row in rows)
