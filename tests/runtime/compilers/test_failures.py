"""A compiler that fails: what it has met is told, and code is blamed only where it is at fault."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from distspmd.runtime.compilers.failures import compilation_error, is_in_code

PATHS = "/tmp/x/a.cpp"


def done(code: int, said: str) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(["g++", "-c", PATHS], code, "", said)


@pytest.mark.parametrize(
    "said",
    [
        f"{PATHS}:3:5: error: 'f' was not declared in this scope",
        "/usr/bin/ld: a.o: undefined reference to `f'",
    ],
)
def test_errors_in_the_code_come_with_the_advice_for_it(said: str, tmp_path: Path) -> None:
    told = str(compilation_error("the program", done(1, said), tmp_path, "Look at the code."))
    assert is_in_code(done(1, said))
    assert told == f"the program does not compile:\n{said}\nLook at the code."


@pytest.mark.parametrize(
    ("code", "said", "cause"),
    [
        (-9, "", "g++ was ended by SIGKILL (by somebody, or by the system because memory ran out)"),
        (-15, "", "g++ was ended by SIGTERM"),
        (-7, "", "g++ was ended by SIGBUS (most likely the disk is full)"),
        (
            1,
            "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
            "g++ ended with code 1, since its cc1plus was ended by SIGKILL",
        ),
        (
            1,
            "collect2: fatal error: ld terminated with signal 7 [Bus error], core dumped",
            "g++ ended with code 1, since its ld was ended by SIGBUS (most likely the disk is",
        ),
        (
            4,
            "g++: internal compiler error: Segmentation fault signal terminated program cc1plus",
            "g++ ended with code 4, since its cc1plus was ended by Segmentation fault",
        ),
        (
            254,
            "clang: error: unable to execute command: Killed",
            "g++ ended with code 254, since a program of it was ended by Killed",
        ),
        (127, "", "g++ ended with code 127 and names no error in the code"),
    ],
)
def test_what_ends_a_compiler_from_outside_is_named(
    code: int, said: str, cause: str, tmp_path: Path
) -> None:
    told = str(compilation_error("the program", done(code, said), tmp_path, "Look at the code."))
    assert told.startswith(f"the program does not compile: {cause}")
    assert f"{tmp_path} has " in told
    assert " MB left." in told
    assert f"It ran: g++ -c {PATHS}" in told
    assert "Look at the code." not in told


@pytest.mark.parametrize(
    "said",
    [
        "/usr/bin/ld: final link failed: No space left on device",
        f"{PATHS}: fatal error: error writing to a.s: No space left on device",
        "a.cpp:1:1: error: cannot write PCH file: Disk quota exceeded",
    ],
)
def test_a_full_disk_is_named_with_its_folder(said: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone" / "below"
    told = str(compilation_error("the program", done(1, said), gone))
    assert "g++ found no room for what it writes" in told
    assert f"{tmp_path} has " in told
    assert "set DISTSPMD_CACHE and TMPDIR to folders with room" in told
