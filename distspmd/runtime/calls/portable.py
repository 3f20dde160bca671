"""Values that go to other ranks, some parts of which cannot: functions without a name, say."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Unsent:
    """Stands on a rank for what only another rank has.

    Attributes:
        kind: the name of its type.
    """

    kind: str

    def may_be(self, value: Any) -> bool:
        """Whether a value of this rank can be what the other rank has."""
        return type(value).__qualname__ == self.kind


def portable(value: Any) -> Any:
    """A value with :class:`Unsent` in the place of what cannot be pickled.

    Args:
        value: tuples, lists, dictionaries and dataclasses are looked into.
    """
    try:
        pickle.dumps(value)
        return value
    except (pickle.PicklingError, AttributeError, TypeError):
        pass  # a part of it, or all
    if type(value) in (tuple, list):
        return type(value)(map(portable, value))
    if type(value) is dict:
        return {key: portable(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type) and _is_importable(type(value)):
        own = [part.name for part in fields(value) if part.init]
        return replace(value, **{name: portable(getattr(value, name)) for name in own})
    return Unsent(type(value).__qualname__)


def _is_importable(kind: type) -> bool:
    return portable(kind) is kind
