"""Scripts of users, which tests run as one process that starts ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import UNOPTIMISED

SCRIPTS = Path(__file__).parent / "scripts"


def started(script: str, *arguments: str, cwd: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPTS / script), *arguments],
        cwd=cwd,
        env={**os.environ, **UNOPTIMISED, "PYTHONUNBUFFERED": "1", **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(script: str, *arguments: str, cwd: Path, **more: str) -> tuple[int, str, str]:
    process = started(script, *arguments, cwd=cwd, **more)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err
