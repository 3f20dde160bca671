"""Conflict resolutions that DaCe writes as C++ functions, each in a block of its own.

DaCe (2.0.0b1) calls all of them ``__dace__reduction_lambda``; two in one tasklet do not compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dace.codegen.targets.cpu import CPUCodeGen


@contextmanager
def resolutions_apart() -> Iterator[None]:
    """Let DaCe generate blocks, as long as code is generated."""
    generate = CPUCodeGen.write_and_resolve_expr

    def in_a_block(*arguments: Any, **named: Any) -> str:
        code: str = generate(*arguments, **named)
        return f"{{ {code}; }}" if code.startswith("const auto ") else code

    CPUCodeGen.write_and_resolve_expr = in_a_block  # type: ignore[method-assign]
    try:
        yield
    finally:
        CPUCodeGen.write_and_resolve_expr = generate  # type: ignore[method-assign]
