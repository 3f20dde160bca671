"""Devices on which programs run: the library of each kind, its memory, and the transport of tiles.

A kind of device is a row in :data:`KINDS`. Its library is compiled once for a machine, from the
headers in ``include/distspmd/device`` and from what the kind has of its own.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.cache.entries import ensure_entry
from distspmd.errors import ArgumentError, DeviceError, ToolchainError
from distspmd.runtime.compilers import cuda_toolkit
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers.failures import compilation_error
from distspmd.runtime.compilers.toolchain import Compiler, find_compiler
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.library import MAKE_ROOM, address_of, load
from distspmd.runtime.engine.compile_runtime import INCLUDE, version

VARIABLE = "DISTSPMD_DEVICE"
"""Environment variable with the kind of device on which programs run that name none."""

EMULATION = Path(__file__).parent / "emulation"
"""The folder of the headers and sources of the emulated device."""

_OWN = INCLUDE / "distspmd" / "device"


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device.

    Attributes:
        name: as ``compile(device=...)`` takes it.
        described: what it is, for the user.
        sources: text of the files of its library.
        dlpack_type: by which DLPack knows it.
        emulation: the folder of the headers that stand for CUDA's; None for CUDA itself.
    """

    name: str
    described: str
    sources: tuple[str, ...]
    dlpack_type: int
    emulation: Path | None = None

    def missing(self) -> str:
        """What this process lacks to run on it; empty if nothing."""
        return "" if self.emulation else cuda_toolkit.missing_for_runs()

    def compiling(self) -> tuple[str, ...]:
        """Flags of the host's compiler for code that calls the device; headers change them.

        Raises:
            ToolchainError: there is no compiler for CUDA.
        """
        own = [*sorted(self.emulation.iterdir())] if self.emulation else []
        texts = [path.read_bytes() for path in (*own, *sorted(_OWN.glob("*.hpp")))]
        read = hashlib.sha256(b"".join(texts))
        digest = f"-DDISTSPMD_DEVICE_HEADERS=0x{read.hexdigest()[:12]}"
        folders = [self.emulation] if self.emulation else cuda_toolkit.find_cuda().includes
        return ("-DWITH_CUDA", digest, *(f"-I{folder}" for folder in (*folders, INCLUDE)))

    def kernels(self, compiler: Compiler, standard: str, exact: bool) -> tuple[str, ...]:
        """The command that compiles kernels of CUDA; none where the host's compiler does.

        Raises:
            ToolchainError: there is no compiler for CUDA, or no architecture.
        """
        if self.emulation:
            return ()
        toolkit = cuda_toolkit.find_cuda()
        codes = [one.removeprefix("sm_") for one in cuda_toolkit.architectures()]
        targets = [f"-gencode=arch=compute_{code},code=sm_{code}" for code in codes]
        return (
            str(toolkit.nvcc),
            f"-ccbin={compiler.command[0]}",
            standard,
            "-O3",
            *targets,
            "--expt-relaxed-constexpr",
            *(["--fmad=false"] if exact else []),
            "-Xcompiler=-fPIC",
            "-w",
            *self.compiling()[:2],
            f"-I{INCLUDE}",
            f"-DDISTSPMD_NVCC={re.sub('[^0-9]', '', toolkit.version)}",
        )

    def linking(self) -> tuple[str, ...]:
        """Arguments that link what calls the device."""
        if self.emulation:
            return ()
        runtime = cuda_toolkit.find_cuda().runtime
        return (str(runtime), f"-Wl,-rpath,{runtime.parent}")


KINDS = {
    "cuda": DeviceKind(
        name="cuda",
        described="a GPU of NVIDIA",
        sources=("#include <distspmd/device/device.hpp>\n",),
        dlpack_type=dlpack.CUDA,
    ),
    "emulated": DeviceKind(
        name="emulated",
        described="a device in the memory of the host, on the thread that calls it",
        sources=('#include "emulated_device.cpp"\n', "#include <distspmd/device/device.hpp>\n"),
        dlpack_type=dlpack.EXTENSION,
        emulation=EMULATION,
    ),
}
"""The kinds of devices, by their names."""


def device_kind(name: str) -> DeviceKind:
    """The kind of device of a name.

    Raises:
        ArgumentError: there is no such kind.
    """
    if name in KINDS:
        return KINDS[name]
    raise ArgumentError(
        f"compile(device=...) takes None, {', '.join(map(repr, KINDS))}, but {name!r} was given."
    )


def check_can_run(name: str, compiles: bool) -> None:
    """See to it that this process can run on a kind of device, and compile for it if it has to.

    Raises:
        ArgumentError: there is no such kind.
        DeviceError: something is missing; what, and what to do.
    """
    kind = device_kind(name)
    missing = [kind.missing()]
    if compiles:
        try:
            kind.compiling()
        except ToolchainError as problem:
            missing.append(str(problem).rstrip("."))
    found = [text for text in missing if text]
    if found:
        raise DeviceError(
            f"device={name!r} was asked for, {kind.described}, but {'; and '.join(found)}. "
            "'distspmd doctor' says what is there. device='emulated' runs the same kernels and "
            "copies on the host, and device=None, the default, runs programs on its cores."
        )


