"""What the wheel holds, and that it works where there is no checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from email import message_from_string
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import distspmd

FILES = ("pyproject.toml", "README.md", "LICENSE", "AUTHORS")
SOURCES = (*FILES, "distspmd")


@dataclass(frozen=True)
class Installed:
    """An environment of Python with distspmd from its wheel, and a folder far from the checkout."""

    python: Path
    folder: Path
    environ: dict[str, str]

    def run(self, *arguments: str | Path, timeout: float = 120) -> str:
        """What the environment's Python prints."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building leaves files in the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "source").mkdir()
    for name in SOURCES:
        source = root / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / "source" / name, symlinks=True, ignore=ignored)
        elif source.is_file():
            shutil.copy(source, folder / "source" / name)
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, folder / "source")
    (built,) = folder.glob("distspmd-*.whl")
    return built


@pytest.fixture(scope="session")
def installed_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """distspmd from its wheel; what it depends on comes from the environment of the tests.

    A path in a .pth file lends that environment's packages, but not distspmd, which is there by an
    import hook. Its MPI is on PATH, as a site's is.
    """
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    _pip("--python", python, "install", "--no-deps", wheel)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "elsewhere").mkdir()
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PATH": path}
    return Installed(python, folder / "elsewhere", environ)


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_each_source_once(wheel: Path, root: Path) -> None:
    homes = {"distspmd": "distspmd", "solvers": "distspmd/solvers", "frontend": "distspmd/frontend"}
    expected = {"distspmd/py.typed"}
    for home, target in homes.items():
        for pattern in ("*.py", "*.hpp", "*.sh", "*.h", "*.cpp", "*.js"):
            for file in (root / home).rglob(pattern):
                expected.add(f"{target}/{file.relative_to(root / home).as_posix()}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(expected)
    assert any(name.endswith(".hpp") for name in names)


def test_the_installed_package_is_the_one_of_the_wheel(installed_wheel: Installed) -> None:
    code = (
        "import distspmd, distspmd.solvers, distspmd.frontend, distspmd.runtime.launch\n"
        "from pathlib import Path\n"
        "package = Path(distspmd.__file__).parent\n"
        "assert Path(distspmd.solvers.__file__).parent == package / 'solvers'\n"
        "assert Path(distspmd.frontend.__file__).parent == package / 'frontend'\n"
        "assert list(package.glob('runtime/engine/include/distspmd/**/*.hpp'))\n"
        "print(package)"
    )
    package = Path(installed_wheel.run("-c", code).strip())
    assert package.is_relative_to(installed_wheel.python.parent.parent)


def test_the_installed_package_launches_ranks(installed_wheel: Installed) -> None:
    program = installed_wheel.folder / "ranks.py"
    program.write_text(
        "import distspmd.solvers\n"
        "from mpi4py import MPI\n"
        "files = MPI.COMM_WORLD.gather(distspmd.__file__)\n"
        "if files: print(*files)\n"
    )
    code = "from distspmd import launch; launch(['ranks.py'], ranks=2).check()"
    files = [Path(file) for file in installed_wheel.run("-c", code).split()]
    assert len(files) == 2
    assert all(file.is_relative_to(installed_wheel.python.parent.parent) for file in files)


def test_the_console_script_is_installed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "distspmd = distspmd.cli:main" in archive.read(name).decode()


def test_the_wheel_has_the_version_of_the_package_and_its_licence(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        fields = message_from_string(archive.read(name).decode())
        licence = archive.read(name.replace("METADATA", "licenses/LICENSE")).decode()
    assert fields["Version"] == distspmd.__version__
    assert fields["License-Expression"] == "BSD-3-Clause"
    assert licence == (root / "LICENSE").read_text()
    assert "Typing :: Typed" in fields.get_all("Classifier", [])


def test_the_citation_has_the_version_of_the_package(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert citation["version"] == distspmd.__version__
    assert citation["license"] == "BSD-3-Clause"


def test_the_hooks_name_files_that_exist(root: Path) -> None:
    config = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert [hook["id"] for hook in hooks] == ["ruff-format", "ruff-check", "mypy", "quick-tests"]
    assert all(hook["language"] == "system" for hook in hooks)
    named = [word for hook in hooks for word in hook["entry"].split() if word.startswith("tests/")]
    assert named
    assert all((root / name).exists() for name in named)


def test_torch_is_an_extra() -> None:
    required = [Requirement(line) for line in metadata.requires("distspmd") or []]
    found = [requirement for requirement in required if "torch" in requirement.name]
    assert 'extra == "torch"' in [str(r.marker) for r in found if r.name == "torch"]
    assert all("extra ==" in str(requirement.marker) for requirement in found)


@pytest.mark.parametrize("name", ["solvers", "frontend"])
def test_a_folder_cannot_be_imported_by_its_name(root: Path, name: str) -> None:
    command = [sys.executable, "-c", f"import {name}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert f"ImportError: this package is imported as distspmd.{name}" in done.stderr


def test_each_requirement_has_a_pin_that_meets_it(root: Path) -> None:
    lines = (root / "scripts/pins.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    applied = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    version = {canonicalize_name(pin.name): str(pin.specifier).strip("=") for pin in applied}
    required = [Requirement(line) for line in metadata.requires("distspmd") or []]
    installed = (
        "",
        "mpi",
        "search",
        "dev",
    )  # by the scripts; torch and the benchmarks' peers are not
    for requirement in required:
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in installed):
            pinned = version[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pinned, prereleases=True), requirement


def test_each_pin_but_that_of_torch_has_hashes(root: Path) -> None:
    pinned = set[tuple[str, str, bool]]()
    for name in ("pins", "hashes"):
        lines = (root / f"scripts/{name}.txt").read_text().replace(" \\\n   ", "").splitlines()
        found = set()
        for line in lines:
            asked, *hashes = line.split(" --hash=")
            if asked.startswith(("#", "torch==")):
                continue
            pin = Requirement(asked)
            is_old = pin.marker is not None and pin.marker.evaluate(
                {"python_version": "3.10", "python_full_version": "3.10.0"}
            )
            found.add((canonicalize_name(pin.name), str(pin.specifier), is_old))
            assert bool(hashes) == (name == "hashes"), line
            assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes)
        pinned = pinned or found
        assert pinned == found, "scripts/write_hashes writes scripts/hashes.txt"


def test_the_installed_package_runs_a_lowered_program(installed_wheel: Installed) -> None:
    (installed_wheel.folder / "product.py").write_text(
        "import dace\n"
        "\n\n"
        "@dace.program\n"
        "def product(a: dace.float64[7, 5], b: dace.float64[5, 3]):\n"
        "    return a @ b\n"
    )
    printed = installed_wheel.run(
        "-m", "distspmd", "run", "product.py:product", "-n", "3", "-s", "__return=3,1,1"
    )
    assert "[3{i}7, 5]" in printed
    assert "largest difference from the Python function, run by NumPy" in printed
