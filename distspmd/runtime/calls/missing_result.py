"""What stands on a rank for a result that other ranks have: it prints, and all else is an error.

The error says where the result is and what to write, at the line that uses it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from distspmd.errors import MissingResultError


class MissingResult:
    """A result of a program that this rank does not have. It prints; any other use is an error.

    It may be passed on to a program, which looks at it only where it takes the argument from this
    rank. ``isinstance(y, distspmd.runtime.MissingResult)`` asks for it.
    """

    __slots__ = ("_distspmd_first", "_distspmd_what")

    def __init__(self, what: str, first: int) -> None:
        self._distspmd_what = what
        self._distspmd_first = first

    def __repr__(self) -> str:
        return f"<{self._distspmd_what}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("__", "_repr_", "_ipython_")):  # who asks has something else to do
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._refuse()

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse()
        return repr(self)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise MissingResultError(
            f"{self._distspmd_what}: use it where it is, under 'if comm.rank == 0:'; or write "
            'results="replicated" beside the schedule, for every rank to get it; or let one '
            "process run the script (distspmd run --driver).",
            self._distspmd_first,
        )

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> NoReturn:
        given = [*arguments, *(named or {}).values()]
        parts = [p for g in given for p in (g if isinstance(g, list | tuple) else (g,))]
        next(part for part in parts if isinstance(part, MissingResult))._refuse()


_USES = """
    array array_ufunc array_function bool int float complex index len iter next contains getitem
    setitem delitem call eq ne lt le gt ge neg pos abs invert round trunc floor ceil enter exit
    dlpack dlpack_device
"""
_OPERATORS = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"

for _name in _USES.split():
    setattr(MissingResult, f"__{_name}__", MissingResult._refuse)
for _name in _OPERATORS.split():
    for _side in ("", "r", "i"):
        setattr(MissingResult, f"__{_side}{_name}__", MissingResult._refuse)
MissingResult.__hash__ = object.__hash__  # type: ignore[method-assign]


def missing_result(program: str, place: str, first: int) -> MissingResult:
    """What a rank gets for a result.

    Args:
        program: whose result it is.
        place: where it is instead.
        first: the first rank that has not got it, which tells of an error for all of them.
    """
    return MissingResult(f"the result of {program}(...) is {place}, and not on this rank", first)
