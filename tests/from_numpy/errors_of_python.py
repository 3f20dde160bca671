"""What Python says of programs that it refuses, beside what the reading says of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program

X = np.array([0.3, 0.7, 1.2, 2.5, 0.1])


def programs_of(module: Mapping[str, Any]) -> list[Callable[..., Any]]:
    """The functions of a module of tests that take ``x``."""
    return [
        each
        for each in module.values()
        if inspect.isfunction(each)
        and each.__module__ == module["__name__"]
        and [*inspect.signature(each).parameters] == ["x"]
    ]


def check_refused_alike(program: Callable[..., Any]) -> None:
    """Have a program read that Python ends with an error, which the reading has to name."""
    try:
        program(X.copy())
    except Exception as problem:  # whatever Python says is what is wanted
        error = type(problem).__name__
    else:
        raise AssertionError("Python does it")
    with pytest.raises(UnsupportedProgram, match=f": .*{error}"):
        numpy_program(program, X.copy())
