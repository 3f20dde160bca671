"""Scripts of users, which tests run as one process that starts ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from conftest import UNOPTIMISED

SCRIPTS = Path(__file__).parent / "scripts"


def started(script: str, *arguments: str, cwd: Path, **more: str) -> subprocess.Popen[str]:
    """Start a script, which an interrupt ends also where a shell started the tests behind it."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPTS / script), *arguments],
        cwd=cwd,
        env={**os.environ, **UNOPTIMISED, "PYTHONUNBUFFERED": "1", **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finished(script: str, *arguments: str, cwd: Path, **more: str) -> tuple[int, str, str]:
    process = started(script, *arguments, cwd=cwd, **more)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err
