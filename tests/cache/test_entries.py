"""Entries of the cache: made once, by one process, and again when anything has happened to them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distspmd.cache.entries import CHECKSUMS, ensure_entry
from distspmd.errors import CacheError

FILES = {"record.json": b'{"name": "a"}', "build/library.so": bytes(range(256)) * 40}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DISTSPMD_SHARED_CACHE", raising=False)
    return tmp_path / "cache"


class Maker:
    """Makes two files that are used and one that is not, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, folder: Path) -> list[str]:
        self.times += 1
        (folder / "source.cpp").write_text("what the library is made of")
        for name, content in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        (folder.parent / "for-a-moment").write_text("")
        return list(FILES)


def is_whole(folder: Path) -> bool:
    return all((folder / name).read_bytes() == content for name, content in FILES.items())


def replaced(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def flipped(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(bytes(content))


def became_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def became_link(folder: Path) -> None:
    shutil.move(folder, folder.with_name("elsewhere"))
    folder.symlink_to("nowhere")


def became_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


RECORD, LIBRARY = "record.json", "build/library.so"
DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty record": lambda e: replaced(e / RECORD, b""),
    "record of nothing": lambda e: replaced(e / RECORD, b"{}"),
    "record of something else": lambda e: replaced(e / RECORD, FILES[RECORD].replace(b"a", b"b")),
    "record that is no text": lambda e: replaced(e / RECORD, b"\xff\xfe\x00"),
    "no record": lambda e: (e / RECORD).unlink(),
    "truncated library": lambda e: os.truncate(e / LIBRARY, 4096),
    "longer library": lambda e: replaced(e / LIBRARY, FILES[LIBRARY] + b"\0"),
    "empty library": lambda e: os.truncate(e / LIBRARY, 0),
    "one bit of the library": lambda e: flipped(e / LIBRARY, 9000),
    "no library": lambda e: (e / LIBRARY).unlink(),
    "no folder of the library": lambda e: shutil.rmtree(e / "build"),
    "folder as library": lambda e: became_folder(e / LIBRARY),
    "no checksums": lambda e: (e / CHECKSUMS).unlink(),
    "empty checksums": lambda e: os.truncate(e / CHECKSUMS, 0),
    "one checksum less": lambda e: replaced(
        e / CHECKSUMS, b"".join((e / CHECKSUMS).read_bytes().splitlines(keepends=True)[1:])
    ),
    "no end of checksums": lambda e: os.truncate(e / CHECKSUMS, 90),
    "one bit of the checksums": lambda e: flipped(e / CHECKSUMS, 3),
    "checksums that are no text": lambda e: replaced(e / CHECKSUMS, b"\xff\n\xff\n"),
    "library that others may write": lambda e: (e / LIBRARY).chmod(0o777),
    "entry in which others may write": lambda e: e.chmod(0o777),
    "link as entry": became_link,
    "file as entry": became_file,
    "empty entry": lambda e: [shutil.rmtree(e), e.mkdir()],
}


def test_an_entry_is_made_once(cache: Path) -> None:
    maker = Maker()
    folder = ensure_entry("kind", "key", maker)
    assert folder == cache / "kind/key"
    assert ensure_entry("kind", "key", maker) == folder
    assert is_whole(folder)
    assert maker.times == 1
    assert not [*(cache / "work").iterdir()]
    done = subprocess.run(
        ["sha256sum", "-c", CHECKSUMS], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_entry_is_made_again_with_a_warning(cache: Path, name: str) -> None:
    maker = Maker()
    folder = ensure_entry("kind", "key", maker)
    DAMAGES[name](folder)
    with pytest.warns(
        RuntimeWarning, match=f"the entry {folder} of the cache is damaged: .* again"
    ):
        assert ensure_entry("kind", "key", maker) == folder
    assert is_whole(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ensure_entry("kind", "key", maker) == folder
    assert maker.times == 2
    assert not [*(cache / "work").iterdir()]


def test_files_that_cannot_be_read_are_made_again(cache: Path) -> None:
    maker = Maker()
    folder = ensure_entry("kind", "key", maker)
    (folder / LIBRARY).chmod(0)
    (folder / "build").chmod(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever may read all does not notice
        folder = ensure_entry("kind", "key", maker)
    (folder / "build").chmod(0o700)
    (folder / LIBRARY).chmod(0o600)
    assert is_whole(folder)


def test_what_fails_leaves_nothing(cache: Path) -> None:
    def fails(folder: Path) -> list[str]:
        (folder / "begun").write_text("")
        raise ValueError("does not compile")

    with pytest.raises(ValueError, match="does not compile"):
        ensure_entry("kind", "key", fails)
    assert not [*(cache / "work").iterdir()]
    assert not [*(cache / "kind").iterdir()]
    assert is_whole(ensure_entry("kind", "key", Maker()))


def test_a_cache_without_room_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    cache.mkdir(mode=0o700)
    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(CacheError, match=r"No space left on device.*DISTSPMD_CACHE"):
        ensure_entry("kind", "key", Maker())


MAKES = """
import sys, time
from pathlib import Path
from distspmd.cache.entries import ensure_entry

def make(folder):
    with open(sys.argv[1], "a") as file:
        file.write("made\\n")
    while not Path(sys.argv[2]).exists():
        time.sleep(0.01)
    (folder / "content").write_text("x" * 100)
    return ["content"]

print(ensure_entry("kind", "key", make))
"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed at the end of a test, whatever has become of it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_one_process_makes_an_entry_and_others_wait_also_when_it_is_killed(
    cache: Path, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    made, may_end = tmp_path / "made", tmp_path / "may_end"
    command = [sys.executable, "-c", MAKES, str(made), str(may_end)]
    made.write_text("")
    processes += (subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4))
    while not made.read_text():
        assert all(process.poll() is None for process in processes)
    (work,) = [path for path in (cache / "work").iterdir() if path.is_dir()]
    lock = next((cache / "work").glob("kind-key.lock"))
    holder = _holder(lock, processes)
    holder.kill()
    holder.wait()
    while made.read_text().count("made") < 2:  # another one has taken over
        assert len([p for p in processes if p.poll() is None]) == 3
    may_end.write_text("")
    printed = [process.communicate(timeout=60)[0] for process in processes if process != holder]
    assert printed == [f"{cache / 'kind/key'}\n"] * 3
    assert made.read_text().count("made") == 2
    assert not work.exists()  # what the killed process has left
    assert not [*(cache / "work").iterdir()]


def _holder(lock: Path, processes: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """The process that holds a lock, as the kernel lists them."""
    number = f":{lock.stat().st_ino} "
    while True:
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if number in line and "->" not in words:
                found = [p for p in processes if str(p.pid) == words[4]]
                if found:
                    return found[0]


def test_a_shared_cache_is_read_and_never_written(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    monkeypatch.setenv("DISTSPMD_CACHE", str(shared))
    folder = ensure_entry("kind", "key", Maker())
    for path in [folder, *folder.rglob("*")]:
        wanted = 0o755 if path.is_dir() else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    before = sorted(shared.rglob("*"))

    monkeypatch.setenv("DISTSPMD_CACHE", str(cache))
    monkeypatch.setenv("DISTSPMD_SHARED_CACHE", str(shared))
    never, maker = Maker(), Maker()
    assert ensure_entry("kind", "key", never) == folder
    assert ensure_entry("kind", "another", maker) == cache / "kind/another"
    assert (never.times, maker.times) == (0, 1)

    flipped(folder / LIBRARY, 5)
    with pytest.warns(RuntimeWarning, match=f"{folder} of the cache is damaged"):
        assert ensure_entry("kind", "key", maker) == cache / "kind/key"
    assert sorted(shared.rglob("*")) == before
    assert stat.S_IMODE((cache / "kind/key").stat().st_mode) == 0o700
