"""What library calls cost: for each routine, function of LAPACK and function of Python, a row.

A row has the kind of code, whose speed the machine knows, and how many operations a call takes, by
the lengths of its operands. What has no row of its own goes through its operands once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from distspmd.plans.machine import Kind


@dataclass(frozen=True)
class RoutineCost:
    """A routine of C++ on lines.

    Attributes:
        kind: of the code.
        operations: of a call, by the elements of its longest line, and of what it sees whole.
    """

    kind: Kind
    operations: Callable[[float, float], float]


@dataclass(frozen=True)
class MatrixCost:
    """A function of LAPACK on one matrix.

    Attributes:
        kind: of the code.
        operations: by rows and columns of the matrix, without those of right-hand sides.
        each: of each column of a right-hand side.
    """

    kind: Kind
    operations: Callable[[float, float], float] = lambda m, n: 0.0
    each: Callable[[float, float], float] = lambda m, n: 0.0


def sorted_elements(n: float) -> float:
    """Elements times the logarithm of their number."""
    return n * math.log2(max(n, 2.0))


LARGEST_FACTOR = 13
"""Of the length of a transform: with a much larger one the library takes a convolution instead."""
_CONVOLVED = 2.5
"""Transforms of twice the length that take as long as the convolution."""


def transformed(n: float) -> float:
    """Operations of a Fourier transform."""
    rest = round(n)
    for factor in (2, 3, 5, 7, 11, LARGEST_FACTOR):
        while rest > 1 and rest % factor == 0:
            rest //= factor
    return sorted_elements(n) if rest <= 1 else _CONVOLVED * sorted_elements(2 * n)


_ONCE = RoutineCost(Kind.LINE, lambda n, whole: n)
_SORT = RoutineCost(Kind.SORT, lambda n, whole: sorted_elements(n))
_ORDER = RoutineCost(Kind.ORDER, lambda n, whole: sorted_elements(n))
_SEARCH = RoutineCost(Kind.SEARCH, lambda n, whole: n * math.log2(max(whole, 2.0)))
_TRANSFORM = RoutineCost(Kind.TRANSFORM, lambda n, whole: transformed(n))

ROUTINES: Mapping[str, RoutineCost] = {
    "lines::sort": _SORT,
    "std::sort": _SORT,
    "lines::argsort": _ORDER,
    "lines::in_order": _ORDER,
    "std::stable_sort": _ORDER,
    "lines::search": _SEARCH,
    "lines::search_by": _SEARCH,
    "lines::digit": _SEARCH,
    "lines::bin": _SEARCH,
    "lines::interpolate": _SEARCH,
    "lines::scan": _ONCE,
    "lines::running": _ONCE,
    "lines::reduce_between": _ONCE,
    "lines::dot": RoutineCost(Kind.LINE, lambda n, whole: max(n, whole)),
    "lines::polynomial": RoutineCost(Kind.LINE, lambda n, whole: n * max(whole, 1.0)),
    "lines::median": RoutineCost(Kind.LINE, lambda n, whole: 1.0),
    "lines::quantiles": RoutineCost(Kind.LINE, lambda n, whole: 4 * max(whole, 1.0)),
    "fourier::complex_to_complex": _TRANSFORM,
    "fourier::real_to_complex": _TRANSFORM,
    "fourier::complex_to_real": _TRANSFORM,
}
"""Of the functions that code of routines calls, by namespace and name."""

PARTS = frozenset(("lines::before", "lines::few", "lines::is_nan", "lines::Quantile"))
"""What code names beside these: parts of what they do."""


def _reflected(m: float, n: float) -> float:
    """Operations of Householder's factorisation."""
    k = min(m, n)
    return 2 * m * n * k - 2 / 3 * k**3


def _eliminated(m: float, n: float) -> float:
    """Operations of Gauss's factorisation."""
    k = min(m, n)
    return m * n * k - k**3 / 3


def _cubic(each: float) -> Callable[[float, float], float]:
    return lambda m, n: each * m * n * min(m, n)


_COLUMN = 2.0
"""Operations for each element of a triangle and its mirror that a right-hand side takes."""


def _per_column(each: float) -> Callable[[float, float], float]:
    return lambda m, n: each * m * n


