"""Integer expressions are evaluated in many places at once."""

from __future__ import annotations

import numpy as np
import sympy
from dace import symbolic

from distspmd.analysis.evaluation import evaluate

PLACES = {"t": np.array([-4, -2, 0, 5])}


def test_remainders_in_an_sdfg_are_those_of_c() -> None:
    expression = symbolic.pystr_to_symbolic("t % 3 + 2 * t")
    assert list(evaluate(expression, PLACES)) == [-9, -6, 0, 12]


def test_remainders_of_sympy_have_the_sign_of_the_second_number() -> None:
    expression = sympy.Mod(sympy.Symbol("t", integer=True), 3)
    assert list(evaluate(expression, PLACES)) == [2, 1, 0, 2]
