"""What printed expressions compute, in C++ and in Python, beside NumPy."""

from __future__ import annotations

import ast
import ctypes
import math
import subprocess
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distspmd.expressions import cpp, python
from distspmd.expressions.cpp import CppPrinter
from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.from_python import expression_of
from distspmd.expressions.ir import Argument, Expression, apply, cast, parts
from distspmd.expressions.operations import DISTRIBUTIONS, OPERATIONS, DType
from distspmd.expressions.python import PythonPrinter
from distspmd.runtime.compilers import toolchain
from expressions.strategies import NAMES, PLACE, REAL, WHOLE, arguments, drawn, real, whole


def test_every_target_has_a_form_of_every_operation() -> None:
    assert cpp.FORMS.keys() == python.FORMS.keys() == OPERATIONS.keys()


NOT_REAL = (
    *(
        "from_parts",
        "modulo",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "invert",
        "left_shift",
        "right_shift",
    ),
    *("stepped", "pick_stepped", "uniform", "checked", "checked_index"),
    *("bfloat16_bits", "bfloat16_value", "float16_bits", "float16_value"),
    *(f"{name}_draw" for name in DISTRIBUTIONS),
)
NOT_WHOLE = (
    *("from_parts", "power", "fmod", "floor", "ceil", "trunc", "rint", "relu", "isnan", "checked"),
    *("checked_index", "bfloat16_bits", "bfloat16_value", "float16_bits", "float16_value"),
)


def one_of_each() -> list[Expression]:
    """Each operation on real numbers, and on whole ones, where it has a meaning."""
    found: list[Expression] = [cast(Argument("x", REAL), WHOLE)]
    for name, kind in OPERATIONS.items():
        if name in ("cast", "bits"):  # whose types are given
            continue
        if name not in NOT_REAL:
            found.append(apply(name, *arguments(name, REAL)))
        if name not in NOT_WHOLE and kind.result([WHOLE] * kind.arity).kind != "f":
            found.append(apply(name, *arguments(name, WHOLE)))
    return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compile expressions as functions of 6 numbers; calls of one give its value as a double."""

    def build(expressions: list[Expression]) -> Any:
        folder: Path = tmp_path_factory.mktemp("expressions")
        functions = []
        for number, expression in enumerate(expressions):
            ctype, printer = CppPrinter.types[type_of(expression)], CppPrinter()
            value = printer.text(expression)
            given = ", ".join(f"{ctype} {name}" for name in SIX)
            body = "\n".join([*printer.lines, f"return double({value});"])
            head = f'extern "C" double f{number}({given}, int64_t i, int64_t j)'
            functions.append(f"{head} {{\n{body}\n}}")
        headers = "#include <cmath>\n#include <complex>\n#include <cstdint>\n#include <limits>\n"
        (folder / "f.cpp").write_text(headers + "\n".join(functions))
        flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off"]
        command = [*toolchain.find_compiler().command, *flags, "f.cpp", "-o", "f.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(folder / "f.so"))

    return build


SIX = "xyzuvw"


def type_of(expression: Expression) -> DType:
    """The type of the arguments of an expression."""
    found = {part.dtype for part in parts(expression) if isinstance(part, Argument)}
    return WHOLE if WHOLE in found else REAL


def check_in_cpp(library: Any, expressions: list[Expression], seed: int) -> None:
    for number, expression in enumerate(expressions):
        dtype = type_of(expression)
        at = drawn(dtype, seed, SIX)
        function = library[f"f{number}"]
        kind = ctypes.c_int64 if dtype == WHOLE else ctypes.c_double
        function.argtypes, function.restype = [kind] * 6 + [ctypes.c_int64] * 2, ctypes.c_double
        found = function(*(at[name].item() for name in SIX), PLACE["i"], PLACE["j"])
        wanted = float(evaluate(expression, at, PLACE).item())
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True), str(expression)


def test_cpp_computes_what_numpy_does(compiled: Any) -> None:
    every: list[Expression] = one_of_each()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(real(), whole()))
    def collect(expression: Expression) -> None:
        every.append(expression)

    collect()
    library = compiled(every)
    for seed in range(6):
        check_in_cpp(library, every, seed)


def test_signs_of_zeros_are_seen_where_compilers_may_take_them_for_one(tmp_path: Path) -> None:
    printer = CppPrinter()
    value = printer.text(apply("signbit", Argument("x", REAL)))
    body = "\n".join([*printer.lines, f"return {value};"])
    (tmp_path / "f.cpp").write_text(f'#include <cmath>\nextern "C" bool f(double x) {{{body}}}')
    flags = ["-O3", "-fno-signed-zeros", "-fno-trapping-math", "-shared", "-fPIC"]
    command = [*toolchain.find_compiler().command, *flags, "f.cpp", "-o", "f.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    function = ctypes.CDLL(str(tmp_path / "f.so")).f
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_bool
    for x in (0.0, -0.0, 2.0, -2.0, np.nan, -np.nan, -np.inf):
        assert function(x) == np.signbit(x), x


PYTHON: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("exp", "sin", "cos", "tanh", "sqrt", "log", "expm1")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("atan", "asinh", "atan2")},
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "sign", "fmod")},
    "abs": abs,
    "max": np.maximum,
    "min": np.minimum,
    "round": np.rint,
    "dace": dace,
    "erf": math.erf,
}


@given(real(), st.integers(0, 99))
def test_python_computes_what_numpy_does(expression: Expression, seed: int) -> None:
    at = {name: value.item() for name, value in drawn(REAL, seed).items()}
    with np.errstate(all="ignore"):
        try:
            found = eval(PythonPrinter().text(expression), {**PYTHON, **at, **PLACE})
        except ZeroDivisionError:  # Python raises it, where NumPy and C++ go on with NaN or inf
            return
    wanted = evaluate(expression, at, PLACE)
    assert float(found) == pytest.approx(float(wanted), rel=1e-9, abs=1e-12, nan_ok=True)


@given(real(), st.integers(0, 99))
def test_python_reads_what_python_prints(expression: Expression, seed: int) -> None:
    tree = ast.parse(PythonPrinter().text(expression), mode="eval").body
    again = expression_of(tree, {name: Argument(name, REAL) for name in NAMES})
    at = drawn(REAL, seed)
    found = evaluate(again, {**at, **PLACE}, PLACE).item()
    assert found == pytest.approx(evaluate(expression, at, PLACE).item(), nan_ok=True)
