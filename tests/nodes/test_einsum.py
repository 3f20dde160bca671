"""`np.einsum` in programs: contractions, in whichever order one imports, and refusals."""

import subprocess
import sys

import dace
import numpy as np
import pytest
from dace.frontend.python.common import DaceSyntaxError

import distspmd
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.einsum import parse

PROGRAM = """
import numpy as np
{imports}
from pathlib import Path

@dace.program
def product(a: dace.float64[2, 3], b: dace.float64[3, 4]):
    return np.einsum("ij,jk->ik", a, b)

print(*(type(node).__name__ for node, _ in product.to_sdfg().all_nodes_recursive()))
"""


def nodes_of(sdfg: dace.SDFG) -> list[Contraction]:
    return [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, Contraction)]


@pytest.mark.parametrize("imports", ["import dace, distspmd", "import distspmd, dace"])
def test_the_order_of_imports_does_not_matter(imports: str, tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(imports=imports))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert "Contraction" in done.stdout, done.stderr


def test_four_operands_become_three_contractions_of_two() -> None:
    @dace.program
    def chain(
        a: dace.float64[9, 2], b: dace.float64[2, 8], c: dace.float64[8, 3], d: dace.float64[3]
    ):
        return np.einsum("ij,jk,kl,l->i", a, b, c, d)

    found = nodes_of(chain.to_sdfg())
    assert sorted(node.subscripts for node in found) == ["ij,j->i", "jk,k->j", "kl,l->k"]


def test_letters_are_the_parameters_of_the_space() -> None:
    @dace.program
    def scores(q: dace.float64[2, 1, 3, 4], k: dace.float64[2, 1, 3, 4]):
        return np.einsum("bShp,bThp->bhST", q, k)

    (space,) = distspmd.iteration_spaces(scores.to_sdfg())
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
        parse(subscripts, ranks)


def test_extents_that_differ_are_refused_with_the_line() -> None:
    @dace.program
    def wrong(a: dace.float64[2, 3], b: dace.float64[4, 5]):
        return np.einsum("ij,jk->ik", a, b)

    with pytest.raises(DaceSyntaxError, match="'j' has the extents 3 and 4"):
        wrong.to_sdfg()
