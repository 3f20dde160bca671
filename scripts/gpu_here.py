"""What is here for a run on GPUs: versions, in one line, and what parts of the run have to know.

It runs in the environment that the run has made; ``python scripts/gpu_here.py DEVICE FILE`` writes
the same into a JSON file.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

_ALSO = ("cupy-cuda13x", "jax", "pytest", "triton")


def versions() -> tuple[dict[str, str | None], list[str]]:
    """The version of each package that is used, and which are not as `pyproject.toml` asks."""
    from packaging.requirements import Requirement

    found: dict[str, str | None] = dict.fromkeys(_ALSO)
    unfit = []
    for text in importlib.metadata.requires("distspmd") or ():
        one = Requirement(text)
        extras = ("", "mpi", "torch")
        if one.marker and not any(one.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        found[one.name] = None
        if (version := _version(one.name)) and not one.specifier.contains(version, True):
            unfit.append(f"{one.name} {version}, not {one.specifier}")
    return {name: _version(name) for name in sorted(found, key=str.lower)}, unfit


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def sanitizer() -> str:
    """The path of compute-sanitizer; empty if there is none."""
    from distspmd.errors import ToolchainError
    from distspmd.runtime.compilers.cuda_toolkit import find_cuda

    folders = [os.environ.get("PATH", "")]
    try:
        prefix = find_cuda().nvcc.parent.parent
        folders += [str(prefix / "bin"), str(prefix / "compute-sanitizer")]
    except ToolchainError:
        pass
    return shutil.which("compute-sanitizer", path=os.pathsep.join(folders)) or ""


def missing(device: str) -> str:
    """Why programs cannot run on a kind of device; empty if they can."""
    from distspmd.errors import DeviceError
    from distspmd.runtime.devices.kinds import check_can_run

    try:
        check_can_run(device, compiles=True)
    except DeviceError as problem:
        return str(problem)
    return ""


def here(device: str) -> dict[str, Any]:
    """All of it; see `scripts/gpu_plan.py` for what needs it."""
    from distspmd.runtime.compilers.cuda_toolkit import find_driver
    from distspmd.runtime.compilers.toolchain import find_blas, find_mpi

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
    from gpu_programs import CHECKED

    found, unfit = versions()
    mpi = find_mpi()
    return {
        "versions": found,
        "unfit": unfit,
        "missing": missing(device),
        "driver": str(find_driver()),
        "mpi": str(mpi),
        "blas": str(find_blas()),
        "MPI4PY_LIBMPI": str(mpi.library),
        "sanitizer": sanitizer(),
        "programs": CHECKED,
    }


if __name__ == "__main__":
    told = here(sys.argv[1])
    Path(sys.argv[2]).write_text(json.dumps(told))
    names = [f"{name} {version}" for name, version in told["versions"].items() if version]
    absent = [name for name, version in told["versions"].items() if not version]
    print(f"here: {', '.join(names)}")
    print(
        f"not here: {', '.join(absent) or 'nothing'}; unfit: {'; '.join(told['unfit']) or 'none'}"
    )
