"""``numpy_program``: a Python function over NumPy arrays becomes an SDFG."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import dace
from dace import SDFG
from dace.frontend.python.common import DaceSyntaxError
from dace.frontend.python.parser import DaceProgram

from distspmd.analysis.iteration_spaces import Source
from distspmd.dace_compat.numpy_parser import Tables, parsing
from distspmd.dace_compat.numpy_visitor import LINE, NumpyVisitor
from distspmd.errors import ArgumentError, DistSPMDError, UnsupportedProgram
from distspmd.frontend.from_numpy.arrays.contractions import REDUCTIONS
from distspmd.frontend.from_numpy.numpy.einsum_dace import einsum
from distspmd.frontend.from_numpy.numpy.linalg import add_linear_solve
from distspmd.passes.normalize.parsed_by_dace import mark_numpy
from distspmd.symbolic_lowering import with_sizes

TABLES: Tables = {
    **REDUCTIONS,
    "_rep": {**REDUCTIONS["_rep"], "numpy.einsum": einsum, "numpy.linalg.solve": add_linear_solve},
}
"""What stands for functions that DaCe lacks, or takes for something else than NumPy does."""


def numpy_program(
    function: Callable[..., Any] | DaceProgram,
    *examples: Any,
    prepare: Callable[[DaceProgram], None] | None = None,
    **sizes: Any,
) -> SDFG:
    """Parse a Python function over NumPy arrays to an SDFG, which means what NumPy means.

    Where DaCe's own parser, which reads the function, computes something else than NumPy does, it
    is corrected, or the program is refused. The function, or the program, stays as it is: plain
    DaCe does with it afterwards what it did before.

    Args:
        function: a plain function, or a ``@dace.program`` or ``@dace.method``.
        examples: arguments, in order, which give the types and shapes where annotations do not.
        prepare: what is done with the program before, while it is kept as it is.
        sizes: numbers for symbolic sizes; or examples, by the name of an argument.

    Raises:
        UnsupportedProgram: something that cannot be parsed, or would not be computed as by NumPy;
            the message names the source line.
        ArgumentError: an argument has neither an annotation nor an example; or a size is not one of
            the program's.
    """
    program = _program(function)
    named = {name: value for name, value in sizes.items() if name in program.argnames}
    numbers = {name: value for name, value in sizes.items() if name not in named}
    _check_examples(program, examples, named)
    with parsing(program, TABLES, NumpyVisitor):
        if prepare is not None:
            prepare(program)
        try:
            sdfg = program.to_sdfg(*examples, **named)
        except DistSPMDError:
            raise
        except Exception as problem:
            raise UnsupportedProgram(_refusal(program, problem)) from problem
    mark_numpy(sdfg)
    return with_sizes(sdfg, numbers) if numbers else sdfg


def _program(function: object) -> DaceProgram:
    if isinstance(function, DaceProgram):
        return function
    if isinstance(function, SDFG) or not inspect.isroutine(function):
        raise ArgumentError(
            f"numpy_program takes a function or a @dace.program; a {type(function).__name__} was "
            "given."
        )
    program: DaceProgram = dace.program(function)
    return program


def _check_examples(program: DaceProgram, examples: Sequence[Any], named: Collection[str]) -> None:
    """Each argument needs a type: an annotation, a default value or an example."""
    parameters = [program.signature.parameters[name] for name in program.argnames]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    if len(examples) > len(parameters):
        raise ArgumentError(
            f"{program.f.__name__} has {len(parameters)} arguments, but {len(examples)} examples "
            "are given."
        )
    for parameter in parameters[len(examples) :]:
        typed = parameter.annotation is not parameter.empty
        if not typed and parameter.default is parameter.empty and parameter.name not in named:
            raise ArgumentError(
                f"{program.f.__name__}: the argument {parameter.name!r} has neither an annotation "
                f"nor an example. Annotate it, {parameter.name}: dace.float64[10, 20], or pass an "
                "array of its type and shape after the function."
            )


def _refusal(program: DaceProgram, problem: Exception) -> str:
    """What a program is refused with that DaCe's parser does not take."""
    code = program.f.__code__
    where = Source(*getattr(problem, LINE, (code.co_filename, code.co_firstlineno)))
    text = problem.message if isinstance(problem, DaceSyntaxError) else str(problem)
    return f"{where}: {text or type(problem).__name__}"
