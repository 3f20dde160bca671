"""Polynomials as objects: what ``np.poly1d`` and ``np.polynomial.Polynomial`` are in programs.

NumPy leaves out leading coefficients that are zero, and the run decides which are. Here they stay;
the program ends where it asks for the degree, or for the coefficients, and the first one is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Poly1d:
    """A polynomial by its coefficients, that of the highest power first."""

    values: Any

    def __init__(self, c_or_r: Any, r: Any = False, variable: Any = None) -> None:
        if isinstance(c_or_r, Poly1d):
            self.values = c_or_r.values
        elif r:
            self.values = np.poly(c_or_r)
        else:
            self.values = np.atleast_1d(c_or_r)

    @property
    def coeffs(self) -> Any:
        """The coefficients."""
        if self.values.shape[0] > 1 and self.values[0] == 0:
            raise ValueError("the leading coefficient is zero, and NumPy would leave it out")
        return self.values

    @property
    def c(self) -> Any:
        """The coefficients."""
        return self.coeffs

    @property
    def coef(self) -> Any:
        """The coefficients."""
        return self.coeffs

    @property
    def coefficients(self) -> Any:
        """The coefficients."""
        return self.coeffs

    @property
    def order(self) -> Any:
        """The degree."""
        return self.coeffs.shape[0] - 1

    @property
    def o(self) -> Any:
        """The degree."""
        return self.coeffs.shape[0] - 1

    @property
    def roots(self) -> Any:
        """Its zeros."""
        return np.roots(self.values)

    @property
    def r(self) -> Any:
        """Its zeros."""
        return np.roots(self.values)

    def __call__(self, val: Any) -> Any:
        """Its value, or the polynomial of a polynomial."""
        if isinstance(val, Poly1d):
            found = Poly1d(self.values[:1])
            for k in range(1, self.values.shape[0]):
                found = found * val + self.values[k]
            return found
        return np.polyval(self.values, val)

    def __len__(self) -> Any:
        return self.order

    def __getitem__(self, power: Any) -> Any:
        if power < 0 or power >= self.values.shape[0]:
            return self.values.dtype.type(0)
        return self.values[self.values.shape[0] - 1 - power]

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, Poly1d) or self.values.shape[0] != other.values.shape[0]:
            return False
        return np.all(self.coeffs == other.coeffs)

    def __ne__(self, other: Any) -> Any:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Any:
        return Poly1d(-self.values)

    def __pos__(self) -> Any:
        return self

    def __add__(self, other: Any) -> Any:
        return Poly1d(np.polyadd(self.values, values_of(other)))

    def __radd__(self, other: Any) -> Any:
        return Poly1d(np.polyadd(self.values, values_of(other)))

    def __sub__(self, other: Any) -> Any:
        return Poly1d(np.polysub(self.values, values_of(other)))

    def __rsub__(self, other: Any) -> Any:
        return Poly1d(np.polysub(values_of(other), self.values))

    def __mul__(self, other: Any) -> Any:
        if np.ndim(values_of(other)) == 0:
            return Poly1d(self.values * other)
        return Poly1d(np.polymul(self.values, values_of(other)))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        if np.ndim(values_of(other)) == 0:
            return Poly1d(self.values / other)
        q, r = np.polydiv(self.values, values_of(other))
        return Poly1d(q), Poly1d(r)

    def __pow__(self, power: Any) -> Any:
        found = Poly1d(np.ones(1, self.values.dtype))
        for _ in range(power):
            found = found * self
        return found

    def deriv(self, m: Any = 1) -> Any:
        """A derivative."""
        return Poly1d(np.polyder(self.values, m))

    def integ(self, m: Any = 1, k: Any = 0) -> Any:
        """An integral, with constants."""
        return Poly1d(np.polyint(self.values, m, k))


def values_of(value: Any) -> Any:
    """The coefficients of a polynomial; a number or an array is what it is."""
    if isinstance(value, Poly1d):
        return value.values
    return value.coeffs if isinstance(value, np.poly1d) else value


class Polynomial:
    """A polynomial by its coefficients, that of the lowest power first, on a domain."""

    def __init__(
        self, coef: Any, domain: Any = None, window: Any = None, symbol: Any = "x"
    ) -> None:
        self.coef = np.atleast_1d(coef) + 0.0
        self.domain = np.array([-1.0, 1.0]) if domain is None else np.asarray(domain) + 0.0
        self.window = np.array([-1.0, 1.0]) if window is None else np.asarray(window) + 0.0

    def mapparms(self) -> Any:
        """What the domain is shifted and scaled by."""
        width = self.domain[1] - self.domain[0]
        offset = self.domain[1] * self.window[0] - self.domain[0] * self.window[1]
        return offset / width, (self.window[1] - self.window[0]) / width

    def __call__(self, arg: Any) -> Any:
        """Its value."""
        offset, scale = self.mapparms()
        return np.polyval(self.coef[::-1], offset + scale * np.asarray(arg))

    def degree(self) -> Any:
        """The degree, of coefficients that may be zero."""
        return self.coef.shape[0] - 1

    def __len__(self) -> Any:
        return self.coef.shape[0]

    def _like(self, coef: Any) -> Any:
        return Polynomial(coef, self.domain, self.window)

    def _other(self, other: Any) -> Any:
        if isinstance(other, Polynomial):
            return other.coef
        return other.coef if isinstance(other, np.polynomial.Polynomial) else np.atleast_1d(other)

    def __neg__(self) -> Any:
        return self._like(-self.coef)

    def __add__(self, other: Any) -> Any:
        return self._like(np.polyadd(self.coef[::-1], self._other(other)[::-1])[::-1])

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self._like(np.polysub(self.coef[::-1], self._other(other)[::-1])[::-1])

    def __rsub__(self, other: Any) -> Any:
        return -(self - other)

    def __mul__(self, other: Any) -> Any:
        return self._like(np.convolve(self.coef, self._other(other)))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        return self._like(self.coef / other)

    def __pow__(self, power: Any) -> Any:
        found = self._like(np.ones(1))
        for _ in range(power):
            found = found * self
        return found

    def deriv(self, m: Any = 1) -> Any:
        """A derivative."""
        scale = self.mapparms()[1]
        coef = self.coef
        for _ in range(m):
            coef = coef[1:] * np.arange(1, coef.shape[0]) * scale
        return self._like(coef)

    def integ(self, m: Any = 1) -> Any:
        """An integral that is zero at zero."""
        offset, scale = self.mapparms()
        coef = self.coef
        for _ in range(m):
            coef = np.concatenate((np.zeros(1), coef / np.arange(1, coef.shape[0] + 1) / scale))
            coef[0] = -np.polyval(coef[::-1], offset)
        return self._like(coef)

    def roots(self) -> Any:
        """Its zeros, in order."""
        offset, scale = self.mapparms()
        return (np.sort(np.roots(self.coef[::-1])) - offset) / scale

    def convert(self) -> Any:
        """The same on the domain from -1 to 1."""
        offset, scale = self.mapparms()
        inner = np.array([1.0, 0.0]) * scale + np.array([0.0, 1.0]) * offset
        found: Any = self.coef[-1:]
        for k in range(self.coef.shape[0] - 2, -1, -1):
            found = np.polyadd(np.convolve(found, inner), self.coef[k : k + 1])
        return Polynomial(found[::-1])

    def linspace(self, n: Any = 100) -> Any:
        """Points of the domain, and its values there."""
        x = np.linspace(self.domain[0], self.domain[1], n)
        return x, self(x)


def fitted(x: Any, y: Any, deg: Any, domain: Any = None, w: Any = None) -> Any:
    """``Polynomial.fit``: least squares on the domain of the points."""
    if domain is None:
        low, high = np.min(x), np.max(x)
    else:
        low, high = domain
    offset, scale = (-high - low) / (high - low), 2.0 / (high - low)
    coef = np.polyfit(offset + scale * x, y, deg, w=w)
    return Polynomial(coef[::-1], np.array([low, high]))
