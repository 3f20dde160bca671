"""What functions see beside their arguments: values that change between calls are found."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.frontend.from_numpy.reader.outside_values import outside_key

SCALE: Any = 2.0
TABLE: Any = np.arange(4.0)
LISTED: Any = [1, (2.0, "three")]
flags = types.ModuleType("flags")
flags.fast, flags.unread = True, 0  # type: ignore[attr-defined]


class Rates:
    """An object of which a function reads an attribute, through a method too."""

    base = 1.0

    def __init__(self) -> None:
        self.rate, self.calls = 1.0, 0

    def doubled(self) -> float:
        return self.rate * 2 + self.base


rates = Rates()


def helper(x: Any) -> Any:
    return x * SCALE


def program(x: Any) -> Any:
    found = helper(x) + TABLE + rates.doubled() + LISTED[0]
    return found if flags.fast else -found  # type: ignore[attr-defined]


def _changed(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


def _attribute(of: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(of, name, value)


def _element(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(globals(), "TABLE", TABLE.copy())
    TABLE[2] = -1


def _entry(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(globals(), "LISTED", [*LISTED])
    LISTED.append(4)


CHANGES = {
    "a number of a function that it calls": _changed("SCALE", 2),
    "another array": _changed("TABLE", np.arange(4)),
    "an element of an array": _element,
    "the list": _entry,
    "another function": _changed("helper", lambda x: x - 1),
    "an attribute of a module": _attribute(flags, "fast", False),
    "an attribute of an object": _attribute(rates, "rate", 3.0),
    "an attribute of its class": _attribute(Rates, "base", 3.0),
    "a method": _attribute(Rates, "doubled", lambda self: 0.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_function_sees_tells_its_calls_apart(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, held = outside_key([program])
    assert outside_key([program])[0] == before
    with monkeypatch.context() as patch:
        CHANGES[change](patch)
        assert outside_key([program])[0] != before
    assert outside_key([program])[0] == before
    assert held


def test_what_it_does_not_see_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = outside_key([program])
    monkeypatch.setattr(flags, "unread", 1)
    monkeypatch.setattr(rates, "calls", 1)
    assert outside_key([program])[0] == before


def test_closures_defaults_and_objects_are_seen_too() -> None:
    step = 1.0

    def moved(x: Any, by: Any = (1, 2)) -> Any:
        return [x + step + n for n in by]

    class Own:
        def __call__(self, x: Any) -> Any:
            return x * self.factor

    own: Any = Own()
    own.factor, first = 1, outside_key([moved])[0]
    step = 2.0
    assert outside_key([moved])[0] != first
    second = outside_key([moved])[0]
    moved.__defaults__ = ((1, 3),)
    assert outside_key([moved])[0] != second
    third, own.factor = outside_key([own])[0], 2
    assert outside_key([own])[0] != third


def test_lists_that_hold_themselves_end() -> None:
    held: list[Any] = [1]
    held.append(held)

    def program() -> Any:
        return held

    assert outside_key([program])[0] == outside_key([program])[0]
