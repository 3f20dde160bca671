"""The tables of functions, methods and attributes, and how a module adds to them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""What becomes of a call, by the function object: called with the interpreter and the arguments."""
METHODS: dict[str, Callable[..., Any]] = {}
"""The same for methods of arrays, by name: called with interpreter, array, and arguments."""


def function(*objects: Any, method: str | None = None) -> Callable[[Any], Any]:
    """Add a function for objects that programs call, and for a method of arrays."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        strict = _strict(handler, str(method or getattr(objects[0], "__name__", objects[0])))
        for each in objects:
            FUNCTIONS[each] = _with_names_of(each, strict)
        if method is not None:
            METHODS[method] = strict
        return handler

    return add


IGNORED = {"order", "subok", "device", "like", "copy", "casting"}
"""Arguments that say where results lie, or what NumPy checks; they may be left out of results."""


def _strict(handler: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A handler that refuses by name what it would swallow as ``**_``."""
    parameters = inspect.signature(handler).parameters
    if "_" not in parameters or parameters["_"].kind is not inspect.Parameter.VAR_KEYWORD:
        return handler

    @functools.wraps(handler)
    def checked(run: Context, *arguments: object, **keywords: object) -> Any:
        for keyword, value in keywords.items():
            if keyword not in parameters and keyword not in IGNORED and value is not None:
                run.tracer.refuse(f"the argument {keyword!r} of {name} is not covered")
        return handler(run, *arguments, **keywords)

    return checked


def _with_names_of(called: object, handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that takes arguments by the names which the function that is called gives them."""
    own = inspect.signature(handler).parameters

    @functools.wraps(handler)
    def renamed(run: Context, *arguments: object, **keywords: object) -> Any:
        if not keywords.keys() <= own.keys():
            names = own_names(called, handler)
            keywords = {k if k in own else names.get(k, k): v for k, v in keywords.items()}
        return handler(run, *arguments, **keywords)

    return renamed


def own_names(called: Any, handler: Callable[..., Any]) -> dict[str, str]:
    """What a handler calls the parameters of a function, which have the same places."""
    try:
        theirs = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # it does not say what its parameters are
        return {}
    by_place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = [p.name for p in inspect.signature(handler).parameters.values() if p.kind is by_place]
    return dict(zip([p.name for p in theirs if p.kind is by_place], own[1:], strict=False))


def attribute(name: str) -> Callable[[Any], Any]:
    """Add an attribute of arrays."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[("attribute", name)] = handler
        return handler

    return add


def ufunc_method(name: str) -> Callable[[Any], Any]:
    """Add a method of universal functions."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[("ufunc", name)] = handler
        return handler

    return add


REFUSED: dict[Any, str] = {}
"""What is not covered, by the object or the name of a method: what to write instead."""
REFUSALS: set[Any] = set()
"""The handlers that refuse."""


def refused(*objects: object, instead: str, always: bool = False) -> None:
    """Say of functions, or of methods by their names, that they are not covered.

    Args:
        objects: functions, or names of methods of arrays.
        instead: a sentence that says what to write, or why there is nothing.
        always: whether they are refused also of arguments that are known before the run.
    """
    for each in objects:
        REFUSED[each] = instead
        table: dict[Any, Any] = METHODS if isinstance(each, str) else FUNCTIONS
        if each not in table:
            table[each] = _refusal(each, instead, always or isinstance(each, str))
            REFUSALS.add(table[each])


def _refusal(refused_one: Any, instead: str, always: bool) -> Callable[..., Any]:
    name = getattr(refused_one, "__name__", refused_one)

    def handler(run: Context, *given: Any, **options: Any) -> Any:
        if always or has_data((list(given), options)):
            run.tracer.refuse(f"{name} is not covered: {instead}")
        return refused_one(*given, **options)

    return handler


ALWAYS: set[Any] = set()
"""The handlers that are asked also where all is known: what they make may be used by the run."""


def named(module: str, *names: str, always: bool = False) -> Callable[[Any], Any]:
    """Add a function of a package that need not be installed, by where it is and its name."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FUNCTIONS[(module, name)] = handler
        if always:
            ALWAYS.add(handler)
        return handler

    return add


OTHERWISE = ("otherwise",)
"""The key of what is called where no handler is: with the function, its arguments and keywords."""


def is_of_scipy(called: object) -> bool:
    """Whether a function, a class, an object or a method is one of SciPy, or of np.polynomial."""
    if isinstance(called, np.ufunc):  # which does not say where it is
        return vars(np).get(called.__name__) is not called
    owner = getattr(called, "__self__", None)
    module = getattr(called, "__module__", None) or type(owner).__module__
    return str(module).startswith(("scipy.", "numpy.polynomial."))


CALLED = "()"
"""The name of a function that is an object of a package: its handler gets the object, too."""


def by_name(functions: Mapping[Any, Any], function: object) -> Callable[..., Any] | None:
    """The handler of a function by its module, of which the first two parts count, and its name."""
    module = str(getattr(function, "__module__", "") or "")
    if isinstance(function, np.ufunc):  # which does not say where it is
        module = "" if vars(np).get(function.__name__) is function else "scipy.special"
    name = getattr(function, "__name__", CALLED)
    found: Callable[..., Any] | None = functions.get((".".join(module.split(".")[:2]), name))
    if name != CALLED or found is None:
        return found
    called = found
    return lambda run, *given, **named: called(run, function, *given, **named)
