"""DaCe's settings and folders while it compiles: nothing that others could have written."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import pytest
from dace import config
from dace.codegen import compiler

from distspmd.dace_compat import settings
from distspmd.dace_compat.settings import compiling_in
from distspmd.errors import CacheError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_dace_keeps_lies_in_the_cache_and_all_is_put_back(cache: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    with compiling_in(tmp_path, "/bin"):
        assert Path(compiler.build_cache_root()).is_relative_to(cache)
        assert (os.environ["TMPDIR"], os.environ["PATH"]) == (str(tmp_path), "/bin")
        assert tempfile.gettempdir() != str(tmp_path)
        assert os.environ["DISTSPMD_STARTED"]
    assert dict(os.environ) == before


def test_a_user_without_a_name_can_compile(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}["no such user"])
    with compiling_in(tmp_path, "/bin"):
        assert compiler.build_cache_root().endswith(f"_{os.geteuid()}")


@pytest.mark.parametrize(("mode", "owner"), [(0o646, os.geteuid()), (0o644, 4711)])
def test_settings_that_others_may_have_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int
) -> None:
    file = tmp_path / ".dace.conf"
    file.write_text("compiler: {cpu: {args: -fplugin=/tmp/theirs.so}}")
    monkeypatch.setattr(config.Config, "cfg_filename", staticmethod(lambda: str(file)))
    status = os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))
    monkeypatch.setattr(settings.os, "stat", lambda path: status)
    with pytest.raises(CacheError, match=r"in .*/\.dace\.conf, which others may have written"):
        settings._check_settings()


def test_settings_of_ones_own_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".dace.conf"
    file.write_text("{}")
    file.chmod(0o664)
    for name in (str(file), str(tmp_path / "gone"), None):
        monkeypatch.setattr(config.Config, "cfg_filename", staticmethod(lambda name=name: name))
        settings._check_settings()


def test_what_was_there_is_not_collected_meanwhile_and_all_is_put_back() -> None:
    gc.unfreeze()  # what other tests have frozen may end meanwhile, and count no more
    before = gc.get_threshold(), gc.get_freeze_count()
    with settings.rare_collections():
        frozen = gc.get_freeze_count()
        assert frozen > 1000
        assert gc.get_threshold()[0] > before[0][0]
        with settings.rare_collections():
            pass
        assert gc.get_freeze_count() > frozen / 2  # some have ended meanwhile
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    gc.freeze()  # whoever does that wants it to stay
    try:
        frozen = gc.get_freeze_count()
        with settings.rare_collections():
            assert gc.get_threshold() == before[0]
        assert gc.get_freeze_count() > frozen / 2
    finally:
        gc.unfreeze()
