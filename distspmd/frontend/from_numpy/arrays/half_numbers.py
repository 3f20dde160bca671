"""Numbers of 16 bits: they are stored as such, computed with in float32, and rounded, as in NumPy.

Functions that would run on lines of them in code of their own are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.values import Tensor

HALF = np.dtype(np.float16)
_NAMES = """
    array asarray asanyarray ascontiguousarray copy astype view zeros_like ones_like empty_like
    full_like full reshape ravel flatten transpose swapaxes moveaxis flip fliplr flipud rot90 roll
    squeeze expand_dims concatenate concat stack vstack hstack dstack column_stack split
    array_split tile repeat broadcast_to atleast_1d atleast_2d atleast_3d take diagonal diag
    triu tril meshgrid shape ndim size len float int bool item tolist fill where abs
    sum mean max min amax amin argmax argmin any all prod std var dot matmul inner outer sort
    argsort clip diff nonzero count_nonzero cumsum print format str repr range list tuple
    enumerate zip isinstance type result_type dtype real imag round around array_equal
"""
_COVERED = frozenset(_NAMES.split())


def refuse_uncovered(tracer: Any, name: Any, arguments: Iterable[Any]) -> None:
    """Refuse a function of numbers of 16 bits that has no code for them.

    Raises:
        Refusal: the function is none of those that move, compare, add up or multiply.
    """
    if str(name) not in _COVERED and any(map(_has_halves, arguments)):
        tracer.refuse(f"{name} of float16 is not covered; convert before: x.astype(np.float32)")


def _has_halves(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_halves, value))
    return isinstance(value, Tensor) and value.dtype == HALF