@dataclass(frozen=True)
class DeviceBuild:
    """What a program that runs on a device has beside others."""

    kind: str
    library: str
    """Of the device; the program is linked with it."""
    arguments: tuple[str, ...]
    """Arguments that are addresses in the device's memory."""
    anywhere: tuple[str, ...]
    """Arguments that may lie in any memory: only distributed memlets touch them."""
    products: bool
    """Whether it calls the library of products."""
    reduces: bool
    """Whether it has kernels of our own, which need scratch memory."""
    spaces: tuple[tuple[str, str, str], ...]
    """How each node runs: its label, ``"device"`` or ``"host"``, and a remark."""


_LIBRARY = "device.so"


def build_device_library(kind: DeviceKind) -> Path:
    """Compile the library of a kind of device, unless the cache has it; its path.

    Raises:
        CompilationError: with what the compiler said.
        ToolchainError: there is no compiler.
    """
    compiler = find_compiler()
    start = (*compiler.command, "-std=c++17", "-O2", "-fPIC", "-DNDEBUG", *kind.compiling())
    start = kind.kernels(compiler, "-std=c++17", exact=False) or start
    key = hashlib.sha256(repr((start, kind.sources)).encode() + version(compiler.command))
    key.update((INCLUDE / "distspmd" / "api" / "execute.hpp").read_bytes())

    def make(folder: Path) -> list[str]:
        _compile(kind, compiler, start, folder)
        return [_LIBRARY]

    digest = key.hexdigest()[:32]
    return ensure_entry("device", digest, make, compiler_processes.goes_on) / _LIBRARY


def _compile(kind: DeviceKind, compiler: Compiler, start: Sequence[str], folder: Path) -> None:
    objects, commands = [], []
    for number, text in enumerate(kind.sources):
        source = folder / f"{kind.name}_{number}.{'cpp' if kind.emulation else 'cu'}"
        source.write_text(text)
        objects.append(str(source.with_suffix(".o")))
        commands.append([*start, "-c", str(source), "-o", objects[-1]])
    done = compiler_processes.run_all(commands)
    if done.returncode == 0:
        out = ["-o", str(folder / _LIBRARY)]
        link = [*compiler.command, "-shared", *objects, *out, *kind.linking()]
        done = compiler_processes.run_command(link)
    if done.returncode != 0:
        raise compilation_error(f"the library of the device {kind.name!r}", done, folder)


