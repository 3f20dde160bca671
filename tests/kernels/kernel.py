"""A kernel: a NumPy program, the iteration spaces that are split, and data to run it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dace.frontend.python.parser import DaceProgram
from lowering.harness import Case

RANKS = (1, 2, 3, 4, 6)
_GRIDS = {1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (2, 2), 6: (3, 2)}


@dataclass(frozen=True)
class Kernel:
    """A program of DaCe's npbench or polybench tests, written anew from its definition.

    Attributes:
        split: iteration space -> the parameters that are split, one or two, as words.
        by_dace: the same of the SDFG that DaCe's parser makes; None where names are the same.
        inputs: how to draw arguments that are not just random numbers, by name.
        reference: stands for the program where plain Python cannot run it.
    """

    program: DaceProgram
    split: Mapping[str, str]
    reference: Callable[..., Any] | None = None
    inputs: Mapping[str, Callable[[np.random.Generator], Any]] = field(default_factory=dict)
    by_dace: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        return self.program.f.__name__

    @property
    def words(self) -> str:
        """Which parameters of which spaces of DaCe's parser are split."""
        split = self.split if self.by_dace is None else self.by_dace
        return ", ".join(f"{space}: {words}" for space, words in split.items())

    def schedule(self, ranks: int, frontend: str = "numpy") -> dict[str, dict[str, int]]:
        """A grid of that many ranks over each split space."""
        split = self.split if frontend == "numpy" or self.by_dace is None else self.by_dace
        return {space: _grid(words.split(), ranks) for space, words in split.items()}

    def case(self, ranks: int, frontend: str = "dace") -> Case:
        """The kernel with a grid of that many ranks over each split space."""
        schedule = self.schedule(ranks, frontend)
        return Case(self.program, schedule, ranks, self.inputs, self.reference, frontend)


def _grid(parameters: list[str], ranks: int) -> dict[str, int]:
    parts = _GRIDS[ranks] if len(parameters) == 2 else (ranks,)
    return dict(zip(parameters, parts, strict=True))


def kernel(
    program: DaceProgram,
    split: Mapping[str, str],
    reference: Callable[..., Any] | None = None,
    by_dace: Mapping[str, str] | None = None,
    **inputs: Callable[[np.random.Generator], Any],
) -> Kernel:
    """A kernel, with the arguments that are drawn in their own way by name."""
    return Kernel(program, split, reference, inputs, by_dace)
