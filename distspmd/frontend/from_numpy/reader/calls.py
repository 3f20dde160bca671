"""Calls: of functions of NumPy, of the program's own, and of what Python knows already."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dace.frontend.python.parser import DaceProgram

from distspmd.frontend.from_numpy.arrays.arithmetic import apply_ufunc, converted
from distspmd.frontend.from_numpy.arrays.arrays_from_outside import check_method
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.comparisons import refuse_uncovered
from distspmd.frontend.from_numpy.arrays.decided_types import handled
from distspmd.frontend.from_numpy.arrays.kinds import (
    has_arrays,
    has_data,
    is_foreign,
    is_plain,
    known_result,
)
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.clocks import check_repeatable
from distspmd.frontend.from_numpy.host.otherwise import handled_or_asked, is_asked, is_read
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.library import is_of_library
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.argument_forms import (
    METHODS_OF_CHOICES,
    OF_CHOICES,
    OF_LISTS,
)
from distspmd.frontend.from_numpy.lists.known_keys import check_call
from distspmd.frontend.from_numpy.lists.lists import ListMethod
from distspmd.frontend.from_numpy.lists.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.numpy.registry import ALWAYS, OTHERWISE, by_name
from distspmd.frontend.from_numpy.reader import generators, objects, operators, texts
from distspmd.frontend.from_numpy.reader.bindings import without_locals
from distspmd.frontend.from_numpy.reader.decorators import without_wrappers
from distspmd.frontend.from_numpy.reader.frames import Closure, Frame
from distspmd.frontend.from_numpy.reader.mutation import MUTABLE
from distspmd.frontend.from_numpy.reader.origins import is_own_class
from distspmd.frontend.from_numpy.reader.ranges import static_values
from distspmd.frontend.from_numpy.reader.texts import Text, by_format, has_text, kept_now, not_known
from distspmd.runtime.host.host_functions import HostFunction


@dataclass(frozen=True)
class Method:
    """A method of a tensor, or of a universal function."""

    owner: Any
    name: str


def _static(
    tracer: Tracer, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What Python computes of values that are known."""
    try:
        with np.errstate(all="ignore"):
            return function(*arguments, **keywords)
    except Refusal:
        raise
    except Exception as problem:
        if is_plain((arguments, keywords)):
            tracer.fail(problem, f"{name_of(function)}: ")
        tracer.refuse(f"{name_of(function)}: {type(problem).__name__}: {problem}")


def name_of(function: object) -> str:
    """What a function is called in messages."""
    if isinstance(function, Method):
        return f"the method {function.name!r}"
    module = str(getattr(function, "__module__", "") or "").replace("numpy", "np", 1)
    name = (
        getattr(function, "__qualname__", None)
        or getattr(function, "__name__", None)
        or type(function).__name__
    )
    return f"{module}.{name}" if module and module != "builtins" else str(name)


