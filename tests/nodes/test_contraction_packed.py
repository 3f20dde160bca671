"""Contractions as products of packed blocks: the loops that are handed over, and when they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import sympy
from dace import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes.test_contraction_gemm import contractions, elements

from distspmd.nodes import contraction
from distspmd.nodes.blas_products import CALL
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.contraction_packed import PackedProduct
from distspmd.nodes.subscripts import Subscripts


def multiply(rows: Any, columns: Any, depth: Any, batch: Any, a: Any, b: Any, c: Any) -> None:
    """What ``distspmd::packed::multiply`` does."""

    def at(number: int, *runs: Any) -> np.ndarray:
        found = np.zeros((), int)
        for extent, step in ((loop[0], loop[number]) for run in runs for loop in run):
            found = found[..., None] + np.arange(extent) * step
        return found

    lengths = [int(np.prod([n for n, *_ in run])) for run in (batch, rows, columns, depth)]
    shapes = [(lengths[0], lengths[n], lengths[m]) for n, m in ((1, 3), (3, 2), (1, 2))]
    pairs = ([[*rows], [*depth], 1, 1], [[*depth], [*columns], 2, 1], [[*rows], [*columns], 2, 2])
    places = []
    for number, (first, second, one, other) in enumerate(pairs, start=1):
        outer, inner = at(one, first), at(other, second)
        both = np.add.outer(outer, inner)
        places.append(np.add.outer(at(number, batch), both).reshape(shapes[number - 1]))
    if 0 not in shapes[2]:
        c[places[2]] = a[places[0]] @ b[places[1]]


@given(contractions(), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_the_product_is_the_contraction(drawn: tuple[Einsum, dict[str, int]], seed: int) -> None:
    einsum, sizes = drawn
    found = PackedProduct.of(einsum)
    assert found is not None
    rng = np.random.default_rng(seed)
    every = (*einsum.operands, einsum.result)
    places = [elements(o, sizes, einsum.letters) for o in every]
    most = {x: max(1, size) for x, size in sizes.items()}
    room = [int(elements(o, most, einsum.letters).max()) + 1 for o in every]
    memories = [rng.integers(-9, 9, n).astype(float) for n in room]
    wanted = memories[2].copy()
    kept = "".join(x for x in einsum.letters if x not in einsum.reduced)
    wanted[elements(einsum.result, sizes, kept)] = 0
    np.add.at(wanted, places[2], memories[0][places[0]] * memories[1][places[1]])
    code = found.code().removeprefix("distspmd::packed::").replace("<float>", "")
    code = re.sub(r"int64_t\((\w+)\)", r"\1", code).replace("{", "[").replace("}", "]").rstrip(";")
    names: dict[str, Any] = {f"n_{x}": size for x, size in sizes.items()}
    names |= dict(zip(("_in0", "_in1", "_out"), memories, strict=True), multiply=multiply)
    eval(code, names)
    np.testing.assert_array_equal(memories[2], wanted)


def einsum_of(text: str, sizes: dict[str, int], dtype: Any = dtypes.float32) -> Einsum:
    """A contraction of whole arrays."""
    subscripts = Subscripts.parse(text)
    found = []
    for name, dims in zip(
        ("_in0", "_in1", "_out"), (*subscripts.operands, subscripts.result), strict=True
    ):
        extents = [1 + sum(f * (sizes[x] - 1) for x, f in dim) for dim in dims]
        strides = [sympy.Integer(np.prod(extents[d + 1 :], dtype=int)) for d in range(len(dims))]
        zeros = tuple(sympy.Integer(0) for _ in dims)
        whole = tuple(map(sympy.Integer, extents))
        found.append(Operand(name, dtype, dims, zeros, whole, tuple(strides)))
    return Einsum(tuple(found[:2]), found[2], subscripts.letters, subscripts.reduced)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bik,bkj->bij", CALL),  # a call for each of a batch
        ("sk,kj->sj", CALL),
        ("bc(s+k),ock->bos", contraction.PACKED),
        ("bc(2s+k)(2t+l),ockl->bost", contraction.PACKED),
        ("bhsd,ohd->bso", contraction.PACKED),  # heads lie apart
        ("bhsd,hds->bhd", contraction.NEST),  # a dot product each
        ("bc(s+k),ck->bcs", contraction.NEST),  # depthwise: one column for each channel
    ],
)
def test_products_are_packed_where_blas_would_be_called_many_times(text: str, wanted: str) -> None:
    sizes = dict.fromkeys("bhijkostdlc", 24)
    assert contraction.fastest_product(einsum_of(text, sizes)) == wanted


@pytest.mark.parametrize(
    ("text", "size", "dtype", "wanted"),
    [
        ("sk,kj->sj", 16, dtypes.float32, contraction.NEST),
        ("ks,kj->sj", 16, dtypes.float64, contraction.NEST),
        ("sk,kj->sj", 18, dtypes.float32, CALL),
        ("sk,jk->sj", 16, dtypes.float32, CALL),  # neighbours of the result lie apart
        ("sk,kj->sj", 16, dtypes.complex128, CALL),
    ],
)
def test_small_products_are_loops_where_lanes_share_neighbours(
    text: str, size: int, dtype: Any, wanted: str
) -> None:
    einsum = einsum_of(text, dict.fromkeys("skj", size), dtype)
    assert contraction.fastest_product(einsum) == wanted


def test_small_products_and_other_types_are_not_packed() -> None:
    small = dict.fromkeys("bcsok", 3)
    assert contraction.fastest_product(einsum_of("bc(s+k),ock->bos", small)) != contraction.PACKED
    assert PackedProduct.of(einsum_of("ik,kj->ij", dict.fromkeys("ikj", 9), dtypes.int64)) is None
    twice = einsum_of("ik,jk->(i+j)", dict.fromkeys("ikj", 9))
    assert PackedProduct.of(twice) is None
