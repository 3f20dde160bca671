"""Registration of programs: each has a field, a source of inspiration, and a maker of inputs."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.checking.compare import tolerance_of

Generator = np.random.Generator
Size = int | tuple[int, ...]
Make = Callable[..., tuple[Any, ...] | dict[str, Any]]

CORPUS: dict[str, Case] = {}
"""All cases, by name; of the order in which they are registered."""


@dataclass(frozen=True)
class Case:
    """A program at one size.

    Attributes:
        function: a plain function, as NumPy runs it.
        field: of science or computing.
        source: where programs like it are found, in a word.
        make: of a generator and the numbers of the size, arguments in order or by name.
        size: what the maker takes.
        warns: whether NumPy says something of divisions or overflows that are meant.
    """

    name: str
    function: Callable[..., Any]
    field: str
    source: str
    make: Make
    size: tuple[int, ...]
    warns: bool = False

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments in order, and arguments by name; each call makes the same anew."""
        made = self.make(np.random.default_rng(zlib.crc32(self.name.encode())), *self.size)
        return ((), dict(made)) if isinstance(made, Mapping) else (tuple(made), {})

    def bound_to(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by the names of their parameters; defaults are left out."""
        return dict(inspect.signature(self.function).bind(*given, **named).arguments)

    def tolerance(self) -> float:
        """What rounding may change of floating-point results: by the coarsest type of arguments."""
        given, named = self.arguments()
        kinds = [value.dtype for value in (*given, *named.values()) if hasattr(value, "dtype")]
        return max((tolerance_of(kind) for kind in kinds), default=0.0)

    def defaults(self) -> dict[str, Any]:
        """Default values of parameters, by name."""
        parameters = inspect.signature(self.function).parameters.values()
        return {each.name: each.default for each in parameters if each.default is not each.empty}


def of_field(field: str) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """A decorator for the programs of a field: ``@program(source, make, *sizes)``.

    The function stays what it is. It becomes a case for each size, or one if there are none.
    """

    def program(
        source: str, make: Make, *sizes: Size, warns: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for size in sizes or ((),):
                numbers = size if isinstance(size, tuple) else (size,)
                name = "-".join([function.__name__, "x".join(map(str, numbers))]).rstrip("-")
                assert name not in CORPUS, f"{name} is there twice"
                CORPUS[name] = Case(name, function, field, source, make, numbers, warns)
            return function

        return register

    return program
