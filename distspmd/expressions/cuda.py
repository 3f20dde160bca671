"""Expressions in CUDA C++, for kernels of our own that include nothing of DaCe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from distspmd.expressions.cpp import FORMS, TYPES, CppPrinter
from distspmd.expressions.ir import Call, Expression, Operation, parts
from distspmd.expressions.operations import DType
from distspmd.expressions.printer import Form

_OF_THE_HOST = ("bits", "checked", "checked_index")
"""Operations whose functions are compiled for the host."""


class CudaPrinter(CppPrinter):
    """Prints CUDA C++: what C++ has, but complex numbers, and functions of the host."""

    forms: ClassVar[Mapping[str, Form]] = {
        name: form for name, form in FORMS.items() if name not in _OF_THE_HOST
    }
    types: ClassVar[Mapping[DType, str]] = {
        dtype: name for dtype, name in TYPES.items() if dtype.kind != "c"
    }

    @classmethod
    def can_print(cls, expression: Expression) -> bool:
        """Whether a kernel can compute an expression."""
        return all(
            part.dtype in cls.types
            and not isinstance(part, Call)
            and (not isinstance(part, Operation) or part.name in cls.forms)
            for part in parts(expression)
        )
