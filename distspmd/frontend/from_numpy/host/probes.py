"""What an answer of a library consists of, found out by asking for one when a program is read.

The library is asked about arrays of the same shapes and types, twice, with other numbers in them.
What two answers have in common is taken to hold for the run, which checks it: an answer of another
form ends the program with an error.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.operations import DType
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.runtime.host.library_calls import Session, leaves
from distspmd.runtime.host.library_calls import form_of as shape_of_answer

_SIZES = ((11, 17, 23, 31, 41), (13, 19, 29, 37, 43), (12, 18, 26, 34, 42))
"""What lengths that are not known are for the libraries, in each of the trials."""


@dataclass(frozen=True)
class Leaf:
    """An array or a number of an answer.

    Attributes:
        shape: its extents.
        dtype: of its elements.
        weak: the type of Python that a number has.
        most: how long the first dimension is at most, if the run decides it.
    """

    shape: tuple[Length, ...]
    dtype: DType
    weak: type | None
    most: Length | None = None


@dataclass(frozen=True)
class Form:
    """What an answer consists of: one as an example, and its leaves."""

    example: Any
    text: str
    leaves: tuple[Leaf, ...]


class NoForm(Exception):
    """An answer of which the form is not found."""


class OfManyParts(NoForm):
    """An answer of which the run decides how many parts it has."""


@dataclass(frozen=True)
class Operand:
    """An array that the library gets; ``known`` are its elements, or what they are like."""

    shape: tuple[Length, ...]
    dtype: DType
    weak: type | None = None
    known: Any = None


def form_of(tree: object, operands: Sequence[Operand], most: Callable[..., Any]) -> Form:
    """What the answer to a question consists of.

    Args:
        tree: the question.
        operands: what it is asked about.
        most: how long a leaf can be of which the run decides the length, by its number and the
            form of the example; None where the run does not decide it.

    Raises:
        NoForm: the library does not take such arrays, or its answers differ in form.
    """
    sizes = [_sizes_of(operands, trial) for trial in _SIZES]
    failure = ""
    for variant in _VARIANTS:
        try:
            with _in_silence():
                given = [_arrays(operands, variant, n, known) for n, known in enumerate(sizes)]
                answers = [Session(arrays).value(tree) for arrays in given]
        except Exception as problem:
            failure = failure or f"{type(problem).__name__}: {problem}"
            continue
        lengths = [{n: length for length, n in known.items()} for known in sizes]
        return _common(answers, lengths, most)
    raise NoForm(failure)


@contextlib.contextmanager
def _in_silence() -> Iterator[None]:
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def _sizes_of(operands: Sequence[Operand], trial: Sequence[int]) -> dict[Any, int]:
    every = [n for operand in operands for n in operand.shape if not isinstance(n, int)]
    distinct = list(dict.fromkeys(map(sympy.sympify, every)))
    if len(distinct) > len(trial):
        raise NoForm("too many lengths that are not known")
    return dict(zip(distinct, trial, strict=False))


def _arrays(operands: Sequence[Operand], variant: Any, seed: int, sizes: Any) -> list[Any]:
    rng = np.random.default_rng(seed)
    found = []
    for operand in operands:
        if operand.known is not None:
            found.append(operand.known.copy()[()])
            continue
        shape = tuple(n if isinstance(n, int) else sizes[sympy.sympify(n)] for n in operand.shape)
        made = variant(rng, shape, operand.dtype).astype(operand.dtype)
        found.append(operand.weak(made[()]) if operand.weak else made[()])
    return found


def _uniform(rng: Any, shape: Any, dtype: DType) -> Any:
    if dtype.kind in "iu":
        return rng.integers(1, 8, shape)
    return rng.random(shape) < 0.5 if dtype.kind == "b" else rng.random(shape)


def _small(rng: Any, shape: Any, dtype: DType) -> Any:
    return rng.integers(1, 3, shape) if dtype.kind in "iu" else _uniform(rng, shape, dtype)


def _ascending(rng: Any, shape: Any, dtype: DType) -> Any:
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    line = np.cumsum(rng.random(shape) + 0.5, axis=0)
    return np.ceil(line) if dtype.kind in "iu" else line


def _definite(rng: Any, shape: Any, dtype: DType) -> Any:
    found = _uniform(rng, shape, dtype)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        found = found @ np.swapaxes(found, -1, -2) + shape[-1] * np.eye(shape[-1])
    return found


def _between(rng: object, shape: Any, dtype: DType) -> Any:
    """Ascending numbers from 0 to 1: places, and what is between them."""
    if dtype.kind in "iub" or not shape:
        return _uniform(rng, shape, dtype)
    return np.linspace(np.zeros(shape[1:]), np.ones(shape[1:]), shape[0])


def _symmetric(rng: Any, shape: Any, dtype: DType) -> Any:
    """Distances: squares with nothing on their diagonals."""
    found = _uniform(rng, shape, dtype)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        found = (found + np.swapaxes(found, -1, -2)) * (1 - np.eye(shape[-1]))
    return found


def _upper_band(rng: Any, shape: Any, dtype: DType) -> Any:
    """Diagonals of a definite matrix, of which the main one is the last."""
    found = 0.01 * rng.random(shape)
    if shape:
        found[-1] += 1
    return found


def _lower_band(rng: Any, shape: Any, dtype: DType) -> Any:
    return np.flip(_upper_band(rng, shape, dtype), axis=0) if shape else rng.random(shape)


def _ones(rng: object, shape: object, dtype: DType) -> Any:
    return np.ones(shape)


def _counted(rng: Any, shape: Any, dtype: DType) -> Any:
    count = int(np.prod(shape))
    return rng.permutation(count).reshape(shape) + (0 if dtype.kind in "iu" else rng.random(shape))


_VARIANTS: tuple[Any, ...] = (
    *(_uniform, _small, _ascending, _definite, _counted),
    *(_between, _symmetric, _upper_band, _lower_band, _ones),
)
"""What the arrays are like, of which the first is taken that the library takes."""


def _common(
    answers: Sequence[Any], lengths: Sequence[dict[int, Any]], most: Callable[..., Any]
) -> Form:
    parts = [leaves(answer) for answer in answers]
    if len(set(map(shape_of_answer, answers))) > 1:
        raise OfManyParts("it consists of more or less parts, as the values decide")
    found = []
    for number, alike in enumerate(zip(*parts, strict=True)):
        every = [np.asarray(leaf) for leaf in alike]
        first, room = every[0], most(number, every[0])
        if any(a.dtype != first.dtype or a.ndim != first.ndim for a in every):
            raise NoForm("its type, or the number of its dimensions, is for the values to decide")
        shapes = [
            tuple(map(known.get, a.shape, a.shape)) for a, known in zip(every, lengths, strict=True)
        ]
        if len({shape[room is not None :] for shape in shapes}) > 1:
            raise NoForm(f"its shape is for the values to decide ({shapes[0]}, {shapes[1]})")
        is_python = all(type(a) in (bool, int, float, complex) for a in alike)
        found.append(Leaf(shapes[0], first.dtype, type(alike[0]) if is_python else None, room))
    return Form(answers[0], shape_of_answer(answers[0]), tuple(found))
