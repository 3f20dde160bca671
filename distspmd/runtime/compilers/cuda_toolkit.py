"""CUDA as it is on a machine: the compiler ``nvcc``, the driver, and the devices that it has.

The compiler of the site comes first (``CUDA_HOME``, ``CUDA_PATH``, ``PATH``), and then the one of
the packages of ``distspmd[cuda]``. Nothing of CUDA is loaded before somebody asks for it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from distspmd.errors import ToolchainError

ARCHITECTURES = "DISTSPMD_CUDA_ARCH"
"""Environment variable with the architectures for which kernels are compiled, as ``sm_80,sm_90``.

Where it is not set, that is the one of the first device.
"""

INSTALL = (
    "load the site's module of CUDA or set CUDA_HOME to its prefix, or pip install 'distspmd[cuda]'"
)

_NAMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12")
_PLACES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_NAMED = re.compile(r"(?:sm_)?(\d{2,3}[af]?)")


@dataclass(frozen=True)
class CudaToolkit:
    """A compiler for CUDA, with its headers and its runtime library.

    Attributes:
        nvcc: the compiler.
        version: as it says itself.
        includes: folders of headers, for the host's compiler.
        runtime: the shared library of CUDA's runtime.
        origin: where it was named.
    """

    nvcc: Path
    version: str
    includes: tuple[Path, ...]
    runtime: Path
    origin: str

    def __str__(self) -> str:
        return f"nvcc {self.version} ({self.nvcc}, {self.origin})"


def find_cuda(environ: Mapping[str, str] = os.environ) -> CudaToolkit:
    """The compiler for CUDA.

    Raises:
        ToolchainError: there is none; what was looked at, and what to install.
    """
    passed_over = []
    for prefix, origin in _prefixes(environ):
        found = _inspect(prefix, origin)
        if isinstance(found, CudaToolkit):
            return found
        passed_over.append(f"{origin}: {found}")
    raise ToolchainError(
        "no compiler for CUDA was found: CUDA_HOME, CUDA_PATH, PATH and the packages of pip have "
        f"no nvcc{''.join(f'; {one}' for one in passed_over)}. To have one, {INSTALL}."
    )


def _prefixes(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environ.get(variable):
            yield Path(environ[variable]), variable
    found = shutil.which("nvcc", path=environ.get("PATH", ""))
    if found:
        yield Path(found).resolve().parent.parent, "PATH"
        # it may be a script of the site that starts another one, which says where it is
        dry = [found, "--dryrun", "-x", "cu", os.devnull]
        said = subprocess.run(dry, capture_output=True, text=True, check=False).stderr
        top = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
        if top:
            yield Path(top[1].strip()).resolve(), "PATH"
    for folder in _package_folders():
        for prefix in sorted(Path(folder).glob("nvidia/cu[0-9]*"), reverse=True):
            if (prefix / "bin" / "nvcc").exists():
                yield prefix, "packages of pip"


def _package_folders() -> Iterator[str]:
    """Where Python finds packages: also those that an environment shares with one below it."""
    own = [sysconfig.get_path("purelib"), *site.getsitepackages()]
    yield from dict.fromkeys([*own, *filter(os.path.isabs, sys.path)])


def library_folders(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Folders of libraries of CUDA: of the site's, and of the packages of pip."""
    for prefix, _ in _prefixes(environ):
        yield from (prefix / place for place in _PLACES)
    for folder in _package_folders():
        yield from sorted(Path(folder).glob("nvidia/*/lib"), reverse=True)


def find_library(
    what: str, names: Sequence[str], variable: str, environ: Mapping[str, str] = os.environ
) -> str:
    """The path of a library of CUDA, or its name where the linker of the site finds it.

    Args:
        what: the library, as messages call it.
        names: of the file, the best first.
        variable: of the environment, with its path; ``none`` for programs without it.
        environ: the environment.

    Raises:
        ToolchainError: there is none; what was looked at.
    """
    asked = environ.get(variable, "")
    if asked == "none":
        raise ToolchainError(f"{what} is not used, since {variable} is 'none'")
    if asked:
        if not Path(asked).is_file():
            raise ToolchainError(f"{variable} is {asked!r}, which is no file")
        return asked
    for folder in library_folders(environ):
        for name in names:
            if (folder / name).is_file():
                return str(folder / name)
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    raise ToolchainError(
        f"{what} was not found: neither {variable}, nor the folders of CUDA, nor the packages of "
        f"pip, nor the linker has {' or '.join(names)}"
    )


