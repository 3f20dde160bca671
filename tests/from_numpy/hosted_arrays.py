"""Programs with objects of Python that are like arrays: masked ones, matrices, users' classes."""

from __future__ import annotations

from typing import Any

import numpy as np

X = np.linspace(-1.0, 2.0, 30).reshape(6, 5)


class Quaternion(np.ndarray):
    """Four numbers with a product of their own, and a name that goes along."""

    def __new__(cls, values, name=""):
        made = np.asarray(values, dtype=float).view(cls)
        made.name = name
        return made

    def __array_finalize__(self, parent):
        self.name = getattr(parent, "name", "") + "'"

    def __mul__(self, other):
        if not isinstance(other, Quaternion):
            return super().__mul__(other)
        (a, *u), (b, *v) = np.asarray(self), np.asarray(other)
        return Quaternion([a * b - np.dot(u, v), *(a * np.array(v) + b * np.array(u))], self.name)


def quaternions(x):
    p = Quaternion(x[0, :4], "p")
    q = p * Quaternion(x[1, :4], "q") * 2.0
    for _ in range(3):
        q = p * q
    found = np.asarray(q)
    return x[:, :4] * found, len(q.name)


def viewed(x):
    y = np.sqrt(x + 1.0)
    q = y[0, :4].view(Quaternion)
    found = np.array(q * q)
    return y.sum() * found


def matrices(x):
    y = x * 2.0
    m = np.matrix(y[:4, :4]) + np.eye(4) * 9.0
    inverse = np.asarray(m.I * m.T)
    line = np.asarray(m[0] * m).ravel()
    return y[:4, :4] @ inverse, y[1, :4] * line


def known_matrix(x):
    """A matrix that is known before the run, of which a product is one of matrices."""
    m = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    found = np.asarray(m * x[:2, :2])
    return x[:2, :2] - found


def masked(x):
    m = np.ma.masked_less(x, 0.0)
    filled = m.filled(7.0)
    mean, count = float(m.mean()), int(m.count())
    rows = np.ma.getmaskarray(m).any(axis=1)
    return filled * x, mean * x.sum() + count, rows


def polynomials(x):
    p = np.poly1d(x[0, :3])
    q = p * p.deriv() + 1
    values = q(x)
    return values * 2.0 + x, q.coeffs, q.order


def fitted(x):
    t = np.arange(30.0)
    p = np.polynomial.Polynomial.fit(t, x.ravel() ** 2, 3)
    values = p(t)
    slope = float(p.deriv()(0.5))
    return values + x.ravel(), slope


PART = Quaternion([1.0, 2.0, 3.0, 4.0], "outside")


def known_quaternion(x):
    found = np.asarray(PART * Quaternion(x[0, :4]))
    return x[:, :4] - found


def known_polynomial(x):
    return np.poly1d([1.0, -2.0, 3.0])(x) + 1.0


def of_numbers(x):
    """The functions of coefficients are compiled."""
    p = np.polymul(x[0, :3], x[1, :2])
    return np.polyval(np.polyadd(p, np.polyder(p)), x)


ARGUMENTS: dict[Any, tuple[Any, ...]] = dict.fromkeys(
    (
        *(
            quaternions,
            viewed,
            known_quaternion,
            matrices,
            known_matrix,
            masked,
            polynomials,
            fitted,
        ),
        *(known_polynomial, of_numbers),
    ),
    (X,),
)
COMPILED = (known_polynomial, of_numbers)
"""Which have no region."""


def large(x):
    m = np.ma.masked_less(x, 0.0)
    return m.filled(0.0) * 2.0
