"""Products of arrays as contractions: each index stays a dimension that a schedule can split."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from distspmd.expressions.ir import Expression, Load, apply, cast
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.comparisons import HALF
from distspmd.frontend.from_numpy.arrays.contractions import LETTER, NoWindow, window_of
from distspmd.frontend.from_numpy.arrays.elements import is_one, substitute
from distspmd.frontend.from_numpy.arrays.images import moved
from distspmd.frontend.from_numpy.arrays.kinds import of_numpy
from distspmd.frontend.from_numpy.arrays.lengths import check_lengths
from distspmd.frontend.from_numpy.arrays.shapes import (
    expand_dims,
    normal_axis,
    reshape,
    size_of,
    transpose,
)
from distspmd.frontend.from_numpy.arrays.transcript import shape_text
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, axis
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.einsum_dace import parse_subscripts
from distspmd.frontend.from_numpy.numpy.reductions import finished
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import same, symbol


def contract(
    run: Context,
    terms: Sequence[str],
    out: str,
    operands: Sequence[Tensor],
    dtype: Any = None,
) -> Tensor:
    """A sum of products: letters of the operands and of the result, as in einsum."""
    tracer = run.tracer
    kind = np.dtype(dtype or np.result_type(*(t.dtype for t in operands)))
    if kind == HALF:  # products and their sums are rounded once
        found = contract(run, terms, out, operands, np.float32)
        return tracer.stored_anew(converted(tracer, found, HALF))
    extents = _extents(run, terms, operands)
    tensors = [_stored(run, t, kind) for t in operands]
    index = {x: symbol(f"{LETTER}{x}") for x in extents}
    factors = [
        tensor.element(
            tuple(
                0 if is_one(n) and not is_one(extents[x]) else index[x]
                for x, n in zip(term, tensor.shape, strict=True)
            )
        )
        for term, tensor in zip(terms, tensors, strict=True)
    ]
    name = "logical_and" if kind.kind == "b" else "multiply"
    expression: Expression = factors[0]
    for factor in factors[1:]:
        expression = apply(name, expression, factor)
    gone = [x for x in extents if x not in out]
    if not gone:
        shape = tuple(extents[x] for x in out)

        def element(place: Any) -> Expression:
            return substitute(expression, {index[x]: i for x, i in zip(out, place, strict=True)})

        known: Tensor = tracer.stored_anew(Tensor(shape, kind, element))
        return known
    if kind.kind == "b":
        expression = cast(expression, np.dtype(np.int64))
    found = tracer.contract(
        [(index[x], extents[x]) for x in out],
        [(index[x], extents[x]) for x in gone],
        expression,
        "max" if kind.kind == "b" else "sum",
    )
    return converted(tracer, found, bool) if kind.kind == "b" else found


def _stored(run: Context, tensor: Tensor, kind: object) -> Tensor:
    """An operand in the common type, as a window of a container.

    Another view, with steps or with several indices in a dimension, is copied: else the whole
    product would be written down before it is summed up.
    """
    if tensor.dtype != kind:
        known: Tensor = run.tracer.stored_anew(converted(run.tracer, tensor, kind), "operand")
        return known
    plain = run.tracer.unmerged(run.tracer.stored(tensor, "operand"))
    if not isinstance(plain, View) or not _is_window(plain):
        plain = run.tracer.stored_anew(plain, "operand")
    return plain


def _is_window(view: View) -> bool:
    """Whether each dimension of the container has one index alone, forwards, without steps."""
    lengths = {f"__w{d}": n for d, n in enumerate(view.shape)}
    load = view.element(tuple(map(symbol, lengths)))
    assert isinstance(load, Load)
    try:
        window_of(load, lengths, dict(zip(lengths, ascii_letters, strict=False)))
    except NoWindow:
        return False
    return True


def _extents(run: Context, terms: Sequence[str], operands: Sequence[Tensor]) -> dict[str, Length]:
    found: dict[str, Length] = {}
    for term, tensor in zip(terms, operands, strict=True):
        for letter, n in zip(term, tensor.shape, strict=True):
            old = found.get(letter)
            if old is None or is_one(old):
                found[letter] = n
            elif not is_one(n) and not same(old, n):
                if isinstance(old, int) and isinstance(n, int):
                    shapes = " and ".join(shape_text(t.shape) for t in operands)
                    run.tracer.refuse(f"the shapes {shapes} do not fit: {old} and {n} elements")
                check_lengths(run.tracer, old, n)
    return found


@function(np.matmul)
def matmul(run: Context, a: object, b: object, out: object = None, **_: object) -> Any:
    """``a @ b``, with batches."""
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    if not one.ndim or not other.ndim:
        tracer.refuse("matmul: an operand has no dimensions; write a * b")
    batch = max(one.ndim, other.ndim) - 2
    letters = "bcdefghlmnopqrstuvwxyz"[: max(batch, 0)]
    left = letters[len(letters) - max(one.ndim - 2, 0) :] + ("i" if one.ndim > 1 else "") + "k"
    right = letters[len(letters) - max(other.ndim - 2, 0) :] + "k" + ("j" if other.ndim > 1 else "")
    result = letters + ("i" if one.ndim > 1 else "") + ("j" if other.ndim > 1 else "")
    return finished(run, contract(run, [left, right], result, [one, other]), out)


@function(np.dot, method="dot")
def dot(run: Context, a: object, b: object, out: object = None) -> Any:
    """``np.dot``."""
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    if not one.ndim or not other.ndim:
        return finished(run, of_numpy(combine(tracer, np.multiply, [one, other])), out)
    left = ascii_letters[: one.ndim - 1]
    right = ascii_letters[one.ndim : one.ndim + other.ndim - 1]
    terms = [left + "Z", right[:-1] + "Z" + right[-1:]]
    return finished(run, contract(run, terms, left + right, [one, other]), out)


@function(np.vdot)
def _vdot(run: Context, a: object, b: object) -> Any:
    tracer = run.tracer
    one, other = (_flat(run, v) for v in (a, b))
    return contract(run, ["a", "a"], "", [combine(tracer, np.conjugate, [one]), other])


def _flat(run: Context, value: object) -> Tensor:
    tensor = run.tracer.tensor(value)
    return tensor if tensor.ndim == 1 else reshape(run.tracer, tensor, [size_of(tensor.shape)])


@function(np.inner)
def _inner(run: Context, a: object, b: object) -> Any:
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    if not one.ndim or not other.ndim:
        return of_numpy(combine(tracer, np.multiply, [one, other]))
    left = ascii_letters[: one.ndim - 1]
    right = ascii_letters[one.ndim : one.ndim + other.ndim - 1]
    return contract(run, [left + "Z", right + "Z"], left + right, [one, other])


@function(np.outer)
def _outer(run: Context, a: object, b: object, out: object = None) -> Any:
    tracer = run.tracer
    one, other = _flat(run, a), _flat(run, b)
    found = combine(tracer, np.multiply, [expand_dims(tracer, one, [1]), other])
    return finished(run, found, out)


@function(np.tensordot)
def _tensordot(run: Context, a: Any, b: Any, axes: Any = 2) -> Any:
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    if isinstance(axes, int):
        own, its = list(range(one.ndim - axes, one.ndim)), list(range(axes))
    else:
        own, its = ([x] if isinstance(x, int) else list(x) for x in axes)
    own = [normal_axis(tracer, x, one.ndim) for x in own]
    its = [normal_axis(tracer, x, other.ndim) for x in its]
    left = list(ascii_letters[: one.ndim])
    right = list(ascii_letters[one.ndim : one.ndim + other.ndim])
    for x, y in zip(own, its, strict=True):
        right[y] = left[x]
    out = [x for d, x in enumerate(left) if d not in own]
    out += [x for d, x in enumerate(right) if d not in its]
    return contract(run, ["".join(left), "".join(right)], "".join(out), [one, other])


@function(np.kron)
def _kron(run: Context, a: object, b: object) -> Any:
    from distspmd.frontend.tensor_ir.whole_numbers import multiply

    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    rank = max(one.ndim, other.ndim)
    one = reshape(tracer, one, [1] * (rank - one.ndim) + list(one.shape))
    other = reshape(tracer, other, [1] * (rank - other.ndim) + list(other.shape))
    wide = expand_dims(tracer, one, [2 * d + 1 for d in range(rank)])
    narrow = expand_dims(tracer, other, [2 * d for d in range(rank)])
    product = tracer.stored_anew(combine(tracer, np.multiply, [wide, narrow]))
    shape = [multiply(m, n) for m, n in zip(one.shape, other.shape, strict=True)]
    return reshape(tracer, product, shape)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _with_letters(given: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands of ``np.einsum`` that has lists of numbers in turn."""
    result = given.pop() if len(given) % 2 else None
    terms = [*given[1::2], *([] if result is None else [result])]
    texts = ["".join("..." if n is Ellipsis else _LETTERS[int(n)] for n in term) for term in terms]
    if result is None:
        return ",".join(texts), tuple(given[::2])
    return f"{','.join(texts[:-1])}->{texts[-1]}", tuple(given[::2])


