"""Places that all iterations of a loop share: a symbol, a container, or those of the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import run_types
from distspmd.frontend.from_numpy.arrays.kinds import is_of_none, is_whole
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, view_of
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.absence import may_be_absent, may_be_none
from distspmd.frontend.from_numpy.kinds.bound_at_times import FIXED
from distspmd.frontend.from_numpy.kinds.carried_choices import place_choice
from distspmd.frontend.from_numpy.kinds.carried_lists import own_list
from distspmd.frontend.from_numpy.kinds.carried_records import RECORD, record_place
from distspmd.frontend.from_numpy.kinds.carried_variables import Loop
from distspmd.frontend.from_numpy.kinds.first_arrays import is_of_others
from distspmd.frontend.from_numpy.kinds.text_choices import Texts, place_of_text
from distspmd.frontend.from_numpy.kinds.variables import ABSENT, readable
from distspmd.frontend.from_numpy.kinds.varying import ReadLoopAgain, Varying, varying_place
from distspmd.frontend.from_numpy.reader.bindings import is_written_first
from distspmd.frontend.tensor_ir.statements import SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import symbol
from distspmd.runtime.calls.form import rebuilt

_LONGEST = 64
"""The length of lists that a loop carries whole, at most."""


def place_of(interpreter: Context, name: str, before: Any, loop: Loop) -> Any:
    """What stands for a value in all iterations; ABSENT where it has to stay what it is."""
    tracer, kind = interpreter.tracer, loop.kind_of(name, before)
    if may_be_absent(before):
        is_fixed = kind == FIXED
        place = place_of if not is_fixed else _stays
        return place_choice(interpreter, name, before, lambda v: place(interpreter, name, v, loop))
    if kind == RECORD:
        return record_place(
            tracer, name, before, lambda part, value: place_of(interpreter, part, value, loop)
        )
    if isinstance(kind, Texts):
        return place_of_text(tracer, name, before, kind)
    if kind == "list":
        return own_list(interpreter, loop.node, name, before)
    if kind is None and (is_whole(before)):
        found = tracer.unique(readable(name))
        tracer.known.bounds[found] = (None, None)
        tracer.add(SetSymbol(found, sympy.sympify(before), INT64))
        return symbol(found)
    if _is_record(interpreter, before):
        values = [
            place_of(interpreter, f"{name}_{n}", v, loop) if _has_place(v) else v
            for n, v in enumerate(loop.firsts.get(f"{name}_{n}", v) for n, v in enumerate(before))
        ]
        return values if isinstance(before, list) else rebuilt(before, values)
    return _tensor_place(interpreter, name, before, loop) if is_carried(before) else ABSENT


def _tensor_place(interpreter: Context, name: str, before: object, loop: Loop) -> View:
    """The container of an array, or of a number that is no symbol."""
    tracer, kind = interpreter.tracer, loop.kinds.get(name)
    tensor = tracer.tensor(before)
    if isinstance(kind, Varying):
        return varying_place(tracer, readable(name), tensor, kind)
    if tensor.mask is not None:
        if name in interpreter.variables and is_written_first(loop.node, name):
            raise ReadLoopAgain(name, "free")
        raise CannotRoll(f"{name!r} is a choice by a mask")
    if isinstance(before, View) and kind is None:
        return before
    is_typed = tensor.run_type is not None
    dtype, weak = tensor.dtype, tensor.weak
    if isinstance(kind, tuple):
        dtype, weak, is_typed = kind
    view = tracer.fresh(readable(name), tensor.shape, dtype)
    view.weak = weak
    view.container.is_of_others = is_of_others(tracer, before)
    if is_typed:
        view.run_type = types = view_of(tracer.container(f"{readable(name)}_type", (), INT64))
        tracer.write(types, run_types.type_of(tensor))
    with tracer.binding():
        tracer.write(view, tensor, is_new=True)
    return view


def _stays(*_: object) -> Any:
    """The place of what has one value."""
    return ABSENT


def _is_record(interpreter: Context, value: object) -> bool:
    """Whether a value is a tuple, or a list of one variable, of what loops carry."""
    if not isinstance(value, tuple | list) or not any(map(_has_place, value)):
        return False
    if isinstance(value, tuple):
        return True
    every = [v for frame in interpreter.tracer.frames for v in frame.variables.values()]
    return len(value) <= _LONGEST and sum(v is value for v in every) == 1


def _has_place(value: object) -> bool:
    """Whether a part of a tuple or a list is carried; None becomes so, if an iteration sets it."""
    return value is None or is_carried(value) or may_be_none(value)


def is_carried(value: object) -> bool:
    """Whether a value is a number or an array, for which a place can stand."""
    kinds = bool | int | float | complex | np.generic | sympy.Basic | Tensor | np.ndarray
    return isinstance(value, kinds) and not is_of_none(value)
