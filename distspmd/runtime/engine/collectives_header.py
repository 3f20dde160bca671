"""The rows of the collectives for the C++ runtime, from those of Python.

``python -m distspmd.runtime.engine.collectives_header`` writes the header; a test compares.
"""

from __future__ import annotations

from pathlib import Path

from distspmd.plans.collectives import CollectiveSpec, StepKind
from distspmd.runtime.engine.compile_runtime import INCLUDE

HEADER = INCLUDE / "distspmd" / "plan" / "collectives.hpp"

_TEXT = """\
// The kinds of collective steps, one row each. Written by
// `python -m distspmd.runtime.engine.collectives_header` from distspmd/plans/collectives.py.
#pragma once

#include <cstdint>

namespace distspmd {{
inline namespace v1 {{

enum class Kind : std::int64_t {{
{kinds}
}};
constexpr std::int64_t last_kind = {last};

/// What only the first rank of a group does.
enum class First : char {{ none, sends, receives }};

/// What a kind promises; distspmd/plans/collectives.py has the same names.
struct Collective {{
  Kind kind;
  First first;
  bool moves, to_all, from_all, common;

  /// Whether MPI combines the operands.
  constexpr bool is_combined() const {{ return from_all && common; }}

  /// Whether the runtime makes the call; it carries all other kinds message by message.
  constexpr bool is_called() const {{ return to_all || is_combined(); }}
}};

constexpr Collective collectives[] = {{
{rows}
}};

/// The row of a kind by its number; null where the runtime does not know it.
inline const Collective *collective_of(std::int64_t number) {{
  for (const Collective &row : collectives)
    if (static_cast<std::int64_t>(row.kind) == number) return &row;
  return nullptr;
}}

}}  // namespace v1
}}  // namespace distspmd
"""


def header() -> str:
    """The text of ``plan/collectives.hpp``."""
    known = [kind for kind in StepKind if not kind.spec.exchanged]
    return _TEXT.format(
        kinds="\n".join(f"{f'  {kind} = {kind.value},':<23}// {kind.spec.call}" for kind in known),
        last=max(kind.value for kind in StepKind),
        rows="\n".join(f"    {_row(str(kind), kind.spec)}," for kind in known),
    )


def _row(name: str, spec: CollectiveSpec) -> str:
    first = str(spec.first.name).lower() if spec.first else "none"
    flags = (spec.moves, spec.to_all, spec.from_all, spec.common)
    return f"{{Kind::{name}, First::{first}, {', '.join(str(flag).lower() for flag in flags)}}}"


def write_header(path: Path = HEADER) -> None:
    """Write the header."""
    path.write_text(header())


if __name__ == "__main__":
    write_header()
