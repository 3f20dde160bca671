"""Objects of classes that the user has written: made, read, changed and computed with.

They are Python's own objects while a program is read, with arrays of the program as attributes. An
attribute that changes is an entry of the object's dictionary, so that loops carry it, and branches
join it, as they do with dictionaries of the program.
"""

from __future__ import annotations

import abc
import ast
import dataclasses
import functools
import inspect
import operator
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.matrixlib import matrix

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.frames import Closure
from distspmd.frontend.from_numpy.reader.mutation import before_change
from distspmd.frontend.from_numpy.reader.origins import OF_PYTHON, is_own_class

NAMES: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.Pow: "pow",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
"""The special methods of operators, without underscores."""

TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def is_of_python(function: object) -> bool:
    """Whether a function is one of Python's own library."""
    return str(getattr(function, "__module__", "")).split(".")[0] in OF_PYTHON


def is_own(value: object) -> bool:
    """Whether a value is an object of a class that a user has written, and not such a class."""
    is_class = isinstance(value, type)  # also one of a metaclass
    return not is_class and is_own_class(type(value)) and hasattr(value, "__dict__")


def make(run: Context, kind: type, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A new object of a class.

    Raises:
        Refusal: arguments that its constructor does not take, or a constructor that is not covered.
    """
    tracer = run.tracer
    given = [run.settled_parts(value) for value in arguments]
    named = {name: run.settled_parts(value) for name, value in keywords.items()}
    if issubclass(kind, tuple):
        try:
            return kind(*given, **named)
        except TypeError as problem:
            tracer.refuse(f"{kind.__name__}: {problem}")
    if issubclass(kind, np.ndarray):
        tracer.refuse(f"{kind.__name__}, a class of arrays, is not covered")
    if type(kind) not in (type, abc.ABCMeta):
        tracer.refuse(f"objects of {kind.__name__}, which makes them in a way of its own")
    maker = inspect.getattr_static(kind, "__new__")
    if maker is vars(object)["__new__"]:
        made: Any = new_object(run, kind)
    else:
        made = run.call(getattr(maker, "__func__", maker), [kind, *given], named)
        if not isinstance(made, kind):
            return made
    _initialise(run, made, given, named)
    return made


def _initialise(run: Context, made: object, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Call the ``__init__`` of a new object."""
    kind: Any = class_of(made)
    init = kind.__init__
    if dataclasses.is_dataclass(kind) and "__init__" in vars(kind) and _is_generated(init):
        _fill(run, made, given, named)
    elif _is_function(init):
        if run.call(init, [made, *given], named) is not None:
            run.tracer.fail(TypeError("__init__() should return None"))
    elif (given or named) and kind.__new__ is object.__new__:
        run.tracer.fail(TypeError(f"{kind.__name__}() takes no arguments"))


def new_object(run: Context, kind: type) -> Any:
    """An object of a class without attributes."""
    own: Any = kind
    made: Any = object.__new__(_with_room(own))
    run.tracer.program.made[id(vars(made))] = made
    return made


@functools.cache
def _with_room(kind: type) -> type:
    """The class, or one below it of which objects have a ``__dict__``, not slots alone."""
    if kind.__dictoffset__:
        return kind
    return type(kind.__name__, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def class_of(value: object) -> type:
    """The class that a user has written of which something is an object."""
    kind = type(value)
    has_room = kind.__base__ is not None and kind is _with_room(kind.__base__)
    return kind.__base__ if has_room else kind  # type: ignore[return-value]


def _is_function(value: object) -> bool:
    """Whether an attribute of a class is a method that a user has written, or a generated one."""
    return isinstance(value, types.FunctionType) or is_closure(value)


def is_closure(value: object) -> bool:
    """Whether a value is a function that the program defines."""
    return isinstance(value, Closure)


def _is_generated(function: object) -> bool:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _fill(run: Context, made: Any, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """The fields of a dataclass."""
    kind = type(made)
    try:
        bound = inspect.signature(kind.__init__).bind(made, *given, **named)
    except TypeError as problem:
        run.tracer.refuse(f"{kind.__name__}: {problem}")
    for part in dataclasses.fields(kind):
        if part.name in bound.arguments:
            value = bound.arguments[part.name]
        elif part.default is not dataclasses.MISSING:
            value = part.default
        elif part.default_factory is not dataclasses.MISSING:
            value = run.call(part.default_factory, [], {})
        else:
            continue
        vars(made)[part.name] = value
    if hasattr(kind, "__post_init__"):
        run.call(kind.__post_init__, [made], {})


def attribute(run: Context, base: object, name: str) -> Any:
    """An attribute of an object: what it holds, a method, or what a property computes."""
    if name in getattr(base, "__dict__", ()):
        return run.outside(name, vars(base)[name])
    kind = class_of(base)
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, property) and found.fget is not None:
        return run.call(found.fget, [base], {})
    if isinstance(found, functools.cached_property):
        value = run.settled_parts(run.call(found.func, [base], {}))
        set_attribute(run, base, name, value)
        return value
    if _is_function(found):
        return types.MethodType(found, base)
    finder = inspect.getattr_static(kind, "__getattr__", None)
    if found is None and _is_function(finder):
        return run.call(finder, [base, name], {})
    try:
        return run.outside(name, getattr(base, name))
    except AttributeError as problem:
        run.tracer.fail(problem)


def above(run: Context, base: Any, name: str) -> Any:
    """``super().name``: what a property of a class above computes, or a method."""
    mro = base.__self_class__.__mro__
    for kind in mro[mro.index(base.__thisclass__) + 1 :]:
        if name in vars(kind):
            found = vars(kind)[name]
            if isinstance(found, property) and found.fget is not None:
                return run.call(found.fget, [base.__self__], {})
            break
    try:
        return run.outside(name, getattr(base, name))
    except AttributeError as problem:
        run.tracer.refuse(str(problem))


def set_attribute(
    run: Context, base: object, name: str, value: object, *, by_itself: bool = True
) -> None:
    """Give an attribute of an object that the program has made another value.

    Args:
        run: the reading.
        base: the object.
        name: of the attribute.
        value: its new value.
        by_itself: whether the class is asked, which may have a ``__setattr__`` of its own.

    Raises:
        Refusal: the object is from outside of the program, or its class lets nobody set it.
    """
    kind = type(base)
    _check_made(run, base, name)
    setter = inspect.getattr_static(kind, "__setattr__")
    if by_itself and _is_function(setter) and not _is_generated(setter):
        run.call(setter, [base, name, value], {})
        return
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, property) and found.fset is not None:
        run.call(found.fset, [base, value], {})
        return
    sets_itself = by_itself and setter != vars(object)["__setattr__"]
    if (sets_itself and _is_generated(setter)) or isinstance(found, property):
        _as_python(run, setattr, base, name, value)
    if class_of(base) is not kind and not inspect.ismemberdescriptor(found):
        run.tracer.fail(AttributeError(f"{kind.__name__!r} object has no attribute {name!r}"))
    if sets_itself:
        run.tracer.refuse(f"{name!r} of {kind.__name__} cannot be set")
    if type(value) in (bool, int, str) and _is_now(vars(base).get(name), value):
        return
    before_change(run, vars(base), name)
    vars(base)[name] = run.settled_parts(value)


def _is_now(before: object, value: object) -> bool:
    """Whether an attribute is what it is set to, so that no loop has to carry it."""
    return type(before) is type(value) and bool(before == value)


def _check_made(run: Context, base: object, name: str) -> None:
    """Refuse changes of an object from outside of the program."""
    if id(vars(base)) not in run.tracer.program.made:
        run.tracer.refuse(
            f"the program changes {name!r} of an object that is not its own: the change would be "
            "made once, when the program is read. Pass the value as an argument, and return it"
        )


def _as_python(run: Context, operation: Any, base: Any, *arguments: Any) -> None:
    """Let Python say why an attribute of an object is not changed, on one that has none."""
    try:
        operation(object.__new__(type(base)), *arguments)
    except AttributeError as problem:
        run.tracer.fail(problem)


def delete_attribute(run: Context, base: object, name: str) -> None:
    """Let an object that the program has made have an attribute no more."""
    _check_made(run, base, name)
    kind = type(base)
    deleter = inspect.getattr_static(kind, "__delattr__")
    if _is_function(deleter) and not _is_generated(deleter):
        run.call(deleter, [base, name], {})
        return
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, property) and found.fdel is not None:
        run.call(found.fdel, [base], {})
        return
    if _is_generated(deleter) or isinstance(found, property):
        _as_python(run, delattr, base, name)
    if name not in vars(base):
        run.tracer.fail(AttributeError(f"{kind.__name__!r} object has no attribute {name!r}"))
    before_change(run, vars(base))
    del vars(base)[name]


