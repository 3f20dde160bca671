"""Numbers of 16 bits are computed with as NumPy does, bit for bit where sums have one order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.half_numbers import CASES
from from_numpy.harness import on_paper


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_programs_on_paper(case: Any) -> None:
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome.reason


@pytest.mark.usefixtures("unoptimised")
def test_programs_on_ranks(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.half_numbers", ranks=3)
    assert f"{len(CASES)} of {len(CASES)} right" in done.stdout, done.stdout + done.stderr


def every_bit(x, h, k):
    assigned = np.zeros(x.shape, np.float16)
    assigned[:] = x
    return x.astype(np.float16), assigned, h + k, h * k, h / k, h - k, np.sqrt(h), h // k


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.filterwarnings("ignore")
def test_all_numbers_have_the_bits_of_numpy() -> None:
    rng = np.random.default_rng(0)
    h = np.arange(65536, dtype=np.uint16).view(np.float16)
    k = rng.permutation(h)
    x = rng.normal(size=h.size) * np.exp(rng.normal(size=h.size) * 6)
    x[:6] = 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-45, 65519.999, 65520, 2.0**-25, np.inf
    program = distspmd.compile(distspmd.lower(numpy_program(every_bit, x, h, k), {}), MPI.COMM_SELF)
    for found, wanted in zip(program(x=x, h=h, k=k), every_bit(x, h, k), strict=True):
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        assert found.dtype == np.float16
        assert same.all()
    program.close()


def test_functions_without_code_for_them_are_refused() -> None:
    def program(x: Any) -> Any:
        return np.percentile(x.astype(np.float16), 50)

    with pytest.raises(UnsupportedProgram, match=r"percentile of float16 .* x\.astype"):
        numpy_program(program, np.ones(4))
