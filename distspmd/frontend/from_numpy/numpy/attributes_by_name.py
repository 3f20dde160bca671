"""Attributes by their names: ``getattr``, ``setattr``, and the methods behind them."""

from __future__ import annotations

import builtins
from typing import Any

from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.origins import is_own_class
from distspmd.frontend.from_numpy.reader.python_errors import check_attribute_of

_NONE = object()


def _checked(run: Context, name: object) -> Any:
    if not isinstance(name, str):
        run.tracer.refuse(f"an attribute of the name {told(name)}, which is not known")
    return name


@function(builtins.getattr)
def _getattr(run: Context, base: Any, name: Any, default: object = _NONE) -> Any:
    name = _checked(run, name)
    if default is not _NONE and not run.call(hasattr, [base, name], {}):
        return default
    return run.attribute(base, name)


@function(builtins.setattr)
def _setattr(run: Context, base: Any, name: Any, value: Any) -> None:
    name = _checked(run, name)
    if not objects.is_own(base):
        check_attribute_of(run, base, name, value)
        run.tracer.refuse(f"setattr of {told(base)}, which is no object of the program")
    objects.set_attribute(run, base, name, value)


@function(object.__new__)
def _new(run: Context, kind: Any, *_: object, **__: object) -> Any:
    if not is_own_class(kind):
        run.tracer.refuse(f"object.__new__ of {told(kind)}, which is no class of the program")
    return objects.new_object(run, kind)


@function(object.__setattr__)
def _set_as_object(run: Context, base: object, name: object, value: object) -> None:
    if not objects.is_own(base):
        run.tracer.refuse(f"object.__setattr__ of {told(base)}, which is no object of the program")
    objects.set_attribute(run, base, _checked(run, name), value, by_itself=False)


@function(object.__getattribute__)
def _get_as_object(run: Context, base: object, name: object) -> Any:
    return run.attribute(base, _checked(run, name))


@function(builtins.delattr)
def _delattr(run: Context, base: Any, name: Any) -> None:
    name = _checked(run, name)
    if not objects.is_own(base):
        run.tracer.refuse(f"delattr of {told(base)}, which is no object of the program")
    objects.delete_attribute(run, base, name)
