"""Resources that all ranks close together, at the end of a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

_Own = TypeVar("_Own", bound="Closing")


class Closing(ABC):
    """An object that frees what it holds at the end of a ``with`` block.

    Not after an error: freeing is collective, and the other ranks may never come.
    """

    @abstractmethod
    def close(self) -> None:
        """Free what the object holds; all ranks call it together."""

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
