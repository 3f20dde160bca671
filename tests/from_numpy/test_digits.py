"""Whole numbers of the run as letters, and letters as numbers: ``format``, ``bin``, ``int``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here

X = np.array([5.0, 3.0, 6.0, 1.0, 255.0, 300.0, 0.0, -9.0])


def digits_of_bits(x):
    s = format(int(x[0]), "08b")
    return np.array([int(c) for c in s])


def bits_counted(x):
    s = f"{int(x[1]):08b}"
    return s.count("1"), len(s)


def each_bit(x):
    t = 0
    for i in range(8):
        s = f"{abs(int(x[i])):08b}"
        for j in range(8):
            if s[j] == "1":
                t += j
    return t


def ones(x):
    return (
        bin(int(x[0])).count("1"),
        len(bin(int(x[4]))),
        len(bin(int(x[7]))),
        bin(int(x[7])).count("1"),
    )


def reversed_bits(x):
    n = int(x[2])
    s = format(n, "08b")[::-1]
    return int(s, 2)


def digit_sum(x):
    n = int(x[5])
    lengths = len(str(n)), len(str(int(x[7]))), len(f"{n:6d}"), len(f"{n:06d}")
    return sum(int(c) for c in str(n)), *lengths


def zero(x):
    return len(str(int(x[6]))), len(format(int(x[6]), "b")), int(f"{int(x[6]):04b}", 2)


def printed(x):
    n = int(x[4])
    print(f"{n:b} {n:x} {n:o} {n:08b} {n}", bin(n), hex(n), oct(n))
    s = f"{n:x}"
    return s == "ff", s + "!" == "ff!", int(s, 16), len(oct(n)[2:])


def palindrome(x):
    s = str(int(x[0] * 1001))
    return s == s[::-1]


def negative(x):
    n = int(x[7])
    one = f"{n:06d}" == "-00009", bin(n) == "-0b1001"
    return *one, f"{n:5d}" == "   -9", f"{n:#06x}" == "-0x009"


def gray(x):
    return np.array([f"{n ^ (n >> 1):02b}".count("1") * x[n] for n in range(4)])


def bits_of_loop(x):
    return sum(bin(abs(int(v))).count("1") for v in x)


PROGRAMS = [
    digits_of_bits,
    bits_counted,
    each_bit,
    ones,
    reversed_bits,
    digit_sum,
    zero,
    printed,
    palindrome,
    negative,
    gray,
    bits_of_loop,
]


def _case(function: Any) -> Case:
    return Case(function.__name__, function, "", "", lambda _: [X.copy()], ())


@pytest.mark.parametrize("function", PROGRAMS)
def test_letters_of_numbers_are_those_of_python(function: Any) -> None:
    outcome = on_paper(_case(function))
    assert outcome.kind == "right", outcome.reason


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", [digit_sum, negative])
def test_letters_of_numbers_are_compiled(function: Any) -> None:
    found = run_here(_case(function))
    assert found.kind == "right", found


def test_numbers_with_a_prefix_of_the_run_are_refused() -> None:
    def program(x: Any) -> Any:
        return int(bin(int(x[0])), 2)

    with pytest.raises(UnsupportedProgram, match="blanks, or a prefix as 0b"):
        numpy_program(program, X, host="refuse")
