"""Polynomials by their coefficients, and series of other polynomials."""

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre
from numpy.polynomial import polynomial as ascending

from from_numpy.functions.registry import program


def _coefficients(rng):
    return (np.array([1.0, 0.5, 2.5, 0.25, 3.0, 1.5]),)


@program(_coefficients)
def lowest_power_first(x):
    return (
        ascending.polyval(x, [1.0, 2, 3]),
        ascending.polyval(0.5, x),
        ascending.polyder(x),
        ascending.polyadd(x, x[:2]),
        ascending.polymul(x, x[:2]),
        ascending.polyvander(x, 2),
        ascending.polyfit(x, x**2, 2),
    )


@program(_coefficients)
def series(x):
    return (
        chebyshev.chebval(x, x[:5]),
        hermite.hermval(x, x[:4]),
        hermite_e.hermeval(x, x),
        laguerre.lagval(x, x),
        legendre.legval(x, x),
        legendre.legval(0.5, x[:2]),
        chebyshev.chebval(x, [1]),
        (np.exp(x[:, None] * legendre.leggauss(5)[0]) * legendre.leggauss(5)[1]).sum(axis=1),
    )


@program(_coefficients)
def quotients_and_integrals(x):
    return (
        np.polydiv(x, x[:3]),
        np.polydiv(np.array([3.0, 5, 2]), x[:2]),
        np.polydiv(x[:2], x),
        np.polyint(x, 2, [1, 2]),
        np.polyder(x, 2),
    )


@program(_coefficients)
def zeros(x):
    return (
        np.roots(x),
        np.roots([1, -3, 2 + 0 * x[0]]),
        np.sort(np.abs(np.roots(x[:4]))),
        np.roots(x[:1]),
        np.roots(x[:2]),
        ascending.polyroots(x),
        np.poly(x),
        np.poly(np.outer(x, x[::-1]) + np.diag(x)),
        np.poly(np.roots(x)),
        np.poly([1j * x[0], -1j * x[0]]),
        np.poly(x[:1] + 1j),
    )


@program(_coefficients)
def fits(x):
    y, few = np.sin(x), x[x > 0.4]
    return (
        np.polyfit(x, y, 2),
        np.polyfit(few, np.sin(few), 1),
        np.polyfit(x, y, 1, cov=True),
        np.polyfit(x, y, 2, full=True)[:4],
        np.polyfit(x, y, 2, cov="unscaled", w=x),
    )


@program(_coefficients)
def real_if_it_can_be(x):
    near = np.real_if_close(x + 1e-16j)
    return near, near * 2, np.real_if_close(x + 1j), np.emath.sqrt(x - 1), np.emath.log(x)
