"""Schedules that an earlier search has found for the same program, ranks and machine.

An entry of the cache has the schedule and its figures, as texts. It decides no result: a lowering
checks a schedule as if the user had written it, and one that it refuses is searched for again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import dace
from dace import SDFG

from distspmd.analysis.meanings import meanings_of
from distspmd.cache.entries import ensure_entry
from distspmd.cache.own_text import own_text
from distspmd.dace_compat.described import described
from distspmd.errors import CacheError
from distspmd.plans.machine import Machine
from distspmd.schedule import Schedule
from distspmd.scheduling.result import Placed, SearchResult

_KIND, _SCHEDULE, _FIGURES = "schedules", "schedule.yaml", "found.json"


def key_of(sdfg: SDFG, fixed: Any, machine: Machine, *asked: object) -> str | None:
    """The key of a search; None where what is fixed are nodes of this SDFG.

    Args:
        sdfg: the program.
        fixed: entries of a schedule that stay as they are.
        machine: what messages, bytes and operations cost.
        asked: what else decides what is found; it prints alike in all processes.
    """
    if not isinstance(fixed, Mapping) or not all(isinstance(key, str) for key in fixed):
        return None
    given = [(key, repr(each)) for key, each in fixed.items()]
    more = [repr(getattr(fixed, name, None)) for name in ("homes", "arguments", "held")]
    text = json.dumps(
        [
            (sdfg.name, described(sdfg), repr(meanings_of(sdfg)), dace.__version__, own_text()),
            (given, more, asdict(machine), repr(asked)),
        ],
        sort_keys=True,
        default=repr,
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def found_or_kept(key: str | None, search: Callable[[], SearchResult]) -> tuple[SearchResult, bool]:
    """What a search finds, and whether an earlier one has found it.

    Of several processes one searches, and the others wait for what it finds.
    """
    if key is None:
        return search(), False
    mine: list[SearchResult] = []

    def make(folder: Path) -> list[str]:
        mine.append(search())
        _write(folder, mine[0])
        return [_SCHEDULE, _FIGURES]

    try:
        folder = ensure_entry(_KIND, key, make)
    except CacheError:  # a search needs no cache
        return (mine[0] if mine else search()), False
    return (mine[0], False) if mine else (_read(folder), True)


def _write(folder: Path, found: SearchResult) -> None:
    found.schedule.save(folder / _SCHEDULE)
    figures = {each.name: getattr(found, each.name) for each in fields(found)}
    del figures["schedule"]
    figures["spaces"] = [asdict(space) for space in found.spaces]
    (folder / _FIGURES).write_text(json.dumps(figures))


def _read(folder: Path) -> SearchResult:
    loaded = Schedule.load(folder / _SCHEDULE)
    schedule = Schedule(loaded, None, loaded.homes, loaded.arguments, loaded.held)
    figures = json.loads((folder / _FIGURES).read_text())
    figures["spaces"] = tuple(Placed(**space) for space in figures["spaces"])
    figures["history"] = tuple(map(tuple, figures["history"]))
    return SearchResult(schedule=schedule, **figures)
