"""The library of products of matrices of a kind of device: cuBLAS, or what stands for it.

cuBLAS is loaded when a program runs that uses it, and not needed to compile one. On the emulated
device a library with its interface calls the BLAS of the host.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from distspmd.cache.entries import ensure_entry
from distspmd.runtime.compilers import cuda_toolkit, toolchain
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers.failures import compilation_error
from distspmd.runtime.devices.kinds import EMULATION, DeviceKind, build_device_library
from distspmd.runtime.engine.compile_runtime import version

VARIABLE = "DISTSPMD_CUBLAS"
"""Environment variable with the path of the library; ``none`` for a program without it."""

_NAMES = ("libcublas.so.13", "libcublas.so.12")
_BUILT = "cublas.so"


def find_products(kind: DeviceKind, environ: Mapping[str, str] = os.environ) -> str:
    """The path of the library of products of a kind of device, as this process finds it.

    Raises:
        ToolchainError: there is none; what was looked at.
        CompilationError: the one of the emulated device does not compile.
    """
    if kind.emulation and environ.get(VARIABLE) != "none":
        return str(_build_emulated(kind))
    return cuda_toolkit.find_library("the library of products", _NAMES, VARIABLE, environ)


def _build_emulated(kind: DeviceKind) -> Path:
    """What stands for cuBLAS on the emulated device, compiled unless the cache has it."""
    compiler, blas = toolchain.find_compiler(), toolchain.find_blas()
    device = build_device_library(kind)
    source = EMULATION / "emulated_cublas.cpp"
    start = [
        *(*compiler.command, "-std=c++17", "-O2", "-fPIC", "-shared", *kind.compiling()),
        *(f'-DDISTSPMD_CBLAS_HEADER="{blas.header}"', *blas.compile_arguments),
        f"-DDISTSPMD_CBLAS_PREFIX={blas.symbol_prefix}",
    ]
    linking = [str(device), f"-Wl,-rpath,{device.parent}", *blas.link_arguments]
    read = source.read_bytes() + version(compiler.command)
    key = hashlib.sha256(repr((start, linking)).encode() + read).hexdigest()[:32]

    def make(folder: Path) -> list[str]:
        command = [*start, str(source), "-o", str(folder / _BUILT), *linking]
        done = compiler_processes.run_command(command)
        if done.returncode != 0:
            what = "the library of products of the emulated device"
            raise compilation_error(what, done, folder)
        return [_BUILT]

    return ensure_entry("device", key, make, compiler_processes.goes_on) / _BUILT
