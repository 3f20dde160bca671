"""Operators that a user registers: what each computes is a function of NumPy arrays.

The function is read for the types, shapes and attributes of a call, and becomes a part of the
program that is partitioned as all other parts are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distspmd.errors import ArgumentError, DistSPMDError, UnsupportedProgram, describe

if TYPE_CHECKING:
    from dace import SDFG

Function = Callable[..., Any]
_REGISTERED: dict[str, Function] = {}
_NAME = re.compile(r"\w[\w.-]*::\w+")
_OF_FRAMEWORKS = ("aten", "prims", "ai.onnx")


def register_operator(name: str, function: Function, *, replace: bool = False) -> None:
    """Say what a custom operator computes: modules, steps and models that call it are partitioned.

    The function takes what the operator takes, by place or by name as the operator's schema has it:
    tensors as arrays, attributes as values of Python, which become constants. It returns an array,
    or a tuple or list of arrays, and writes into none of its arguments. It is no part of programs
    that are made already.

    Args:
        name: as the framework writes it: ``"mylib::swish"`` in ``torch.library``, and of ONNX the
            domain and the type, ``"com.example::Swish"``.
        function: of NumPy arrays; or a ``@dace.program``.
        replace: whether another function of this name is to be forgotten.

    Raises:
        ArgumentError: a name that no custom operator has, or what is no function; or the name is
            registered already.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentError(
            f"register_operator({name!r}, ...): the name of an operator is its namespace, or its "
            'domain in ONNX, and what it is called there: "mylib::swish".'
        )
    if name.partition("::")[0] in _OF_FRAMEWORKS:
        raise ArgumentError(
            f"register_operator({name!r}, ...): this operator belongs to the framework itself; "
            "custom operators are registered, which have a namespace of their own."
        )
    python = _python(function)
    if not inspect.isfunction(python):
        raise ArgumentError(
            f"register_operator({name!r}, ...) takes a function that is written in Python; "
            f"{describe(function)} was given."
        )
    known = _REGISTERED.setdefault(name, python)
    if known is not python and not replace:
        raise ArgumentError(
            f"register_operator({name!r}, ...): {_place(known)} is registered under this name "
            "already. To forget it, write register_operator(..., replace=True)."
        )
    _REGISTERED[name] = python


def _python(function: Any) -> Any:
    """The function that a ``@dace.program`` was made of, or another function itself."""
    return getattr(function, "f", function) if not inspect.isfunction(function) else function


def _place(function: Function) -> str:
    code = function.__code__
    return f"{function.__name__} ({code.co_filename}:{code.co_firstlineno})"


def registered_operators() -> Mapping[str, Function]:
    """What is registered, by the names of the operators."""
    return _REGISTERED


def line_to_register(name: str, parameters: Sequence[str]) -> str:
    """What to write for an operator that nobody has registered."""
    own = name.rpartition("::")[2]
    return (
        f"distspmd.frontend.register_operator({name!r}, {own}), with a function "
        f"{own}({', '.join(parameters)}) of NumPy arrays"
    )


@dataclass(frozen=True, eq=False)
class Body:
    """What an operator computes of arguments of some types and shapes.

    Attributes:
        sdfg: of the function.
        inputs: the containers of the arrays, in the order in which they were bound.
        results: the containers of the results, with their shapes and types.
    """

    sdfg: SDFG
    inputs: tuple[str, ...]
    results: tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]


def bound_to(name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of an operator, by the parameters of its function.

    Raises:
        UnsupportedProgram: the function takes others.
    """
    function = _REGISTERED[name]
    try:
        return dict(inspect.signature(function).bind(*arguments, **named).arguments)
    except TypeError as error:
        given = [*("..." for _ in arguments), *(f"{key}={value!r}" for key, value in named.items())]
        raise UnsupportedProgram(
            f"it is called as ({', '.join(given)}), but what is registered for it, "
            f"{_place(function)}, takes {inspect.signature(function)}: {error}."
        ) from None


def read_body(name: str, bound: Mapping[str, Any]) -> Body:
    """Read the function of an operator.

    Args:
        name: of the operator.
        bound: examples and attributes, by parameters (:func:`bound_to`).

    Raises:
        UnsupportedProgram: what the function does is not covered; it writes into an argument, or
            does not return arrays.
    """
    from distspmd.frontend.from_numpy.api import read_program

    function = _REGISTERED[name]
    try:
        sdfg = read_program(function, "numpy", (), bound, fixes_numbers=True)
    except DistSPMDError as error:
        raise UnsupportedProgram(
            f"of what is registered for it, {_place(function)}: {error}"
        ) from error
    _check_arguments(function, sdfg)
    return Body(sdfg, tuple(sdfg.arg_names), tuple(_results(function, sdfg)))


def _check_arguments(function: Function, sdfg: SDFG) -> None:
    """An operator makes new tensors."""
    for state in sdfg.states():
        for node in state.data_nodes():
            if node.data in sdfg.arg_names and state.in_degree(node):
                raise UnsupportedProgram(
                    f"what is registered for it, {_place(function)}, writes into its argument "
                    f"{node.data!r}. Write into a copy, {node.data}.copy(), and return that."
                )


def _results(
    function: Function, sdfg: SDFG
) -> Iterator[tuple[str, tuple[int, ...], np.dtype[Any]]]:
    """The containers of what a function returns, in order."""
    from distspmd.runtime.calls.form import Result, call_form_of

    form = call_form_of(sdfg)
    names = sorted(
        (name for name in sdfg.arrays if name.startswith("__return")),
        key=lambda name: int(name.removeprefix("__return").strip("_") or 0),
    )
    parts = form.returned if isinstance(form.returned, tuple | list) else [form.returned]
    for part in [] if form.returned is None else parts:
        if not isinstance(part, Result) or part.lengths or part.of_type is not None:
            raise UnsupportedProgram(
                f"what is registered for it, {_place(function)}, returns what is no array, or one "
                "of which the run decides the size or the type. Return an array, or a tuple of "
                "arrays."
            )
    for name in names:
        array = sdfg.arrays[name]
        shape = () if name in form.scalars else tuple(map(int, array.shape))
        yield name, shape, np.dtype(array.dtype.type)
