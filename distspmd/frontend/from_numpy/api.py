"""How a Python function over NumPy arrays becomes an SDFG."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import dace
import numpy as np
import sympy
from dace import SDFG, data
from dace.frontend.python.parser import DaceProgram

from distspmd.analysis.infer_sizes import Equation, solve
from distspmd.errors import ArgumentError, DistSPMDError, UnsupportedProgram
from distspmd.frontend.from_numpy import dace_parser, host
from distspmd.frontend.from_numpy import numpy as functions
from distspmd.frontend.from_numpy import reader as syntax
from distspmd.frontend.from_numpy.arrays import annotation_types
from distspmd.frontend.from_numpy.arrays.kinds import has_arrays
from distspmd.frontend.from_numpy.arrays.prune import without_unread
from distspmd.frontend.from_numpy.arrays.shapes import size_of
from distspmd.frontend.from_numpy.arrays.states import Assumptions, ListFacts
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import (
    PYTHON_TYPES,
    AsksForGradients,
    CannotRoll,
    ReadProgramAgain,
    Refusal,
    is_word_of_cpp,
)
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, view_of
from distspmd.frontend.from_numpy.host.dace_calls import take_host_functions
from distspmd.frontend.from_numpy.host.hosting import Hosting, read_with_regions
from distspmd.frontend.from_numpy.kinds.settling import KnownFacts, settled
from distspmd.frontend.from_numpy.lists.list_rooms import LEAST_ROOM
from distspmd.frontend.from_numpy.lists.run_lists import DecidedByRun, Known
from distspmd.frontend.from_numpy.numpy.random_numbers import begin_streams
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, METHODS
from distspmd.frontend.from_numpy.reader.decorators import is_wrapper, without_wrappers
from distspmd.frontend.from_numpy.reader.entries import element_type, form_of
from distspmd.frontend.from_numpy.reader.frames import Frame
from distspmd.frontend.from_numpy.reader.interpreter import HOLE, PLACE, Interpreter
from distspmd.frontend.from_numpy.reader.results import returned_form
from distspmd.frontend.from_numpy.reader.sources import globals_of
from distspmd.frontend.tensor_ir.emit_program import emit_program
from distspmd.frontend.tensor_ir.statements import Container
from distspmd.frontend.tensor_ir.whole_numbers import add, symbol
from distspmd.runtime.calls.form import CallForm, bound_by_name, contains_arrays, rebuilt, rest_of

for _package in (functions, host, syntax):
    for _module in pkgutil.iter_modules(_package.__path__):
        importlib.import_module(f"{_package.__name__}.{_module.name}")


def read_program(
    function: Callable[..., Any] | DaceProgram,
    frontend: str,
    examples: Sequence[Any],
    sizes: Mapping[str, Any],
    *,
    fixes_numbers: bool = False,
    host: str = "tell",
) -> SDFG:
    """What :func:`distspmd.frontend.numpy_program` returns, or a program for the given numbers."""
    if frontend == "dace":
        return dace_parser.numpy_program(function, *examples, **sizes)
    if frontend != "numpy":
        raise ArgumentError(f"there is no front end {frontend!r}: 'numpy' or 'dace'.")
    python = _python_function(function)
    inner = without_wrappers(python)
    if isinstance(python, type) or not (hasattr(inner, "__code__") or is_wrapper(inner)):
        raise UnsupportedProgram(
            f"{python!r} is no function that is written in Python, so that its source is not to be "
            "read. Write a function that calls it."
        )

    def read(hosting: Hosting) -> SDFG:
        return _read_for_numbers(function, examples, sizes, fixes_numbers, hosting)

    return read_with_regions(read, host)


def _read_for_numbers(
    function: Callable[..., Any] | DaceProgram,
    examples: Sequence[Any],
    sizes: Mapping[str, Any],
    fixes_numbers: bool,
    hosting: Hosting,
) -> SDFG:
    """The SDFG of a function for any numbers, or for the given ones where it has to know them."""
    python = _python_function(function)
    has_numbers = not fixes_numbers and any(map(_is_run_time_number, (*examples, *sizes.values())))
    try:
        return _settled(python, examples, sizes, hosting, fixes_numbers=not has_numbers)
    except AsksForGradients:
        importlib.import_module("dace.autodiff")  # which tells DaCe's parser of gradients
        calls = functools.partial(take_host_functions, read=read_program)
        try:
            return dace_parser.numpy_program(function, *examples, prepare=calls, **sizes)
        except UnsupportedProgram as problem:
            raise UnsupportedProgram(f"{problem}\n{_GRADIENTS}") from problem
    except UnsupportedProgram:
        if has_numbers:
            with suppress(UnsupportedProgram):  # then the first message says more
                return _settled(python, examples, sizes, hosting, fixes_numbers=True)
        raise


_GRADIENTS = (
    "The program asks for gradients, so DaCe's parser reads it, which knows arrays and numbers "
    "alone. Compute gradients in a function without objects of Python, or mark a function for "
    "Python with @distspmd.host(like=..., vjp=...)."
)


def _is_run_time_number(value: object) -> bool:
    """Whether an example is a number that each call may give anew."""
    return isinstance(value, float | complex | np.generic)


def _settled(
    function: Callable[..., Any],
    examples: Sequence[Any],
    sizes: Mapping[str, Any],
    hosting: Hosting,
    *,
    fixes_numbers: bool,
) -> SDFG:
    """The SDFG of a function, read until it is known what its tables and lists hold.

    Args:
        function: is read.
        examples: arguments.
        sizes: of the program, and arguments by name.
        hosting: what Python runs.
        fixes_numbers: whether the program is made for the values of all numbers, since lengths or
            ways depend on them.
    """

    def reading(facts: KnownFacts) -> _Reading:
        found = _Reading(function, fixes_numbers, facts)
        found.interpreter.hosting = hosting
        return found

    return settled(reading, examples, sizes)


def _python_function(function: object) -> Callable[..., Any]:
    if isinstance(function, DaceProgram):
        return cast(Callable[..., Any], function.f)
    if isinstance(function, SDFG) or not callable(function):
        raise ArgumentError(
            f"numpy_program takes a function or a @dace.program; a {type(function).__name__} was "
            "given."
        )
    known: Callable[..., Any] = function
    return known


class _Reading:
    """Reads a function for arguments of some types."""

    def __init__(
        self,
        function: Callable[..., Any],
        fixes_numbers: bool = False,
        facts: KnownFacts | None = None,
    ) -> None:
        self.function, self.fixes_numbers = function, fixes_numbers
        self.facts = facts = facts or KnownFacts()
        self.tracer = Tracer(
            known=Assumptions(changing=frozenset(facts.changing)),
            lists=ListFacts(dict(facts.lists), written_out=facts.written_out),
        )
        self.interpreter = Interpreter(self.tracer, FUNCTIONS, METHODS, fixes_numbers)
        self.arguments: list[Container] = []
        self.seen: set[str] = set()
        self.fixed: dict[str, Any] = {}
        self.renamed: dict[str, str] = {}
        self.given_lists: dict[str, Any] = {}
        self.parameters = inspect.signature(inspect.unwrap(function)).parameters

    def sdfg(self, examples: Sequence[Any], sizes: Mapping[str, Any]) -> SDFG:
        """The SDFG of the function."""
        name = self.function.__name__
        signature = inspect.signature(self.function)
        given = self._given(signature, examples, sizes)
        self.interpreter.sizes = {
            n: self._whole(n, v) for n, v in sizes.items() if n not in signature.parameters
        }
        self.tracer.program.names |= {"__return"}
        values = {
            parameter.name: self._argument(parameter, given)
            for parameter in signature.parameters.values()
        }
        with_parts = {n: form_of(v) for n, v in values.items() if self._has_parts(v)}
        self.fixed = {
            name: value
            for name, value in values.items()
            if not isinstance(value, Tensor)
            and name not in with_parts
            and not (type(value) in (tuple, dict) and not value)
        }
        self.tracer.frames.append(Frame({}, outside=self.given_lists))
        elements = [size_of(each.shape) for each in self.arguments]
        self.tracer.lists.room = functools.reduce(add, elements, LEAST_ROOM)
        begin_streams(self.interpreter, self.facts.drawing)
        try:
            result = self._called(signature, values)
            form = CallForm(
                returned=returned_form(self.interpreter, result),
                fixed=self.fixed,
                parameters=tuple(signature.parameters),
                inside=self.renamed,
                parts=with_parts,
                rest=rest_of(signature),
                points=frozenset(c.name for c in self.arguments if c.is_point),
            )
        except (DistSPMDError, ReadProgramAgain, DecidedByRun, Known):
            raise
        except RecursionError:
            raise UnsupportedProgram(
                self.tracer.message("an expression or a chain of calls that is too deep")
            ) from None
        except Exception as problem:
            told = str(problem) if isinstance(problem, CannotRoll) else _not_understood(problem)
            refusal = Refusal(getattr(problem, PLACE, HOLE).replace(HOLE, told))
            refusal.places = getattr(problem, "places", ())
            raise refusal from problem
        self._check_sizes(signature)
        without_unread(self.tracer.program.block, self.tracer.links.aliases)
        return emit_program(_identifier(name), self.tracer.program.block, self.arguments, form)

    def _called(self, signature: inspect.Signature, values: dict[str, Any]) -> Any:
        """What the function returns, or the wrapper that its user has put around it."""
        function = without_wrappers(self.function)
        if not is_wrapper(function):
            return self.interpreter.run_function(function, values)
        bound, own = signature.bind_partial(), signature.parameters
        bound.arguments.update({n: v for n, v in values.items() if v is not own[n].default})
        return self.interpreter.call(function, bound.args, bound.kwargs)

    def _check_sizes(self, signature: inspect.Signature) -> None:
        """Each size that was given is one of an argument's shape, or is read by the program."""
        known = self.seen | self.interpreter.sizes_read
        for size in self.interpreter.sizes:
            if size not in known:
                raise ArgumentError(
                    f"{self.function.__name__} has no size or argument {size!r}; it has "
                    f"{', '.join(sorted({*known, *signature.parameters})) or 'none'}."
                )

    def _whole(self, name: str, value: object) -> int:
        if not isinstance(value, int | np.integer):
            raise ArgumentError(
                f"{self.function.__name__} has no argument {name!r}, and a size is a whole number; "
                f"the arguments are those of the signature, {inspect.signature(self.function)}."
            )
        return int(value)

    # -- arguments ------------------------------------------------------------------------------

    def _given(
        self, signature: inspect.Signature, examples: Sequence[Any], sizes: Mapping[str, Any]
    ) -> dict[str, Any]:
        named = {n: v for n, v in sizes.items() if n in signature.parameters}
        kinds = {p.kind for p in signature.parameters.values()}
        count = len(signature.parameters)
        if len(examples) > count and inspect.Parameter.VAR_POSITIONAL not in kinds:
            raise ArgumentError(
                f"{self.function.__name__} has {count} arguments, but {len(examples)} examples are "
                "given."
            )
        try:
            bound = bound_by_name(signature, examples, named)
        except TypeError as problem:
            raise ArgumentError(f"{self.function.__name__}: {problem}.") from None
        return dict(bound.arguments)

    def _argument(self, parameter: inspect.Parameter, given: Mapping[str, Any]) -> Any:
        name = parameter.name
        annotation = self._annotation(parameter, is_needed=name not in given)
        described = annotation_types.described(annotation)
        if name in given and not (described is not None and _is_number(given[name])):
            if described is not None:
                self._sizes_of(name, described, given[name])
            return self._example(name, given[name], parameter)
        if described is not None:
            return self._described(name, described)
        if parameter.kind is parameter.VAR_POSITIONAL:
            return ()
        if parameter.kind is parameter.VAR_KEYWORD:
            return {}
        if parameter.default is parameter.empty and _is_python_type(annotation):
            return self._scalar(name, PYTHON_TYPES[annotation], annotation)
        if parameter.default is not parameter.empty:
            return parameter.default
        raise ArgumentError(
            f"{self.function.__name__}: the argument {name!r} has neither an annotation nor an "
            f"example. Annotate it, {name}: dace.float64[10, 20], or pass an array of its type and "
            "shape after the function."
        )

    def _sizes_of(self, name: str, described: data.Data, example: object) -> None:
        """Take the sizes that an annotation names from an example.

        Raises:
            ArgumentError: the example has other extents.
        """
        shape = getattr(example, "shape", None)
        if shape is None or len(shape) != len(described.shape):
            return
        program, sizes = self.function.__name__, self.interpreter.sizes
        for dimension, (extent, found) in enumerate(zip(described.shape, shape, strict=True)):
            given = Equation(sympy.sympify(extent), found, name, dimension)
            self.seen |= given.unknown.keys()
            if not given.unknown or not isinstance(found, int):
                continue
            equation = given.given(sizes)
            if len(equation.unknown) == 1 and _is_linear(equation):
                size, value = solve(program, equation)
                sizes[size] = value
            elif not equation.unknown and equation.expression != found:
                known = ", ".join(f"{each} is {sizes[each]}" for each in sorted(given.unknown))
                raise ArgumentError(
                    f"{program}: {known}, but the example of {name!r} has {found} for {extent} "
                    f"in dimension {dimension}."
                )

    def _annotation(self, parameter: inspect.Parameter, *, is_needed: bool) -> Any:
        """What an annotation is; one that is text is read with what the function sees, and DaCe.

        So a program whose annotations are text need not import DaCe where it is not parsed.

        Args:
            parameter: that has it.
            is_needed: whether there is no example.

        Raises:
            ArgumentError: it is needed, and not to be read.
        """
        annotation = parameter.annotation
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, {"dace": dace, **globals_of(without_wrappers(self.function))})
        except Exception as problem:
            found = annotation_types.described_by_text(annotation)
            if found is not None or not is_needed or parameter.default is not parameter.empty:
                return found
            raise ArgumentError(
                f"{self.function.__name__}: the annotation {annotation!r} of {parameter.name!r} is "
                f'not to be read: {problem}. Write {parameter.name}: "float64[N, 20]", or pass an '
                "array of its type and shape after the function."
            ) from None

    def _described(self, name: str, described: data.Data) -> Any:
        dtype = np.dtype(described.dtype.type)
        if isinstance(described, data.Scalar):
            return self._scalar(name, dtype, None)
        shape = [self._size(n) for n in described.shape]
        return self._array(name, shape, dtype)

    def _size(self, extent: object) -> Any:
        value = sympy.sympify(extent)
        names = {s: s.name for s in value.free_symbols}
        self.seen |= set(names.values())
        self.tracer.program.names |= set(names.values())
        by = {s: self.interpreter.sizes.get(n, symbol(n)) for s, n in names.items()}
        found = value.xreplace({s: sympy.sympify(v) for s, v in by.items()})
        return int(found) if found.is_Integer else sympy.expand(found)

    def _array(self, name: str, shape: Sequence[Any], dtype: Any) -> View:
        container = Container(self._inside(name), tuple(shape), np.dtype(dtype), is_argument=True)
        self.arguments.append(container)
        return view_of(container)

    def _inside(self, name: str) -> str:
        """What an argument is called in the program: a word of C++ has another name there."""
        if not is_word_of_cpp(name):
            self.tracer.program.names.add(name)
            return name
        found = self.tracer.unique(name)
        while found in inspect.signature(self.function).parameters:
            found = self.tracer.unique(name)
        self.renamed[name] = found
        return found

    def _scalar(self, name: str, dtype: Any, weak: Any) -> View:
        name = self._inside(name)
        container = Container(name, (), np.dtype(dtype), is_argument=True, is_scalar=True)
        self.arguments.append(container)
        view = view_of(container)
        view.weak = weak
        return view

    def _example(self, name: str, value: Any, parameter: inspect.Parameter) -> Any:
        if parameter.kind is parameter.VAR_POSITIONAL:
            return tuple(
                self._example(f"{name}_{n}", v, parameter.replace(kind=parameter.KEYWORD_ONLY))
                for n, v in enumerate(value)
            )
        if isinstance(value, data.Data):
            return self._described(name, value)
        if self.fixes_numbers and name == parameter.name and _is_run_time_number(value):
            return value
        if isinstance(value, np.generic):
            return self._scalar(name, value.dtype, None)
        if isinstance(value, float | complex) and type(parameter.default) is not type(value):
            return self._scalar(name, PYTHON_TYPES[type(value)], type(value))
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return self._array_like(name, value)
        if isinstance(value, list | tuple | dict) and contains_arrays(value):
            return self._entries(name, value, parameter)
        return value

    def _has_parts(self, value: object) -> bool:
        """Whether a parameter stands for a list, tuple or dictionary with arrays in it."""
        return isinstance(value, list | tuple | dict) and has_arrays(value)

    def _entries(self, name: str, value: Any, parameter: inspect.Parameter) -> Any:
        """A list, tuple or dictionary with an argument for each array in it."""
        own = parameter.replace(kind=parameter.KEYWORD_ONLY, default=parameter.empty)
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        found = {}
        for key, each in pairs:
            part = "".join(c if c.isalnum() else "_" for c in f"{name}_{key}")
            if part in self.tracer.program.names:
                part = self.tracer.unique(part)
            while part in self.parameters:
                part = self.tracer.unique(part)
            found[key] = self._example(part, each, own)
        made = found if isinstance(value, dict) else rebuilt(value, [*found.values()])
        if isinstance(made, list | dict):  # which belongs to the caller
            self.given_lists[name] = made
        return made

    def _array_like(self, name: str, value: Any) -> View:
        dtype = element_type(self.function.__name__, name, value)
        return self._array(name, [int(n) for n in value.shape], dtype)


_PACKAGE = Path(__file__).parents[2]
_OF_FAULTS = NameError, AttributeError, AssertionError, ImportError


def _not_understood(problem: Exception) -> str:
    """What an exception says that reading a program has raised: of the program, or a fault of ours.

    It is one of ours where a name, an attribute or an assertion fails in this package.
    """
    told = f"{type(problem).__name__}: {problem}"
    *_, last = traceback.extract_tb(problem.__traceback__)
    within = Path(last.filename).is_relative_to(_PACKAGE)
    if not within or not isinstance(problem, _OF_FAULTS):
        return f"not understood: {told}"
    place = f"{Path(last.filename).relative_to(_PACKAGE.parent)}:{last.lineno}"
    return f"a fault within distspmd ({told}, at {place}); please report it with this line"


def _is_linear(equation: Equation) -> bool:
    """Whether the one symbol of an extent has one value for each number of elements."""
    (symbol,) = equation.unknown.values()
    return bool(equation.expression.diff(symbol).is_number)


def _is_python_type(annotation: object) -> bool:
    return isinstance(annotation, type) and annotation in PYTHON_TYPES


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic)


def _identifier(name: str) -> str:
    found = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return found if not found[:1].isdigit() else f"_{found}"
