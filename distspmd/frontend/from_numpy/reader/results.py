"""What a program returns: its arrays are results, and the rest is the form that they come in."""

from __future__ import annotations

import pickle
from collections import deque, namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.real_or_complex import (
    RealOrComplex,
    complex_form,
    real_form,
)
from distspmd.frontend.from_numpy.arrays.run_types import TYPES, typed
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, number, view_of
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds import variables
from distspmd.frontend.from_numpy.library import is_of_library
from distspmd.frontend.from_numpy.lists.list_forms import Rows, element_of, leaves
from distspmd.frontend.from_numpy.lists.lists import columns_of
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.texts import Choice, Text, known_choice, message_parts
from distspmd.frontend.tensor_ir.statements import Container
from distspmd.runtime.calls.form import (
    Column,
    IteratorOf,
    KeptObject,
    ListOf,
    NamedTupleOf,
    ObjectOf,
    OneOf,
    Result,
    rebuilt,
)
from distspmd.runtime.calls.text_parts import TextOf


def returned_form(run: Context, returned: object) -> Any:
    """Make the arrays of what a function returns results; the form that it has else."""
    tracer: Tracer = run.tracer
    found: list[Any] = []
    if isinstance(returned, Generator):
        made: Any = IteratorOf(_form(tracer, run.call(list, [returned], {}), found))
    else:
        made = _form(tracer, returned, found)
    if not found and made is not None:  # a program has a result at least
        found.append(tracer.tensor(np.array(0)))
    plain = found and (
        made == Result(0) or (type(made) is tuple and made == tuple(map(Result, range(len(found)))))
    )
    single = isinstance(made, Result) and len(found) == 1
    for place, tensor in enumerate(found):
        _make_result(tracer, "__return" if single else f"__return_{place}", tensor)
    return None if plain or not found else made


def form_of(tracer: Tracer, value: object) -> tuple[Any, list[Any]]:
    """The form of a value, and the arrays that it is made of."""
    found: list[Any] = []
    return _form(tracer, value, found), found


def _form(tracer: Tracer, value: object, found: list[Any]) -> Any:
    """The form of a value, whose arrays are added to the results."""
    if isinstance(value, RunList | RealOrComplex):
        described: Any = _list if isinstance(value, RunList) else _either
        return described(tracer, value, found)
    if isinstance(value, tuple | list | deque):
        if isinstance(value, list) and all(map(_is_number, value)):
            return list(value)
        if isinstance(value, tuple) and not _is_importable(type(value)):
            return _named_tuple(tracer, value, found)
        return rebuilt(value, [_form(tracer, part, found) for part in value])
    if isinstance(value, dict):
        return {key: _form(tracer, part, found) for key, part in value.items()}
    if isinstance(value, variables.Undecided):
        return _choice(tracer, value, found)
    if isinstance(value, str | NoneType):
        return _as_said(tracer, value, found)
    if objects.is_own(value) and not is_of_library(type(value)):
        return _object(tracer, value, found)
    value = typed(value)
    made = _place(tracer, as_arrays(tracer, tracer.tensor(value)), found, _is_python(value))
    if isinstance(value, Tensor) and value.run_type is not None:
        found.append(tracer.stored_anew(value.run_type, "type"))
        return replace(made, types=TYPES, of_type=len(found) - 1)
    return made


def _as_said(tracer: Tracer, value: str | None, found: list[Any]) -> Any:
    """What is known, or one of several texts."""
    choice = known_choice(value)
    if choice is not None:
        return _text(tracer, choice, found)
    if isinstance(value, Text):
        return _text_with_values(tracer, value, found)
    return value


def _text(tracer: Tracer, choice: Choice, found: list[Any]) -> Any:
    """One of several texts, and the number that says which, among the results."""
    made: Any = choice.texts[-1]
    for place, text in reversed([*enumerate(choice.texts[:-1])]):
        is_this = choice.of_each([n == place for n in range(len(choice.texts))])
        found.append(tracer.stored_anew(is_this, "which"))
        made = OneOf(Result(len(found) - 1), (text, made))
    return made


def _text_with_values(tracer: Tracer, text: Text, found: list[Any]) -> TextOf:
    """Add the values in a text to the results."""
    containers: list[Container] = []
    parts = message_parts(tracer, text.parts, containers)
    places = range(len(found), len(found) + len(containers))
    found += map(view_of, containers)
    return TextOf(tuple(parts), tuple(map(Result, places)))


def _either(tracer: Tracer, value: RealOrComplex, found: list[Any]) -> OneOf:
    """Complex numbers where the run has found some, and else the real ones."""
    which = _form(tracer, value.is_complex, found)
    of_complex, of_real = (_form(tracer, f(value), found) for f in (complex_form, real_form))
    return OneOf(which, (of_complex, of_real))


def _choice(tracer: Tracer, value: variables.Undecided, found: list[Any]) -> Any:
    """Add both of two values, and the number that says which it is; or tell of an object."""
    if isinstance(value, variables.OfPython):
        found.append(tracer.tensor(np.array(0)))  # which tells who gets it
        return KeptObject(len(found) - 1, name=value.name)
    if not isinstance(value, variables.OneOf):
        tracer.refuse(value.reason)
    which = _form(tracer, value.which, found)
    one, other = (_form(tracer, part, found) for part in value.values)
    return OneOf(which, (one, other))


