"""Where a reading is, and what of the functions that it reads Python runs."""

from __future__ import annotations

import ast
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import distspmd
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.regions import (
    CannotHost,
    Hosted,
    RegionCall,
    with_regions,
)
from distspmd.frontend.from_numpy.host.work import Outside
from distspmd.frontend.from_numpy.kinds.variables import OfPython
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.sources import globals_of

_PACKAGE = os.path.dirname(os.path.abspath(distspmd.__file__)) + os.sep


@dataclass(frozen=True)
class Place:
    """A statement that is being read.

    Attributes:
        file: of the function.
        function: its line.
        line, column: of the statement.
        shapes: of variables that are arrays.
        objects: names of variables that are objects of Python.
        others: names of other variables.
    """

    file: str
    function: int
    line: int
    column: int
    shapes: Mapping[str, Any]
    objects: frozenset[str]
    others: frozenset[str]


def places_of(tracer: Any) -> list[Place]:
    """The statements that are being read in functions of the user, the innermost one first."""
    found = []
    for frame in reversed(tracer.frames):
        statement = frame.statement
        if statement is None or frame.called_at is not None or _is_ours(frame.file):
            continue
        arrays = {n: v for n, v in frame.variables.items() if isinstance(v, Tensor)}
        shapes = {n: tuple(v.shape) for n, v in arrays.items() if v.ndim}
        things = frozenset(n for n, v in frame.variables.items() if is_object(v))
        others = frozenset(frame.variables) - things - shapes.keys()
        line, column = getattr(statement, "lineno", 0), getattr(statement, "col_offset", 0)
        place = Place(frame.file, frame.line, line, column, shapes, things, others)
        found.append(place)
    return found


def _is_ours(file: str) -> bool:
    return os.path.abspath(file).startswith(_PACKAGE)


# -- functions with regions -----------------------------------------------------------------------


def hosted_source(run: Context, function: Any, node: object, file: str) -> Any:
    """The syntax of a function, with what Python runs of it as regions.

    Raises:
        Refusal: Python cannot run what it has to run of it.
    """
    files: dict[str, Hosted] = {} if run.hosting is None else run.hosting.files
    hosted = files.get(file)
    if hosted is None or not isinstance(node, ast.FunctionDef):
        return node
    known = globals_of(function)
    try:
        found = with_regions(node, hosted, Outside.of(known))
    except CannotHost as problem:
        run.tracer.refuse(f"{function.__name__}: {problem}")
    for part in ast.walk(found):
        if isinstance(part, RegionCall):
            part.region.function, part.region.file = function, file
    return found


def is_object(value: object) -> bool:
    """Whether a value of the reading is an object of Python that changes."""
    kinds = (list, dict, set, deque, bytearray, RunList, OfPython)
    return isinstance(value, kinds) or objects.is_own(value)
