"""One of several known values, of which the run decides: by a whole number, or by a text."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.joined_arrays import note_elements
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.known_keys import known_key
from distspmd.frontend.from_numpy.reader import texts
from distspmd.frontend.from_numpy.reader.mutation import before_missing

_NUMBERS = {bool, int, float, complex}


def at_index(run: Context, base: object, items: Any) -> Any:
    """A part of known values; of Python's numbers it is one, and of texts it is one of them."""
    tracer = run.tracer
    if isinstance(base, texts.Text) or (type(base) is str and isinstance(items, slice)):
        return texts.not_known() if has_data(items) else texts.of_each(base, lambda t: t[items])
    if _is_of_texts(base):
        return _text_at(tracer, base, items)
    whole = tracer.tensor(base)
    note_elements(tracer, whole, base)
    kinds = {type(v) for v in base} if isinstance(base, list | tuple | range) else set()
    is_in_map = tracer.map.straight is not None or tracer.map.parallel or tracer.guarded
    if isinstance(base, list | tuple) and isinstance(items, slice) and not is_in_map:
        if tracer.loops and id(base) in tracer.lists.born:
            raise CannotRoll("a part of a list that ends elsewhere in each iteration", base)
        weak = next(iter(kinds)) if len(kinds) == 1 and kinds <= _NUMBERS else None
        own = lists.of_array(run, type(base), whole, weak)  # 'l[:i] + [v]' has one element more
        return lists.read(run, own, items)
    found: Tensor = indexing.read(tracer, whole, items)
    if not found.ndim and len(kinds) == 1 and kinds <= _NUMBERS:
        (kind,) = kinds
        return Tensor((), found.dtype, found.element, kind)
    return found


def entry_of(run: Context, base: dict[Any, Any], key: object) -> Any:
    """An entry of a dictionary whose keys are known."""
    if isinstance(key, texts.Text):
        return _at_text(run.tracer, base, key)
    before_missing(run, base, known_key(run, base, key, "is asked for"))
    handler = run.functions.get(("subscript", type(base)))
    try:
        return base[key] if handler is None else handler(run, base, key)
    except (TypeError, KeyError) as problem:
        run.tracer.fail(problem)


def _at_text(tracer: Tracer, base: dict[Any, Any], key: texts.Text) -> Any:
    """The entry of a known dictionary under a text of which the run decides."""
    choice = texts.known_choice(key)
    if choice is None or not all(text in base for text in choice.texts):
        tracer.refuse("a dictionary gets a text with values of the run as a key")
    return choice.of_each([base[text] for text in choice.texts])


def _is_of_texts(base: object) -> bool:
    if isinstance(base, np.ndarray):
        return base.dtype.kind == "U" and base.ndim == 1
    if isinstance(base, list | tuple):
        return bool(base) and all(type(value) is str for value in base)
    return type(base) is str


def _text_at(tracer: Tracer, base: Any, items: object) -> texts.Text:
    """The text, or the letter, that has a number."""
    every = [*map(str, base)]
    which = indexing.read(tracer, tracer.tensor(np.arange(len(every))), items)
    if which.ndim:
        tracer.refuse("a part of a list of texts, of which the run decides where it ends")
    return texts.one_at(every, tracer.stored_anew(which, "which"))
