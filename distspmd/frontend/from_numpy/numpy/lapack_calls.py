"""What LAPACK computes, on stacks of matrices: a statement for each call, and what it reports."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from distspmd.expressions.ir import Expression, apply
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.arithmetic import converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.lengths import fewest, neutral_outside, rooms
from distspmd.frontend.from_numpy.arrays.transcript import shape_text
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    axis,
    index_expression,
    make_view,
    number,
    view_of,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.tensor_ir.statements import Container, Index, Length, Library
from distspmd.frontend.tensor_ir.whole_numbers import same
from distspmd.nodes.lapack import FUNCTIONS, INFO, Lapack
from distspmd.nodes.lapack_together import LapackTogether
from distspmd.plans.dealt_matrix import TOGETHER
from distspmd.plans.tall_matrix import ROWS
from distspmd.runtime.compilers.scalapack import find_scalapack

SINGULAR = "Singular matrix"
NOT_SQUARE = "Last 2 dimensions of the array must be square"


def real_of(dtype: DType) -> DType:
    """The type of the parts of complex numbers, or a real type itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def inexact(run: Context, *tensors: Tensor) -> DType:
    """The type in which NumPy's linear algebra computes: whole numbers become float64."""
    kinds = [t.dtype if t.dtype.kind in "fc" else np.dtype(np.float64) for t in tensors]
    return np.result_type(*kinds)


def end_where_they_differ(
    run: Context, one: Length, other: Length, kind: str, message: str
) -> None:
    """End the program with an error where two lengths differ of which data decide one."""
    tracer = run.tracer
    if not same(one, other) and tracer.is_decided_by_data(one, other):
        differ = run.call(np.not_equal, [tracer.whole(one), tracer.whole(other)], {})
        end_if(run, differ, kind, message, can_go_on=True)


def matrices(run: Context, value: object, name: str, *, square: bool = False) -> Tensor:
    """An operand as a stack of matrices.

    Raises:
        Refusal: it has fewer than two dimensions, or the matrices are not square.
    """
    tensor: Tensor = run.tracer.tensor(value)
    if tensor.mask is not None:
        run.tracer.refuse(f"{name} of the elements that a mask chooses")
    if tensor.ndim < 2:
        run.tracer.refuse(
            f"{name}: LinAlgError: {tensor.ndim}-dimensional array given. Array must be at least "
            "two-dimensional"
        )
    if square:
        last = tensor.shape[-2:]
        if not same(*last) and all(isinstance(n, int) for n in last):
            run.tracer.refuse(
                f"{name}: LinAlgError: {NOT_SQUARE}, but the shape is {shape_text(tensor.shape)}"
            )
        end_where_they_differ(run, last[0], last[1], "LinAlgError", NOT_SQUARE)
    known: Tensor = tensor
    return known


def whole_container(run: Context, tensor: Tensor, dtype: DType) -> Container:
    """A container that has a tensor, converted, and nothing else."""
    tracer = run.tracer
    if tensor.dtype != dtype:
        tensor = converted(tracer, tensor, dtype)
    if isinstance(tensor, View) and tensor.is_whole:
        return tensor.container
    stored: View = tracer.stored_anew(tensor, "operand")
    return stored.container


BY_BLOCKS = frozenset(["solve", "inverse", "cholesky", "logarithm_of_determinant"])
"""What gives the same of a matrix, and the identity, if an identity is beside it in a block."""


def _rooms(run: Context, terms: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, Length]:
    """The most that the lengths can be that data decide, by letters.

    What has one letter is of one length, and so is its room: the least of what each operand has.
    """
    tracer = run.tracer
    lengths: dict[str, list[Length]] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for letter, n in zip(term, tensor.shape[tensor.ndim - len(term) :], strict=True):
            lengths.setdefault(letter, []).append(n)
    return {
        letter: fewest([tracer.capacity(n) for n in own])
        for letter, own in lengths.items()
        if tracer.is_decided_by_data(*own)
    }


def _in_room(
    run: Context,
    function: str,
    tensor: Tensor,
    dtype: DType,
    term: str,
    rooms: Mapping[str, Length],
) -> Tensor:
    """An operand of which data decide the size, in a container of the size that it can have.

    Outside of it there is the identity, or zero in what is no square matrix.

    Args:
        run: the interpreter.
        function: of LAPACK.
        tensor: the operand.
        dtype: in which it is taken.
        term: its letters.
        rooms: what :func:`_rooms` found.

    Raises:
        Refusal: the function gives something else of such a matrix.
    """
    tracer = run.tracer
    lead = tensor.ndim - len(term)
    core = tensor.shape[lead:]
    if not tracer.is_decided_by_data(*tensor.shape) and not rooms.keys() & {*term}:
        return tensor
    of_rows = function == "least_squares" and not tracer.is_decided_by_data(*core[1:])
    if tracer.is_decided_by_data(*core) and function not in BY_BLOCKS and not of_rows:
        tracer.refuse(
            f"a matrix of which the run decides the size, in {function!r} of LAPACK; write zeros "
            "or ones outside of it, in a matrix whose size is known"
        )

    def neutral(index: tuple[Index, ...]) -> Expression:
        if term != "nn":
            return number(0, dtype)
        row, column = index[-2:]
        if isinstance(row, int) and isinstance(column, int):
            return number(int(row == column), dtype)
        equal = apply("equal", index_expression(row), index_expression(column))
        return apply("where", equal, number(1, dtype), number(0, dtype))

    room = [tracer.capacity(n) for n in tensor.shape[:lead]]
    room += [rooms.get(letter, n) for letter, n in zip(term, core, strict=True)]
    return neutral_outside(converted(tracer, tensor, dtype), room, neutral, tracer.known.bounds)


