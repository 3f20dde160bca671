"""`np.einsum` in programs: contractions, and refusals."""

import dace
import numpy as np
import pytest

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.numpy.einsum_dace import parse_subscripts
from distspmd.nodes.contraction import Contraction


def nodes_of(sdfg: dace.SDFG) -> list[Contraction]:
    return [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, Contraction)]


def test_four_operands_become_three_contractions_of_two() -> None:
    @dace.program
    def chain(
        a: dace.float64[9, 2], b: dace.float64[2, 8], c: dace.float64[8, 3], d: dace.float64[3]
    ):
        return np.einsum("ij,jk,kl,l->i", a, b, c, d)

    found = nodes_of(numpy_program(chain))
    assert sorted(node.subscripts for node in found) == ["ij,j->i", "jk,k->j", "kl,l->k"]


def test_letters_are_the_parameters_of_the_space() -> None:
    @dace.program
    def scores(q: dace.float64[2, 1, 3, 4], k: dace.float64[2, 1, 3, 4]):
        return np.einsum("bShp,bThp->bhST", q, k)

    (space,) = distspmd.iteration_spaces(numpy_program(scores))
    assert space.parameters == ("b", "h", "s_", "t_", "p")


@pytest.mark.parametrize(
    ("subscripts", "ranks", "message"),
    [
        ("ij,jk->ik", (2,), "1 operands for 2 subscripts"),
        ("ij,jk->iz", (2, 2), "'z', which no operand has"),
        ("ij,jk->ii", (2, 2), "a letter twice"),
        ("ij,jk->ik", (3, 2), "'ij' stands for an operand of 3 dimensions"),
        ("...ij,jk->ik", (1, 2), "fewer dimensions than letters"),
        ("i1,1k->ik", (2, 2), "'1' is no letter"),
    ],
)
def test_subscripts_that_fit_no_operands_are_refused(
    subscripts: str, ranks: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        parse_subscripts(subscripts, ranks)


def test_extents_that_differ_are_refused_with_the_line() -> None:
    @dace.program
    def wrong(a: dace.float64[2, 3], b: dace.float64[4, 5]):
        return np.einsum("ij,jk->ik", a, b)

    with pytest.raises(
        UnsupportedProgram, match=r"test_einsum.py:\d+: .*'j' has the extents 3 and 4"
    ):
        numpy_program(wrong, frontend="dace")
    with pytest.raises(UnsupportedProgram, match=r"test_einsum.py:\d+: .* do not fit: 3 and 4"):
        numpy_program(wrong)
