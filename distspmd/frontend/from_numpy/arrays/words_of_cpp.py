"""Names that mean something in emitted code, so that no container is called so."""

from __future__ import annotations

import errno
import re
import signal

_WORDS = """
abs alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue dace decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int int_ceil int_floor ipow long max min mutable
namespace new noexcept not not_eq nullptr operator or or_eq pow private protected public
register reinterpret_cast requires return short signed sizeof static static_assert static_cast
std struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_MACROS = "BUFSIZ EOF INFINITY MAXFLOAT NAN NULL RAND_MAX errno linux stderr stdin stdout unix"
_WORDS_OF_CPP = frozenset(
    [*_WORDS.split(), *_MACROS.split(), *errno.errorcode.values(), *signal.Signals.__members__]
)
_MACROS_OF_LIMITS = re.compile(
    r"(M|MPI|FE|CLOCK|SEEK|L?DBL|FLT|U?INT\w*|[SU]?CHAR|U?SHRT|U?L?LONG|S?SIZE|HUGE|PTRDIFF)_[A-Z]"
)


def is_word_of_cpp(name: str) -> bool:
    """Whether no container and no symbol is called so.

    These are keywords, functions that emitted code calls, and macros of the headers.
    """
    return name in _WORDS_OF_CPP or _MACROS_OF_LIMITS.match(name) is not None
