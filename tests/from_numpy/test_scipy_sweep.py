"""Every function of SciPy that is split by signature, beside SciPy itself, in parts of its arrays.

Programs are evaluated on paper, where a call that is split is one of each of three uneven parts of
each dimension. Calls of SciPy's functions on ranks are in :mod:`from_numpy.scipy_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.frontend.tensor_ir.statements import Library
from distspmd.nodes.host_call import HostCall
from from_numpy.corpus.registry import Case
from from_numpy.harness import differences_on_paper
from from_numpy.scipy_calls import EVERY, Call, calls, of_distributions, of_universal_functions
from from_numpy.scipy_groups import CASES
from from_numpy.statements_in_numpy import NotOnPaper, Programs

pytest.importorskip("scipy")
pytestmark = pytest.mark.filterwarnings("ignore")  # of SciPy, about such numbers

_COMPILED = """
    fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2
    fft.irfft2 fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.fftshift fft.ifftshift
    ndimage.gaussian_filter1d ndimage.uniform_filter1d ndimage.correlate1d ndimage.convolve1d
    special.softmax special.log_softmax special.logsumexp linalg.norm integrate.trapezoid
    linalg.inv linalg.pinv linalg.svd linalg.eig linalg.eigh linalg.svdvals linalg.eigvals
    linalg.eigvalsh linalg.det special.erf special.erfc special.gamma special.gammaln
    special.expit special.logit special.xlogy special.xlog1py special.entr special.rel_entr
    special.kl_div special.ndtr linalg.cholesky linalg.solve linalg.solve_triangular"""
COMPILED = frozenset(_COMPILED.split())
"""What is compiled as well, for arrays and options for which it can be."""


def outcome(call: Call) -> str:
    """What is wrong with a call; nothing where it is split, or compiled, and right."""
    case = Case(call.name, call.program(), "scipy", "", lambda rng: _copies(call), ())
    programs = Programs()
    try:
        wrong = differences_on_paper(case, programs, 1e-4 if " f4" in call.name else 0)
    except NotOnPaper:  # LAPACK, or a transform
        return "" if call.name.split()[0] in COMPILED else "it is not evaluated on paper"
    if wrong:
        return "; ".join(wrong)
    is_whole = not call.is_split or call.name.split()[0] in COMPILED or is_split(programs)
    return "" if is_whole else "it is not split"


def _copies(call: Call) -> tuple[Any, ...]:
    return tuple(np.array(array) for array in call.arrays)


def is_split(programs: Programs) -> bool:
    """Whether a program has a call that is split."""
    nodes = [s.make() for s in programs.statements() if isinstance(s, Library)]
    return any(isinstance(n, HostCall) and any(c.isupper() for c in n.terms) for n in nodes)


def wrong_ones(every: Sequence[Call]) -> list[str]:
    """The calls that are wrong, with what is."""
    return [f"{call.name}: {told}" for call in every if (told := outcome(call))]


@pytest.mark.parametrize("name", EVERY[::12])
def test_a_sample_of_functions_gives_what_scipy_gives(name: str) -> None:
    assert not wrong_ones(calls(name)[:2])


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_functions_by_signature_give_what_scipy_gives(name: str) -> None:
    every = calls(name)
    assert every, "no call of it is taken"
    assert not wrong_ones(every)


@pytest.mark.slow
def test_universal_functions_give_what_scipy_gives() -> None:
    every = of_universal_functions()
    assert len(every) > 500
    assert not wrong_ones(every)


@pytest.mark.slow
def test_distributions_give_what_scipy_gives() -> None:
    every = of_distributions()
    assert len(every) > 250
    assert not wrong_ones(every)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_call_scipy_on_their_blocks(launch: Any, ranks: int) -> None:
    here = Path(__file__).parent / "run_here.py"
    done = launch(here, "from_numpy.scipy_groups", ranks=ranks, timeout=900)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout
