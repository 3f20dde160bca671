"""Searches that nobody asks for by name: for which ranks, what is said, and what is kept."""

from __future__ import annotations

import copy
import logging
import random
from pathlib import Path
from typing import Any

import pytest

import distspmd
from distspmd.errors import ArgumentError, CacheError, ScheduleError
from distspmd.plans.machine import Machine
from distspmd.runtime import notices
from distspmd.schedule import Schedule
from distspmd.scheduling import kept_schedules, search
from scheduling.programs import FAST, chain, product


@pytest.fixture(autouse=True)
def nothing_was_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(notices, "_said", set())
    caplog.set_level(logging.INFO, "distspmd")


def new_machine() -> Machine:
    """A machine for which no earlier test has searched."""
    return Machine(alpha=random.SystemRandom().uniform(1e-12, 2e-12), beta=1e-16, launch=0)


def searches(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """As many elements as searches from now on."""
    done: list[object] = []
    search_numbers = search.search_numbers

    def counted(*arguments: Any, **named: Any) -> Any:
        done.append(arguments)
        return search_numbers(*arguments, **named)

    monkeypatch.setattr(search, "search_numbers", counted)
    return done


def test_without_a_schedule_it_is_searched_for_the_ranks_that_were_started(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    sdfg = product(512, 512, 512)
    assert distspmd.lower(copy.deepcopy(sdfg), machine=FAST).ranks == 4
    assert "multiplied: searched: 4 ranks, predicted 4.0x of one rank" in caplog.text
    assert distspmd.lower(copy.deepcopy(sdfg), {}, machine=FAST).ranks == 1
    assert distspmd.lower(copy.deepcopy(sdfg), machine=FAST, search=False).ranks == 1


def test_what_was_found_is_said_once_also_where_it_is_kept_by_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    machine, done = new_machine(), searches(monkeypatch)
    for _ in range(2):
        distspmd.lower(product(512, 512, 512), machine=machine)
    assert len(done) == 1
    assert caplog.text.count("multiplied: searched: 4 ranks") == 1


def test_only_the_first_rank_says_what_was_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    assert distspmd.lower(product(512, 512, 512), machine=FAST).ranks == 4
    assert not caplog.text


def test_without_ranks_it_is_said_that_one_rank_runs_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert distspmd.lower(product(64, 64, 64)).ranks == 1
    assert distspmd.lower(product(64, 64, 64)).ranks == 1
    assert caplog.text.count("write lower(..., ranks=4)") == 1
    assert distspmd.lower(product(64, 64, 64), {}).ranks == 1
    assert caplog.text.count("ranks") == 3  # of the one line


def test_options_of_a_search_without_a_search_are_refused() -> None:
    with pytest.raises(ArgumentError, match="search=False"):
        distspmd.lower(product(64, 64, 64), ranks=4, search=False)
    with pytest.raises(ArgumentError, match="Write ranks="):
        distspmd.lower(product(64, 64, 64), {}, memory="1 GB")


def test_where_one_rank_is_the_fastest_the_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    dear = Machine(alpha=1.0, beta=1.0)
    lowering = distspmd.lower(product(8, 8, 8), ranks=4, machine=dear)
    assert "searched: 4 ranks, and one is predicted to be the fastest: to move" in caplog.text
    sentence = lowering.idle_sentence("f", 4)
    assert sentence.startswith("f: 3 of 4 ranks are idle, and 100% of the work stays whole: to mov")


def test_what_stays_whole_is_told_with_its_share() -> None:
    sdfg = chain(256)
    whole = distspmd.lower(copy.deepcopy(sdfg), {})
    assert whole.whole == 1.0
    assert "or let lower(..., ranks=4) search for one" in whole.idle_sentence("chain", 4)
    assert not whole.idle_sentence("chain", 1)
    split = distspmd.lower(copy.deepcopy(sdfg), ranks=2, machine=FAST)
    assert split.whole < 0.5
    assert not split.idle_sentence("chain", 2)
    assert "2 of 4 ranks are idle" in split.idle_sentence("chain", 4)


def test_a_schedule_is_searched_for_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done, machine = searches(monkeypatch), new_machine()
    one = distspmd.lower(product(512, 512, 512), ranks=4, machine=machine)
    assert len(done) == 1
    monkeypatch.setattr(notices, "_said", set())  # as in another process
    two = distspmd.lower(product(512, 512, 512), ranks=4, machine=machine)
    assert len(done) == 1
    assert one.schedule == two.schedule
    assert one.remarks == two.remarks
    assert caplog.text.count("searched: 4 ranks") == 2
    assert caplog.text.count("(kept from an earlier search)") == 1
    distspmd.lower(product(512, 512, 512), ranks=2, machine=machine)
    distspmd.lower(product(512, 512, 256), ranks=4, machine=machine)
    distspmd.lower(product(512, 512, 512), ranks=4, machine=new_machine())
    distspmd.lower(product(512, 512, 512), ranks=4, machine=machine, memory="1 GB")
    distspmd.lower(product(512, 512, 512), ranks=4, machine=machine, arguments={"a": "distributed"})
    assert len(done) == 6


def test_a_kept_schedule_that_does_not_fit_is_searched_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = new_machine()
    one = distspmd.lower(product(512, 512, 512), ranks=4, machine=machine)
    read = kept_schedules._read

    def other(folder: Path) -> Any:
        found = read(folder)
        object.__setattr__(found, "schedule", Schedule({"nothing": (2,)}))
        return found

    monkeypatch.setattr(kept_schedules, "_read", other)
    done = searches(monkeypatch)
    again = distspmd.lower(product(512, 512, 512), ranks=4, machine=machine)
    assert again.schedule == one.schedule
    assert len(done) == 1
    with pytest.raises(ScheduleError):
        distspmd.lower(product(512, 512, 512), {"nothing": (2,)}, ranks=4, machine=machine)


def test_a_search_needs_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CacheError("no room")

    monkeypatch.setattr(kept_schedules, "ensure_entry", refuse)
    assert distspmd.lower(product(512, 512, 512), ranks=4, machine=FAST).ranks == 4


def test_a_long_search_is_told_while_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(search, "_SECONDS_TOLD", 0.0)
    distspmd.lower(product(512, 512, 512), ranks=4, machine=new_machine())
    assert "searching a schedule of multiplied for 4 ranks, at most about 60 s" in caplog.text
