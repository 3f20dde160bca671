"""C++ for the reductions that a program defines itself: lambdas, which the runtime calls."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from dace import SDFG, dtypes
from dace.codegen.targets import cpp
from dace.properties import LambdaProperty

from distspmd.codegen.outline import FURTHER_FILE
from distspmd.expressions.cpp import literal
from distspmd.layouts.reductions import find_reduction
from distspmd.lowering import PlannedMemlet
from distspmd.plans.encoding import Function

_CODE = """
#ifndef {further}
// {name}
extern "C" DACE_EXPORTED void distspmd_kernel_{number}(char *target, int64_t target_stride,
    const char *source, int64_t source_stride, int64_t n) {{
  const auto combined = {function};
  for (int64_t i = 0; i < n; ++i) {{
    {type} &into = *reinterpret_cast<{type} *>(target + i * target_stride);
    into = combined(into, *reinterpret_cast<const {type} *>(source + i * source_stride));
  }}
}}
extern "C" DACE_EXPORTED void distspmd_fill_{number}(char *target, int64_t n) {{
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<{type} *>(target)[i] = {neutral};
}}
extern "C" DACE_EXPORTED void distspmd_combine_{number}(
    void *source, void *target, int *n, void *) {{
  distspmd_kernel_{number}(static_cast<char *>(target), sizeof({type}),
      static_cast<const char *>(source), sizeof({type}), *n);
}}
#endif
"""

_NAMES = ("distspmd_kernel_", "distspmd_fill_", "distspmd_combine_")


def collect_lambdas(memlets: Iterable[PlannedMemlet]) -> tuple[Function, ...]:
    """The lambdas by which plans reduce, each once for a dtype, in the order of the plans."""
    found: dict[Function, None] = {}
    for memlet in memlets:
        move = memlet.solution.plan.redistribution
        if move.reduction and find_reduction(move.reduction).is_lambda:
            found[move.reduction, move.dtype] = None
    return tuple(found)


def add_functions(sdfg: SDFG, functions: Iterable[Function]) -> None:
    """Let the program have the functions, in place."""
    for number, (name, dtype) in enumerate(functions):
        kind = dtypes.typeclass(dtype.type)
        code = _CODE.format(
            further=FURTHER_FILE,
            name=name,
            number=number,
            type=kind.ctype,
            function=cpp.unparse_cr(sdfg, LambdaProperty.from_string(name), kind),
            neutral=literal(find_reduction(name).identity(dtype), dtype),
        )
        sdfg.append_global_code(code)


def addresses_of(
    library: ctypes.CDLL, functions: Iterable[Function]
) -> dict[Function, tuple[int, int, int]]:
    """Where the functions lie in a loaded program."""

    def address(name: str) -> int:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0

    return {
        function: tuple(address(f"{name}{number}") for name in _NAMES)  # type: ignore[misc]
        for number, function in enumerate(functions)
    }
