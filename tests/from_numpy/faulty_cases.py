"""Cases that end a sweep that does not take care, between such that do not."""

from __future__ import annotations

import os
import time
from typing import Any

from from_numpy.corpus.registry import Case, Generator

calls = 0


def scaled(x):
    return x * 2.0


def negated(x):
    return -x


def shifted(x):
    x += 1.0


def refused(x):
    global calls
    calls += 1
    return x * calls


def _array(rng: Generator) -> tuple[Any, ...]:
    return (rng.random(7),)


def _crashing(rng: Generator) -> tuple[Any, ...]:
    os.abort()


def _endless(rng: Generator) -> tuple[Any, ...]:
    while True:
        time.sleep(0.1)


def _raising(rng: Generator) -> tuple[Any, ...]:
    raise LookupError("of the maker")


FAULTY = {
    name: Case(name, function, "faults", "none", make, ())
    for name, function, make in [
        ("scaled", scaled, _array),
        ("crashes", scaled, _crashing),
        ("negated", negated, _array),
        ("never_ends", scaled, _endless),
        ("refused", refused, lambda rng: (rng.random((7, 3)),)),
        ("raises", scaled, _raising),
        ("shifted", shifted, _array),
    ]
}
