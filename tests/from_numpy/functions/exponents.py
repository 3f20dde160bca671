"""Universal functions of exponents, bits, signs and neighbours, at special values, too."""

import numpy as np

from from_numpy.functions.registry import program

_SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.3, 1e-310, 1e300, -np.inf, np.inf, np.nan, 2.0**-1074, 0.5]


def _special(rng):
    x = np.array(_SPECIAL)
    one, two = np.meshgrid(x, x)
    return x, one.ravel(), two.ravel(), rng.integers(-(2**40), 2**40, 12)


@program(_special)
def parts_of_numbers(x, a, b, n):
    return (
        np.frexp(x),
        np.frexp(x.astype(np.float32)),
        np.modf(x),
        np.ldexp(x, 3),
        np.ldexp(x, n % 9),
        np.ldexp(0.5, n % 9),
        divmod(n, 7),
        np.divmod(x[2:5], 0.7),
        np.spacing(x),
    )


@program(_special)
def neighbours_and_bits(x, a, b, n):
    kinds = np.int8, np.uint16, np.int32, np.uint64
    return (
        np.nextafter(a, b),
        np.nextafter(x.astype(np.float32), np.float32(1)),
        [np.bitwise_count(n.astype(kind)) for kind in kinds],
        np.bitwise_count(n),
    )


@program(_special)
def sums_of_logarithms(x, a, b, n):
    return np.logaddexp(a, b), np.logaddexp2(a, b), np.hypot(a, b)


@program(_special)
def of_two_special_numbers(x, a, b, n):
    return (
        (np.fmax(a, b), np.fmin(a, b), np.maximum(a, b), np.minimum(a, b)),
        (np.copysign(a, b), np.heaviside(a, b), np.arctan2(a, b), np.sign(a)),
        (np.floor_divide(a, b), np.remainder(a, b), np.fmod(a, b), np.float_power(a, b)),
        (np.sinc(x[:7]), np.i0(x[:5] * 9), np.cbrt(x), np.reciprocal(x)),
    )


@program(_special)
def of_vectors(x, a, b, n):
    m = np.outer(x[2:5], x[2:6])
    return np.matvec(m, x[2:6]), np.vecmat(x[2:5], m), np.vecdot(m, m)
