"""Registration of programs by the functions of NumPy that they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from from_numpy.corpus.registry import Case, Make

PROGRAMS: dict[str, Case] = {}
"""All programs, by name."""


def program(make: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function, with what makes its arguments of a generator."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        assert name not in PROGRAMS, f"{name} is there twice"
        field = function.__module__.rpartition(".")[2]
        PROGRAMS[name] = Case(name, function, field, "NumPy", make, (), warns=True)
        return function

    return register