def _object(tracer: Tracer, value: object, found: list[Any]) -> ObjectOf:
    """Add the attributes of an object to the results."""
    kind = objects.class_of(value)
    if not _is_importable(kind):
        _refuse_class(tracer, kind, "its attributes")
    every = [id(each) for each in _objects_in(value, set())]
    if len({*every}) < len(every):
        tracer.refuse(
            f"a {kind.__name__} is returned that holds an object twice, or itself: the caller "
            "would get several. Return what it has of numbers and arrays"
        )
    parts = {}
    for name, part in vars(value).items():
        if callable(part) and not objects.is_own(part):
            tracer.refuse(
                f"a {kind.__name__} is returned, whose attribute {name!r} is a function; return "
                "what it has of numbers and arrays"
            )
        parts[name] = _form(tracer, part, found)
    return ObjectOf(kind, parts)


def _objects_in(value: object, around: set[int]) -> Iterator[Any]:
    """An object and all that it holds, each as often as it does; what holds itself comes twice."""
    if objects.is_own(value):
        yield value
    if id(value) in around:
        return
    own = vars(value) if objects.is_own(value) else value
    for part in _listed(own):
        yield from _objects_in(part, around | {id(value)})


def _listed(value: object) -> Sequence[Any]:
    if isinstance(value, dict):
        return tuple(value.values())
    return value if isinstance(value, list | tuple) else ()


def _named_tuple(tracer: Tracer, value: Any, found: list[Any]) -> NamedTupleOf:
    """Add the fields of a named tuple, whose class the program makes, to the results."""
    kind = type(value)
    plain = namedtuple(kind.__name__, kind._fields)  # type: ignore[misc]
    if set(vars(kind)) - {"__annotations__", "__orig_bases__"} != set(vars(plain)):
        _refuse_class(tracer, kind, "tuple(...)")
    return NamedTupleOf(
        kind.__name__, kind._fields, tuple(_form(tracer, part, found) for part in value)
    )


def _refuse_class(tracer: Tracer, kind: type, instead: str) -> NoReturn:
    tracer.refuse(
        f"a {kind.__name__} is returned, whose class a function makes: the ranks find classes "
        f"by their names. Make it in a module, or return {instead}"
    )


def _is_importable(kind: type) -> bool:
    """Whether other ranks find a class by its name."""
    try:
        pickle.dumps(kind)
    except (pickle.PicklingError, AttributeError):
        return False
    return True


def _is_python(value: object) -> bool:
    """Whether a value is a number of Python, and not one of NumPy."""
    if isinstance(value, Tensor):
        return value.ndim == 0 and value.weak is not None
    return isinstance(value, bool | int | float | complex | sympy.Basic) and not isinstance(
        value, np.generic
    )


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic)


def _list(tracer: Tracer, value: RunList, found: list[Any]) -> ListOf:
    """Add the elements of a list to the results."""
    if any(leaf.is_mixed and not leaf.is_typed for leaf in leaves(value.form)):
        tracer.refuse(
            "a list is returned that has numbers of several types, as [0, 0.5] has; write them "
            "all in one, 0.0 for 0 say, or return np.array(...)"
        )
    columns = [
        Column(
            _place(tracer, tracer.stored_anew(column, "elements"), found),
            leaf.weak is not None,
            leaf.texts,
        )
        for column, leaf in zip(columns_of(tracer, value), leaves(value.form), strict=True)
    ]
    return ListOf(element_of(value.form, list(columns), _rows, _of_types), value.kind)


def _of_types(values: Column, types: Column) -> Column:
    """A column of numbers of which the run decides the types."""
    return replace(values, kinds=types.values, types=TYPES)


def _rows(form: Rows, columns: list[Any]) -> ListOf:
    """Lists of one length as elements of a list."""
    return ListOf(element_of(form.element, columns, _rows, _of_types), list, form.length)


def _place(tracer: Tracer, value: Tensor, found: list[Any], is_python: bool = False) -> Result:
    """Add an array to the results; with its lengths, if data decide them."""
    place = len(found)
    found.append(value)
    lengths = []
    for d, n in enumerate(value.shape):
        if tracer.is_decided_by_data(n):
            lengths.append((d, len(found)))
            found.append(tracer.stored_anew(tracer.whole(n), "length"))
    if lengths:
        stored = tracer.stored_anew(tracer.unmerged(value), tracer.target)
        found[place] = view_of(stored.container)
    return Result(place, tuple(lengths), is_python)


def _make_result(tracer: Tracer, name: str, value: Tensor) -> None:
    """Let the elements of a tensor lie in a result."""
    if (
        isinstance(value, View)
        and value.is_whole
        and not value.container.is_argument
        and not value.container.name.startswith("__return")
    ):
        if not any(each is value.container for each in tracer.program.block.containers()):
            zero = number(0, value.dtype)  # of np.empty, say: nothing else would make it
            tracer.write(value, Tensor(value.shape, value.dtype, lambda _: zero))
        value.container.name = name
        value.container.is_argument = True
        return
    container = Container(name, value.shape, value.dtype, is_argument=True)
    tracer.write(view_of(container), tracer.unmerged(value))
