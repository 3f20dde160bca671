"""Parts that are assigned to: of arrays, lists, dictionaries, and objects that have parts."""

from __future__ import annotations

import ast
import math
import operator
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arrays_from_outside import check_changeable
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.images import Image
from distspmd.frontend.from_numpy.arrays.kinds import has_data, is_array
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import list_changes
from distspmd.frontend.from_numpy.lists.known_keys import known_key
from distspmd.frontend.from_numpy.lists.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.reader import objects, python_errors
from distspmd.frontend.from_numpy.reader.map_indices import where_in_range
from distspmd.frontend.from_numpy.reader.mutation import before_change
from distspmd.frontend.from_numpy.reader.sharing import stored_image
from distspmd.frontend.from_numpy.reader.texts import Text


def bind_part(run: Context, target: ast.Subscript, value: object) -> None:
    """``base[items] = value``."""
    base = run.writable(target.value)
    items = run.subscript(target.slice)
    if isinstance(base, RunList):
        list_changes.write(run, base, items, value)
        return
    if objects.is_own(base) and not isinstance(base, list | dict):
        found = objects.special(run, base, "setitem", items, value)
        if found is not NotImplemented:
            return
        python_errors.fail(run, operator.setitem, base, items, value)
    if isinstance(base, list) and has_data(items):
        _leave_loop(run, base, value)
        decided_by_run(run, base)
    if isinstance(base, dict) or (isinstance(base, list) and not has_data(items)):
        key = known_key(run, base, items) if isinstance(base, dict) else items
        before_change(run, base, key)
        try:
            base[items] = run.settled_parts(value)
        except (IndexError, TypeError) as problem:
            run.tracer.fail(problem)
        return
    python_errors.check_item_of(run, base, items, value)
    write_part(run, base, items, value)


def _leave_loop(run: Context, base: list[Any], value: object) -> None:
    """Let a loop be written out that fills a list which no list of the run could be.

    ``rows = [None] * n``, say, gets arrays: its elements are of two kinds for a while.

    Raises:
        CannotRoll: the list holds such elements, and a loop may be written out.
    """
    if run.tracer.loops and len({_kind_of(v) for v in (*base, value)}) > 1:
        raise CannotRoll("a list holds elements of several kinds", base)


def look_into_lists(run: Context, base: list[Any]) -> None:
    """Let the run decide what a list of lists holds, of which an index of the run asks for one.

    Raises:
        DecidedByRun: the program is read again.
        CannotRoll: some hold None, and a loop may be written out.
    """
    if run.tracer.loops and any(v is None for each in base if type(each) is list for v in each):
        raise CannotRoll("lists hold None and others", base)
    decided_by_run(run, base)


def _kind_of(value: Any) -> str:
    """What may be beside another element in one list of the run."""
    if value is None:
        return "none"
    if isinstance(value, str | Text):
        return "text"
    if isinstance(value, list | tuple | dict | RunList):
        return "list"
    return "array" if is_array(value) and value.ndim else "number"


def write_part(run: Context, base: object, items: object, value: object) -> None:
    """``base[items] = value`` of an array."""
    tracer = run.tracer
    if value is None and isinstance(base, Tensor):
        if base.dtype.kind not in "fc":
            tracer.refuse(f"TypeError: None is no number of the type {base.dtype}")
        value = math.nan  # as NumPy reads it
    if tracer.map.straight is not None and tracer.map.straight.write(base, items, value):
        return
    with where_in_range(tracer):
        indexing.write(tracer, base, items, value)


def writable(run: Context, node: ast.expr) -> Any:
    """What is assigned into; what was known, or chosen by a mask, becomes an array."""
    base = run.value(node)
    tracer = run.tracer
    if isinstance(base, np.ndarray):
        check_changeable(run, base)
        made: Tensor = tracer.table(base)
    elif isinstance(base, Image):
        return stored_image(tracer, base)
    elif isinstance(base, Tensor) and base.mask is not None:
        made = tracer.stored(as_arrays(tracer, base))
    else:
        return base
    for variables in (frame.variables for frame in tracer.frames):
        variables |= {name: made for name, value in variables.items() if value is base}
    return made
