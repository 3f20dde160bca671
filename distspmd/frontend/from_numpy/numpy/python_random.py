"""Python's ``random``: its generators draw as those of ``np.random`` do, other numbers."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Collection
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import python_random
from distspmd.frontend.from_numpy.numpy.random_numbers import Stream, make_stream, seeded
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS

_FIRST_DRAW = 2**40
"""What the draws are counted from, so that a generator of ``np.random`` with the same seed draws
other numbers."""


class PythonStream(Stream):
    """A ``random.Random`` of a program."""


def make_python_stream(run: Context, seed: Any = None) -> Stream:
    """``random.Random(seed)``."""
    return make_stream(run, seed, PythonStream, _FIRST_DRAW)


def begin_streams(run: Context, modules: Collection[str]) -> None:
    """Make the generators that modules share at the beginning of a program."""
    for module in sorted(modules):
        seeded(run, module, make_python_stream if module == "random" else make_stream)


def _global_stream(run: Context) -> Stream:
    return seeded(run, "random", make_python_stream)


def _drawn(written: Callable[..., Any]) -> Callable[..., Any]:
    def handler(run: Context, rng: Stream, *given: Any, **named: Any) -> Any:
        return run.call(written, [Stream(rng.seed, rng.draws), *given], named)

    return handler


def _seed(run: Context, a: Any = None, version: int = 2) -> None:
    seeded(run, "random", lambda run: make_python_stream(run, a), anew=True)


def _random(run: Context, rng: Stream) -> Any:
    return run.call(vars(Stream)["random"], [Stream(rng.seed, rng.draws)], {})


def _add(name: str, handler: Callable[..., Any]) -> None:
    def method(self: Stream) -> None:
        """What programs call; the handler does the work."""

    method.__name__ = name
    setattr(PythonStream, name, method)
    FUNCTIONS[method] = handler
    FUNCTIONS[getattr(random, name)] = lambda run, *given, **named: handler(
        run, _global_stream(run), *given, **named
    )


_add("random", _random)
for _name, _written in inspect.getmembers(python_random, inspect.isfunction):
    _add(_name, _drawn(_written))
_add("normalvariate", _drawn(python_random.gauss))
FUNCTIONS[random.seed] = _seed
FUNCTIONS[random.Random] = make_python_stream
