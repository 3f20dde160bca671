"""What Python's functions do with each of as many values as the run decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def mapped(called: Callable[..., Any], values: Any) -> list[Any]:
    """``list(map(called, values))``."""
    return [called(value) for value in values]


def filtered(called: Callable[..., Any], values: Any) -> list[Any]:
    """``list(filter(called, values))``."""
    return [value for value in values if called(value)]


def extreme_or(called: Callable[..., Any], values: Any, key: object, default: object) -> Any:
    """``min(values, key=key, default=default)``, or ``max``."""
    found = default
    if len(values) > 0:
        found = called(values, key=key)
    return found


def reduced(called: Callable[..., Any], values: Any, initial: object) -> Any:
    """``functools.reduce(called, values, initial)``."""
    found = initial
    for value in values:
        found = called(found, value)
    return found


def listed(values: Any) -> list[Any]:
    """``list(values)`` of a generator of which the run decides how many values it gives."""
    found = []
    for value in values:
        found.append(value)  # noqa: PERF402
    return found


def first_or(values: Any, default: object) -> Any:
    """``next(values, default)`` of a generator that nothing has read."""
    found = default
    for value in values:
        found = value
        break
    return found


def first_of(values: Any) -> Any:
    """``next(values)`` of a generator that nothing has read."""
    for value in values:
        return value
    raise StopIteration


def any_of(values: Any) -> bool:
    """``any(values)``, which reads no value behind the first true one."""
    found = False
    for value in values:
        if value:
            found = True
            break
    return found


def all_of(values: Any) -> bool:
    """``all(values)``, which reads no value behind the first false one."""
    found = True
    for value in values:
        if not value:
            found = False
            break
    return found


def each_next(values: Any) -> Iterator[Any]:
    """The values of an object with a method ``__next__``."""
    while True:
        try:
            value = values.__next__()
        except StopIteration:
            return
        yield value


def each_place(values: Any) -> Iterator[Any]:
    """The values of an object with a method ``__getitem__`` alone."""
    place = 0
    while True:
        try:
            value = values[place]
        except IndexError:
            return
        yield value
        place += 1


def next_or(values: Any, default: Any) -> Any:
    """``next(values, default)`` of an object with a method ``__next__``."""
    try:
        value = values.__next__()
    except StopIteration:
        value = default
    return value


class ElementsInTurn:
    """``np.nditer`` of one array, whose elements it gives as arrays without dimensions."""

    def __init__(self, op: Any) -> None:
        self.array = op
        self.shape = op.shape
        self.itersize = op.size
        self.iterindex = 0

    @property
    def finished(self) -> Any:
        """Whether all elements were given."""
        return self.iterindex >= self.itersize

    @property
    def multi_index(self) -> Any:
        """The place of the element."""
        return np.unravel_index(self.iterindex, self.shape)

    @property
    def index(self) -> int:
        """The number of the element in reading order."""
        return self.iterindex

    @property
    def value(self) -> Any:
        """The element."""
        return self.array[np.unravel_index(self.iterindex, self.shape)]

    def __getitem__(self, place: int) -> Any:
        return self.array[np.unravel_index(self.iterindex, self.shape)]

    def iternext(self) -> Any:
        """Go on to the next element."""
        self.iterindex += 1
        return self.iterindex < self.itersize

    def __enter__(self) -> ElementsInTurn:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Any:
        line = self.array.reshape(-1)
        for place in range(self.itersize):
            yield line[place : place + 1].reshape(())
