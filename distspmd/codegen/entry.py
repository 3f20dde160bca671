"""How a compiled program is called: by one table of arguments.

The function that DaCe writes has a parameter for each container and each symbol. Long programs have
thousands of them, and ``ctypes`` passes 1,024 at most; one pointer is also what it passes fastest.
"""

from __future__ import annotations

import re

_ENTRY = """
#include <cstddef>
#include <utility>

namespace {{
// Of a number the table has the address of its value, of an array its own.
template <typename T>
struct distspmd_given {{
    static T of(void *held) {{ return *static_cast<T *>(held); }}
}};

template <typename T>
struct distspmd_given<T *> {{
    static T *of(void *held) {{ return static_cast<T *>(held); }}
}};

template <typename... Types, std::size_t... Places>
void distspmd_call(
    void (*function)(Types...), void *const *table, std::index_sequence<Places...>
) {{
    function(distspmd_given<Types>::of(table[Places])...);
}}

template <typename... Types>
void distspmd_call(void (*function)(Types...), void *const *table) {{
    distspmd_call(function, table, std::make_index_sequence<sizeof...(Types)>());
}}
}}  // namespace

DACE_EXPORTED void {entry}(void *const *table);
void {entry}(void *const *table) {{
    distspmd_call(&__program_{name}, table);
}}
"""


def entry_of(name: str) -> str:
    """The name of the function that calls a program: its one parameter is a table of pointers.

    The first is the handle of the program; those of the arguments follow, in the order of
    ``Build.arguments``: the address of an array, or of the value of a number.
    """
    return f"__distspmd_call_{name}"


def with_entry(code: str, name: str) -> str:
    """The code of a program with that function behind it; code that has no program as it is."""
    if re.search(rf"\b__program_{name}\(", code) is None:
        return code
    return code + _ENTRY.format(entry=entry_of(name), name=name)
