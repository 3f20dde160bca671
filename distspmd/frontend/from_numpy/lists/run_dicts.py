"""Dictionaries whose keys the run decides: lists of pairs, in which keys are looked for.

A key costs a comparison with each of the others. Entries are in the order in which Python has them.
What is asked here of a list is passed on, so that whoever reads an index asks this module alone.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import checks
from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.run_types import choose_type
from distspmd.frontend.from_numpy.arrays.transcript import is_taken
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.list_forms import UNKNOWN, Leaf, Row
from distspmd.frontend.from_numpy.lists.run_lists import RunDict, RunList, must_be_known, numbers_of
from distspmd.frontend.tensor_ir.statements import Block, Branch

PAIR = Row(tuple, (Leaf(np.dtype(np.int64), int), Leaf(np.dtype(np.int64), int)))


# -- entries --------------------------------------------------------------------------------------


def _look_up(run: Context, own: RunDict, key: object) -> tuple[Any, Any]:
    """Whether there is a key, and the place of its entry; any place where there is none."""
    tracer = run.tracer
    there = lists.equal_to(run, own.keys(), key)
    if there is None:  # a key of another form
        return False, 0
    there = tracer.stored(tracer.tensor(there))
    found = tracer.stored(tracer.tensor(run.call(np.any, [there], {})))
    place = tracer.stored(tracer.tensor(run.call(np.argmax, [there], {})))
    return Tensor((), np.dtype(bool), found.element, bool), place


def _value_at(run: Context, own: RunDict, place: object) -> Any:
    """The value of an entry at a place that a search has found; any value where it found none."""
    inside = sympy.Max(0, sympy.Min(run.tracer.as_whole(place), sympy.sympify(own.room) - 1))
    return lists.element_at(run, own, lists.named_place(run.tracer, own, inside))[1]


def _must_be_there(run: Context, there: object) -> None:
    if run.tracer.guarded:
        return  # what is read where it may not be is not used
    missing = run.call(np.logical_not, [there], {})
    can_go_on = is_taken(run.tracer, "KeyError")
    what = "the dictionary has no such key"
    checks.end_if(run, missing, "KeyError", what, can_go_on=can_go_on)


def _default(run: Context, own: RunDict) -> Any:
    """What a missing entry is taken for; None where that is an error."""
    if issubclass(own.kind, Counter):
        return 0
    found = own.default() if own.default is not None else None
    if isinstance(found, list | dict | set):
        run.tracer.refuse(
            f"a {type(found).__name__} for each key that the run decides; use an array of the "
            "number of the group that each element is in, and a mask for each group"
        )
    return found


def _put(run: Context, own: RunDict, key: object, value: object, there: Any, place: object) -> None:
    """Give an entry its value, or add it where the key is not there."""
    tracer = run.tracer
    if there is False:
        list_changes.append(run, own, (key, value))
        return
    value, key = run.settled_parts(value), run.settled_parts(key)
    condition = tracer.condition(there)
    then, other = Block(), Block()
    with tracer.within(then):
        (old, _) = lists.element_at(run, own, lists.place_in(run, own, place))
        list_changes.write(run, own, place, (old, value))  # the first one of equal keys stays
    with tracer.within(other):
        if own.iterated:
            checks.end(run, "RuntimeError", "dictionary changed size during iteration")
        else:
            list_changes.append(run, own, (key, value))
    tracer.add(Branch(condition, then, other))


# -- what programs do with indices ----------------------------------------------------------------


def read(run: Context, own: RunList, items: object) -> Any:
    """``own[items]``, of a list or a dictionary."""
    if not isinstance(own, RunDict):
        return lists.read(run, own, items)
    default = _default(run, own)
    if default is not None and not issubclass(own.kind, Counter):
        return _set_default(run, own, items, default)
    if default is not None:
        return _get(run, own, items, default)
    must_be_known(run.tracer, own)
    there, place = _look_up(run, own, items)
    _must_be_there(run, there)
    return _value_at(run, own, place)


def write(run: Context, own: RunList, items: object, value: object) -> None:
    """``own[items] = value``, of a list or a dictionary."""
    if not isinstance(own, RunDict):
        list_changes.write(run, own, items, value)
    elif own.form is UNKNOWN:
        list_changes.append(run, own, (items, value))  # the next reading knows the form
    else:
        _put(run, own, items, value, *_look_up(run, own, items))


def augment(run: Context, own: RunList, items: object, op: ast.operator, value: object) -> None:
    """``own[items] op= value``, of a list or a dictionary."""
    if not isinstance(own, RunDict):
        list_changes.augment(run, own, items, op, value)
        return
    default = _default(run, own)
    if own.form is UNKNOWN and default is not None:
        list_changes.append(run, own, (items, run.binary(op, default, value)))
        return
    must_be_known(run.tracer, own)
    there, place = _look_up(run, own, items)
    if default is None:
        _must_be_there(run, there)
        old = _value_at(run, own, place)
    else:
        old = _or_default(run, own, there, place, default)
    _put(run, own, items, run.binary(op, old, value), there, place)


def _or_default(run: Context, own: RunDict, there: object, place: object, default: object) -> Any:
    """The value of an entry, or a default in the type of values."""
    form = own.values().form
    if not isinstance(form, Leaf):
        run.tracer.refuse("a tuple, or a list, for each key that the run decides, with a default")
    if there is False:
        return default
    tracer = run.tracer
    found, other = _value_at(run, own, place), converted(tracer, default, form.dtype)
    made = choose(tracer, tracer.tensor(there), tracer.tensor(found), other)
    return made if form.shape else Tensor((), made.dtype, made.element, form.weak)


def delete(run: Context, own: RunList, items: object) -> None:
    """``del own[items]``, of a list or a dictionary."""
    if isinstance(own, RunDict):
        _pop(run, own, items)
    else:
        list_changes.delete(run, own, items)


# -- methods --------------------------------------------------------------------------------------


def call(run: Context, method: lists.ListMethod, arguments: Sequence[Any], keywords: Any) -> Any:
    """What a method of a list or a dictionary gives.

    Raises:
        Refusal: it is not covered.
    """
    own = method.owner
    if not isinstance(own, RunDict):
        return list_changes.call(run, method, arguments, keywords)
    handler = _METHODS.get(method.name)
    of_counter = method.name in ("most_common", "total")
    if handler is None or (of_counter and not issubclass(own.kind, Counter)):
        run.tracer.refuse(
            f"the method {method.name!r} of a {own.kind.__name__} whose keys the run decides is "
            "not covered"
        )
    return handler(run, own, *arguments, **keywords)


def _get(run: Context, own: RunDict, key: object, default: object = None) -> Any:
    """``own.get(key, default)``."""
    tracer = run.tracer
    if default is None:
        tracer.refuse(
            "get(key) of a dictionary whose keys the run decides, which may be None; give it what "
            "stands for an entry that is missing, get(key, 0) say"
        )
    if own.form is UNKNOWN:
        return default
    there, place = _look_up(run, own, key)
    if there is False:
        return default
    if not isinstance(own.values().form, Leaf):
        tracer.refuse("get(key, default) of a dictionary of tuples or lists; write if key in d")
    found, other = tracer.tensor(_value_at(run, own, place)), tracer.tensor(default)
    holds = tracer.tensor(there)
    return choose_type(holds, found, other, choose(tracer, holds, found, other))


def _set_default(run: Context, own: RunDict, key: object, default: object = None) -> Any:
    """``own.setdefault(key, default)``."""
    if own.form is UNKNOWN:
        list_changes.append(run, own, (key, default))
        return default
    there, place = _look_up(run, own, key)
    tracer = run.tracer
    missing = Block()
    with tracer.within(missing):
        if own.iterated:
            checks.end(run, "RuntimeError", "dictionary changed size during iteration")
        else:
            list_changes.append(run, own, (key, default))
    if there is False:
        run.tracer.refuse("setdefault of a key that has another form than the others")
    tracer.add(Branch(f"(not {tracer.condition(there)})", missing, Block()))
    last = run.binary(ast.Sub(), lists.length_of(run, own), 1)
    return _value_at(run, own, choose(tracer, there, place, tracer.tensor(last)))


def _pop(run: Context, own: RunDict, key: object, *default: object) -> Any:
    """``own.pop(key)``."""
    if default:
        run.tracer.refuse(
            "pop(key, default) of a dictionary whose keys the run decides; write if key in d"
        )
    must_be_known(run.tracer, own)
    there, place = _look_up(run, own, key)
    _must_be_there(run, there)
    return list_changes.pop(run, own, place)[1]


def _copy(run: Context, own: RunDict) -> RunDict:
    made = lists.made_of_columns(run, own.kind, own.form, lists.columns_of(run.tracer, own))
    assert isinstance(made, RunDict)
    made.default = own.default
    return made


def _update(run: Context, own: RunDict, values: Any = (), **named: Any) -> None:
    """``own.update(values)``, of a dictionary that is known, or pairs."""
    if issubclass(own.kind, Counter) or isinstance(values, RunList):
        run.tracer.refuse(
            "update of a Counter, or by a dictionary whose keys the run decides; write a loop"
        )
    for key, value in {**dict(values), **named}.items():
        write(run, own, key, value)


def _most_common(run: Context, own: RunDict, n: object = None) -> RunList:
    """``own.most_common(n)``: of equal counts those first that were met first."""
    tracer = run.tracer
    must_be_known(tracer, own)
    counts = lists.columns_of(tracer, own.values())[0]
    down = combine(tracer, np.negative, [counts])
    order = tracer.stored(run.call(np.argsort, [down], {"kind": "stable"}))
    columns = [run.call(np.take, [c, order, 0], {}) for c in lists.columns_of(tracer, own)]
    made = lists.made_of_columns(run, list, own.form, columns)
    return made if n is None else lists.read(run, made, slice(None, n))


def _total(run: Context, own: RunDict) -> Any:
    return lists.total(run, own.values())


def _known(name: str) -> Callable[[Context, RunDict], RunList]:
    def view(run: Context, own: RunDict) -> RunList:
        must_be_known(run.tracer, own)
        found: RunList = getattr(own, name)()
        return found

    return view


_METHODS: dict[str, Callable[..., Any]] = {
    "get": _get,
    "setdefault": lambda run, own, key, value=0: _set_default(run, own, key, value),
    "pop": _pop,
    "popitem": lambda run, own: list_changes.pop(run, own),
    "keys": _known("keys"),
    "values": _known("values"),
    "items": _known("items"),
    "clear": list_changes.METHODS["clear"],
    "copy": _copy,
    "update": _update,
    "most_common": _most_common,
    "total": _total,
}


# -- birth ----------------------------------------------------------------------------------------


def of_pairs(run: Context, site: object, kind: type, pairs: Sequence[Any]) -> RunDict:
    """A dictionary of pairs, some keys of which are not known."""
    own = lists.empty(run, site, kind, 0)
    assert isinstance(own, RunDict)
    for key, value in pairs:
        write(run, own, key, value)
    return own


def counted(run: Context, site: object, values: object) -> Any:
    """``Counter(values)``, of numbers that the run decides, in the order in which they are met."""
    tracer = run.tracer
    weak = None
    column: Tensor
    if isinstance(values, RunList):
        what = "a Counter of tuples or arrays whose content the run decides"
        column = numbers_of(run, values, what)
        weak = getattr(values.form, "weak", None)
    else:
        column = tracer.tensor(values)
        kinds = {getattr(v, "weak", type(v)) for v in values} if type(values) is list else {None}
        weak = next(iter(kinds)) if len(kinds) == 1 else None
    if column.ndim != 1:
        tracer.refuse("a Counter of rows of an array: they have no hash in Python")
    options = {"return_index": True, "return_counts": True}
    keys, first, counts = run.call(np.unique, [column], options)
    order = tracer.stored(run.call(np.argsort, [first], {}))
    columns = [run.call(np.take, [each, order, 0], {}) for each in (keys, counts)]
    form = Row(tuple, (Leaf(column.dtype, weak), Leaf(INT64, int)))
    return lists.made_of_columns(run, Counter, form, columns, site)


def has_run_keys(pairs: Sequence[Any]) -> bool:
    """Whether a key of some pairs is not known before the run."""
    return any(isinstance(p, Sequence) and len(p) == 2 and has_data(p[0]) for p in pairs)
