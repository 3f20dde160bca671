"""Objects of Python's libraries in a program: each is made anew where something is asked of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.runtime.host.library_calls import SAID


class Held:
    """An object of a library, as the question that makes it, and the arrays that this names."""

    def __init__(self, question: Any, data: Any) -> None:
        self.question = question
        self.data = data

    def __getattr__(self, name: str) -> Any:
        return attribute_of(self, name)

    def __call__(self, *given: object, **named: object) -> Any:
        """What the object gives."""
        return result_of(self, given, named)

    def __getitem__(self, index: object) -> Any:
        return operated("getitem", self, index)

    def __add__(self, other: object) -> Any:
        return operated("add", self, other)

    def __sub__(self, other: object) -> Any:
        return operated("sub", self, other)

    def __mul__(self, other: object) -> Any:
        return operated("mul", self, other)

    def __matmul__(self, other: object) -> Any:
        return operated("matmul", self, other)

    def __truediv__(self, other: object) -> Any:
        return operated("truediv", self, other)

    def __pow__(self, other: object) -> Any:
        return operated("pow", self, other)

    def __neg__(self) -> Any:
        return operated("neg", self)

    def __radd__(self, other: object) -> Any:
        return operated("add", other, self)

    def __rsub__(self, other: object) -> Any:
        return operated("sub", other, self)

    def __rmul__(self, other: object) -> Any:
        return operated("mul", other, self)


class Record:
    """A dictionary of a library whose entries are attributes, too."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def recorded(names: object, values: object) -> Any:
    """A record of some names and their values; the front end makes it."""
    raise NotImplementedError


def attribute_of(held: object, name: object) -> Any:
    """An attribute of an object; the front end asks for it, and Python finds none.

    Raises:
        AttributeError: always.
    """
    raise AttributeError(name)


def result_of(held: object, given: object, named: object) -> Any:
    """What a call of an object gives; the front end asks for it."""
    raise NotImplementedError


def operated(name: object, *operands: object) -> Any:
    """What an operator gives; the front end asks for it."""
    raise NotImplementedError


def checked(status: object, told: Any) -> None:
    """End the program where an answer is an error.

    Raises:
        ValueError: for instance, and whatever else the library raised.
    """
    if status != 0:
        if status == 1:
            raise np.linalg.LinAlgError(told + SAID)
        if status == 2:
            raise ValueError(told + SAID)
        if status == 4:
            raise TypeError(told + SAID)
        if status == 5:
            raise IndexError(told + SAID)
        raise RuntimeError(told + SAID)
