"""Expressions in Python, as DaCe's tasklets have them: the table of forms, and the printer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from distspmd.expressions.ir import Call, Constant, IndexValue
from distspmd.expressions.operations import DISTRIBUTIONS, OPERATIONS, DType
from distspmd.expressions.printer import Form, Printer

_FUNCTIONS = {
    **{name: name for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt")},
    **{
        name: name
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "lgamma", "fmod")
    },
    **{name: name for name in ("gamma", "j0", "j1", "y0", "y1")},
    **{name: name for name in ("floor", "ceil", "trunc", "sign", "reciprocal")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "absolute": "abs",
    "maximum": "max",
    "minimum": "min",
    "rint": "round",
    **{
        name: name
        for name in ("real", "imag", "conjugate", "cbrt", "copysign", "signbit", "nextafter")
    },
}
SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
    "logical_and": "and",
    "logical_or": "or",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
"""Python's operators between two operands."""
_BETWEEN = "{0} >= {1} and {0} < {2}"
_STEPPED = f"{_BETWEEN} and ({{0}} - {{1}}) % {{3}} == 0"
FORMS: dict[str, Form] = {
    **{
        name: f"{function}({', '.join(f'{{{n}}}' for n in range(OPERATIONS[name].arity))})"
        for name, function in _FUNCTIONS.items()
    },
    **{name: f"({{0}} {sign} {{1}})" for name, sign in SIGNS.items()},
    "negative": "(-{0})",
    "from_parts": "({0} + 1j * {1})",
    "cast": "dace.{type}({0})",
    "bits": "distspmd_{type}_of_bits({0})",
    "modulo": "fmod({0}, {1})",
    "floored_rest": "({0} + {1} if {0} != 0 and ({0} < 0) != ({1} < 0) else {0})",
    "rsqrt": "(1 / sqrt({0}))",
    "sigmoid": "(1 / (1 + exp(-{0})))",
    "relu": "(0 * {0} if {0} < 0 else {0})",
    "at_least": "({1} if {0} < {1} else {0})",
    "at_most": "({1} if {0} > {1} else {0})",
    "invert": {"": "(~{0})", "b": "(not {0})"},
    "logical_not": "(not {0})",
    "logical_xor": "((not {0}) != (not {1}))",
    "isnan": "({0} != {0})",
    "is_extreme": "({0} == {1} or {0} != {0})",
    "between": f"({_BETWEEN})",
    "stepped": f"({_STEPPED})",
    "where": "({1} if {0} else {2})",
    "pick": "({2} if {0} == {1} else {3})",
    "pick_from": "({2} if {0} >= {1} else {3})",
    "pick_between": f"({{3}} if {_BETWEEN} else {{4}})",
    "pick_stepped": f"({{4}} if {_STEPPED} else {{5}})",
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
    "checked": "{0}",
    "checked_index": "({0} + {1} if {0} < 0 else {0})",
}


GETITEM = "operator.getitem"
"""The call that an element of an array is, where data choose it."""


class PythonPrinter(Printer):
    """Prints Python, as DaCe's tasklets have it."""

    forms: ClassVar[Mapping[str, Form]] = FORMS

    def call(self, node: Call, arguments: list[str]) -> str:
        """A call of a function, or an element that data choose."""
        if node.function == GETITEM:
            return f"{arguments[0]}[{', '.join(arguments[1:])}]"
        return super().call(node, arguments)

    def type_name(self, dtype: DType) -> str:
        """Name of a type in DaCe."""
        return "bool_" if dtype.kind == "b" else dtype.name

    def index(self, node: IndexValue) -> str:
        """The value of an index."""
        return f"({self.index_sum(node)})"

    def constant(self, node: Constant) -> str:
        """A number, as Python writes it: its type follows from what is beside it."""
        if isinstance(node.value, float) and not math.isfinite(node.value):
            return f"dace.{self.type_name(node.dtype)}('{node.value}')"
        text = repr(node.value)
        return f"({text})" if text.startswith("-") else text
