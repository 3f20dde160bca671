"""C++ for the reductions that a program defines itself: lambdas, which the runtime calls."""

from __future__ import annotations

from collections.abc import Iterable

from dace import SDFG, dtypes
from dace.codegen.targets import cpp
from dace.properties import LambdaProperty

from distspmd.codegen.outline import FURTHER_FILE
from distspmd.expressions.cpp import literal
from distspmd.layouts.reductions import find_reduction
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
