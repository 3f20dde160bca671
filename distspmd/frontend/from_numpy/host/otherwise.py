"""Functions of SciPy that are written out; where that is refused, the library itself is asked."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distspmd.frontend.from_numpy.arrays.decided_types import handled
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import EndsHere, Refusal
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.library import is_of_library
from distspmd.frontend.from_numpy.lists.list_rooms import settle
from distspmd.frontend.from_numpy.numpy.registry import OTHERWISE, is_of_scipy


def is_asked(function: object, arguments: Sequence[Any]) -> bool:
    """Whether a call has objects of our library, or is one of SciPy that gets a function."""
    if any(is_of_library(type(value)) for value in arguments):
        return True
    return is_of_scipy(function) and any(map(is_of_program, arguments))


def is_read(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a call of a package is read: not all is known, or a function of the program is."""
    given = [*arguments, *keywords.values()]
    kinds = (types.FunctionType, types.MethodType, functools.partial)
    return has_data(given) or any(isinstance(v, kinds) or is_of_program(v) for v in given)


def is_of_program(value: object) -> bool:
    """Whether a value is a function that the program has written."""
    if isinstance(value, types.FunctionType | types.MethodType):
        return str(getattr(value, "__module__", "")).split(".")[0] not in ("numpy", "scipy")
    return isinstance(value, functools.partial) or type(value).__name__ == "Closure"


def handled_or_asked(
    run: Context,
    handler: Callable[..., Any],
    function: object,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """What a handler gives, or the library itself where the handler refuses the call.

    Raises:
        Refusal: that of the handler, where the library is not asked either.
    """
    if not is_of_scipy(function):
        return handled(run, handler, function, arguments, keywords)
    saved, node = Saved(run), run.tracer.node
    try:
        return handled(run, handler, function, list(arguments), dict(keywords))
    except EndsHere:
        raise
    except Refusal as refusal:
        if settle(run.tracer):  # the next reading knows more of lists, and may be taken
            raise
        saved.restore(run)
        run.tracer.node = node
        try:
            return run.functions[OTHERWISE](run, function, arguments, keywords)
        except Refusal:
            raise refusal from None
