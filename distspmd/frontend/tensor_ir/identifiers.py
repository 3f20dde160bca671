"""Names as C++ and Python take them."""

from __future__ import annotations

import re

_WORDS = frozenset(
    """alignas alignof and asm auto bitand bitor bool break case catch char class compl concept
    const constexpr continue decltype default delete do double else enum explicit export extern
    false float for friend goto if inline int long mutable namespace new noexcept not nullptr
    operator or private protected public register requires return short signed sizeof static
    struct switch template this throw true try typedef typeid typename union unsigned using
    virtual void volatile while xor as assert async await def del elif except finally from
    global import in is lambda None nonlocal pass raise with yield True False""".split()  # noqa: SIM905
)
"""What C++ and Python do not take as names."""


def identifier(text: str) -> str:
    """A name as C++ and Python take it."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if name in _WORDS:
        return f"{name}_"
    return f"t_{name}" if not name or name[0].isdigit() else name
