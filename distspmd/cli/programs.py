"""The program that ``file.py:function`` names, with arguments like those that it is called with.

The file is imported, but no decorated function of it runs: the first call of the one that is asked
for gives its arguments, and ends the import; others are computed by NumPy.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from distspmd.api.partitioned_function import PartitionedFunction, called_instead
from distspmd.errors import ArgumentError, ToolchainError, UnsupportedProgram
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.compilers.toolchain import find_mpi
from distspmd.schedule import Entries, Holding

if TYPE_CHECKING:
    from dace import SDFG

_ARGUMENT = re.compile(r"(?P<dtype>[a-z]+\d*)(?P<shape>\[[\d\s,]*\])?\Z")


@dataclass(frozen=True)
class Asked:
    """A program of a file.

    Attributes:
        function: itself, without a decorator of ours; also a ``@dace.program``.
        schedule: that its decorator gives; None where it gives none.
        arguments: how its decorator holds arguments.
        examples: arguments by name, which tell types and shapes where annotations do not.
        inputs: those of them whose values count.
    """

    function: Callable[..., Any]
    schedule: Entries | None = None
    arguments: Mapping[str, Holding] | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def parsed(self, frontend: str = "numpy", sizes: Mapping[str, int] | None = None) -> SDFG:
        """The program as an SDFG."""
        from distspmd.frontend.from_numpy.program import numpy_program

        given: dict[str, Any] = {**self.examples, **(sizes or {})}
        return numpy_program(self.function, frontend=frontend, **given)


class _Called(BaseException):
    """The function that is asked for was called, and with what; no script catches it."""

    def __init__(self, function: PartitionedFunction, given: Mapping[str, Any]) -> None:
        super().__init__()
        self.function, self.given = function, given


def load(program: str, given: Sequence[str] = (), maker: str | None = None) -> Asked:
    """The program that ``file.py:function`` names.

    Args:
        program: the name.
        given: arguments like those of a call, ``x=float64[512,512]`` or ``n=5`` each.
        maker: the name of a function of the file that returns such arguments.

    Raises:
        UnsupportedProgram: no such file or function, or the name is that of something else.
        ArgumentError: an argument that cannot be read.
    """
    _parse_with_the_right_mpi()
    file, _, name = program.rpartition(":")
    if not file:
        raise UnsupportedProgram(f"{program!r} names no function. Write {program}:function.")
    path = Path(file)
    if not path.is_file():
        raise UnsupportedProgram(f"{program!r}: no file {path.absolute()}.")
    module, called = _imported(path, name)
    found = called.function if called else getattr(module, name, None)
    if found is None or not _is_program(found):
        what = "is no function" if hasattr(module, name) else "is not in the file"
        own = [n for n, value in vars(module).items() if _is_program(value, module.__name__)]
        raise UnsupportedProgram(
            f"{program!r}: {name!r} {what}. The file has {', '.join(own) or 'none'}."
        )
    values: Mapping[str, Any] = called.given if called else {}
    if maker is not None:
        values = _made(found, module, maker)
    examples = {**values, **parse_arguments(given)}
    _check_all_are_known(program, found, examples)
    inputs = {n: v for n, v in values.items() if isinstance(v, np.ndarray) and v is examples[n]}
    if isinstance(found, PartitionedFunction):
        held = found.options["arguments"]
        return Asked(found.function, found.schedule, held, examples, inputs)
    return Asked(found, None, None, examples, inputs)


def _is_program(value: Any, module: str | None = None) -> bool:
    from dace.frontend.python.parser import DaceProgram

    if not isinstance(value, DaceProgram | FunctionType | PartitionedFunction):
        return False
    return module is None or _python(value).__module__ == module


def _check_all_are_known(program: str, found: Any, examples: Mapping[str, Any]) -> None:
    """See to it that each argument has an annotation, a default, or an example."""
    parameters = inspect.signature(_python(found)).parameters.values()
    for each in parameters:
        has_some = each.annotation is not each.empty or each.default is not each.empty
        is_one = each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if is_one and not has_some and each.name not in examples and each.name != "self":
            raise ArgumentError(
                f"{program!r}: the argument {each.name!r} has neither an annotation nor an "
                f"example. Write --arg {each.name}=float64[512,512] (or a value), or --args "
                "FUNCTION, with a function of the file that returns arguments."
            )


def _python(found: Any) -> Callable[..., Any]:
    """The function of Python."""
    inner = found.function if isinstance(found, PartitionedFunction) else found
    python: Callable[..., Any] = inspect.unwrap(getattr(inner, "f", inner))
    return python


def parse_arguments(given: Sequence[str]) -> dict[str, Any]:
    """Arguments from the options, ``x=float64[512,512]``, ``s=float32`` or ``n=5`` each.

    Raises:
        ArgumentError: something else.
    """
    found = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name.isidentifier():
            raise ArgumentError(f"--arg {item!r} is no argument. Write x=float64[512,512] or n=5.")
        found[name] = _argument(item, text.strip())
    return found


def _argument(item: str, text: str) -> Any:
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(text)
    match = _ARGUMENT.match(text)
    with suppress(TypeError):
        if match:
            dtype = np.dtype(match["dtype"])
            if match["shape"] is None:
                return dtype.type(1)
            return np.zeros(tuple(int(n) for n in re.findall(r"\d+", match["shape"])), dtype)
    raise ArgumentError(
        f"--arg {item!r}: {text!r} is neither a type with a shape nor a value. Write "
        "x=float64[512,512], s=float32, or n=5."
    )


def _made(function: Any, module: ModuleType, maker: str) -> dict[str, Any]:
    """Arguments that a function of the file makes: by name, or a tuple in order."""
    make = getattr(module, maker, None)
    if not isinstance(make, FunctionType):
        raise ArgumentError(f"--args {maker!r}: the file has no function of that name.")
    made = make()
    if isinstance(made, Mapping):
        return dict(made)
    several = made if isinstance(made, tuple | list) else (made,)
    try:
        return dict(inspect.signature(_python(function)).bind(*several).arguments)
    except TypeError as problem:
        raise ArgumentError(f"--args {maker!r} makes other arguments: {problem}.") from None


def _parse_with_the_right_mpi() -> None:
    """DaCe's parser imports mpi4py: let it load the MPI of the ranks, and start no MPI here."""
    if launched_ranks() is None and "mpi4py.MPI" not in sys.modules:
        import mpi4py

        mpi4py.rc.initialize = False
        with suppress(ToolchainError):  # what only parses a program needs no MPI
            os.environ.setdefault("MPI4PY_LIBMPI", str(find_mpi().library))


def _imported(path: Path, name: str) -> tuple[ModuleType, _Called | None]:
    """The module of a file, and the first call of a decorated function of some name in it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UnsupportedProgram(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))

    def call(function: PartitionedFunction, given: Mapping[str, Any]) -> Any:
        if getattr(module, name, None) is function:
            raise _Called(function, given)
        return _python(function)(**given)

    try:
        with called_instead(call):
            spec.loader.exec_module(module)
    except _Called as called:
        return module, called
    return module, None