def is_equal_to_itself_alone(value: object) -> bool:
    """Whether the class of an object leaves equality as every object has it."""
    return all(kind is object or "__eq__" not in vars(kind) for kind in type(value).__mro__)


def special(run: Context, base: object, name: str, *arguments: object, **named: object) -> Any:
    """What a special method of an object gives; ``NotImplemented`` where its class has none."""
    found = inspect.getattr_static(class_of(base), f"__{name}__", None)
    is_of_matrix = getattr(found, "__module__", None) == matrix.getA.__module__
    if not _is_function(found) or is_of_matrix:
        return NotImplemented
    if _is_generated(found):
        if any(has_data(list(vars(each).values())) for each in (base, *arguments) if is_own(each)):
            run.tracer.refuse(
                f"__{name}__ of {type(base).__name__}, which takes fields of the run; write "
                "out what it does with them"
            )
        return found(base, *arguments)
    return run.call(found, [base, *arguments], named)


_UNARY: dict[Any, Any] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


def as_text(run: Context, value: Any, conversion: str = "") -> Any:
    """What is written of an object: what its ``__str__`` or ``__repr__`` gives.

    Args:
        run: the reading.
        value: the object; other values are written as they are.
        conversion: ``"r"`` where ``repr`` is asked.
    """
    parts = value if type(value) in (tuple, list) else ()
    if any(is_own(each) and has_data(list(vars(each).values())) for each in parts):
        run.tracer.refuse("a text of a list of objects that have values of the run")
    if not is_own(value) or isinstance(value, tuple | list | dict):
        return value
    for name in ("repr",) if conversion == "r" else ("str", "repr"):
        found = special(run, value, name)
        if found is not NotImplemented:
            return found
    return value


