"""What stands for results of other ranks: it prints, and each use says where the result is."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from distspmd.errors import ArgumentError, MissingResultError
from distspmd.runtime.calls.form import (
    CallForm,
    Column,
    IteratorOf,
    ListOf,
    NamedTupleOf,
    OneOf,
    Result,
)
from distspmd.runtime.calls.missing_result import MissingResult, missing_result

THERE = missing_result("simulate", "on rank 0", 1)

USES: dict[str, Callable[[Any], Any]] = {
    "unpacked": lambda y: (lambda a, b: a)(*y),
    "item": lambda y: y.item(),
    "shape": lambda y: y.shape,
    "element": lambda y: y[0],
    "written": lambda y: operator.setitem(y, 0, 1),
    "sum": lambda y: y + 1,
    "sum from the right": lambda y: 1 + y,
    "sum of NumPy": lambda y: np.ones(3) + y,
    "product": lambda y: y @ y,
    "added in place": lambda y: operator.iadd(y, 1),
    "equal": lambda y: y == 1,
    "less": lambda y: y < 1,
    "truth": bool,
    "number": float,
    "length": len,
    "format": lambda y: f"{y:.3f}",
    "function of NumPy": np.sum,
    "array": np.asarray,
    "exponential": np.exp,
    "function of torch": torch.mean,
    "tensors of torch": lambda y: torch.stack([torch.ones(1), y]),
    "loop": list,
    "absolute": abs,
    "in": lambda y: 1 in y,
}


@pytest.mark.parametrize("use", USES)
def test_a_use_says_where_the_result_is_and_what_to_write(use: str) -> None:
    with pytest.raises(MissingResultError, match=r"simulate\(...\) is on rank 0, and not") as told:
        USES[use](THERE)
    assert 'results="replicated"' in str(told.value)
    assert "if comm.rank == 0:" in str(told.value)
    assert told.value.first == 1
    assert isinstance(told.value, ArgumentError)


def test_it_prints_and_is_kept_and_copied() -> None:
    assert (
        str(THERE)
        == f"{THERE}"
        == "<the result of simulate(...) is on rank 0, and not on this rank>"
    )
    assert {THERE: 1}[THERE] == 1
    assert repr(copy.copy(THERE)) == repr(THERE)
    assert not hasattr(THERE, "_repr_html_")
    assert isinstance(THERE, MissingResult)


def filled(form: Any) -> Any:
    return CallForm(returned=form).arrange([THERE] * 4)


def test_what_a_program_returns_has_its_form_on_all_ranks() -> None:
    a, b = Result(0), Result(1)
    assert filled((a, {"b": b, "said": "text"})) == (THERE, {"b": THERE, "said": "text"})
    assert filled(NamedTupleOf("Pair", ("u", "v"), (a, b))).v is THERE
    assert filled(Result(0, lengths=((0, 1),), is_python=True)) is THERE
    assert filled(ListOf(Column(a, is_python=True), list)) is THERE
    assert filled(ListOf((Column(a, True), Column(b, True)), list)) is THERE
    assert filled(ListOf(ListOf(Column(a, True), list, 2), list)) is THERE
    assert filled(IteratorOf(ListOf(Column(a, True), list))) is THERE


def test_of_two_forms_between_which_another_rank_decides_tuples_of_one_length_stay() -> None:
    which, a, b = Result(0), Result(1), Result(2)
    assert filled(OneOf(which, ((a, b), (b, None)))) == (THERE, THERE)
    assert filled(OneOf(which, (a, None))) is THERE
    tile = np.ones(2)
    assert CallForm(returned=OneOf(which, (a, b))).arrange([THERE, tile, THERE]) is tile
