"""How a program is called: in which form the caller passes arguments, and gets results."""

from __future__ import annotations

import inspect
from collections import deque, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from distspmd.errors import ArgumentError, ProgramError
from distspmd.runtime.calls.missing_result import MissingResult
from distspmd.runtime.calls.portable import portable

_CALL_FORM = "_distspmd_call_form"
"""Name under which an SDFG carries its form."""


@dataclass(frozen=True)
class Result:
    """The place of an array among the results, in what a function returns.

    Attributes:
        number: the place.
        lengths: dimensions of which data decide how many elements there are, each with the place
            of the result that says so; the caller gets so many.
        is_python: whether it is a number of Python, and not one of NumPy.
        types: between which the run decides: their names, each with whether it is Python's.
        of_type: the place of the result that says which of these it has.
    """

    number: int
    lengths: tuple[tuple[int, int], ...] = ()
    is_python: bool = False
    types: tuple[tuple[str, bool], ...] = ()
    of_type: int | None = None

    def of(self, results: Sequence[Any]) -> Any:
        """The array among some results, or what stands for it on this rank."""
        found = results[self.number]
        if isinstance(found, MissingResult):
            return found
        for dimension, place in self.lengths:
            found = _first(found, dimension, int(on_host(results[place])))
        is_python = self.is_python
        if self.of_type is not None:
            name, is_python = self.types[int(on_host(results[self.of_type]))]
            found = of_type(on_host(found), name)
        return found.item() if is_python else found


@dataclass(frozen=True)
class KeptObject(Result):
    """An object of Python in what a function returns.

    Rank 0 keeps it while the program runs. It is returned to the ranks that get the result in the
    place, a number that is not looked at.

    Attributes:
        name: by which it is kept.
    """

    name: str = ""


