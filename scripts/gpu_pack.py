"""The pack: wheels for a machine without a package index, and how they are installed there.

``make`` fills a folder that is copied along with the checkout, and ``install`` makes an environment
of it above what the machine's own Python has. Nothing is imported but the standard library.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACK = ROOT / "gpu-pack"
MOST_BYTES = 60_000_000
OF_MACHINE = ("cmake", "jax", "ninja", "numpy", "setuptools", "torch", "wheel")
"""Packages that the machine brings: its own are used, and none of them is in a pack."""

_TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
_DACE = re.compile(r"dace==.*")
_TESTS = ("hypothesis", "pytest")
_GLIBC = (*range(39, 23, -1), 17, 12, 5)
_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in _GLIBC),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
)


def make(folder: Path = PACK, python: str = "3.12") -> None:
    """Fill a folder with wheels of what the package and its tests need, in the tested versions.

    Args:
        folder: is emptied before.
        python: the version of Python for which they are.
    """
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["mpi"], *_TESTS]
    pinned = ["--constraint", str(ROOT / "scripts" / "pins.txt")]
    with tempfile.TemporaryDirectory() as built:
        sources = filter(_DACE.fullmatch, asked)  # it has no wheel; the others have one
        _pip("wheel", "--no-deps", "--wheel-dir", built, *pinned, *sources)
        shutil.rmtree(folder, ignore_errors=True)
        for_python = ["--python-version", python, "--implementation", "cp"]
        platforms = [part for name in _PLATFORMS for part in ("--platform", name)]
        where = ["--only-binary=:all:", *for_python, *platforms, "--find-links", built]
        _pip("download", *where, *pinned, "--dest", str(folder), *asked)
    for wheel in wheels(folder):
        if _named(wheel) in OF_MACHINE:
            wheel.unlink()
    found = wheels(folder)
    size = sum(wheel.stat().st_size for wheel in found)
    if size > MOST_BYTES:
        most = sorted(found, key=lambda wheel: -wheel.stat().st_size)[:3]
        names = ", ".join(wheel.name for wheel in most)
        sys.exit(
            f"error: the pack has {size:,} bytes, more than {MOST_BYTES:,}. Its largest: {names}."
        )
    print(f"{folder}: {len(found)} wheels for Python {python}, {size:,} bytes")


def wheels(folder: Path = PACK) -> list[Path]:
    """All wheels of a pack; none if there is no pack."""
    return sorted(folder.glob("*.whl"))


def fits() -> bool:
    """Whether there is a pack, and its wheels are for this Python."""
    tags = {wheel.stem.split("-")[-3] for wheel in wheels()}
    return "py3" in tags and tags - {"py3", "py2.py3"} == {_TAG}


def install(venv: Path, folder: Path = PACK) -> None:
    """Make an environment of a pack and of the checkout, above the packages of this Python.

    An environment on top of another one sees that one's base only. So folders of packages are
    named to it one by one; those of the pack come first.
    """
    marker, state = venv / "installed", "\n".join(wheel.name for wheel in wheels(folder))
    if marker.exists() and marker.read_text() == state:
        return
    subprocess.run(
        [sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)], check=True
    )
    python = venv / "bin" / "python"
    below = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    below += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    Path(own, "below.pth").write_text("\n".join(dict.fromkeys(below)) + "\n")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    given = [*map(str, wheels(folder)), "--editable", str(ROOT)]
    _pip("--python", str(python), "install", *offline, "--no-compile", *given)
    marker.write_text(state)


def _named(wheel: Path) -> str:
    return wheel.name.partition("-")[0].lower()


def _pip(*arguments: str) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *quiet, *arguments], check=True)


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    {"make": make, "install": install}[what](*map(Path, paths))
