"""Whole numbers of the run as letters: ``format(n, "08b")``, ``bin(n)``, ``hex(n)``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import digits as library
from distspmd.frontend.from_numpy.numpy.unknown_lengths import length_of_run
from distspmd.frontend.from_numpy.reader.texts import Letters, Part

_SPEC = re.compile(r"(#?)(0?)(\d*)([bdox]?)")
_BASES = {"b": (2, 62), "o": (8, 20), "d": (10, 18), "x": (16, 15), "": (10, 18)}
"""Of each letter of a specification the base, and the greatest power of it in 64 bits."""


def has_digits(part: Any) -> bool:
    """Whether a part of a text is a whole number of the run, written in digits alone."""
    if not isinstance(part, Part) or part.conversion or not _SPEC.fullmatch(part.spec):
        return False
    value = part.value
    return isinstance(value, Tensor) and not value.ndim and value.dtype.kind in "iu"


def letters_of(run: Context, part: Part) -> Letters:
    """The letters of a number."""
    tracer, match = run.tracer, _SPEC.fullmatch(part.spec)
    assert match is not None
    alternate, zero, width, kind = match.groups()
    base, most = _BASES[kind]
    fill = "0" if zero else " "
    prefix = f"0{kind}" if alternate and kind in ("b", "o", "x") else ""
    codes = [ord(letter) for letter in prefix]
    n = tracer.stored(part.value)
    given = [n, base, most + 1, int(width or 0), len(prefix)]
    counts = tracer.stored(run.call(library.count_of_letters, given, {}))
    total, digits = (indexing.read(tracer, counts, k) for k in range(2))
    what = f"a number as a text, {part.spec!r}"
    length = length_of_run(run, total, what, "compute with its digits")
    found = run.call(library.letters, [n, base, digits, length, codes, fill], {})
    blank = {fill} if width else set()
    alphabet = tuple(sorted({*"0123456789abcdef"[:base], *prefix, *blank, "-"}))
    return Letters(tracer.stored_anew(found, "letters"), alphabet)


def number_of(run: Context, text: Any, base: Any = 10) -> Tensor:
    """``int(text, base)`` of letters that the run decides."""
    from distspmd.frontend.from_numpy.reader.letters import spelled

    tracer = run.tracer
    own = spelled(run, text)
    by_base = dict(_BASES.values())
    if base not in by_base:
        tracer.refuse(f"int() of a text of the run in the base {base!r}; write 2, 8, 10 or 16")
    digits = "0123456789abcdef"[:base]
    if not {*" _\t\nbBoOxX"}.isdisjoint({*own.alphabet} - {*digits, *digits.upper()}):
        tracer.refuse("int() of a text of the run that may have blanks, or a prefix as 0b")
    given = [tracer.stored(own.codes), base, by_base[base]]
    found = tracer.stored(run.call(library.number_of, given, {}))
    value, wrong, large = (indexing.read(tracer, found, k) for k in range(3))
    message = f"invalid literal for int() with base {base}"
    if not {*own.alphabet} <= {*digits, *digits.upper()}:
        end_if(run, combine(tracer, np.greater, [wrong, 0]), "ValueError", message)
    too_large = combine(tracer, np.greater, [large, 0])
    end_if(run, too_large, "OverflowError", "int() of a number of more than 64 bits")
    return Tensor((), value.dtype, value.element, int)
