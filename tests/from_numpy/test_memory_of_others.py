"""Arrays that have the memory of others in NumPy: parts of complex numbers, and bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here

X = np.array([5.0, 3.0, 6.0, 1.0, 2.5, -0.5, 7.25, 9.0])


def written_through(x):
    z = x + 1j
    r = z.real
    r[0] = 50
    return z


def read_after_the_array_is_written(x):
    z = x + 1j
    r = z.real
    z[0] = 50
    return r


def written_through_the_attribute(x):
    z = x + 1j
    z.real[0] = 50
    return z


def added_to_a_slice(x):
    z = x + 1j
    z.imag[2:4] += 7
    return z


def part_of_a_part(x):
    z = x + 1j
    r = z.real[1:5]
    r *= 3
    r[0] = 99
    z[2] = 5j
    return z, r


def both_parts(x):
    z = x + 1j
    a, b = z.real, z.imag
    a += 1
    b[:] = a
    return z, a, b


def array_bound_anew(x):
    z = x + 1j
    r = z.real
    z = z * 2
    return z, r


def part_bound_anew(x):
    z = x + 1j
    r = z.real
    r = r * 2
    r[0] = 7
    return z, r


def written_in_a_loop(x):
    z = x + 1j
    r = z.real
    for k in range(5):
        z[k] = z[k] * 2 + r[k + 1]
        r[0] += 1
    return z, r


def bound_in_a_loop(x):
    z = x + 1j
    for k in range(5):
        r = z.real
        r += k
        z = z * 1.5
        r[1] = 3
    return z, r


def written_in_a_branch(x):
    z = x + 1j
    r = z.real
    if x[0] > 2:
        z[1] = 44
    return z, r


def written_by_a_function(x):
    def f(a):
        a[0] = 77

    z = x + 1j
    f(z.real)
    return z


def part_of_what_nobody_sees(x):
    y = np.fft.ifft(np.fft.fft(x)).real
    y[0] = 5
    return y


def written_by_a_mask(x):
    z = x + 1j
    r = z.imag
    r[x > 3] = 0
    return z, r


def returned(x):
    z = x + 1j
    return z.real, z.imag


def transposed(x):
    z = x.reshape(2, 4) + 1j
    r = z.real.T
    r[0, 1] = -5
    return z, r


def as_whole_numbers(x):
    return x.astype(np.float32).view(np.int32)


def inverse_roots(x):
    y = x.astype(np.float32) * x.astype(np.float32)
    i = y.view(np.int32)
    i = np.int32(0x5F3759DF) - (i >> 1)
    z = i.view(np.float32)
    return z * (1.5 - 0.5 * y * z * z)


def of_a_number(x):
    return np.float32(x[0]).view(np.int32)


def as_bytes(x):
    return x.view(np.uint8), x.reshape(4, 2).view(np.int16), x.view("u4")


def there_and_back(x):
    return x.view(np.uint8).view(np.float64), x.view(np.int16).view(np.int64)


def of_complex_numbers(x):
    z = x + 2j
    return z.view(np.float64), x.view(np.complex128), z.view(np.float64).reshape(-1, 2)


def bytes_swapped(x):
    a = (x * 100).astype(np.int16)
    b = a.byteswap()
    a.byteswap(inplace=True)
    return a, b, x.byteswap().view(np.int64)


def bits_written_through(x):
    v = x.view(np.int64)
    v[0] = 4611686018427387904
    v[1:3] |= 1
    x[4] = 1.0
    return x, v


def of_truth_values(x):
    m = x > 2
    return m.view(np.uint8), m.view(np.int8).sum()


def bytes_after_a_write(x):
    v = x.view(np.uint8)
    x[0] = 1.0
    return v


def signs(x):
    return (x.view(np.uint64) >> np.uint64(63)).astype(bool)


def parts_exchanged(x):
    z = x + 2j
    a, b = z.real, z.imag
    a[:], b[:] = b.copy(), a.copy()
    return z


def parts_in_a_list(x):
    z = x + 1j
    parts = [z.real, z.imag]
    z[0] = 9
    parts[1][2] = 4
    return z, parts[0], parts[1]


def one_of_two_parts(x):
    z = x + 1j
    r = z.real if x[0] > 0 else z.imag
    z[2] = 99
    return z, r


def both_written(x):
    z = x + 1j
    r = z.real
    z[0], r[1] = 5, 6
    return z, r


def written_bytes(x):
    v = x.view(np.uint8)
    v[0] = 1
    return x


PROGRAMS = [
    parts_exchanged,
    parts_in_a_list,
    written_through,
    read_after_the_array_is_written,
    written_through_the_attribute,
    added_to_a_slice,
    part_of_a_part,
    both_parts,
    array_bound_anew,
    part_bound_anew,
    written_in_a_loop,
    bound_in_a_loop,
    written_in_a_branch,
    written_by_a_function,
    part_of_what_nobody_sees,
    written_by_a_mask,
    returned,
    transposed,
    as_whole_numbers,
    inverse_roots,
    of_a_number,
    as_bytes,
    there_and_back,
    of_complex_numbers,
    bytes_swapped,
    bits_written_through,
    of_truth_values,
    bytes_after_a_write,
    signs,
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_images_and_their_arrays_see_what_is_written(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [X.copy()], ()))
    assert outcome.kind == "right", outcome.reason


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", [both_parts, as_bytes, bits_written_through])
def test_images_are_compiled(function: Any) -> None:
    found = run_here(Case(function.__name__, function, "", "", lambda _: [X.copy()], ()))
    assert found.kind == "right", found


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (written_bytes, "'v' has the memory of an array in NumPy"),
        (one_of_two_parts, "may be the one that '.*' stands for, as the run decides"),
        (both_written, "'r', which has its memory; write them in two statements"),
    ],
)
def test_writes_that_nothing_can_follow_are_refused(program: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(program, X)
