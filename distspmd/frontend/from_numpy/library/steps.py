"""Generators that are asked for one value after the other, and what reads them.

Each is an object with the variables that live from one step to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class Steps:
    """A generator that takes one step at a time; its variables are attributes, too."""

    _at: int
    _done: bool
    _sent: Any

    def __next__(self) -> Any:
        return take_step(self, True, None)

    def __iter__(self) -> Iterator[Any]:
        while True:
            value = take_step(self, False, None)
            if self._done:
                return
            yield value

    def send(self, value: Any) -> Any:
        """Let the ``yield`` where it waits be a value, and go on to the next one."""
        self._sent = value
        return take_step(self, True, None)

    def close(self) -> None:
        """Let it give no more values."""
        self._done = True


def take_step(steps: Any, strict: bool, default: Any) -> Any:
    """The next value of a generator, which the front end reads.

    Args:
        steps: the generator.
        strict: whether the end is a ``StopIteration``.
        default: what it gives at the end, if it is none.
    """
    raise NotImplementedError


def iterator_of(values: Any) -> Any:
    """The iterator of a loop in a generator, which the front end makes."""
    raise NotImplementedError


class Elements:
    """An iterator over elements that are found by their places."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.place = 0

    def more(self) -> Any:
        """Whether there is another one."""
        return self.place < len(self.values)

    def take(self) -> Any:
        """The next one."""
        self.place += 1
        return self.values[self.place - 1]


class Numbers:
    """An iterator over a range."""

    def __init__(self, first: int, step: int, count: int) -> None:
        self.first = first
        self.step = step
        self.count = count
        self.place = 0

    def more(self) -> Any:
        """Whether there is another one."""
        return self.place < self.count

    def take(self) -> Any:
        """The next one."""
        self.place += 1
        return self.first + (self.place - 1) * self.step


class Ahead:
    """An iterator over a generator, which is one step ahead."""

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.value = None

    def more(self) -> Any:
        """Whether there is another value."""
        self.value = take_step(self.steps, False, None)
        return not self.steps._done

    def take(self) -> Any:
        """The value."""
        return self.value


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


def beside(parts: Sequence[Any], count: int, first: Sequence[Any]) -> Iterator[Any]:
    """``zip(...)`` of generators and of what has places.

    Args:
        parts: whether each is a generator, and what it is.
        count: the least length of what has places.
        first: the generators that Python asks for a value before it finds the end of these.
    """
    for place in range(count):
        row = []
        for is_stepped, part in parts:
            if is_stepped:
                value = take_step(part, False, None)
                if part._done:
                    return
                row.append(value)
            else:
                row.append(part[place])
        yield tuple(row)
    for part in first:
        take_step(part, False, None)


def beside_each_other(parts: Sequence[Any]) -> Iterator[Any]:
    """``zip(...)`` of generators alone."""
    while True:
        row = []
        for part in parts:
            value = take_step(part, False, None)
            if part._done:
                return
            row.append(value)
        yield tuple(row)


def sliced(steps: Any, start: int, stop: int, step: int) -> Iterator[Any]:
    """``itertools.islice(steps, start, stop, step)``."""
    for place in range(stop):
        value = take_step(steps, False, None)
        if steps._done:
            return
        if place >= start and (place - start) % step == 0:
            yield value


def sliced_on(steps: Any, start: int, step: int) -> Iterator[Any]:
    """``itertools.islice(steps, start, None, step)``."""
    place = 0
    while True:
        value = take_step(steps, False, None)
        if steps._done:
            return
        if place >= start and (place - start) % step == 0:
            yield value
        place += 1


def taken_while(predicate: Any, values: Any) -> Iterator[Any]:
    """``itertools.takewhile(predicate, values)``."""
    for value in values:
        if not predicate(value):
            return
        yield value


def cycled(values: Any) -> Iterator[Any]:
    """``itertools.cycle(values)`` of a list, which has an element."""
    place = 0
    while True:
        yield values[place]
        place = (place + 1) % len(values)
