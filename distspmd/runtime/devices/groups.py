"""The library of collectives of a kind of device: NCCL, or what stands for it on the emulated one.

It is loaded while a program runs, and carries messages alone: sums are kernels of our own, in the
order of ranks, so that results have the same bits however tiles move.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from distspmd.cache.entries import ensure_entry
from distspmd.errors import DistSPMDError
from distspmd.runtime.compilers import cuda_toolkit, toolchain
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers.failures import compilation_error
from distspmd.runtime.devices.kinds import (
    EMULATION,
    KINDS,
    Device,
    DeviceKind,
    build_device_library,
)
from distspmd.runtime.engine.compile_runtime import version
from distspmd.runtime.watch.agreement import Agreement

VARIABLE = "DISTSPMD_NCCL"
"""Environment variable with the path of the library; ``none`` for programs without it."""

_NAME = "libnccl.so.2"
_BUILT = "nccl.so"


def find_library(kind: DeviceKind, environ: Mapping[str, str] = os.environ) -> str:
    """The path of the library of a kind of device, as this process finds it.

    Raises:
        ToolchainError: there is none; what was looked at.
        CompilationError: the one of the emulated device does not compile.
    """
    if kind.emulation and environ.get(VARIABLE) != "none":
        return str(_build_emulated(kind))
    return cuda_toolkit.find_library("NCCL", (_NAME,), VARIABLE, environ)


def join(device: Device, agreement: Agreement) -> tuple[int, str]:
    """A group of all ranks, or 0 and why there is none; all ranks call it.

    The group is kept with the communicator.
    """
    known = agreement.device_groups
    if device.kind not in known:
        group, _ = known[device.kind] = _join(device, agreement)
        if group:
            agreement.at_close(lambda: device.leave_group(group))
    return known[device.kind]


def _join(device: Device, agreement: Agreement) -> tuple[int, str]:
    said = ""
    try:
        device.load_groups(find_library(KINDS[device.kind]))
    except DistSPMDError as problem:
        said = str(problem).rstrip(".")
    every = agreement.allgather(said)
    if any(every):
        return 0, next(filter(None, every))
    identity = np.zeros(128, np.uint8)
    if agreement.rank == 0:
        said = device.make_group_id(identity)
    said, identity = agreement.bcast((said, identity))
    if said:
        return 0, said
    group, said = device.join_group(identity, agreement.ranks, agreement.rank)
    every = agreement.allgather(said)
    if not any(every):
        return group, ""
    if group:
        device.leave_group(group)
    return 0, next(filter(None, every))


def _build_emulated(kind: DeviceKind) -> Path:
    """What stands for NCCL on the emulated device, compiled unless the cache has it."""
    compiler = toolchain.find_compiler()
    device = build_device_library(kind)
    source = EMULATION / "emulated_nccl.cpp"
    start = [*compiler.command, "-std=c++17", "-O2", "-fPIC", "-shared", *kind.compiling()]
    linking = [str(device), f"-Wl,-rpath,{device.parent}"]
    read = source.read_bytes() + version(compiler.command)
    key = hashlib.sha256(repr((start, linking)).encode() + read).hexdigest()[:32]

    def make(folder: Path) -> list[str]:
        command = [*start, str(source), "-o", str(folder / _BUILT), *linking]
        done = compiler_processes.run_command(command)
        if done.returncode != 0:
            what = "the library of collectives of the emulated device"
            raise compilation_error(what, done, folder)
        return [_BUILT]

    return ensure_entry("device", key, make, compiler_processes.goes_on) / _BUILT