FUNCTIONS: Mapping[str, MatrixCost] = {
    "solve": MatrixCost(Kind.LU, _eliminated, _per_column(_COLUMN)),
    "inverse": MatrixCost(Kind.LU, _cubic(8 / 3)),
    "logarithm_of_determinant": MatrixCost(Kind.LU, _eliminated),
    "diagonal_of_factor": MatrixCost(Kind.LU, _eliminated),
    "factors": MatrixCost(Kind.LU, _eliminated),
    "solve_factored": MatrixCost(Kind.LU, each=_per_column(_COLUMN)),
    "solve_triangle": MatrixCost(Kind.LU, each=_per_column(_COLUMN / 2)),
    "cholesky": MatrixCost(Kind.CHOLESKY, _cubic(1 / 3)),
    "solve_definite": MatrixCost(Kind.CHOLESKY, each=_per_column(_COLUMN)),
    "qr": MatrixCost(Kind.QR, lambda m, n: 2 * _reflected(m, n)),
    "triangle_of_qr": MatrixCost(Kind.QR, _reflected),
    "qr_by_columns": MatrixCost(Kind.QR, lambda m, n: 2 * _reflected(m, n)),
    "triangle_by_columns": MatrixCost(Kind.QR, _reflected),
    "eigenvectors": MatrixCost(Kind.EIGEN, _cubic(9.0)),
    "eigenvalues": MatrixCost(Kind.EIGEN, _cubic(3.4)),
    "general_eigenvectors": MatrixCost(Kind.GENERAL_EIGEN, _cubic(25.0)),
    "general_eigenvalues": MatrixCost(Kind.GENERAL_EIGEN, _cubic(18.0)),
    "eigenvectors_of_real": MatrixCost(Kind.GENERAL_EIGEN, _cubic(25.0)),
    "eigenvalues_of_real": MatrixCost(Kind.GENERAL_EIGEN, _cubic(18.0)),
    "svd": MatrixCost(Kind.SVD, _cubic(21.0)),
    "singular_values": MatrixCost(Kind.SVD, _cubic(7.0)),
    "least_squares": MatrixCost(Kind.SVD, _cubic(10.0)),
}
"""Of the functions of LAPACK that programs call, by their names in ``nodes/lapack.py``."""

TYPES = {"f4": 0.6, "c8": 2.0, "c16": 3.5}
"""How many times as long a function of LAPACK takes, by the type of its elements."""


def _of_matrix(each: float) -> Callable[[float], float]:
    """Operations of a square matrix of so many elements."""
    return lambda n: each * n**1.5


_PYTHON: Mapping[tuple[str, ...], tuple[Kind, Callable[[float], float]]] = {
    ("sort", "sort_values", "unique", "rankdata"): (Kind.SORT, sorted_elements),
    ("argsort", "lexsort"): (Kind.ORDER, sorted_elements),
    (
        *("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn"),
        *("rfftn", "irfftn", "dct", "idct", "dst", "idst", "dctn", "idctn", "fftconvolve"),
    ): (Kind.TRANSFORM, sorted_elements),
    ("solve", "lu", "lu_factor", "det", "spsolve"): (Kind.LU, _of_matrix(2 / 3)),
    ("inv", "expm", "pinv", "logm", "sqrtm", "funm"): (Kind.LU, _of_matrix(20.0)),
    ("cholesky", "cho_factor"): (Kind.CHOLESKY, _of_matrix(1 / 3)),
    ("qr", "rq", "hessenberg", "ldl"): (Kind.QR, _of_matrix(8 / 3)),
    ("eigh", "eigvalsh"): (Kind.EIGEN, _of_matrix(9.0)),
    ("eig", "eigvals", "schur", "qz", "solve_sylvester"): (Kind.GENERAL_EIGEN, _of_matrix(25.0)),
    ("svd", "svdvals", "null_space", "orth", "polar", "lstsq", "matrix_rank", "cond"): (
        Kind.SVD,
        _of_matrix(21.0),
    ),
}

PYTHON: Mapping[str, tuple[Kind, Callable[[float], float]]] = {
    name: row for names, row in _PYTHON.items() for name in names
}
"""Of functions that Python is asked for, by the last part of their names, and by all elements.

Of others nothing is known but that they are called, and what they get and give.
"""

_CALLED = re.compile(r"\b(?:distspmd::)?((?:lines|fourier|std)::\w+)")
_ASKED = re.compile(r"\bdistspmd::ask\w*\(")


def called(code: str) -> Iterator[str]:
    """The functions of :data:`ROUTINES` that code in C++ calls."""
    yield from (name for name in _CALLED.findall(code) if name in ROUTINES)


Operations = dict[Kind, float]
"""How many operations of each kind of code there are."""


def routine_operations(code: str, line: float, whole: float) -> Operations:
    """Operations of the code of a routine.

    Args:
        code: in C++.
        line: elements of the longest of its lines and results.
        whole: elements of the longest of what it sees whole; 0 where it does so of nothing.
    """
    if _ASKED.search(code):
        return {Kind.PYTHON: 1.0}
    found: Operations = {}
    for row in (ROUTINES[name] for name in called(code)):
        found[row.kind] = found.get(row.kind, 0.0) + row.operations(line, whole)
    return found or {Kind.LINE: line}
