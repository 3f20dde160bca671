"""Values are compared on paper: what is wrong there is wrong where it runs, and the other way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.frontend.from_numpy.arrays import subscripts, tracer
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT, WRONG, Outcome
from from_numpy.test_written_out import case_of, places_in_slices


def ends_of_slices(x: Any, items: Any) -> Any:
    """Ends of which the sign is not known before the run, or changes in a loop."""
    found = np.zeros(3)
    for item in items:
        found[0] += x[:-item].sum() + 2 * x[1:item].sum()
    for i in range(5):
        found[1] += x[i - 2 : i + 1].sum()
        found[2] += x[i - 1 :: -1].sum()
    k = items[0] - 9
    x[k - 30 : k] += 1.5
    return found, x[k:] + 1


def shuffled(x: Any) -> Any:
    """A loop, a branch, a while loop, a table and a contraction."""
    order, n = np.array([3, 1, 0, 2]), 0
    t = np.zeros((4, 4))
    for i in range(4):
        if x[i] > 0.5:
            t[order[i]] = x[:4] * i
        else:
            t[i, ::-1] -= x[:4]
    while t.sum() < 40 and n < 20:
        t += t.mean() + 1
        n += 1
    return t, n, t @ t.T


def _case(function: Callable[..., Any]) -> Case:
    def make(rng: Any) -> tuple[Any, ...]:
        items = (rng.integers(1, 9, 6),) if function is ends_of_slices else ()
        return rng.random(12), *items

    return Case(function.__name__, function, "", "", make, ())


def _compared(found: Outcome) -> str:
    assert not found.uncompared
    return found.kind


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("seen", [on_paper, run_here])
def test_ends_of_slices_that_may_be_negative_count_from_the_end(seen: Any) -> None:
    assert _compared(seen(_case(ends_of_slices))) == RIGHT


def test_statements_are_evaluated() -> None:
    assert _compared(on_paper(_case(shuffled))) == RIGHT


def test_letters_count_on_paper_as_they_do_in_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compared(on_paper(case_of(places_in_slices))) == RIGHT
    monkeypatch.setattr(tracer, "counted_in", lambda _: set())  # windows begin where slices do
    assert _compared(on_paper(case_of(places_in_slices))) == WRONG


def test_what_no_program_may_do_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def outside(x: Any) -> Any:
        return (x[2:] * 2).sum()

    monkeypatch.setattr(subscripts, "_slice", lambda *_: subscripts.Axis(2, 1, 12))
    found = on_paper(_case(outside))
    assert found.kind == WRONG
    assert "which has 12" in found.reason
