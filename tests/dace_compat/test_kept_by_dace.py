"""A build is tried again without what DaCe keeps where that is damaged, and only there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from distspmd.dace_compat.kept_by_dace import built_by_dace, kept_by_dace


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that DaCe has kept in a build that succeeded, a while ago."""
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    file = kept_by_dace() / "pch" / "header.gch"

    def build() -> None:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"compiled")

    built_by_dace(build)
    os.utime(file, (1, 1))
    return file


def failing(header: Path) -> tuple[list[bool], Callable[[], None]]:
    """A build that fails as long as a file is there, and whether it was there each time."""
    tried: list[bool] = []

    def build() -> None:
        tried.append(header.exists())
        if tried[-1]:
            raise KeyError("command")

    return tried, build


@pytest.mark.parametrize("damage", [b"", b"comp", b"compiler"])
def test_a_damaged_file_is_removed_and_the_build_tried_again(header: Path, damage: bytes) -> None:
    header.write_bytes(damage)
    os.utime(header, (1, 1))
    tried, build = failing(header)
    built_by_dace(build)
    assert tried == [True, False]


def test_a_build_that_succeeds_beside_a_damaged_file_does_not_take_it_for_whole(
    header: Path,
) -> None:
    header.write_bytes(b"damaged!")
    os.utime(header, (2, 2))
    built_by_dace(lambda: None)
    tried, build = failing(header)
    built_by_dace(build)
    assert tried == [True, False]


def test_a_file_of_which_no_build_knows_is_removed(header: Path) -> None:
    (kept_by_dace() / "sums.json").write_text("{")
    tried, build = failing(header)
    built_by_dace(build)
    assert tried == [True, False]


def test_an_error_of_the_build_is_raised_at_once_and_what_is_kept_stays(header: Path) -> None:
    tried, build = failing(header)
    with pytest.raises(KeyError):
        built_by_dace(build)
    assert tried == [True]
    assert header.read_bytes() == b"compiled"


def test_what_the_failing_build_has_made_itself_is_not_taken_for_damaged(header: Path) -> None:
    tried, build = failing(header)

    def adds_and_fails() -> None:
        header.with_name("another.gch").write_bytes(b"new")
        build()

    with pytest.raises(KeyError):
        built_by_dace(adds_and_fails)
    assert tried == [True]


def test_an_error_without_anything_kept_is_raised(header: Path) -> None:
    header.unlink()

    def fails() -> None:
        raise ValueError("does not compile")

    with pytest.raises(ValueError, match="does not compile"):
        built_by_dace(fails)
