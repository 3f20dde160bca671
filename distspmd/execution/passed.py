"""What ranks pass that do not hold an argument: nothing, or what rank 0 passes.

Rank 0's arrays are the whole ones. A script that gives each rank a part of its own would silently
lose all parts but one; so the first call of a program compares checksums, and later ones nothing.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distspmd.errors import ArgumentError
from distspmd.execution.signature import Signature
from distspmd.runtime.watch.agreement import Agreement

_MOST = 1 << 16
"""So many elements of an array are looked at."""
_ADVICE = (
    "Pass the whole on rank 0, and nothing or None on the others, or the same on all. If each rank "
    "holds a tile of its own, say so: arguments={name: 'distributed'}."
)


@dataclass(frozen=True)
class Passed:
    """An array that a rank passes, as ranks tell it each other.

    Attributes:
        dtype, shape: its.
        checksum: of some of its elements; empty where these do not matter.
    """

    dtype: str
    shape: tuple[int, ...]
    checksum: str = ""

    @classmethod
    def of(cls, value: Any, *, looks_inside: bool = True) -> Passed | None:
        """That of an array of NumPy or a tensor of torch; None of all else."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            form = cls(str(value.dtype).removeprefix("torch."), tuple(value.shape))
            if not looks_inside or value.is_meta or value.layout != torch.strided:
                return form
            some = value.detach().reshape(-1)[:: value.numel() // _MOST + 1]
            content = some.cpu().contiguous().view(torch.uint8).numpy().tobytes()
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            form = cls(str(value.dtype), value.shape)
            if not looks_inside:
                return form
            content = value.flat[:: value.size // _MOST + 1].tobytes()
        else:
            return None
        return replace(form, checksum=hashlib.blake2b(content, digest_size=16).hexdigest())

    def __str__(self) -> str:
        """``float64[8, 4]``."""
        return f"{self.dtype}{list(self.shape)}"


class FirstCall:
    """Looks at what ranks pass to a program, until they have agreed once."""

    def __init__(self, agreement: Agreement, signature: Signature) -> None:
        self._agreement, self._signature = agreement, signature
        self._is_over = agreement.ranks == 1

    def compare(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """See to it that no rank passes something else than rank 0 for what that holds.

        Raises:
            ArgumentError: on all ranks.
        """
        if not self._is_over:
            passed = self._passed(arguments, named)
            compare(self._agreement, self._signature.program, passed, _ADVICE)
            self._is_over = True

    def _passed(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> dict[str, Passed | None]:
        """By names; values of what the program writes do not matter."""
        try:
            bound = self._signature.bind(arguments, named)
        except ArgumentError:  # which ranks say that hold something
            return {}
        known = self._signature.parameters
        return {
            repr(name): Passed.of(value, looks_inside=not known[name].is_written)
            for name, value in bound.items()
            if name in known and known[name].layout is None
        }


def compare(
    agreement: Agreement, program: str, passed: Mapping[str, Passed | None], advice: str
) -> None:
    """See to it that no rank passes something else than rank 0; all ranks do so together.

    Args:
        agreement: of the ranks.
        program: its name, for the message.
        passed: by the rank, under names that all ranks share; None of what cannot be told.
        advice: what to write instead.

    Raises:
        ArgumentError: on all ranks.
    """
    first: Mapping[str, Passed | None] = agreement.bcast(passed)
    error = None
    for name, mine in passed.items():
        theirs = first.get(name)
        if mine is not None and mine != theirs:
            alike = theirs is not None and str(theirs) == str(mine)
            told = "no such one" if theirs is None else "other values" if alike else theirs
            error = ArgumentError(
                f"{program}: rank {agreement.rank} passes {name} ({mine}), but rank 0 passes "
                f"{told}. Rank 0 passes the whole, and what other ranks pass is not used. {advice}"
            )
            break
    agreement.check(error)
