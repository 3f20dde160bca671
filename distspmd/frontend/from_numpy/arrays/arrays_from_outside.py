"""Arrays of modules, closures and objects from outside of the program, which it may only read.

A program has their elements as they are when it is read. What it wrote into them would be in a copy
that nobody sees but the name it was written by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.origins import is_library_module, is_own_class

_CHANGING = frozenset(("fill", "sort", "partition", "put", "resize", "itemset", "setfield"))
"""Methods that change the array that has them."""


def check_changeable(run: Context, value: object) -> None:
    """Refuse to change an array from outside of the program; other values may be anything.

    Raises:
        Refusal: a module, a closure or an object that the program has not made holds the array.
    """
    if not isinstance(value, np.ndarray):
        return
    memory: Any = value
    own = set()
    while isinstance(memory, np.ndarray):  # a part of an array changes the array
        own.add(id(memory))
        memory = memory.base
    if any(id(each) in own for each in _arrays_outside(run)):
        run.tracer.refuse(
            "an array from outside of the program is changed, of a module or of an object: it "
            "would keep its elements behind the call. Take it as an argument, which is changed as "
            "in NumPy, or change a copy of it"
        )


def check_method(run: Context, owner: object, name: str) -> None:
    """Refuse a method that would change an array from outside while the program is read."""
    if name in _CHANGING:
        check_changeable(run, owner)


def _arrays_outside(run: Context) -> Iterable[np.ndarray[Any, Any]]:
    """Arrays that the functions being read see from outside, in lists and objects too."""
    made = run.tracer.program.made
    waiting: list[Any] = [v for frame in run.tracer.frames for v in frame.outside.values()]
    seen = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple | deque):
            waiting += value
        elif _has_parts(value) and id(vars(value)) not in made:
            waiting += vars(value).values()


def _has_parts(value: object) -> bool:
    """Whether attributes of a value are the user's: of a module, a class or an object."""
    if isinstance(value, ModuleType):
        return not is_library_module(value.__name__)
    return hasattr(value, "__dict__") and is_own_class(
        value if isinstance(value, type) else type(value)
    )