class Device:
    """The device of a process.

    Attributes:
        kind: the name of its kind.
        dlpack_device: the type and the number by which DLPack knows it.
        nbytes: of its memory in all.
        letting_go: how others let go of its memory.

    Raises:
        DeviceError: its library cannot be loaded, or there is no device.
    """

    def __init__(self, library: Path, kind: str = "emulated") -> None:
        self._library = load(library)
        self.kind = kind
        if self._library.distspmd_device_use(cuda_toolkit.rank_on_node()):
            raise DeviceError(f"no device {kind!r} can be used: {self.error() or 'there is none'}.")
        number: int = self._library.distspmd_device_number()
        self.dlpack_device = (KINDS[kind].dlpack_type, number)
        self.nbytes: int = self._library.distspmd_device_bytes()
        self._makes_room: Any = None
        self.letting_go = dlpack.LettingGo(
            address_of(self._library.distspmd_device_let_go),
            address_of(self._library.distspmd_device_drop_capsule),
            self._library.distspmd_device_next_let_go,
        )

    def make_room_by(self, free: Callable[[], int]) -> None:
        """Let an allocation that finds no memory, anywhere in the process, free what is kept.

        Args:
            free: it says how many allocations it has freed.
        """
        if self._makes_room is None:
            self._makes_room = MAKE_ROOM(free)  # it stays as long as the library
            self._library.distspmd_device_make_room_by(self._makes_room)

    def allocate(self, nbytes: int) -> int:
        """Memory of the device, at least a byte; its address.

        Raises:
            DeviceError: the device has not so much memory.
        """
        found: int | None = self._library.distspmd_device_allocate(max(1, nbytes))
        if found is None:
            self.error()  # what failed is told here
            raise DeviceError(
                f"the device has no memory for {nbytes:,} bytes more. Give the program more ranks "
                "with a device each, or smaller arrays."
            )
        return found

    def free(self, address: int) -> None:
        """Give memory back."""
        self._library.distspmd_device_free(address)

    def give_up(self, address: int, nbytes: int) -> None:
        """Wait for whoever may still use memory, as if it were freed; somebody else may have it."""
        self._library.distspmd_device_give_up(address, nbytes)

    def upload(self, array: NDArray[Any], address: int) -> None:
        """Copy a contiguous array into the device's memory, and wait for it."""
        self._library.distspmd_device_copy(address, array.ctypes.data, array.nbytes)

    def download(self, address: int, array: NDArray[Any]) -> None:
        """Copy from the device's memory into a contiguous array, and wait for it."""
        self._library.distspmd_device_copy(array.ctypes.data, address, array.nbytes)

    def copy(self, to: int, address: int, nbytes: int) -> None:
        """Copy within the device's memory, and wait for it."""
        self._library.distspmd_device_copy(to, address, nbytes)
        self.wait_for_stream(0)  # CUDA does not wait for a copy within a device

    def has(self, address: int) -> int:
        """Whether an address lies in its memory: 1; 2 in another device's, 0 in the host's."""
        found: int = self._library.distspmd_device_has(address)
        return found

    def export(self, address: int) -> NDArray[np.uint8] | None:
        """What another process opens an allocation by; None where there is no such thing."""
        handle = np.zeros(64, np.uint8)
        return None if self._library.distspmd_device_export(address, handle.ctypes.data) else handle

    def can_open(self, handle: NDArray[np.uint8]) -> bool:
        """Whether this process can open what another one has exported; it is closed again."""
        return not self._library.distspmd_device_try_open(handle.ctypes.data)

    def order(self, after: int, before: int) -> int:
        """Let what comes into one stream wait for what is in another; an error's number, or 0."""
        code: int = self._library.distspmd_device_order(after, before)
        return code

    def copy_on(self, stream: int, address: int, array: NDArray[Any]) -> int:
        """Queue a copy of an array of the host on a stream; an error's number, or 0."""
        code: int = self._library.distspmd_device_copy_on(
            stream, address, array.ctypes.data, array.nbytes
        )
        return code

    def create_stream(self) -> int:
        """A new stream, for which the default one does not wait.

        Raises:
            DeviceError: there is none.
        """
        found: int | None = self._library.distspmd_device_stream_create()
        if found is None:
            raise DeviceError(f"the device {self.kind!r} has no stream: {self.error()}.")
        return found

    def destroy_stream(self, stream: int) -> None:
        """Free a stream when what is queued on it is done."""
        self._library.distspmd_device_stream_destroy(stream)

    def wait_for_stream(self, stream: int) -> None:
        """Wait until what was queued on a stream is done."""
        self._library.distspmd_device_stream_wait(stream)

    def load_products(self, path: str) -> None:
        """Load the library of products, once in a process.

        Raises:
            DeviceError: it cannot be used.
        """
        said: bytes | None = self._library.distspmd_products_load(path.encode())
        if said is not None:
            raise DeviceError(f"the library of products {path} cannot be used: {said.decode()}.")

    def load_groups(self, path: str) -> None:
        """Load the library of collectives, once in a process.

        Raises:
            DeviceError: it cannot be used.
        """
        said: bytes | None = self._library.distspmd_nccl_load(path.encode())
        if said is not None:
            raise DeviceError(f"NCCL at {path} cannot be used: {said.decode()}.")

    def make_group_id(self, identity: NDArray[np.uint8]) -> str:
        """Fill in the 128 bytes by which ranks find each other; what failed, or nothing."""
        said: bytes | None = self._library.distspmd_nccl_make(identity.ctypes.data)
        return (said or b"").decode()

    def join_group(self, identity: NDArray[np.uint8], ranks: int, rank: int) -> tuple[int, str]:
        """Join the ranks of an identity, all of which call it: the group, or what failed."""
        group = ctypes.c_void_p()
        said: bytes | None = self._library.distspmd_nccl_join(
            ctypes.byref(group), identity.ctypes.data, ranks, rank
        )
        return group.value or 0, (said or b"").decode()

    def leave_group(self, group: int) -> None:
        """Leave a group again."""
        self._library.distspmd_nccl_leave(group)

    def prepare_reductions(self) -> None:
        """Have memory for parts of reductions, once in a process.

        Raises:
            DeviceError: the device has not so much memory.
        """
        if self._library.distspmd_device_prepare_reductions():
            raise DeviceError(f"the device has no memory for parts of reductions: {self.error()}.")

    def error(self) -> str:
        """Wait for all that the device was told to do; what it said of it, empty if all is well."""
        code: int = self._library.distspmd_device_wait()
        of_products: bytes | None = self._library.distspmd_products_error()
        return self.describe(code) if code else (of_products or b"").decode()

    def describe(self, code: int) -> str:
        """What an error of the device's runtime means."""
        text: bytes = self._library.distspmd_device_error(code)
        return text.decode()


def device_of_process(kind: DeviceKind) -> Device:
    """The device of a kind on which this process works; arrays ask for it, so it is found once.

    Raises:
        CompilationError, ToolchainError, DeviceError: its library cannot be made or loaded.
    """
    if kind.name not in _OF_PROCESS:
        _OF_PROCESS[kind.name] = Device(build_device_library(kind), kind.name)
    return _OF_PROCESS[kind.name]


_OF_PROCESS: dict[str, Device] = {}