def on_host(value: Any) -> Any:
    """A result as NumPy has it: one in the memory of a device is copied."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return value
    value = value.cpu() if hasattr(value, "cpu") else value  # of PyTorch
    for copied in ("numpy", "get", "copy_to_host"):  # of ours too, of CuPy, and of Numba
        if hasattr(value, copied):
            return getattr(value, copied)()
    return np.asarray(value)


def _first(array: Any, dimension: int, length: int) -> Any:
    """The first elements of an array along a dimension, with memory of their own."""
    found = array[(slice(None),) * dimension + (slice(length),)]
    return found.clone() if hasattr(found, "clone") else found.copy()  # of PyTorch


def of_type(value: Any, name: str) -> Any:
    """A number in the type that it has in Python; none that may have been rounded is whole."""
    found, kind = np.asarray(value), np.dtype(name)
    is_whole = kind.kind in "iu" and found.dtype.kind in "fc"
    if is_whole and abs(found) >= 2 ** (np.finfo(found.dtype).nmant + 1):
        what = f"the whole number {found} is kept as {found.dtype}, and may be rounded"
        raise ProgramError(f"{what}: it may be one with a point; return float(...)")
    return (found if kind.kind == "c" else found.real).astype(kind)[()]


@dataclass(frozen=True)
class OneOf:
    """One of two forms, by a number among the results: the first where it is not 0."""

    which: Result
    forms: tuple[Any, Any]


@dataclass(frozen=True)
class Column:
    """An array among the results, of which a list has a number, or a row, in each element.

    Attributes:
        values: the array.
        is_python: whether its numbers are numbers of Python.
        texts: of which the numbers say which one an element is; none of numbers.
        kinds: of which type its numbers are, by their places in ``types``.
        types: between which the run decides, as those of a :class:`Result`.
    """

    values: Result
    is_python: bool
    texts: tuple[str, ...] = ()
    kinds: Result | None = None
    types: tuple[tuple[str, bool], ...] = ()

    def in_types(self, values: Any, kinds: Any) -> list[Any]:
        """Numbers in the types that the run has decided."""
        found = []
        for value, kind in zip(on_host(values), on_host(kinds).tolist(), strict=True):
            name, is_python = self.types[kind]
            own = of_type(value, name)
            found.append(own.item() if is_python else own)
        return found


class Made:
    """What is made of results, which says itself how."""

    def fill(self, array: Callable[[Result], Any]) -> Any:
        """What it is, with something in the place of its results."""
        raise NotImplementedError


@dataclass(frozen=True)
class ListOf(Made):
    """A list of as many elements as the run decides.

    Attributes:
        element: a column, or a tuple or list of columns.
        kind: the type of Python that it is.
        length: of each of the lists of one length that the elements of another list are.
    """

    element: Any
    kind: type
    length: int = 0

    def fill(self, array: Callable[[Result], Any]) -> Any:
        """The list, of its columns; what stands for one that is not there."""
        found = _rows(self.element, array)
        return self.kind(found) if isinstance(found, list) else found


def _rows(element: Any, array: Callable[[Result], Any]) -> Any:
    """The elements of a list, of their columns."""
    if isinstance(element, Column):
        values = array(element.values)
        if isinstance(values, MissingResult):
            return values
        if element.kinds is not None:
            return element.in_types(values, array(element.kinds))
        if element.is_python or len(values.shape) == 1:  # numbers
            values = on_host(values)
        if element.texts:
            return np.array(element.texts, dtype=object)[np.asarray(values)].tolist()
        return values.tolist() if element.is_python else [values[n] for n in range(values.shape[0])]
    if isinstance(element, ListOf):
        n = element.length
        flat = _rows(element.element, lambda result: _flat(array(result)))
        if isinstance(flat, MissingResult):
            return flat
        return [flat[k : k + n] for k in range(0, len(flat), n)]
    parts = [_rows(part, array) for part in element]
    if any(isinstance(part, MissingResult) for part in parts):
        return next(part for part in parts if isinstance(part, MissingResult))
    kind = tuple if isinstance(element, tuple) else list
    return [kind(row) for row in zip(*parts, strict=True)]


def _flat(values: Any) -> Any:
    """An array whose first dimension is its first two."""
    return values if isinstance(values, MissingResult) else values.reshape(-1, *values.shape[2:])


@dataclass(frozen=True)
class ObjectOf(Made):
    """An object of a class of the user.

    Attributes:
        kind: the class.
        parts: its attributes by name, as results.
    """

    kind: type
    parts: Mapping[str, Any]

    def fill(self, array: Callable[[Result], Any]) -> Any:
        """The object, with something in the place of its results."""
        made: Any = object.__new__(self.kind)
        for name, part in self.parts.items():
            object.__setattr__(made, name, fill(part, array))
        return made


@dataclass(frozen=True)
class NamedTupleOf(Made):
    """A named tuple of a class that the program makes, as each call of the function would.

    Attributes:
        name: of the class.
        names: of its fields.
        parts: their values, as results.
    """

    name: str
    names: tuple[str, ...]
    parts: tuple[Any, ...]

    def fill(self, array: Callable[[Result], Any]) -> Any:
        """The tuple, with something in the place of its results."""
        return namedtuple(self.name, self.names)(*(fill(part, array) for part in self.parts))


@dataclass(frozen=True)
class IteratorOf(Made):
    """An iterator over what a generator has given.

    Attributes:
        values: the list of it, as results.
    """

    values: Any

    def fill(self, array: Callable[[Result], Any]) -> Any:
        """The iterator, with something in the place of the results."""
        found = fill(self.values, array)
        return found if isinstance(found, MissingResult) else iter(found)


@dataclass(frozen=True)
class Part:
    """An array of a list, tuple or dictionary that is an argument.

    Attributes:
        name: of the argument of the SDFG that it is.
    """

    name: str


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def given_of(signature: inspect.Signature, bound: Mapping[str, Any]) -> dict[str, Any]:
    """What is bound to parameters of a function; of ``*`` and ``**`` only where there is some."""
    own = signature.parameters
    return {n: v for n, v in bound.items() if n in own and (own[n].kind not in _SEVERAL or v)}


def bound_by_name(
    signature: inspect.Signature,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    *,
    partial: bool = True,
) -> inspect.BoundArguments:
    """Arguments of a function by its parameters; of ``*`` and ``**`` all together, by their name.

    Raises:
        TypeError: the function takes others.
    """
    rest = [p.name for p in signature.parameters.values() if p.kind in _SEVERAL]
    own = {name: named[name] for name in rest if name in named}
    bind = signature.bind_partial if partial else signature.bind
    found = bind(*arguments, **{name: v for name, v in named.items() if name not in own})
    found.arguments.update(own)
    return found


def rest_of(signature: inspect.Signature) -> str:
    """The parameter that takes all positional arguments from its place on; none is empty."""
    several = inspect.Parameter.VAR_POSITIONAL
    return next((p.name for p in signature.parameters.values() if p.kind is several), "")


@dataclass(frozen=True)
class CallForm:
    """How a program is called.

    Attributes:
        scalars: names of arguments and results that are numbers to the caller.
        returned: what the function returns: tuples, lists, dictionaries and objects, with a
            :class:`Result` for each array, and :class:`OneOf` where the run decides; None for an
            array, or a tuple of arrays.
        fixed: values that the program was made for: numbers that decide shapes, switches.
        parameters: names of all arguments in their order, those of fixed values included; none
            where they are those of the SDFG.
        inside: what arguments are called in the SDFG whose own names are words of C++.
        parts: arguments that are lists, tuples or dictionaries of arrays, with a :class:`Part` for
            each array.
        points: names of arguments that are arrays of no dimensions, into which a program writes.
        shapes: of arguments and results of which the program folds dimensions: those that the
            caller knows.
        rest: the parameter that takes all positional arguments from its place on.
    """

    scalars: frozenset[str] = frozenset()
    returned: Any = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    inside: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)
    points: frozenset[str] = frozenset()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rest: str = ""

    def __deepcopy__(self, memo: Any) -> CallForm:
        return self  # of objects for which a program was made it is the identity that counts

    def __getstate__(self) -> dict[str, Any]:
        sent = {"fixed": portable(self.fixed), "returned": portable(self.returned)}
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        return {**own, **sent}

    @property
    def has_other_names(self) -> bool:
        """Whether arguments of the SDFG have other names than those of the function."""
        return bool(self.inside or self.parts)

    def together(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Positional arguments, those that one parameter takes together as one."""
        if not self.rest:
            return arguments
        place = self.parameters.index(self.rest)
        rest = tuple(arguments[place:])
        return (*arguments[:place], rest) if rest else arguments

    def as_inside(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """What is given by the names of arguments, by their names in the SDFG.

        Raises:
            ArgumentError: an argument that is a list, tuple or dictionary has other parts.
        """
        found: dict[str, Any] = {}
        for name, value in named.items():
            if name in self.parts:
                found.update(_parts_of(name, self.parts[name], value))
            else:
                found[self.inside.get(name, name)] = value
        return found

    def arrange(
        self,
        results: Sequence[Any],
        handed: Callable[[Any], Any] = lambda x: x,
        objects: Callable[[str], Any] | None = None,
    ) -> Any:
        """What the caller gets for the results, each of which is handed to the caller so.

        Args:
            results: arrays, and what stands for those that are elsewhere.
            handed: what the caller gets for one of them.
            objects: an object of Python by its name.
        """

        def array(result: Result) -> Any:
            found = result.of(results)
            if isinstance(found, MissingResult):
                return found
            if isinstance(result, KeptObject):
                assert objects is not None
                return objects(result.name)
            return handed(found)

        return fill(self.returned, array)

    @cached_property
    def objects(self) -> tuple[KeptObject, ...]:
        """The objects of Python that a program may return."""
        found: list[Result] = []

        def noted(result: Result) -> Any:
            found.append(result)
            return MissingResult("", 0)

        fill(self.returned, noted)
        return tuple(each for each in found if isinstance(each, KeptObject))


def _parts_of(name: str, form: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of an argument by their names in the SDFG; a text is said of all of them."""
    if isinstance(form, Part):
        yield form.name, value
        return
    items = _items(form)
    if items is None:
        if not isinstance(value, str) and not (type(value) is type(form) and value == form):
            raise ArgumentError(
                f"the program was made for {name} = {form!r}, which decides its code, but "
                f"{value!r} was given. Make it again for that value."
            )
        return
    given = dict.fromkeys(items, value) if isinstance(value, str) else _items(value)
    if given is None or given.keys() != items.keys():
        told = "none" if given is None else ", ".join(map(repr, given)) or "none"
        raise ArgumentError(
            f"the argument {name!r} has the entries {', '.join(map(repr, items))} in the program, "
            f"but what was given has {told}. Pass as many arrays, or make the program again."
        )
    for key, part in items.items():
        yield from _parts_of(f"{name}[{key!r}]", part, given[key])


def contains_arrays(value: Any) -> bool:
    """Whether a value is an array or a number of NumPy, or a list or the like that has some."""
    if isinstance(value, MissingResult):
        return False
    if isinstance(value, list | tuple | dict):
        return any(map(contains_arrays, value.values() if isinstance(value, dict) else value))
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _items(value: Any) -> dict[Any, Any] | None:
    """The entries of a list, tuple or dictionary by their keys; None of anything else."""
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None


def rebuilt(like: Any, parts: Sequence[Any]) -> Any:
    """A tuple, named tuple, list or deque like another one, of other parts."""
    if isinstance(like, deque):
        return deque(parts, like.maxlen)
    return getattr(like, "_make", type(like))(parts)


def fill(form: Any, array: Callable[[Result], Any]) -> Any:
    """A form with something in the place of its results."""
    if isinstance(form, Result):
        return array(form)
    if isinstance(form, Made):
        return form.fill(array)
    if isinstance(form, OneOf):
        which = array(form.which)
        if isinstance(which, MissingResult):
            return _one_of_elsewhere(which, [fill(each, array) for each in form.forms])
        return fill(form.forms[0 if on_host(which) else 1], array)
    if isinstance(form, tuple | list | deque):
        return rebuilt(form, [fill(part, array) for part in form])
    if isinstance(form, dict):
        return {key: fill(part, array) for key, part in form.items()}
    return form


def _one_of_elsewhere(which: MissingResult, found: Sequence[Any]) -> Any:
    """One of two forms, between which another rank decides: arrays of either are not lost.

    Two tuples of one length can be unpacked as either of them.
    """
    here = [each for each in found if not isinstance(each, MissingResult) and contains_arrays(each)]
    alike = all(isinstance(each, tuple) and len(each) == len(found[0]) for each in found)
    return here[0] if here else found[0] if alike else which


def set_call_form(sdfg: Any, form: CallForm) -> None:
    """Say how the caller passes arguments and gets results."""
    setattr(sdfg, _CALL_FORM, form)


def call_form_of(sdfg: Any) -> CallForm:
    """How a program is called: as it was said, and as its scalars say."""
    form: CallForm = getattr(sdfg, _CALL_FORM, CallForm())
    own = frozenset(n for n, c in sdfg.arrays.items() if type(c).__name__ == "Scalar")
    return replace(form, scalars=form.scalars | own)
