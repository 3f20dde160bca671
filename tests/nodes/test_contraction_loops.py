"""Loops of reductions: neighbours in registers, and truth values as bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.codegen.implementations import choose_implementations
from distspmd.frontend import numpy_program

BYTES = "reinterpret_cast<const unsigned char &>"


def code_of(function: Callable[..., Any], *examples: Any) -> str:
    sdfg = numpy_program(function, *examples)
    sdfg = distspmd.lower(sdfg, {}).sdfg
    choose_implementations(sdfg, False)
    return str(sdfg.generate_code()[0].clean_code)


def distances(a, b):
    return np.sum(np.abs(a[:, :, None] - b[None, :, :]), axis=1)


def counted(x, y):
    mask = x < y
    return np.sum(np.where(mask, x, 0.0)) + np.sum(x)


def test_truth_values_are_read_as_bytes_of_which_the_compiler_makes_vectors() -> None:
    code = code_of(counted, np.ones(40), np.ones(40))
    assert code.count(BYTES) == 1


def test_few_neighbours_have_a_register_and_many_have_blocks() -> None:
    code = code_of(distances, np.ones((4, 30)), np.ones((30, 12)))
    assert "double __part[8];" in code
    assert "double __part[1024];" in code


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_reductions_of_neighbours_are_those_of_numpy(
    launch: Callable[..., Any], root: Path, ranks: int
) -> None:
    launch(root / "tests" / "ranks" / "neighbours.py", ranks=ranks, timeout=600)
