"""``np.ma``: masked arrays as objects of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import ma

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper
from from_numpy.outcomes import RIGHT


def scaled(x):
    m = ma.masked_greater(x, 0.7)
    n = (m - m.mean()) / m.std()
    return n.filled(0), ma.mean(m), m.max(axis=1).filled(-1), m.count(axis=0), m.compressed().sum()


def without_nan(x):
    y = np.where(x > 0.5, np.nan, x)
    m = np.ma.masked_invalid(y)
    return m.mean(axis=1).filled(-9.0), m.var(), (m > 0.2).sum(), m[:2].sum(), len(m)


def of_a_mask(x):
    m = np.ma.array(x, mask=x < 0.2)
    r = 1.0 / m
    return r.filled(), m.sum(axis=0).data, m.min(), (2 * m).mean(), m.T.shape


def known():
    t = np.ma.array([1.0, -999.0, 3.0], mask=[0, 1, 0])
    u = np.ma.masked_equal([1, 2, 3, 2], 2)
    return t.mean(), u.sum(), u.filled(), np.ma.getmaskarray(u)


def where_masked(x):
    m = np.ma.masked_where(x < 0.3, x)
    inside = np.ma.masked_outside(x, 0.8, 0.2)
    return m.mean(), (m + inside).filled(-1.0), inside.prod(), m.reshape(20).compressed().size


@pytest.mark.parametrize("program", [scaled, without_nan, of_a_mask, known, where_masked])
def test_masked_elements_are_left_out(program: Callable[..., Any]) -> None:
    count = program.__code__.co_argcount

    def make(rng: Any) -> Any:
        return (rng.random((4, 5)),) * count

    outcome = on_paper(Case(program.__name__, program, "masked", "numpy", make, (), True))
    assert outcome.kind == RIGHT, outcome.reason