def _inspect(prefix: Path, origin: str) -> CudaToolkit | str:
    nvcc = prefix / "bin" / "nvcc"
    if not os.access(nvcc, os.X_OK):
        return f"{nvcc} is no program"
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"V([\d.]+)", said)
    if not version:
        return f"{nvcc} does not say its version"
    includes = [
        folder
        for place in ("include", "include/cccl", "targets/x86_64-linux/include")
        if (folder := prefix / place).is_dir()
    ]
    if not any((folder / "cuda_runtime.h").exists() for folder in includes):
        return f"{prefix} has no cuda_runtime.h"
    libraries = (prefix / place / name for place in _PLACES for name in _NAMES)
    runtime = next((file for file in libraries if file.exists()), None)
    if runtime is None:
        return f"{prefix} has no libcudart.so"
    return CudaToolkit(nvcc, version[1], tuple(includes), runtime, origin)


@dataclass(frozen=True)
class CudaDriver:
    """The driver of a machine, and the devices that this process sees.

    Attributes:
        version: the newest version of CUDA that it runs.
        devices: the name and the architecture of each, such as ``("NVIDIA H200", "sm_90")``.
    """

    version: str
    devices: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        named = ", ".join(f"{name} ({architecture})" for name, architecture in self.devices)
        return f"driver for CUDA {self.version}; {named or 'no devices'}"


@functools.cache
def find_driver() -> CudaDriver | str:
    """The driver, or why there is none; a process asks once."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no driver of NVIDIA (libcuda.so.1)"
    code = driver.cuInit(0)
    if code != 0:
        return f"the driver of NVIDIA does not start (cuInit gives the error {code})"
    number = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(number))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    driver.cuDeviceGetCount(ctypes.byref(number))
    devices = []
    for index in range(number.value):
        device, name, part = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int()
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, len(name), device)
        parts = []
        for attribute in (75, 76):  # the major and the minor number of the architecture
            driver.cuDeviceGetAttribute(ctypes.byref(part), attribute, device)
            parts.append(str(part.value))
        devices.append((name.value.decode(), f"sm_{''.join(parts)}"))
    return CudaDriver(version, tuple(devices))


def missing_for_runs() -> str:
    """What this process lacks to run on a device of CUDA; empty if nothing."""
    driver = find_driver()
    if isinstance(driver, str):
        return driver
    return "" if driver.devices else f"the {driver}"


def architectures(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """For which architectures kernels are compiled, such as ``("sm_90",)``.

    Raises:
        ToolchainError: none is named and there is no device; or one is none.
    """
    named = environ.get(ARCHITECTURES, "")
    if named:
        found = [(one, _NAMED.fullmatch(one.strip())) for one in named.split(",")]
        wrong = [one for one, match in found if match is None]
        if wrong:
            raise ToolchainError(
                f"{ARCHITECTURES}={named!r} names {wrong[0]!r}, which is no architecture of CUDA. "
                "Write it as sm_90, and several with commas between them."
            )
        return tuple(f"sm_{match[1]}" for _, match in found if match)
    driver = find_driver()
    if isinstance(driver, str) or not driver.devices:
        raise ToolchainError(
            f"kernels cannot be compiled for the device of this machine: {missing_for_runs()}. "
            f"Name the architecture, {ARCHITECTURES}=sm_90, to compile for another machine."
        )
    return (driver.devices[0][1],)


def rank_on_node(environ: Mapping[str, str] = os.environ) -> int:
    """The number of a process among those that were started on its node; 0 where nobody says."""
    for name in (
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "PMI_LOCAL_RANK",
        "SLURM_LOCALID",
    ):
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return 0
