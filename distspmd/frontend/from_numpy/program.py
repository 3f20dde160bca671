"""``numpy_program``: what reads programs is imported on the ranks that read some."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dace import SDFG
    from dace.frontend.python.parser import DaceProgram

DEFAULT = "numpy"
"""The front end that reads programs where none is named."""


def numpy_program(
    function: Callable[..., Any] | DaceProgram,
    *examples: object,
    frontend: str = DEFAULT,
    host: str = "tell",
    **sizes: object,
) -> SDFG:
    """Read a Python function over NumPy arrays as an SDFG, which means what NumPy means.

    Args:
        function: a plain function, or a ``@dace.program`` or ``@dace.method``.
        examples: arguments, in order, which give the types and shapes where annotations do not.
        frontend: ``"numpy"``, or ``"dace"`` for DaCe's own parser.
        host: whether Python runs statements that are no array work, and says so: ``"tell"``,
            ``"allow"`` or ``"refuse"`` (docs/host.md).
        sizes: numbers for symbolic sizes; or examples, by the name of an argument.

    Raises:
        UnsupportedProgram: something that is not covered; the message has the source line.
        ArgumentError: an argument has neither an annotation nor an example; or a size is not one of
            the program's; or an unknown front end.
    """
    from distspmd.frontend.from_numpy.api import read_program

    return read_program(function, frontend, examples, sizes, host=host)