def has_operators(value: object) -> bool:
    """Whether a value is an object, or a named tuple of a class with methods."""
    return is_own(value) or (isinstance(value, tuple) and is_own_class(type(value)))


def unary(run: Context, value: object, op: ast.unaryop) -> Any:
    """What an operator of one operand gives of an object."""
    return required(run, NAMES[type(op)], _UNARY[type(op)], value)


def part(run: Context, base: object, items: object) -> Any:
    """``base[items]`` of an object."""
    return required(run, "getitem", operator.getitem, base, items)


def required(run: Context, name: str, python: Any, base: Any, *arguments: Any) -> Any:
    """What a special method of an object gives, without which Python raises an error.

    Args:
        run: the reading.
        name: of the method, without underscores.
        python: the operation of Python that asks for it.
        base: the object.
        arguments: of the method.

    Raises:
        KnownError: its class has none, and a handler takes the error.
        Refusal: its class has none.
    """
    from distspmd.frontend.from_numpy.reader.python_errors import fail

    found = special(run, base, name, *arguments)
    return found if found is not NotImplemented else fail(run, python, base, *arguments)


def of_named_tuple(owner: object, method: str, named: Mapping[str, Any]) -> Any:
    """What ``_replace`` or ``_asdict`` of a named tuple gives."""
    return getattr(owner, method)(**named)


def kept(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What a function gives that keeps its results, which are no part of a program."""
    return function(*arguments, **keywords)


def get_parts(getter: Any, value: Any) -> Any:
    """What an ``operator.itemgetter`` or ``attrgetter`` gives."""
    return getter(value)