LARGE = 256
"""Rows of a matrix from which on ranks factorise it together."""


def is_large(run: Context, matrix: Tensor) -> bool:
    """Whether a matrix is large enough that ranks have parts of it."""
    tracer = run.tracer
    is_alone = tracer.map.parallel or tracer.map.straight is not None or tracer.guarded
    if is_alone or tracer.is_decided_by_data(*matrix.shape):
        return False
    return all(not isinstance(n, int) or n >= LARGE for n in matrix.shape[-2:])


def is_tall(run: Context, matrix: Tensor) -> bool:
    """Whether a matrix has so many rows that ranks factorise parts of them."""
    tracer, shape = run.tracer, matrix.shape
    is_alone = tracer.map.parallel or tracer.map.straight is not None or tracer.guarded
    if is_alone or len(shape) != 2 or tracer.is_decided_by_data(*shape):
        return False
    m, n = shape
    if not (isinstance(m, int) and isinstance(n, int)):
        return False
    return 0 < ROWS * n <= m and m >= LARGE


def spread(run: Context, tensor: Tensor, batch: Sequence[Length]) -> Tensor:
    """A stack of matrices for another stack, which it is broadcast to."""
    core = tensor.shape[-2:]
    found: Tensor = run.tracer.broadcast(tensor, (*batch, *core))
    return found


def call(
    run: Context,
    function: str,
    subscripts: str,
    operands: Sequence[tuple[Tensor, DType]],
    results: Sequence[tuple[Sequence[Length], DType]],
    batch: Sequence[Length] = (),
    *,
    options: str = "",
    numbers: str = "",
    error: str = "",
    label: str = "",
    tall: bool = False,
) -> list[View]:
    """Call a function of LAPACK.

    Args:
        run: the interpreter.
        function: a row of :data:`distspmd.nodes.lapack.FUNCTIONS`.
        subscripts: the letters of one matrix each.
        operands: with the types that they are converted to.
        results: the shapes of one matrix each, and their types.
        batch: extents of the stack.
        options: of the function's template.
        numbers: further arguments.
        error: the ``LinAlgError`` that the program ends with where LAPACK reports one.
        label: of the iteration space.
        tall: whether the matrix is, so that ranks have rows of it.
    """
    tracer = run.tracer
    terms, made_terms = (part.split(",") for part in subscripts.split("->"))
    most = _rooms(run, terms, [t for t, _ in operands])
    given = [
        (_in_room(run, function, t, d, term, most), d)
        for (t, d), term in zip(operands, terms, strict=True)
    ]
    inputs = {f"_in{n}": whole_container(run, t, d) for n, (t, d) in enumerate(given)}
    name = label or tracer.target or function
    made = []
    for (shape, dtype), term in zip(results, made_terms, strict=True):
        own = [most.get(letter, n) for letter, n in zip(term, shape, strict=True)]
        container = tracer.container(name, rooms(tracer, [*batch, *own]), dtype)
        lengths = (*batch, *shape)
        made.append(make_view(container, lengths, [axis(d) for d in range(len(lengths))]))
    outputs = {f"_out{n}": view.container for n, view in enumerate(made)}
    letter = FUNCTIONS[function].columns
    columns: tuple[Length, ...] = ()
    if letter:
        columns = tuple(
            shape[term.index(letter)]
            for term, (shape, _) in zip(made_terms, results, strict=True)
            if letter in term
        )[:1]
    checked = bool(error) and not tracer.map.parallel
    matrix = operands[0][0]
    together = tall or (_are_there(function, matrix) and not batch and is_large(run, matrix))
    if together:
        columns = operands[0][0].shape[:1]
    if checked:
        outputs[INFO] = tracer.fresh("reported", (*batch, *columns), INT64).container
    kind = LapackTogether if together else Lapack
    make = functools.partial(
        kind,
        *(name, function, subscripts, len(batch)),
        options=options,
        numbers=numbers,
        has_info=checked,
    )
    tracer.add(Library(make, inputs, outputs))
    if checked:
        _check(run, view_of(outputs[INFO]), error)
    return made


def _are_there(function: str, matrix: Tensor) -> bool:
    """Whether ranks can do a function of a matrix together here: by the library, of square ones."""
    row = TOGETHER.get(function)
    if row is None or not row.library:
        return row is not None
    return same(*matrix.shape[-2:]) and find_scalapack() is not None


def _check(run: Context, reported: View, error: str) -> None:
    bad = run.call(np.not_equal, [reported, 0], {})
    if reported.ndim:
        bad = run.call(np.any, [bad], {})
    end_if(run, bad, "LinAlgError", error, can_go_on=True)