@function(np.einsum)
def _einsum(run: Context, subscripts: Any, *operands: Any, out: Any = None, **options: Any) -> Any:
    tracer = run.tracer
    if not isinstance(subscripts, str):
        given = [subscripts, *operands]
        terms = [*given[1::2], *(given[-1:] if len(given) % 2 else [])]
        if any(isinstance(term, Tensor) for term in terms):
            tracer.refuse("the lists of np.einsum have to be known before the run")
        subscripts, operands = _with_letters(given)
    dtype = options.pop("dtype", None)
    tensors = [tracer.tensor(o) for o in operands]
    try:
        terms, result = parse_subscripts(subscripts, [t.ndim for t in tensors])
    except ValueError as problem:
        tracer.refuse(f"np.einsum({subscripts!r}): {problem}")
    terms = [_diagonal(run, term, tensors, n) for n, term in enumerate(terms)]
    if (
        len(terms) == 1 and set(terms[0]) == set(result) and out is dtype is None
    ):  # NumPy's is a view
        return transpose(tracer, tensors[0], [terms[0].index(x) for x in result])
    order = _order(terms, result, tensors)
    parts = list(zip(terms, tensors, strict=True))
    for step, places in enumerate(order):
        taken = [parts.pop(place) for place in sorted(places, reverse=True)][::-1]
        last = step == len(order) - 1
        needed = set(result).union(*(term for term, _ in parts))
        joined = "".join(term for term, _ in taken)
        kept = result if last else "".join(x for x in dict.fromkeys(joined) if x in needed)
        made = contract(run, [t for t, _ in taken], kept, [v for _, v in taken], dtype)
        parts.append((kept, made))
    return finished(run, parts[0][1], out)


