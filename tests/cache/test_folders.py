"""Folders of the user's own: where they are, and that nobody else can put anything into them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from distspmd.cache import folders
from distspmd.cache.folders import cache_folder, shared_caches, temporary_root
from distspmd.errors import CacheError


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A HOME and a temporary folder of the test's own."""
    for name in ("DISTSPMD_CACHE", "DISTSPMD_SHARED_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this process is another user: all that it has made belongs to somebody else."""
    number = os.geteuid() + 12345
    monkeypatch.setattr(folders.os, "geteuid", lambda: number)
    monkeypatch.setattr(folders, "_outside", lambda: (os.getuid(),))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_cache_is_where_it_is_asked_for_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == tmp_path / "home/.cache/distspmd"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/distspmd"
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "asked/for"))
    assert cache_folder() == tmp_path / "asked/for"
    for folder in ("home/.cache/distspmd", "xdg/distspmd", "asked/for"):
        assert mode(tmp_path / folder) == 0o700


@pytest.mark.parametrize("umask", [0, 0o077])
def test_the_umask_opens_nothing(umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = cache_folder()
    finally:
        os.umask(before)
    assert mode(folder) == mode(folder.parent) == 0o700


def test_a_home_that_is_unknown_is_a_name_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTSPMD_CACHE", "~no-such-user/cache")
    assert cache_folder() == tmp_path / "~no-such-user/cache"
    monkeypatch.setenv("DISTSPMD_SHARED_CACHE", f"~no-such-user/other:{'x' * 5000}")
    assert shared_caches() == ()


def test_the_mode_of_an_earlier_cache_is_mended() -> None:
    folder = cache_folder()
    folder.chmod(0o755)
    assert mode(cache_folder()) == 0o700


def test_whoever_opens_a_cache_to_readers_keeps_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "open"))
    cache_folder().chmod(0o755)
    assert mode(cache_folder()) == 0o755


@pytest.mark.parametrize("home", [None, "/proc/nowhere", "/dev/null"])
def test_without_a_home_the_cache_is_in_a_private_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    if home is None:
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(folders.pwd, "getpwuid", lambda number: {}["no such user"])
    else:
        monkeypatch.setenv("HOME", home)
    own = tmp_path / f"tmp/distspmd-{os.geteuid()}"
    assert cache_folder() == own / "cache"
    assert mode(own) == 0o700


def test_without_home_in_the_environment_the_system_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    user = type("User", (), {"pw_dir": str(tmp_path / "known")})
    monkeypatch.setattr(folders.pwd, "getpwuid", lambda number: user)
    assert cache_folder() == tmp_path / "known/.cache/distspmd"


@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777])
def test_a_cache_in_which_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))
    cache_folder().chmod(bits)
    with pytest.raises(CacheError, match=r"cache may be written by .* \(its mode is 07"):
        cache_folder()


@pytest.mark.usefixtures("somebody_else")
def test_a_cache_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir(mode=0o755)
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "theirs"))
    with pytest.raises(CacheError, match=r"theirs belongs to .*DISTSPMD_CACHE to a folder of your"):
        cache_folder()


@pytest.mark.usefixtures("somebody_else")
def test_a_temporary_folder_that_somebody_has_made_first_is_refused(tmp_path: Path) -> None:
    planted = tmp_path / f"tmp/distspmd-{folders.os.geteuid()}"
    planted.mkdir(mode=0o755)
    with pytest.raises(CacheError, match=r"belongs to .*set TMPDIR"):
        temporary_root()


def test_a_link_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    link = tmp_path / f"tmp/distspmd-{os.geteuid()}"
    link.symlink_to(mine)
    assert temporary_root() == link  # of one's own
    lstat = Path.lstat

    class Theirs:
        def __init__(self, status: os.stat_result) -> None:
            self.st_mode, self.st_uid = status.st_mode, os.geteuid() + 1

    monkeypatch.setattr(
        Path, "lstat", lambda path: Theirs(lstat(path)) if path == link else lstat(path)
    )
    with pytest.raises(CacheError, match=f"{link} belongs to .*, who could replace"):
        temporary_root()


def test_a_folder_on_the_way_in_which_everybody_writes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "public/cache"))
    cache_folder().parent.chmod(0o777)
    with pytest.raises(CacheError, match=r"public may be written by everybody \(its mode is 0777"):
        cache_folder()
    (tmp_path / "public").chmod(0o1777)  # where nobody renames what is of others
    assert cache_folder() == tmp_path / "public/cache"


def test_links_on_the_way_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "home/.cache").symlink_to("../tmp/../scratch")
    assert cache_folder().resolve() == tmp_path / "scratch/distspmd"
    (tmp_path / "scratch").chmod(0o777)
    with pytest.raises(CacheError, match="scratch may be written by everybody"):
        cache_folder()


def test_a_cache_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below"):
        monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / name))
        with pytest.raises(CacheError, match=r"DISTSPMD_CACHE is .* cannot be used: "):
            cache_folder()


def test_shared_caches_are_those_that_are_there_and_that_their_owner_alone_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, somebody_else: None
) -> None:
    (tmp_path / "theirs").mkdir(mode=0o755)
    named = os.pathsep.join([str(tmp_path / "theirs"), "", str(tmp_path / "nowhere")])
    monkeypatch.setenv("DISTSPMD_SHARED_CACHE", named)
    assert shared_caches() == (tmp_path / "theirs",)
    (tmp_path / "theirs").chmod(0o775)
    with pytest.raises(CacheError, match=r"theirs may be written by others.*chmod -R go-w"):
        shared_caches()
