"""``print``, texts with values that are known at run time only, and the end of a program."""

from __future__ import annotations

import builtins
import sys
import warnings
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.checks import add_exit, add_print
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import texts
from distspmd.frontend.from_numpy.reader.objects import as_text, is_own
from distspmd.frontend.from_numpy.reader.texts import Text, described, has_data, kept_now


@function(builtins.print)
def _print(run: Context, *values: object, **options: object) -> None:
    add_print(run, [as_text(run, value) for value in values], dict(options))


def _text(run: Context, value: object, conversion: str = "", spec: str = "") -> str:
    return kept_now(run, Text.of(described(value, conversion, spec)))


@function(builtins.str)
def _str(run: Context, value: object = "", *more: object) -> Any:
    value = as_text(run, value)
    return _text(run, value) if has_data(value) else str(value, *more)


@function(builtins.repr)
def _repr(run: Context, value: object) -> Any:
    if is_own(value):
        return as_text(run, value, "r")
    return _text(run, value, "r") if has_data(value) else repr(value)


@function(np.array2string, np.array_str)
def _array_text(run: Context, a: object, max_line_width: object = None, **options: object) -> Any:
    if max_line_width is not None or any(value is not None for value in options.values()):
        run.tracer.refuse("a text of an array with options; set them by np.set_printoptions")
    return _text(run, a)


@function(np.array_repr)
def _array_repr(run: Context, arr: object, **options: object) -> Any:
    if any(value is not None for value in options.values()):
        run.tracer.refuse("a text of an array with options; set them by np.set_printoptions")
    return _text(run, arr, "r")


@function(builtins.format)
def _format(run: Context, value: object, spec: str = "") -> Any:
    value = as_text(run, value)
    return _text(run, value, "", spec) if has_data(value) else format(value, spec)


def _in_base(spec: str) -> Any:
    return lambda run, number: _format(run, number, spec)


for _called, _spec in ((bin, "#b"), (oct, "#o"), (hex, "#x")):
    function(_called)(_in_base(_spec))


@function(texts.method)
def _method_of_text(_: Context, text: Text, name: str, arguments: Any, **named: Any) -> Any:
    return texts.method(text, name, arguments, **named)


@function(warnings.warn)
def _warn(
    run: Context,
    message: Any,
    category: Any = None,
    stacklevel: int = 1,
    source: object = None,
    **_: object,
) -> None:
    """Let rank 0 write a warning to the standard error; its filters are asked now."""
    if isinstance(message, Warning):
        category, message = type(message), message.args[0] if message.args else ""
    category = category or UserWarning
    with warnings.catch_warnings(record=True) as shown:
        warnings.warn("", category, stacklevel=2)
    if shown:
        told = [f"{category.__name__}: ", as_text(run, message)]
        add_print(run, told, {"sep": "", "file": sys.stderr})


def _exit(run: Context, code: object = None) -> None:
    add_exit(run, code)


for _each in (sys.exit, *(getattr(builtins, n) for n in ("exit", "quit") if hasattr(builtins, n))):
    function(_each)(_exit)


@function(np.seterr)
def _seterr(run: Context, all: object = None, **kinds: object) -> dict[str, Any]:
    """The state before, as NumPy has it; warnings are not given by programs."""
    for kind, wanted in (("all", all), *kinds.items()):
        if wanted not in (None, "ignore", "warn"):
            run.tracer.refuse(
                f"{kind}={wanted!r} at floating-point errors: programs go on with inf and nan. "
                "Check the values: if np.any(np.isnan(x)): raise FloatingPointError(...)"
            )
    return dict(np.geterr())
