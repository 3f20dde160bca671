"""Arguments that the caller need not pass: the SDFG is bound to them, and each call fetches them.

A front end binds an SDFG to the live objects from which it was made; a compiled program asks the
binding on rank 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from distspmd.runtime.calls.missing_result import MissingResult

_ATTRIBUTE = "_distspmd_binding"


class Binding(Protocol):
    """Stands between a program and its caller."""

    @property
    def names(self) -> Collection[str]:
        """Arguments that the caller does not pass and that may stay on the ranks between calls."""

    @property
    def without_memory(self) -> Collection[str]:
        """Those of ``names`` that rank 0 has no memory for: only the ranks' parts have values."""

    def held(self, names: Collection[str]) -> Mapping[str, NDArray[Any]]:
        """Some of them, as arrays over their own memory."""

    def changed(self, names: Collection[str]) -> Collection[str]:
        """Which of some of them others have written, or replaced, since this was asked last."""

    def elsewhere(self) -> Binding:
        """What stands between the program and its caller on other ranks; it is sent to them."""

    @property
    def is_on_device(self) -> bool:
        """Whether the objects to which the SDFG is bound live on a device."""

    def arguments(self) -> Mapping[str, NDArray[Any]]:
        """Arguments that the caller does not pass, as arrays over their own memory."""

    def has_run(self) -> None:
        """Note that a call has ended, before its results are returned."""

    def given(self, name: str, value: Any, tile: tuple[int, ...] | None = None) -> Any:
        """What the caller passed, as an array; of the shape of a tile, where it is one."""

    def returned(self, results: Sequence[NDArray[Any] | MissingResult]) -> Any:
        """What the caller gets for the results, some of which may be elsewhere."""


class SavedBinding(Protocol):
    """A binding without the objects of the process that saved it."""

    def bound(self) -> Binding:
        """What stands between the program and its caller in this process.

        Raises:
            ArgumentError: the objects have to be given first; says how.
        """


def bind(sdfg: Any, binding: Binding | SavedBinding) -> None:
    """Let an SDFG carry a binding."""
    setattr(sdfg, _ATTRIBUTE, binding)


def binding_of(sdfg: Any) -> Binding | None:
    """The binding that an SDFG carries.

    Raises:
        ArgumentError: it was saved, and needs objects of this process.
    """
    found: Any = bound(sdfg)
    if hasattr(found, "bound"):
        found = found.bound()
    return found  # type: ignore[no-any-return]  # now it is one


def bound(sdfg: Any) -> Binding | SavedBinding | None:
    """What an SDFG carries, also if it was saved."""
    found: Binding | SavedBinding | None = getattr(sdfg, _ATTRIBUTE, None)
    return found


def saved_of(binding: Any) -> SavedBinding | None:
    """What is saved of a binding, which says so itself, or has been saved before."""
    return binding.saved() if hasattr(binding, "saved") else binding  # type: ignore[no-any-return]