def _diagonal(run: Context, term: str, tensors: list[Tensor], place: int) -> str:
    """An operand with a letter twice is its diagonal."""
    if len(set(term)) == len(term):
        return term
    letters = "".join(dict.fromkeys(term))
    base = tensors[place]
    shape = [base.shape[term.index(x)] for x in letters]
    tensors[place] = moved(base, shape, [axis(letters.index(x)) for x in term])
    return letters


def _order(terms: Sequence[str], out: str, tensors: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """Which operands to contract in turn: at most two each time, the cheapest first."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    samples = [
        np.broadcast_to(np.zeros(()), [n if isinstance(n, int) else 1009 for n in t.shape])
        for t in tensors
    ]
    search = "optimal" if len(terms) < 6 else "greedy"
    try:
        path, _ = np.einsum_path(f"{','.join(terms)}->{out}", *samples, optimize=search)
    except ValueError:
        path = ["", *([(0, 1)] * (len(terms) - 1))]
    steps, left = [], len(terms)
    for places in path[1:]:
        if len(places) > 2:  # NumPy gives up on an order: from the left, then
            return [(0, 1), *((0, left - 1 - k) for k in range(1, left - 1))]
        steps.append(tuple(places))
    return steps


@function(np.einsum_path)
def _einsum_path(run: Context, subscripts: str, *operands: Any, optimize: Any = "greedy") -> Any:
    """An order of contractions, which shapes decide that are known."""
    shapes = [run.tracer.tensor(operand).shape for operand in operands]
    if not all(isinstance(n, int) for shape in shapes for n in shape):
        run.tracer.refuse("np.einsum_path of arrays whose shapes are not known before the run")
    samples = [np.broadcast_to(np.zeros(()), shape) for shape in shapes]
    return np.einsum_path(subscripts, *samples, optimize=optimize)


@function(np.trace, method="trace")
def _trace(
    run: Context,
    value: object,
    offset: object = 0,
    axis1: object = 0,
    axis2: object = 1,
    **_: object,
) -> Any:
    found = run.call(np.diagonal, [value, offset, axis1, axis2], {})
    return run.call(np.sum, [found, -1], {})


@function(np.linalg.multi_dot)
def _multi_dot(run: Context, arrays: Any, **_: object) -> Any:
    found = arrays[0]
    for other in arrays[1:]:
        found = dot(run, found, other)
    return found


def _of_three(run: Context, vectors: Tensor) -> Tensor:
    """Vectors of two elements in the plane of the first two of three."""
    if vectors.shape[-1] == 3:
        return vectors
    widths = [(0, 0)] * (vectors.ndim - 1) + [(0, 1)]
    return run.call(np.pad, [vectors, widths], {})  # type: ignore[no-any-return]


@function(np.cross)
def _cross(
    run: Context,
    a: object,
    b: object,
    axisa: object = -1,
    axisb: object = -1,
    axisc: object = -1,
    axis: object = None,
) -> Any:
    tracer = run.tracer
    if axis is not None:
        axisa = axisb = axisc = axis
    one, other = (
        run.call(np.moveaxis, [tracer.settled(tracer.tensor(v)), d, -1], {})
        for v, d in ((a, axisa), (b, axisb))
    )
    lengths = {one.shape[-1], other.shape[-1]}
    if lengths == {2, 3}:  # the shorter one has 0 as its third element
        one, other = (_of_three(run, t) for t in (one, other))
        lengths = {3}
    if lengths not in ({3}, {2}):
        tracer.refuse("np.cross of vectors of other than three elements, or of other than two")

    def part(t: Tensor, n: int) -> Tensor:
        return indexing.read(tracer, t, (Ellipsis, n))

    rows = []
    for i, j in ((1, 2), (2, 0), (0, 1)) if lengths == {3} else ((0, 1),):
        first = combine(tracer, np.multiply, [part(one, i), part(other, j)])
        second = combine(tracer, np.multiply, [part(one, j), part(other, i)])
        rows.append(combine(tracer, np.subtract, [first, second]))
    return run.call(np.stack, [rows], {"axis": axisc}) if lengths == {3} else rows[0]
