"""What programs ask Python's libraries while they run: a call of SciPy, say, on arrays of the run.

A question is JSON: a tree of what is called with which arguments. Numbers and texts stand for
themselves; everything else is a dictionary of one key: ``value`` names an array of the run, and
``call``, ``get``, ``item`` and ``operator`` are what Python does with what is below. The library
itself computes the answer. What it consists of has been found out when the program was read; an
answer of another form is an error.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
import operator
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.runtime.host import host_regions

ERRORS = (np.linalg.LinAlgError, ValueError, RuntimeError, TypeError, IndexError, KeyError)
"""What an answer that fails is told as: the first of these that it is, by place, from 1 on."""
OTHER_FORM = "it gave {found}, where {wanted} had been expected when the program was read"
SAID = "it said: "
"""How an error ends that a program raises after an answer: what the library said follows."""
_NUMBERS = (bool, int, float, complex, np.generic)
_KEPT: dict[Any, Any] = {}
"""Objects that answers have made of arrays, by these: a tree of points is asked many times."""
_MOST_KEPT = 8


def pickled(value: Any) -> dict[str, str]:
    """What is known before the run, in a question."""
    return {"pickle": base64.b85encode(pickle.dumps(value, protocol=4)).decode()}


def leaves(value: Any) -> list[Any]:
    """The arrays and numbers of an answer, in order; the rest of it is left out."""
    if isinstance(value, np.ndarray):
        return [value] if value.dtype.kind in "biufc" and value.dtype.itemsize <= 16 else []
    if isinstance(value, _NUMBERS):
        return [value]
    if isinstance(value, Mapping):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in leaves(each)] + [
            leaf for name in extra_fields(value) for leaf in leaves(getattr(value, name))
        ]
    return [value.toarray()] if is_sparse(value) else []


def form_of(value: Any) -> str:
    """Where the arrays and numbers of an answer are, and of what the rest of it is."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {form_of(value[key])}" for key in value) + "}"
    if isinstance(value, tuple | list):
        more = [form_of(getattr(value, name)) for name in extra_fields(value)]
        return "(" + ", ".join([*map(form_of, value), *more]) + ")"
    return "x" if leaves(value) else type(value).__name__


def extra_fields(value: Any) -> Sequence[str]:
    """The names of what a named tuple of SciPy has beside its elements."""
    return tuple(getattr(value, "_extra_fields", ()))


def is_sparse(value: Any) -> bool:
    """Whether something is a sparse matrix of SciPy."""
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "toarray")


class Session:
    """The inputs of one question, and what evaluates it."""

    def __init__(self, inputs: Sequence[Any], callbacks: Callable[..., Any] | None = None) -> None:
        self.inputs = [_own(array) for array in inputs]
        self.callbacks = callbacks

    def value(self, tree: Any) -> Any:
        """What a tree stands for."""
        if not isinstance(tree, dict):
            return tree
        ((kind, given),) = tree.items()
        return getattr(self, f"_{kind}")(given)

    def _value(self, number: int) -> Any:
        return self.inputs[number]

    def _pickle(self, text: str) -> Any:
        return _unpickled(text)

    def _import(self, path: str) -> Any:
        return _imported(path)

    def _host(self, named: Sequence[str]) -> Any:
        from distspmd.runtime.host.host_functions import function_of

        return function_of(*named)

    def _kept(self, name: str) -> Any:
        return host_regions.kept_object(name)

    def _changed(self, part: Any) -> Any:
        return np.array(self.value(part))

    def _fresh(self, part: Any) -> Any:
        return host_regions.fresh(self.value(part))

    def _tuple(self, parts: Sequence[Any]) -> Any:
        return tuple(map(self.value, parts))

    def _list(self, parts: Sequence[Any]) -> Any:
        return list(map(self.value, parts))

    def _dict(self, pairs: Sequence[Any]) -> Any:
        return {key: self.value(part) for key, part in pairs}

    def _array(self, part: Any) -> Any:
        return np.asarray(self.value(part))

    def _slice(self, parts: Sequence[Any]) -> Any:
        return slice(*map(self.value, parts))

    def _call(self, parts: Sequence[Any]) -> Any:
        called, given, named = parts
        arguments = [self.value(each) for each in given]
        return self.value(called)(*arguments, **{k: self.value(v) for k, v in named.items()})

    def _get(self, parts: Sequence[Any]) -> Any:
        base, name = parts
        return getattr(self._made_once(base), name)

    def _item(self, parts: Sequence[Any]) -> Any:
        base, index = parts
        return self._made_once(base)[self.value(index)]

    def _operator(self, parts: Sequence[Any]) -> Any:
        name, *operands = parts
        return getattr(operator, name)(*map(self.value, operands))

    def _function(self, number: int) -> Any:
        assert self.callbacks is not None
        return functools.partial(self.callbacks, number)

    def _made_once(self, tree: Any) -> Any:
        """An object of which something is asked, made once of the same arrays."""
        if not isinstance(tree, dict) or "call" not in tree:
            return self.value(tree)
        used = [self.inputs[n] for n in numbers_of(tree)]
        key = (
            json.dumps(tree),
            *((a.shape, a.dtype.str, a.tobytes()) for a in map(np.asarray, used)),
        )
        if key not in _KEPT:
            made = self.value(tree)
            if len(_KEPT) >= _MOST_KEPT:
                del _KEPT[next(iter(_KEPT))]
            _KEPT[key] = made
        return _KEPT[key]


