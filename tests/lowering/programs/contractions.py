"""``np.einsum`` of one to four operands, with every letter split."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def projection(x: dace.float32[3, 5, 8], w: dace.float32[2, 4, 8]):
    return np.einsum("bsi,hpi->bshp", x, w)


@dace.program
def attention(
    q: dace.float64[2, 5, 3, 4], k: dace.float64[2, 6, 3, 4], v: dace.float64[2, 6, 3, 4]
):
    scores = np.einsum("bshp,bthp->bhst", q, k)
    return np.einsum("bhst,bthp->bshp", scores, v)


@dace.program
def of_extent_one(q: dace.float64[2, 1, 8, 4], k: dace.float64[2, 1, 8, 4], v: dace.float64[1, 1]):
    return np.einsum("bhik,bhjk->bhij", q, k), np.einsum("ij,jk->ik", v, v)


@dace.program
def gradient_of_weights(x: dace.float32[3, 5, 8], g: dace.float32[3, 5, 6]):
    return np.einsum("bso,bsi->oi", g, x)


@dace.program
def implicit(a: dace.float64[5, 3], b: dace.float64[3, 4]):
    return np.einsum("kj,ji", a, b), np.einsum("ba", a)


@dace.program
def of_one(a: dace.float64[5, 3, 4], s: dace.float64[6, 6]):
    return np.einsum("ijk->kj", a), np.einsum("ijk->", a), np.einsum("ii->i", s), np.einsum("ii", s)


@dace.program
def of_four(
    a: dace.float64[4, 5], b: dace.float64[5, 3], c: dace.float64[3, 6], d: dace.float64[6]
):
    return np.einsum("ij,jk,kl,l->i", a, b, c, d)


@dace.program
def with_ellipsis(a: dace.float64[2, 3, 4, 5], b: dace.float64[3, 5, 6]):
    return np.einsum("...ij,...jk->...ik", a, b)


@dace.program
def outer(a: dace.float64[5], b: dace.float64[7]):
    return np.einsum("i,j->ij", a, b), np.einsum("i,j->ji", a, b)


@dace.program
def elementwise(a: dace.float64[5, 6], b: dace.float64[6, 5]):
    return np.einsum("ij,ji->ij", a, b), np.einsum("ij,ji->", a, b)


@dace.program
def summed_alone(a: dace.float64[5, 6, 2], b: dace.float64[6, 4]):
    return np.einsum("ijz,jk->ik", a, b)


@dace.program
def einsum_of_integers(a: dace.int64[4, 5], b: dace.int32[5, 3]):
    return np.einsum("ij,jk->ik", a, b)


@dace.program
def of_complex(a: dace.complex64[2, 4, 5], b: dace.complex64[2, 3, 5], z: dace.complex128[4, 4]):
    return np.einsum("bij,bkj->bik", a, b), np.einsum("ij,kj->ki", z, z)


@dace.program
def of_mixed(a: dace.float32[4, 5], b: dace.float64[5, 3]):
    return np.einsum("ij,jk->ik", a, b)


@dace.program
def einsum_broadcast(a: dace.float64[4, 1], b: dace.float64[5, 3]):
    return np.einsum("ij,jk->ik", a, b)


@dace.program
def einsum_of_parts(a: dace.float64[9, 6, 3], b: dace.float64[3, 6, 4], c: dace.float64[9, 4]):
    c[2:6] = np.einsum("ijb,bjk->ik", a[1:5], b) + 1


@dace.program
def in_chain(x: dace.float64[6, 8], w: dace.float64[8, 7]):
    h = np.maximum(np.einsum("bi,ij->bj", x, w), 0)
    return np.einsum("bj,ij->bi", h, w)


@dace.program
def of_six(a: dace.float64[2, 3, 2, 3, 2, 4], b: dace.float64[4, 2, 3]):
    return np.einsum("abcdef,fcd->abe", a, b)


CASES = [
    *cases(
        projection,
        {"__return": (2, 1, 2, 1, 1)},
        {"__return": (1, 1, 1, 1, 3)},
        {"__return": {"s": 2, "p": 2, "i": 2}},
        {"__return": (3, 2, 1, 1, 1)},
    ),
    *cases(
        attention,
        {"scores": {"h": 3}, "__return": {"h": 3}},
        {"scores": {"b": 2, "h": 2}},
        {"scores": {"s": 2, "t": 3}, "__return": {"t": 4}},
        {"scores": {"p": 2}, "__return": {"p": 2, "s": 2}},
        {"scores": {"b": 2}},
        {},
    ),
    *cases(
        of_extent_one,
        {"__return_0": {"b": 2, "i": 2}, "__return_1": {"i": 2, "j": 2}},
        {"__return_0": {"h": 2, "k": 3}, "__return_1": {"i": 3}},
        {"__return_0": {"j": 4}},
    ),
    *cases(
        gradient_of_weights,
        {"__return": {"b": 3}},
        {"__return": {"s": 4}},
        {"__return": {"b": 2, "o": 2, "i": 2}},
        {"__return": {"s": 3, "o": 2}},
    ),
    *cases(implicit, {"__return_0": (2, 1, 2), "__return_1": (2, 2)}),
    *cases(
        of_one,
        {"__return_0": {"k": 2, "i": 2}, "__return_1": {"j": 3}, "__return_2": (4,)},
        {"__return_0": {"i": 3}, "__return_1": {"i": 2}, "__return_3": (3,)},
    ),
    *cases(of_four, {"__return": (4, 1)}, {"__return": (1, 3)}),
    *cases(
        with_ellipsis,
        {"__return": {"i": 2, "k": 2}},
        {"__return": (2, 3, 1, 1, 1)},
        {"__return": {"j": 4}},
    ),
    *cases(outer, {"__return_0": (2, 2), "__return_1": (1, 4)}),
    *cases(elementwise, {"__return_0": (2, 2), "__return_1": (2, 3)}),
    *cases(summed_alone, {"__return": {"z": 2, "k": 2}}, {"__return": {"j": 4}}),
    *cases(einsum_of_integers, {"__return": (2, 1, 2)}, {"__return": (1, 3, 1)}),
    *cases(
        of_complex,
        {"__return_0": {"b": 2, "i": 2}, "__return_1": {"k": 3}},
        {"__return_0": {"j": 4}, "__return_1": {"j": 2, "i": 2}},
    ),
    *cases(of_mixed, {"__return": (2, 1, 2)}),
    *cases(einsum_broadcast, {"__return": (2, 2, 1)}, {"__return": (1, 1, 4)}),
    *cases(einsum_of_parts, {"einsum": {"i": 2, "b": 3}}, {"einsum": {"k": 4}}),
    *cases(in_chain, {"h": (4, 1)}, {"__return": (1, 2, 2)}, {"__return": (3, 1, 1)}),
    *cases(of_six, {"__return": {"a": 2, "e": 2}}, {"__return": {"d": 3, "f": 2}}),
]
