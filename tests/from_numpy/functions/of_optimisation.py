"""Zeros and minima by ``scipy.optimize``."""

import numpy as np
from scipy import optimize

from from_numpy.functions.registry import program


def _five(rng):
    return (rng.random(5) + 0.5,)


def _cubic(t, x):
    return t**3 - x[0] * t - x[1]


def _valley(t, x):
    return (t - x[0]) ** 2 + 0.3 * np.sin(3 * t) * x[1] + t**4 / 20


@program(_five)
def zeros_between_places(x):
    root, told = optimize.brentq(lambda t, a: np.cos(t) - a * t, 0, 2, (x[0],), full_output=True)
    known = optimize.brentq(lambda t: t * t - 2, 0, 2) * x
    others = [f(_cubic, 0.0, 3.0, args=(x,)) for f in (optimize.brenth, optimize.ridder)]
    _, halved = optimize.bisect(lambda t: t - x[0], 0, 3, xtol=1e-4, full_output=True)
    found = np.zeros(len(x))
    for i in range(len(x)):
        found[i] = optimize.brentq(lambda t, a: np.exp(t) - a - 2, 0.0, 4.0, x[i], xtol=1e-10)
    return (
        root,
        told.iterations,
        told.function_calls,
        told.converged,
        known,
        others,
        (
            halved.iterations,
            found,
            optimize.brentq(lambda t: t, 0, x[0]),
        ),
    )


@program(_five)
def zeros_near_places(x):
    root, told = optimize.newton(lambda t: np.exp(t) - x[0], 0.5, full_output=True)
    slope, bend = lambda t: 3 * t**2, lambda t: 6 * t
    return (
        (root, told.iterations, told.function_calls, told.converged, told.root),
        optimize.newton(lambda t: t**3 - x[0], x[1], fprime=slope),
        optimize.newton(lambda t: t**3 - x[0], 1, fprime=slope, fprime2=bend),
        optimize.newton(lambda t, a: t**3 - a, 1.5, x1=2.0, args=(x[0],), rtol=1e-3),
        optimize.newton(lambda z: z**2 + x[0], 1 + 1j, fprime=lambda z: 2 * z),
    )


@program(_five)
def zeros_near_several_places(x):
    slope, bend = lambda t: 3 * t**2, lambda t: 6 * t
    return (
        optimize.newton(lambda t: t**3 - x, np.ones(5)),
        optimize.newton(lambda t: t**3 - x, x, fprime=slope),
        optimize.newton(lambda t: t**3 - x, x, fprime=slope, fprime2=bend),
    )


@program(_five)
def minima_between_bounds(x):
    found = optimize.minimize_scalar(_valley, bounds=(-1, 3), args=(x,), method="bounded")
    closer = optimize.minimize_scalar(lambda t: _valley(t, x), bounds=(-1, 3), tol=1e-9)
    both = found.x, found.fun, found.nit, found.nfev, found.success, closer["x"]
    return both, optimize.fminbound(_valley, -1, 2, args=(x,))


@program(_five)
def minima_in_valleys(x):
    found = optimize.minimize_scalar(lambda t: _valley(t, x))
    golden = optimize.minimize_scalar(_valley, args=(x,), method="golden")
    return (
        (found.x, found.fun, found.nit, found.nfev, found.success),
        (golden.x, golden.fun, golden.nit, golden.nfev),
        optimize.brent(lambda t: (t - x[0]) ** 2, brack=(-1, x[0] + 0.1, 3), full_output=True),
        optimize.golden(_valley, args=(x,), brack=(-1, 0.5), full_output=True),
        optimize.bracket(lambda t: (t - 30 * x[0]) ** 2),
        optimize.bracket(lambda t: np.cosh(t - 5 * x[1])),
    )
