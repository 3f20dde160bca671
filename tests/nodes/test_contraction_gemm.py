"""The product of matrices that a contraction calls BLAS for: by a BLAS in Python, and by loops."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from dace import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

from distspmd.nodes import contraction_gemm
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.subscripts import Dimension, Subscripts, plain_letter

CONTRACTIONS = (
    "bik,bkj->bij",
    "bhsp,bhtp->bhst",
    "abcd,cdef->abef",
    "ba,cb->ac",
    "b(s+i),oi->bos",
    "b(2s+i)(u+3j),oij->bosu",
    "bos,b(s+i)->oi",
    "(i+k),k->i",
    "ab,b->a",
    "a,b->ab",
)


@dataclass
class Pointer:
    """The place of an element in the memory of an operand."""

    memory: np.ndarray
    place: int = 0

    def __add__(self, steps: int) -> Pointer:
        return Pointer(self.memory, self.place + steps)

    def matrix(self, transposed: str, rows: int, columns: int, leading: int) -> np.ndarray:
        """The indices in memory of a matrix, as BLAS takes them."""
        inner = rows if transposed == "T" else columns
        assert leading >= max(1, inner), "BLAS refuses overlapping rows"
        shape = (columns, rows) if transposed == "T" else (rows, columns)
        found = self.place + np.arange(shape[0])[:, None] * leading + np.arange(shape[1])
        return found.T if transposed == "T" else found


def product(
    ta: str, tb: str, m: int, n: int, k: int, alpha: int, a: Any, lda: int, b: Any,
    ldb: int, beta: int, c: Any, ldc: int,
) -> None:  # fmt: skip
    """What ``distspmd::gemm`` does."""
    left, right = a.matrix(ta, m, k, lda), b.matrix(tb, k, n, ldb)
    result = c.matrix("N", m, n, ldc)
    if result.size:
        value = a.memory[left] @ b.memory[right] if k else 0
        c.memory[result] = alpha * value + beta * c.memory[result]


def run(found: contraction_gemm.Gemm, memories: list[np.ndarray], sizes: dict[str, int]) -> None:
    """The calls that are generated, in their loops, on memories of `_in0`, `_in1` and `_out`."""
    call = found.call("1", "1", {x: x for x in found.einsum.letters}).rstrip(";")
    call = call.replace("distspmd::gemm<float>", "gemm")
    call = re.sub(r"std::max<int64_t>\(\{(.*?)\}\)", r"max(\1)", call)
    names: dict[str, Any] = {f"n_{x}": size for x, size in sizes.items()}
    names |= {
        x: Pointer(memory) for x, memory in zip(("_in0", "_in1", "_out"), memories, strict=True)
    }
    names |= {"CblasTrans": "T", "CblasNoTrans": "N", "gemm": product}
    for index in itertools.product(*(range(sizes[x]) for x in found.loops)):
        eval(call, names | dict(zip(found.loops, index, strict=True)))


@st.composite
def contractions(draw: st.DrawFn) -> tuple[Einsum, dict[str, int]]:
    """A contraction of windows into larger storage; some extents are known only by name."""
    subscripts = Subscripts.parse(draw(st.sampled_from(CONTRACTIONS)))
    sizes = {x: draw(st.integers(0, 4)) for x in subscripts.letters}
    unknown = draw(st.sets(st.sampled_from(subscripts.letters)))

    def operand(connector: str, dims: tuple[Dimension, ...]) -> Operand:
        windows = [max(0, 1 + sum(f * (sizes[x] - 1) for x, f in dim)) for dim in dims]
        storage = [max(1, size) + draw(st.integers(0, 2)) for size in windows]
        strides = [sympy.Integer(np.prod(storage[d + 1 :], dtype=int)) for d in range(len(dims))]
        extents = [
            sympy.Symbol(f"n_{x}", integer=True) if x in unknown else sympy.Integer(size)
            for size, dim in zip(windows, dims, strict=True)
            for x in [plain_letter(dim)]
        ]
        begins = tuple(sympy.Integer(0) for _ in dims)
        return Operand(connector, dtypes.float32, dims, begins, tuple(extents), tuple(strides))

    first, second = map(operand, ("_in0", "_in1"), subscripts.operands)
    result = operand("_out", subscripts.result)
    return Einsum((first, second), result, subscripts.letters, subscripts.reduced), sizes


def elements(operand: Operand, sizes: dict[str, int], letters: str) -> np.ndarray:
    """Places in memory at all values of the letters."""
    found = np.zeros([sizes[x] for x in letters], int)
    for n, letter in enumerate(letters):
        shape = [-1 if d == n else 1 for d in range(len(letters))]
        strides = zip(operand.dimensions, operand.strides, strict=True)
        step = sum(f * int(stride) for dim, stride in strides for x, f in dim if x == letter)
        found = found + np.arange(sizes[letter]).reshape(shape) * step
    return found


@given(contractions(), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_calls_of_blas_are_the_contraction(drawn: tuple[Einsum, dict[str, int]], seed: int) -> None:
    einsum, sizes = drawn
    found = contraction_gemm.largest(einsum, worth=lambda gemm: True)
    if found is None:
        return
    rng = np.random.default_rng(seed)
    places = [elements(o, sizes, einsum.letters) for o in (*einsum.operands, einsum.result)]
    most = {x: max(1, size) for x, size in sizes.items()}
    room = [
        int(elements(o, most, einsum.letters).max()) + 1 for o in (*einsum.operands, einsum.result)
    ]
    memories = [rng.integers(-9, 9, n).astype(float) for n in room]
    wanted = memories[2].copy()
    np.add.at(wanted, places[2], memories[0][places[0]] * memories[1][places[1]])
    run(found, memories, sizes)
    np.testing.assert_array_equal(memories[2], wanted)


@given(contractions(), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_letters_that_move_as_one_are_one(drawn: tuple[Einsum, dict[str, int]], seed: int) -> None:
    einsum, sizes = drawn
    named = {sympy.Symbol(f"n_{x}", integer=True): size for x, size in sizes.items()}
    one = einsum.coalesced()
    extents = [int(one.extents[x].subs(named)) for x in one.letters]
    assert np.prod(extents, dtype=int) == np.prod(list(sizes.values()), dtype=int)
    at = dict(zip(one.letters, np.indices(extents), strict=True))
    rng = np.random.default_rng(seed)
    found, wanted = np.zeros(2000), np.zeros(2000)
    memories = rng.integers(-9, 9, (2, 2000))
    places = [
        sum((at[x] * int(step.subs(named)) for x, step in o.steps.items()), np.zeros(extents, int))
        for o in (*one.operands, one.result)
    ]
    np.add.at(found, places[2], memories[0][places[0]] * memories[1][places[1]])
    places = [elements(o, sizes, einsum.letters) for o in (*einsum.operands, einsum.result)]
    np.add.at(wanted, places[2], memories[0][places[0]] * memories[1][places[1]])
    np.testing.assert_array_equal(found, wanted)


def test_neighbours_in_all_windows_become_one() -> None:
    subscripts = Subscripts.parse("abcd,cd->ab")
    strides = [tuple(map(sympy.Integer, s)) for s in ((60, 20, 5, 1), (5, 1), (3, 1))]
    extents = [tuple(map(sympy.Integer, s)) for s in ((2, 3, 4, 5), (4, 5), (2, 3))]
    terms = (*subscripts.operands, subscripts.result)
    operands = [
        Operand(name, dtypes.float32, dims, tuple(0 for _ in dims), sizes, steps)
        for name, dims, sizes, steps in zip(("_in0", "_in1", "_out"), terms, extents, strides,
                                            strict=True)
    ]  # fmt: skip
    one = Einsum(tuple(operands[:2]), operands[2], "abcd", "cd").coalesced()
    assert [int(one.extents[x]) for x in one.letters] == [6, 20]
    assert [list(o.strides) for o in one.operands] == [[20, 1], [1]]


def test_rows_that_slide_over_each_other_are_no_matrix() -> None:
    subscripts = Subscripts.parse("(i+k),k->i")
    i, k = sympy.symbols("n_i n_k", integer=True)
    one = (sympy.Integer(1),)
    window = Operand("_in0", dtypes.float32, subscripts.operands[0], (0,), (i + k - 1,), one)
    weights = Operand("_in1", dtypes.float32, subscripts.operands[1], (0,), (k,), one)
    result = Operand("_out", dtypes.float32, subscripts.result, (0,), (i,), one)
    found = contraction_gemm.largest(
        Einsum((window, weights), result, "ik", "k"), worth=lambda gemm: True
    )
    assert found is None or not (found.rows + found.columns and found.depth)
