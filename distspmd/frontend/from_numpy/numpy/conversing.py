"""Solvers of SciPy that ask for values of functions of the program: their statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.arithmetic import converted
from distspmd.frontend.from_numpy.arrays.shapes import size_of
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.asked import ask
from distspmd.frontend.from_numpy.library import conversations
from distspmd.frontend.from_numpy.numpy.asking import Question
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.tensor_ir.statements import Length

_PYTHON = {
    float: np.dtype(float),
    complex: np.dtype(complex),
    int: INT64,
    bool: np.dtype(bool),
}


@dataclass(frozen=True, eq=False)
class Talk:
    """A conversation that has begun.

    Attributes:
        name: of the function of the library.
        size: of the vectors that it asks about.
        values: shapes of the functions' values.
        dtype: of their elements.
        results: names, shapes and types of the parts of its result.
        first: what it asks first: the number of a function, and its argument.
    """

    name: str
    size: Length
    dtype: DType
    values: tuple[tuple[Length, ...], ...]
    results: tuple[tuple[str, tuple[Length, ...], Any], ...]
    first: tuple[Tensor, Tensor]


@function(conversations.begun)
def _begun(
    run: Context,
    called: str,
    given: Sequence[Any],
    named: Mapping[str, Any],
    start: object,
    values: Sequence[Any],
    results: Sequence[Any],
    first: Mapping[int, Any],
) -> Talk:
    question = Question(run)
    trees = [question.tree(value) for value in given]
    parts = [{"import": called}, trees, {k: question.tree(v) for k, v in named.items()}]
    vector = run.tracer.tensor(start)
    begin = question.tree(vector)["value"]
    dtype = vector.dtype if vector.dtype.kind == "c" else np.dtype(float)
    told = {
        "talk": "begin",
        "dtype": dtype.str,
        "ask": {"call": parts},
        "start": begin,
        "values": [_known(run, shape) for shape in values],
        "first": {n: question.tree(run.tracer.tensor(v))["value"] for n, v in first.items()},
    }
    size = size_of(question.data[begin].shape)
    name = called.rpartition(":")[2]
    found = _asked(run, name, told, question.data, size, dtype)
    shapes = tuple(tuple(shape) for shape in values)
    return Talk(name, size, dtype, shapes, tuple(map(tuple, results)), found)


def _known(run: Context, shape: Sequence[Any]) -> list[int]:
    if not all(isinstance(n, int) for n in shape):
        run.tracer.refuse("a solver of a library gets values of a size that is not known")
    return list(shape)


def _asked(
    run: Context,
    name: str,
    told: Mapping[str, Any],
    data: Sequence[Tensor],
    size: Length,
    dtype: DType,
) -> tuple[Tensor, Tensor]:
    outputs: list[tuple[tuple[Length, ...], DType]] = [((), INT64), ((size,), dtype)]
    which, place = ask(run, name, told, data, outputs, where="all")
    return run.call(int, [which], {}), place


@function(conversations.next_of)
def _next_of(run: Context, talk: Talk) -> Any:
    return talk.first


@function(conversations.replied)
def _replied(run: Context, talk: Talk, number: int, value: object) -> Any:
    tensor = run.tracer.tensor(value)
    shape = talk.values[number]
    if tuple(tensor.shape) != shape and size_of(tensor.shape) != size_of(shape):
        run.tracer.refuse(
            f"{talk.name} gets a value of the shape {tuple(tensor.shape)} of a function whose "
            f"values have the shape {shape}"
        )
    if tensor.dtype.kind == "c" and talk.dtype.kind != "c":
        run.tracer.refuse(f"{talk.name} of a function whose values are complex numbers")
    plain = converted(run.tracer, tensor, talk.dtype)
    return _asked(run, talk.name, {"talk": "reply"}, [plain], talk.size, talk.dtype)


@function(conversations.ended)
def _ended(run: Context, talk: Talk) -> Any:
    """The parts of the result: a number, or a tuple where there are several."""
    told = {
        "talk": "end",
        "parts": [name for name, _, _ in talk.results],
        "form": "(" + ", ".join("x" for _ in talk.results) + ")",
        "lengths": {},
    }
    outputs = [(tuple(shape), _PYTHON.get(kind, kind)) for _, shape, kind in talk.results]
    found = ask(run, talk.name, told, [], outputs, where="all")
    return tuple(
        run.call(kind, [each], {}) if kind in _PYTHON else each
        for each, (_, _, kind) in zip(found, talk.results, strict=True)
    )