def _own(array: Any) -> Any:
    """A copy, which a library may change; a number where there are no dimensions."""
    return np.array(array)[()] if isinstance(array, np.ndarray) else array


def numbers_of(tree: Any) -> list[int]:
    """The numbers of the arrays that a tree names."""
    if isinstance(tree, dict):
        if "value" in tree and isinstance(tree["value"], int):
            return [tree["value"]]
        return [n for part in tree.values() for n in numbers_of(part)]
    if isinstance(tree, list | tuple):
        return [n for part in tree for n in numbers_of(part)]
    return []


@functools.lru_cache(maxsize=256)
def _unpickled(text: str) -> Any:
    return pickle.loads(base64.b85decode(text))


@functools.lru_cache(maxsize=256)
def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


@functools.lru_cache(maxsize=256)
def read_question(text: bytes) -> Any:
    """A question of its text."""
    return json.loads(text)


def write_answer(value: Any, form: str, outputs: Sequence[Any], lengths: Mapping[int, int]) -> None:
    """Write the parts of an answer to the outputs.

    Args:
        value: that the library gave.
        form: that it has to have.
        outputs: arrays, one for each leaf, and then those for the numbers of elements.
        lengths: by the number of an output that may lack elements of its first dimension, where
            the number of those that are there is written.

    Raises:
        ValueError: the answer has another form.
    """
    if form_of(value) != form:
        raise ValueError(OTHER_FORM.format(found=form_of(value), wanted=form))
    for number, (leaf, target) in enumerate(zip(leaves(value), outputs, strict=False)):
        array = np.asarray(leaf)
        if array.dtype != target.dtype and not np.can_cast(array.dtype, target.dtype, "safe"):
            raise ValueError(OTHER_FORM.format(found=array.dtype, wanted=target.dtype))
        first = 1 if number in lengths else 0
        if array.ndim != target.ndim or array.shape[first:] != target.shape[first:]:
            found, wanted = (f"an array of the shape {a.shape}" for a in (array, target))
            raise ValueError(OTHER_FORM.format(found=found, wanted=wanted))
        if number in lengths:
            if len(array) > len(target):
                raise ValueError(
                    f"it gave {len(array)} elements, where there are {len(target)} at most"
                )
            outputs[lengths[number]][...] = len(array)
            target[: len(array)] = array
        else:
            target[...] = array


def answer(question: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """Ask the library; the first output says how it went: 0, or which error it was.

    Returns:
        what the error says.
    """
    status, *others = outputs
    inputs = [
        array.item() if is_python else array
        for array, (_, _, is_python) in zip(inputs, question["inputs"], strict=True)
    ]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _ask(question, inputs, others)
        status[...] = 0
    except Exception as problem:
        kinds = (n for n, kind in enumerate(ERRORS, 1) if isinstance(problem, kind))
        status[...] = next(kinds, len(ERRORS) + 1)
        return f"{type(problem).__name__}: {problem}"
    return ""


def _ask(question: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    if "talk" in question:
        from distspmd.runtime.host.callbacks import talk

        talk(question, inputs, outputs)
        return
    lengths = {int(number): place for number, place in question["lengths"].items()}
    write_answer(Session(inputs).value(question["ask"]), question["form"], outputs, lengths)
