"""Instructions that a program executes, which tests compare: times of a busy machine differ."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def instructions(command: Sequence[str | Path]) -> int:
    """How many a program executes, by callgrind; a test is skipped where there is none."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind, which counts instructions, is not installed")
    counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*counting, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return int(found[1])
