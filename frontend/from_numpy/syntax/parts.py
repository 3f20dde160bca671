"""Parts that are assigned to: of arrays, lists, dictionaries, and objects that have parts."""

from __future__ import annotations

import ast
import math
import operator
from typing import TYPE_CHECKING, Any

from distspmd.frontend.from_numpy import indexing
from distspmd.frontend.from_numpy.kinds import has_data
from distspmd.frontend.from_numpy.known_keys import known_key
from distspmd.frontend.from_numpy.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.syntax import (
    array_protocol,
    matrices,
    objects,
    own_arrays,
    python_errors,
    run_dicts,
)
from distspmd.frontend.from_numpy.syntax.map_indices import where_in_range
from distspmd.frontend.from_numpy.syntax.mutation import before_change
from distspmd.frontend.from_numpy.values import OwnArray, Tensor

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


def bind_part(run: Interpreter, target: ast.Subscript, value: Any) -> None:
    """``base[items] = value``."""
    base = run.writable(target.value)
    items = run.subscript(target.slice)
    if isinstance(base, RunList):
        run_dicts.write(run, base, items, value)
        return
    if objects.is_own(base) and not isinstance(base, list | dict):
        found = objects.special(run, base, "setitem", items, value)
        if found is not NotImplemented:
            return
        if not isinstance(base, OwnArray):
            python_errors.fail(run, operator.setitem, base, items, value)
        if matrices.write(run, base, items, value):
            return
        base = base.array
    if isinstance(base, list) and has_data(items):
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


def write_part(run: Interpreter, base: Any, items: Any, value: Any) -> None:
    """``base[items] = value`` of an array."""
    tracer, value = run.tracer, own_arrays.plain(value)
    value, items = array_protocol.array_of(run, value), own_arrays.plain(items)
    if value is None and isinstance(base, Tensor):
        if base.dtype.kind not in "fc":
            tracer.refuse(f"TypeError: None is no number of the type {base.dtype}")
        value = math.nan  # as NumPy reads it
    if tracer.straight is not None and tracer.straight.write(base, items, value):
        return
    with where_in_range(tracer):
        indexing.write(tracer, base, items, value)
