"""``np.matrix``: arrays of two dimensions, of which ``*`` is the product and ``**`` the power.

They are arrays of a class, as those of users' classes are: NumPy says what stays a matrix, and of
which shape. Only what a matrix computes otherwise than an array is here.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
from numpy.matrixlib import matrix

from distspmd.frontend.from_numpy.arrays.values import OwnArray, Tensor, View
from distspmd.frontend.from_numpy.context import Context


def is_matrix(value: Any) -> bool:
    """Whether a value is an ``np.matrix``."""
    return isinstance(value, OwnArray) and issubclass(value.kind, matrix)


def as_lines(run: Context, array: Any, shape: tuple[int, ...]) -> Any:
    """An array, of which NumPy makes a matrix of a shape.

    Args:
        run: the reading.
        array: of at most two dimensions.
        shape: of the matrix; lengths that are not known are others there.
    """
    if not isinstance(array, Tensor) or array.ndim >= 2:
        return array
    if array.ndim == 1 and shape[1] == 1 and shape[0] != 1:
        return run.call(np.reshape, [array, (-1, 1)], {})
    return run.call(np.reshape, [array, (1, -1)], {})


def operate(run: Context, op: ast.AST, left: Any, right: Any) -> Any:
    """``left op right`` of arrays, as matrices compute it; NotImplemented where arrays do as well.

    Args:
        run: the reading.
        op: the operator.
        left: an operand, a matrix or not.
        right: the other one.
    """
    if isinstance(op, ast.Pow) and is_matrix(left):
        return run.call(np.linalg.matrix_power, [left.array, right], {})
    if not isinstance(op, ast.Mult) or not (is_matrix(left) or is_matrix(right)):
        return NotImplemented
    one, other = (v.array if isinstance(v, OwnArray) else v for v in (left, right))
    if any(getattr(v, "ndim", None) == 0 or np.isscalar(v) for v in (one, other)):
        return NotImplemented
    if is_matrix(left):
        other = run.call(np.atleast_2d, [other], {})
    return run.call(np.dot, [one, other], {})


def change(run: Context, old: OwnArray, op: ast.operator, new: Any) -> bool:
    """Change a matrix in place by what it computes itself; False where arrays do as well."""
    if not is_matrix(old) or not isinstance(op, ast.Mult | ast.Pow):
        return False
    run.write_part(old.array, Ellipsis, run.binary(op, old, new))
    return True


def write(run: Context, base: OwnArray, items: Any, value: Any) -> bool:
    """``base[items] = value`` where a part of a matrix is a matrix; False for others."""
    if not is_matrix(base):
        return False
    there = run.part_of(base, items)
    if not isinstance(there, OwnArray) or not isinstance(there.array, View):
        return False
    if there.array.container is not base.array.container:  # type: ignore[attr-defined]
        return False
    run.write_part(there.array, Ellipsis, value)
    return True


def augment_part(run: Context, base: Any, items: Any, op: ast.operator, new: Any) -> bool:
    """``base[items] op= new`` of a matrix; False for others."""
    if not is_matrix(base):
        return False
    value = run.binary(op, run.part_of(base, items), new)
    if not write(run, base, items, value):
        run.write_part(base.array, items, value)
    return True
