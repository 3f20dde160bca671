"""Expressions in C++: the table of the forms of operations, and the printer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from distspmd.expressions.ir import Constant, Expression, IndexValue, Operation
from distspmd.expressions.operations import DISTRIBUTIONS, OPERATIONS, DType
from distspmd.expressions.printer import Form, Printer
from distspmd.expressions.text import Assignments

TYPES: dict[DType, str] = {
    np.dtype(bool): "bool",
    np.dtype(np.complex64): "dace::complex64",
    np.dtype(np.complex128): "dace::complex128",
    np.dtype(np.float16): "dace::float16",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    **{
        np.dtype(f"{sign}int{bits}"): f"{sign}int{bits}_t"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""Names of types."""

_FUNCTIONS = {
    **{name: name for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt")},
    **{
        name: name
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "lgamma", "fmod")
    },
    "gamma": "tgamma",
    **{name: name for name in ("floor", "ceil", "trunc")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "absolute": "abs",
    "power": "pow",
    "rint": "nearbyint",
    **{name: name for name in ("real", "imag", "cbrt", "copysign", "nextafter")},
}
"""Functions of the standard library, by the operations that they are."""
_SIGNS = {
    "add": "+",
    "subtract": "-",
    "modulo": "%",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "logical_and": "&&",
    "logical_or": "||",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_PART = "{{0}} ? {{type}}({{1}}).{0}() : {{type}}({{2}}).{0}()"
_EITHER = f"{{type}}({_PART.format('real')}, {_PART.format('imag')})"
"""A choice by parts, for which compilers need no branch, as they do for one of whole numbers."""
_BETWEEN = "{0} >= {1} && {0} < {2}"
_STEPPED = f"{_BETWEEN} && ({{0}} - {{1}}) % {{3}} == 0"
_NO_SHIFT = "({1} < 0 || {1} >= {bits})"
_OPPOSITE = "(({0} < 0) != ({1} < 0))"
_FMOD = "std::fmod({0}, {1})"
FORMS: dict[str, Form] = {
    **{
        name: f"std::{function}({', '.join(f'{{{n}}}' for n in range(OPERATIONS[name].arity))})"
        for name, function in _FUNCTIONS.items()
    },
    **{name: f"{{type}}(::{name}({{0}}))" for name in ("j0", "j1", "y0", "y1")},  # of POSIX
    **{name: f"({{0}} {sign} {{1}})" for name, sign in _SIGNS.items()},
    "multiply": {"": "({0} * {1})", "c": "distspmd::times({0}, {1})"},
    "divide": {"": "({0} / {1})", "c": "distspmd::quotient({0}, {1})"},
    "negative": "(-{0})",
    "from_parts": "{type}({0}, {1})",
    "conjugate": {"": "{0}", "c": "std::conj({0})"},
    "cast": "{type}({0})",
    "bits": "std::bit_cast<{type}>({0})",
    "sign": "(({0} > 0) - ({0} < 0))",
    # std::signbit is a comparison where compilers may take the zeros for one ("fast" arithmetic)
    "signbit": "(std::copysign(1.0, double({0})) < 0)",
    "floor_divide": {
        "": f"({{0}} / {{1}} - ({{0}} % {{1}} != 0 && {_OPPOSITE}))",
        "f": "std::floor({0} / {1})",
    },
    "remainder": {
        "": f"({{0}} % {{1}} + ({{0}} % {{1}} != 0 && {_OPPOSITE} ? {{1}} : 0))",
        "f": f"({_FMOD} + ({_FMOD} != 0 && {_OPPOSITE} ? {{1}} : 0))",
    },
    "floored_rest": f"(({{0}} != 0 && {_OPPOSITE[1:-1]}) ? {{0}} + {{1}} : {{0}})",
    "rsqrt": "(1 / std::sqrt({0}))",
    "reciprocal": "(1 / {0})",
    "sigmoid": "(1 / (1 + std::exp(-{0})))",
    "relu": "({0} < 0 ? 0 * {0} : {0})",
    "maximum": "(({0} > {1} || {0} != {0}) ? {0} : {1})",
    "minimum": "(({0} < {1} || {0} != {0}) ? {0} : {1})",
    "at_least": "({0} < {1} ? {1} : {0})",
    "at_most": "({0} > {1} ? {1} : {0})",
    "invert": {"": "(~{0})", "b": "(!{0})"},
    "left_shift": f"({_NO_SHIFT} ? 0 : {{0}} << {{1}})",
    "right_shift": f"({{0}} >> ({_NO_SHIFT} ? {{sign_bit}} : {{1}}))",
    "logical_not": "(!{0})",
    "logical_xor": "(!{0} != !{1})",
    "isnan": "({0} != {0})",
    "is_extreme": "({0} == {1} || {0} != {0})",
    "between": f"({_BETWEEN})",
    "stepped": f"({_STEPPED})",
    "where": {"": "({0} ? {1} : {2})", "c": _EITHER},
    "pick": "({0} == {1} ? {2} : {3})",
    "pick_from": "({0} >= {1} ? {2} : {3})",
    "pick_between": f"({_BETWEEN} ? {{3}} : {{4}})",
    "pick_stepped": f"({_STEPPED} ? {{4}} : {{5}})",
    **{
        f"{half}_{form}": f"distspmd_{half}_{form}({{0}})"
        for half in ("bfloat16", "float16")
        for form in ("bits", "value")
    },
    "uniform": "distspmd_uniform({0}, {1}, {2})",
    **{
        f"{name}_draw": f"distspmd_{name}_draw({', '.join(f'{{{n}}}' for n in range(3 + count))})"
        for name, count in DISTRIBUTIONS.items()
    },
    "checked": "distspmd_checked({0}, {1}, {2}, {3}, {4}, {5})",
    "checked_index": "distspmd_checked_index({0}, {1}, {2})",
}


class CppPrinter(Printer):
    """Prints C++; parts of some work get names, which ``lines`` declare.

    Attributes:
        lines: declarations of the parts of all that was printed.
    """

    forms: ClassVar[Mapping[str, Form]] = FORMS
    types: ClassVar[Mapping[DType, str]] = TYPES

    def __init__(self, variables: Mapping[Any, str] | None = None) -> None:
        super().__init__(variables)
        self.lines: list[str] = []
        self._named: dict[str, str] = {}

    def assignments(self, assignments: Assignments) -> str:
        """Code that assigns expressions to names, each converted to its type."""
        values = [
            f"{name} = {self.type_name(value.dtype)}({self.text(_inside(value))});"
            for name, value in assignments
        ]
        return "\n".join([*self.lines, *values])

    def operation(self, node: Operation, arguments: list[str]) -> str:
        """An operation, or the name of what it gives."""
        text = super().operation(node, arguments)
        if OPERATIONS[node.name].work == 0:
            return text
        if text not in self._named:
            name = self._named[text] = f"__t{len(self._named)}"
            self.lines.append(f"const {self.type_name(node.dtype)} {name} = {text};")
        return self._named[text]

    def facts(self, dtype: DType) -> dict[str, Any]:
        """The type, its bits, and the shift that leaves the sign alone: of an int at least."""
        bits = 8 * dtype.itemsize
        return {"type": self.type_name(dtype), "bits": bits, "sign_bit": max(bits - 1, 31)}

    def type_name(self, dtype: DType) -> str:
        """Name of a type."""
        return self.types[dtype]

    def index(self, node: IndexValue) -> str:
        """The value of an index."""
        return f"{self.type_name(node.dtype)}({self.index_sum(node)})"

    def constant(self, node: Constant) -> str:
        """A number of its type."""
        value, name = node.value, self.type_name(node.dtype)
        if node.dtype.kind == "b":
            return "true" if value else "false"
        if node.dtype.kind == "c":
            value = complex(value)
            real, imaginary = (self._real(x, "double") for x in (value.real, value.imag))
            return f"{name}({real}, {imaginary})"
        assert not isinstance(value, complex), "a number of a type without an imaginary part"
        if node.dtype.kind in "iu":
            least = int(value) == np.iinfo(np.int64).min  # its digits alone are no number of C++
            return f"{name}({'std::numeric_limits<int64_t>::min()' if least else int(value)})"
        return self._real(float(value), name)

    @staticmethod
    def _real(value: float, name: str) -> str:
        if math.isfinite(value):
            return f"{name}({value!r})"
        limits = f"std::numeric_limits<{name}>::"
        text = "quiet_NaN()" if math.isnan(value) else "infinity()"
        return f"{'-' if value < 0 else ''}{limits}{text}"


def _inside(value: Expression) -> Expression:
    """Without a conversion to the type in which it is written anyway."""
    if isinstance(value, Operation) and value.name == "cast":
        return value.arguments[0]
    return value


def literal(value: object, dtype: DType) -> str:
    """A number of a type in C++."""
    number = np.asarray(value).astype(dtype).item()
    return CppPrinter().constant(Constant(number, dtype))
