"""The table of ONNX operators: functions of torch tensors, with attributes as keyword arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Meaning:
    """What an operator computes.

    Attributes:
        function: its inputs come by position (None where left out), its attributes by name. A
            parameter ``outputs`` gets the number of results that the node has.
        numbers: inputs that it must know when it is imported; they come as numbers or lists.
        as_tensors: these come as tensors instead.
    """

    function: Function
    numbers: tuple[str, ...] = ()
    as_tensors: bool = False

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Parameters of the function; none is known of functions of torch itself."""
        try:
            return dict(inspect.signature(self.function).parameters)
        except ValueError:
            return {}

    def is_number(self, place: int) -> bool:
        """Whether the input at a place must be known."""
        names = list(self.parameters)
        return place < len(names) and names[place] in self.numbers


OPERATORS: dict[str, Meaning] = {}


def operator(
    *names: str, numbers: tuple[str, ...] = (), as_tensors: bool = False
) -> Callable[[Function], Function]:
    """Register what operators mean."""

    def register(function: Function) -> Function:
        OPERATORS.update(dict.fromkeys(names, Meaning(function, numbers, as_tensors)))
        return function

    return register