def _of_arrays(
    tracer: Tracer, arguments: Sequence[Any], keywords: Mapping[str, Any], function: object = None
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments in which elements that masks choose are arrays, unless the function takes them."""
    if function in OF_CHOICES:
        return arguments, keywords
    named = {name: as_arrays(tracer, value) for name, value in keywords.items()}
    return [as_arrays(tracer, value) for value in arguments], named


def _is_numpy(function: object) -> bool:
    if is_of_library(function):
        return False
    module = str(getattr(function, "__module__", "") or "")
    return module.split(".")[0] in ("numpy", "scipy", "dace", "distspmd", "math", "cmath")


def _dace_type(function: object) -> Any:
    from dace import dtypes

    return function.type if isinstance(function, dtypes.typeclass) else None


def _known_result(
    tracer: Tracer, function: object, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What NumPy computes now, of texts, objects and dates too; None of what the run decides."""
    name = getattr(function, "__name__", type(function).__name__)
    refuse_uncovered(tracer, name, (*arguments, *keywords.values()))
    found = known_result(function, arguments, keywords)
    if found is None and _is_numpy(function) and is_foreign(arguments, keywords):
        return _static(tracer, function, arguments, keywords)
    return found


def call(
    run: Context, function: object, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What a call gives.

    Raises:
        Refusal: a function that is not covered.
    """
    tracer = run.tracer
    if isinstance(function, ListMethod | Method):
        return _bound_method(run, function, arguments, keywords)
    try:
        handler = run.functions.get(function)
    except TypeError:
        handler = None
    if isinstance(function, type) or handler is not None:
        arguments = generators.listed(run, function, arguments)
    if handler is not None:
        if (known := _known_result(tracer, function, arguments, keywords)) is not None:
            return known
        arguments, keywords = _without_lists(run, arguments, keywords, function)
        arguments, keywords = _of_arrays(tracer, arguments, keywords, function)
        return handled(run, handler, function, arguments, keywords)
    if isinstance(function, Closure):
        return _closure(run, function, arguments, keywords)
    if isinstance(function, DaceProgram):
        function = function.f
    if isinstance(function, np.ufunc):
        return _ufunc(run, function, arguments, keywords)
    own = _own_call(run, function, arguments, keywords)
    if own is not None:
        return run.call(*own)
    return _of_user(run, function, arguments, keywords)


def _ufunc(
    run: Context, function: np.ufunc, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What a universal function gives, of NumPy or of SciPy."""
    if not has_arrays((arguments, keywords)) or is_foreign(arguments, keywords):
        return _static(run.tracer, function, arguments, keywords)
    arguments, keywords = _without_lists(run, arguments, keywords)
    if (written := by_name(run.functions, function)) is not None:
        return handled_or_asked(run, written, function, arguments, keywords)
    if vars(np).get(function.__name__) is not function:  # one of SciPy
        return run.functions[OTHERWISE](run, function, arguments, keywords)
    return _of_numpy(apply_ufunc(run.tracer, function, arguments, **keywords))


def _of_numpy(value: object) -> Any:
    """What a universal function gives: of a number of Python one of NumPy."""
    if isinstance(value, tuple):
        return tuple(map(_of_numpy, value))
    if isinstance(value, Tensor) and value.weak is not None and not isinstance(value, View):
        return replace(value, weak=None)
    return value


def _of_user(
    run: Context, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What classes, objects and functions give that the user has written; or others."""
    if isinstance(function, HostFunction):
        return run.functions[HostFunction](run, function, arguments, keywords)
    if is_own_class(function):
        return objects.make(run, function, arguments, keywords)
    if objects.is_own(function) and hasattr(type(function), "__call__"):  # noqa: B004
        found = objects.special(run, function, "call", *arguments, **keywords)
        if found is not NotImplemented:
            return found
    is_known = objects.is_of_python(function) and not has_data((list(arguments), dict(keywords)))
    if isinstance(function, types.FunctionType) and not (is_known or _is_numpy(function)):
        return _python(run, function, arguments, keywords)
    return _of_type(run, function, arguments, keywords)


def _bound_method(
    run: Context,
    function: ListMethod | Method,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """What a method of an array, or of a list whose content the run decides, gives."""
    if isinstance(function, ListMethod):
        return list_changes.call(run, function, arguments, keywords)
    return _method(run, function, arguments, keywords)


def _without_lists(
    run: Context,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    function: object = None,
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments in which lists whose content the run decides are arrays, unless it takes them."""
    if function in OF_LISTS:
        return arguments, keywords
    named = {name: lists.as_array(run, value) for name, value in keywords.items()}
    return [lists.as_array(run, value) for value in arguments], named


def _of_unchanging(
    owner: Any, function: Any, arguments: Sequence[Any], keywords: Any
) -> tuple[Any, Sequence[Any], Mapping[str, Any]] | None:
    """The call that a method of a text with values of the run, or of a tuple, makes."""
    if isinstance(owner, Text):
        return texts.method, [owner, function.__name__, arguments], keywords
    if isinstance(owner, tuple) and function.__name__ in ("_replace", "_asdict"):
        return objects.of_named_tuple, [owner, function.__name__, keywords], {}
    return None


def _own_call(
    run: Context, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Any, Sequence[Any], Mapping[str, Any]] | None:
    """The call that a method or a partial function makes; None for others."""
    owner = getattr(function, "__self__", None)
    check_repeatable(run, owner, function, name_of(function))
    check_method(run, owner, getattr(function, "__name__", ""))
    if isinstance(function, operator.itemgetter | operator.attrgetter):
        return objects.get_parts, [function, *arguments], keywords
    if isinstance(function, np.poly1d):
        return np.polyval, [function.coeffs, *arguments], keywords
    if isinstance(owner, np.ufunc):
        return Method(owner, function.__name__), arguments, keywords
    if found := _of_unchanging(owner, function, arguments, keywords):
        return found
    if isinstance(function, types.MethodWrapperType) and objects.is_own(owner):
        return getattr(object, function.__name__, function), [owner, *arguments], keywords
    if isinstance(function, types.MethodType):
        return function.__func__, [function.__self__, *arguments], keywords
    if isinstance(function, functools._lru_cache_wrapper):
        return objects.kept, [function.__wrapped__, arguments, keywords], {}
    if isinstance(function, functools.partial):
        return function.func, [*function.args, *arguments], {**function.keywords, **keywords}
    if isinstance(function, np.vectorize):
        own = [function.pyfunc, function.otypes, None, function.excluded, False, function.signature]
        return run.call(np.vectorize, own, {}), arguments, keywords
    return None


def _of_type(
    run: Context, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """A type that converts, or a function of what is known already."""
    tracer = run.tracer
    alone = len(arguments) == 1 and not keywords
    if alone and isinstance(function, type) and issubclass(function, np.generic):
        if not has_arrays(arguments):
            return function(arguments[0])
        return converted(tracer, arguments[0], function)
    typed = _dace_type(function)
    if typed is not None and len(arguments) == 1:
        return converted(tracer, arguments[0], typed)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, str) and function.__name__ == "join" and alone:
        return _joined(run, owner, arguments[0])
    if isinstance(owner, str) and function.__name__ == "format":
        named = {name: objects.as_text(run, value) for name, value in keywords.items()}
        given = [objects.as_text(run, value) for value in arguments]
        return kept_now(run, by_format(owner, given, named))
    handler = by_name(run.functions, function)
    if handler is not None and (handler in ALWAYS or is_read(arguments, keywords)):
        arguments, keywords = _of_arrays(tracer, arguments, keywords)
        return handled_or_asked(run, handler, function, arguments, keywords)
    if isinstance(owner, MUTABLE):
        return _of_container(run, function, [run.settled_parts(a) for a in arguments], keywords)
    if has_data(arguments) and function is frozenset:
        raise CannotRoll("a set of values that are not known before the run")
    _check_texts(function, (arguments, keywords))
    asked = is_asked(function, (*arguments, *keywords.values()))
    if not (asked or has_data((arguments, keywords))) or isinstance(owner, str):
        return _static(tracer, function, arguments, keywords)
    return run.functions[OTHERWISE](run, function, arguments, keywords)


def _joined(run: Context, separator: str, values: object) -> Any:
    """``separator.join(values)``."""
    if isinstance(values, RunList | Text):
        not_known()
    return texts.by_join(separator, [*static_values(run, values)])


def _check_texts(function: object, given: object) -> None:
    """Of a text that the run makes, a function may only keep it, or ask of which type it is.

    Raises:
        Refusal: it may read its characters.
    """
    if isinstance(function, type):
        keeps = issubclass(function, BaseException | list | tuple | dict)
    else:
        owner = getattr(function, "__self__", None)
        keeps = function in (isinstance, callable, id) or isinstance(owner, Text)
    if not keeps and has_text(given):
        not_known()


def _of_container(
    run: Context, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What a method of a list, dictionary, set or deque of Python gives."""
    owner = function.__self__
    if has_data(arguments) and isinstance(owner, set):
        for_python(run, "set")
    if isinstance(owner, dict):
        check_call(run, owner, function.__name__, arguments)
    compares = function.__name__ in ("count", "index", "remove") and isinstance(owner, list | deque)
    if compares and len(arguments) == 1 and has_data((arguments, list(owner))):
        if function.__name__ != "remove":
            return operators.looked_for(run, function.__name__, list(owner), arguments[0])
        for_python(run, "pop")
    if isinstance(owner, list) and function.__name__ == "sort":
        return _sort(run, owner, keywords)
    if function.__name__ == "extend" and len(arguments) == 1 and isinstance(arguments[0], Tensor):
        return _extend(run, owner, arguments[0])
    if run.tracer.inner and function.__name__ in _TAKING:
        return _taken(run, function, arguments, keywords)
    return _static(run.tracer, function, arguments, keywords)


def _sort(run: Context, owner: list[Any], keywords: Mapping[str, Any]) -> None:
    """``owner.sort(key=key, reverse=reverse)``."""
    found = run.call(sorted, [owner], keywords)
    if not isinstance(found, list):
        decided_by_run(run, owner)
    if isinstance(found, RunList) and found.count == len(owner):
        found = [lists.read(run, found, place) for place in range(len(owner))]
    if not isinstance(found, list):
        run.tracer.refuse("a list is sorted by what is known at run time only; use sorted(...)")
    owner[:] = found


def _extend(run: Context, owner: Any, values: Tensor) -> None:
    """``owner.extend(values)`` of an array."""
    if not values.ndim:
        run.tracer.refuse("list.extend: TypeError: a number is not iterable")
    if values.mask is not None or not isinstance(values.shape[0], int):
        decided_by_run(run, owner)
        run.tracer.refuse(
            "a list gets elements of an array of which the run decides the length; begin with an "
            "empty list in the program, or use np.concatenate"
        )
    owner.extend(run.unpacked(values, run.tracer.node))


_TAKING = {"pop", "popleft", "remove", "index"}


def _taken(run: Context, function: Any, arguments: Sequence[Any], keywords: Any) -> Any:
    """What is taken from a list in a branch or a loop: what it holds there the run may decide."""
    looks = function.__name__ in ("remove", "index")
    if looks and has_data((list(arguments), list(function.__self__))):
        decided_by_run(run, function.__self__)
    try:
        return function(*arguments, **keywords)
    except (IndexError, ValueError, KeyError, TypeError) as problem:
        decided_by_run(run, function.__self__)
        run.tracer.refuse(f"{name_of(function)}: {type(problem).__name__}: {problem}")


def _python(
    run: Context,
    function: types.FunctionType,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    wrapped = without_wrappers(function)
    try:
        bound = inspect.signature(wrapped, follow_wrapped=False).bind(*arguments, **keywords)
    except TypeError as problem:
        run.tracer.fail(TypeError(f"{function.__name__}(): {problem}"))
    bound.apply_defaults()
    return run.run_function(wrapped, dict(bound.arguments))


def _closure(
    run: Context, closure: Closure, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    own = closure.node.args
    names = [a.arg for a in (*own.posonlyargs, *own.args)]
    known = dict(closure.defaults)
    if len(arguments) > len(names) and not own.vararg:
        told = f"takes {len(names)} arguments, and {len(arguments)} are given"
        run.tracer.fail(TypeError(f"{closure.__name__}() {told}"))
    known.update(zip(names, arguments, strict=False))
    if own.vararg:
        known[own.vararg.arg] = tuple(arguments[len(names) :])
    allowed = {*names, *(a.arg for a in own.kwonlyargs)}
    extra = {k: v for k, v in keywords.items() if k not in allowed}
    if extra and not own.kwarg:
        told = f"got an unexpected keyword argument {next(iter(extra))!r}"
        run.tracer.fail(TypeError(f"{closure.__name__}() {told}"))
    if twice := keywords.keys() & {*names[: len(arguments)]}:
        told = f"got multiple values for argument {min(twice)!r}"
        run.tracer.fail(TypeError(f"{closure.__name__}() {told}"))
    if own.kwarg:
        known[own.kwarg.arg] = extra
    known.update({k: v for k, v in keywords.items() if k in allowed})
    missing = [n for n in allowed if n not in known]
    if missing:
        told = f"missing the required argument {missing[0]!r}"
        run.tracer.fail(TypeError(f"{closure.__name__}() {told}"))
    scopes = {name: value for scope in closure.scopes for name, value in scope.items()}
    around = without_locals(closure.node, {**closure.frame.variables, **scopes})
    frame = Frame(
        {**around, **known},
        closure.frame.file,
        closure.frame.first_line,
        closure.frame.source,
    )
    frame.around = closure.frame
    frame.receiver = arguments[0] if arguments else None
    return run.run_body(closure.node, frame)


def _method(
    run: Context, method: Method, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    tracer = run.tracer
    if isinstance(method.owner, np.ufunc):
        handler = run.functions.get(("ufunc", method.name))
        if handler is None:
            tracer.refuse(f"np.{method.owner.__name__}.{method.name} is not covered")
        arguments, keywords = _of_arrays(tracer, arguments, keywords)
        refuse_uncovered(tracer, f"{method.owner.__name__}.{method.name}", arguments)
        return handler(run, method.owner, *arguments, **keywords)
    handler = run.methods.get(method.name)
    if handler is None:
        tracer.refuse(f"the method {method.name!r} of an array is not covered")
    owner = method.owner
    refuse_uncovered(tracer, method.name, (owner, *arguments))
    if method.name not in METHODS_OF_CHOICES:
        owner = as_arrays(tracer, owner)
        arguments, keywords = _of_arrays(tracer, arguments, keywords)
    return handled(run, handler, method.name, [owner, *arguments], keywords)
