"""Solvers of SciPy that ask for values of functions of the program, while it runs."""

from __future__ import annotations

from typing import Any


def tuple_of(args: object) -> Any:
    """Further arguments, of which one may be given alone."""
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


class Asked:
    """What stands for a function of the program, by its number, among the arguments of a call."""

    def __init__(self, number: int) -> None:
        self.number = number


def converse(
    called: Any,
    given: Any,
    named: Any,
    functions: Any,
    start: Any,
    values: Any,
    results: Any,
    first: Any = (),
) -> Any:
    """What a function of a library gives that asks for values of functions of the program.

    Args:
        called: where the function is: "module:name".
        given: its arguments, in which :class:`Asked` stands for functions.
        named: more of them, by name.
        functions: of one vector each, of the length of ``start``.
        start: a vector.
        values: the shapes of the functions' values.
        results: names of parts of the result, their shapes, and the types of their elements.
        first: values that functions have at the start, by their numbers.
    """
    talk = begun(called, given, named, start, values, results, dict(first))
    which, place = next_of(talk)
    while which >= 0:
        for number, function in enumerate(functions):
            if which == number:
                value = function(place)
                which, place = replied(talk, number, value)
    return ended(talk)


def begun(*_: object) -> Any:
    """A conversation; the front end begins it."""
    raise NotImplementedError


def next_of(talk: object) -> Any:
    """The number of the function that is asked for first, and its argument."""
    raise NotImplementedError


def replied(talk: object, number: object, value: object) -> Any:
    """The next function and its argument, after the value of one."""
    raise NotImplementedError


def ended(talk: object) -> Any:
    """The parts of the result."""
    raise NotImplementedError
