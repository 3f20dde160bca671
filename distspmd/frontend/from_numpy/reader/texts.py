"""Texts with values that are known at run time only, and texts that are one of several.

A text is made of strings, of values as an f-string formats them, and of choices: the run decides
by a number which of some texts is there. The ranks put it together when it is printed. Nothing
that needs the characters of a text is known before, but for those of a choice, whose texts are.
"""

from __future__ import annotations

import ast
import base64
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex
from distspmd.frontend.from_numpy.arrays.run_types import TYPES, typed
from distspmd.frontend.from_numpy.arrays.transcript import Refusal, told
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, number, whole_expression
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import UNBOUND, OneOf, Undecided
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.tensor_ir.statements import Container, Index

SAYING: tuple[Any, ...] = (print, str, repr)
"""Functions that write what they are given, also None."""
MOST_PRINTED = 1_000_000
"""So many elements has an array that is printed, at most: every rank gets it."""


@dataclass(frozen=True, eq=False)
class Part:
    """A value in a text, as an f-string formats it."""

    value: Any
    conversion: str = ""
    spec: str = ""


@dataclass(frozen=True, eq=False)
class Formatted:
    """A text by ``%`` or ``format`` with values in it."""

    text: str
    way: str
    values: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Changed:
    """A text with values that is formatted as a whole, or what a method of it gives."""

    parts: tuple[Any, ...]
    conversion: str = ""
    spec: str = ""
    method: str = ""
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Choice:
    """One of several texts.

    Attributes:
        which: its number.
        texts: strings, or texts with values.
    """

    which: Tensor
    texts: tuple[str, ...]

    @property
    def is_known(self) -> bool:
        """Whether all texts are known before the run."""
        return not any(isinstance(text, Text) for text in self.texts)

    def of_each(self, results: Sequence[Any]) -> Any:
        """What is one of several results, by the same number: a text, or a number of Python."""
        kinds = {type(each) for each in results}
        if all(isinstance(each, str) for each in results):
            return Text.of([Choice(self.which, tuple(results))])
        if len(kinds) != 1 or not kinds <= {bool, int, float}:
            not_known()
        (kind,) = kinds
        dtype = np.result_type(kind)

        def element(_: tuple[Index, ...]) -> Expression:
            return _by_number(self.which.element(()), [number(each, dtype) for each in results])

        return Tensor((), dtype, element, kind)


def _by_number(which: Expression, results: Sequence[Expression]) -> Expression:
    """The result that has a number."""
    found = results[0]
    for place, each in enumerate(results[1:], 1):
        if each != found:
            found = apply("where", apply("equal", which, number(place, INT64)), each, found)
    return found


class Text(str):
    """A text with values that are known at run time only; as a string it has their names."""

    parts: tuple[Any, ...]

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Text:
        """A text of strings and parts."""
        found = cls("".join(p if isinstance(p, str) else "{...}" for p in parts))
        found.parts = tuple(q for p in parts for q in (p.parts if isinstance(p, Text) else (p,)))
        return found

    def __add__(self, other: object) -> Text:
        return Text.of([self, other]) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: object) -> Text:
        return Text.of([other, self]) if isinstance(other, str) else NotImplemented


def has_text(value: object) -> bool:
    """Whether there is a text in a value of which the run decides what it says."""
    if isinstance(value, list | tuple | set):
        return any(map(has_text, value))
    if isinstance(value, dict):
        return any(map(has_text, value)) or any(map(has_text, value.values()))
    return isinstance(value, Text)


def not_known(*_: object, **__: object) -> NoReturn:
    """Refuse what needs to know what a text with values says."""
    refusal = Refusal(
        "what a text with values of the run says is not known before the run: it is printed, "
        "joined, returned, or the message of an error. What reads it is not covered"
    )
    refusal.is_of_python = True
    raise refusal


_ASKING = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "len", "getitem", "iter", "contains", "mod")
_SAYING = frozenset(
    [
        *("capitalize", "casefold", "center", "ljust", "lower", "lstrip", "removeprefix"),
        *("removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase", "title", "upper"),
        "zfill",
    ]
)
"""Methods whose results are texts again."""


def _method(name: str) -> Callable[..., Any]:
    """A method of texts, where the run decides which text it is."""

    def called(self: Text, *arguments: object) -> Any:
        choice = known_choice(self)
        if has_data(arguments) or (choice is None and name not in _SAYING):
            not_known()
        if choice is None:
            return Text.of([Changed(self.parts, method=name, arguments=arguments)])
        return choice.of_each([getattr(text, name)(*arguments) for text in choice.texts])

    called.__name__ = name
    return called


for _name in (n for n in dir(str) if not n.startswith("__")):
    setattr(Text, _name, _method(_name))
for _name in _ASKING:
    setattr(Text, f"__{_name}__", not_known)


def method(text: Text, name: str, arguments: Sequence[Any], **named: object) -> Any:
    """What a method of a text gives."""
    return getattr(text, name)(*arguments, **named)


def of_each(text: object, ask: Callable[[str], Any]) -> Any:
    """What is asked of a text that is one of several.

    Raises:
        Refusal: it has other letters.
    """
    choice = known_choice(text)
    return not_known() if choice is None else choice.of_each([ask(t) for t in choice.texts])


# -- making texts ---------------------------------------------------------------------------------


def has_data(value: object) -> bool:
    """Whether a value, or one in it, is known at run time only."""
    if isinstance(value, list | tuple):
        return any(map(has_data, value))
    if isinstance(value, dict):
        return any(map(has_data, value.values()))
    kinds = Tensor | sympy.Basic | Text | OneOf | RunList
    return isinstance(value, kinds)


def described(value: object, conversion: str = "", spec: str = "") -> list[Any]:
    """The parts of a value: lists, tuples and dictionaries are written as Python writes them."""
    if isinstance(value, Text):
        if not conversion and not spec:
            return list(value.parts)
        return [Changed(value.parts, conversion, spec)]
    if isinstance(value, OneOf):
        return [_one_of(value, conversion, spec)]
    if isinstance(value, Tensor | sympy.Basic | RunList):
        return [Part(value, conversion, spec)]
    if isinstance(value, list | tuple) and has_data(value):
        found: list[Any] = ["[" if isinstance(value, list) else "("]
        for place, each in enumerate(value):
            found += [", "] if place else []
            found += described(each, "r")
        single = isinstance(value, tuple) and len(value) == 1
        return [*found, "]" if isinstance(value, list) else ",)" if single else ")"]
    if isinstance(value, dict) and has_data(value):
        found = ["{"]
        for place, (key, each) in enumerate(value.items()):
            found += [", "] if place else []
            found += [f"{key!r}: ", *described(each, "r")]
        return [*found, "}"]
    if conversion:
        value = f"{value!r}" if conversion == "r" else str(value)
    return [format(value, spec)]


def can_be_said(value: object) -> bool:
    """Whether a value is one of two that can be written, which the run decides."""
    if not isinstance(value, OneOf):
        return False
    return not any(
        each is UNBOUND or (isinstance(each, Undecided) and not can_be_said(each))
        for each in value.values
    )


def _one_of(value: OneOf, conversion: str, spec: str) -> Choice:
    """What is written of one of two values."""
    every = [joined(described(each, conversion, spec)) for each in reversed(value.values)]
    which = whole_expression(value.which)
    return Choice(Tensor((), INT64, lambda _: which), tuple(every))


def by_percent(text: str, values: object) -> Text:
    """``text % values``."""
    return Text.of([Formatted(text, "%", values if isinstance(values, tuple) else (values,))])


def by_format(text: str, values: Sequence[Any], named: Mapping[str, Any]) -> str:
    """``text.format(*values, **named)``."""
    if not has_data((list(values), dict(named))):
        return text.format(*values, **named)
    return Text.of([Formatted(text, "format", tuple(values), tuple(named.items()))])


def by_join(separator: str, texts: Sequence[Any]) -> Any:
    """``separator.join(texts)``."""
    parts = [part for text in texts for part in (separator, text)][1:]
    return Text.of(parts) if any(isinstance(t, Text) for t in texts) else separator.join(texts)


def repeated(text: str, count: object) -> Text:
    """``text * count``, for a number of the run."""
    parts = text.parts if isinstance(text, Text) else (text,)
    return Text.of([Changed(parts, method="__mul__", arguments=(count,))])


def joined(parts: Sequence[Any]) -> str:
    """Parts as a string, or as a :class:`Text` where there are values."""
    if all(isinstance(part, str) and not isinstance(part, Text) for part in parts):
        return "".join(parts)
    return Text.of(parts)


# -- one of several texts -------------------------------------------------------------------------


def known_choice(text: object) -> Choice | None:
    """The choice that a text is, of texts that are known; None for other texts."""
    if isinstance(text, Text) and len(text.parts) == 1 and isinstance(text.parts[0], Choice):
        return text.parts[0] if text.parts[0].is_known else None
    return None


def texts_of(text: str) -> tuple[str, ...] | None:
    """What a text may be; None where that is not known."""
    choice = known_choice(text)
    if choice is not None:
        return choice.texts
    return None if isinstance(text, Text) else (text,)


def one_at(texts: Sequence[str], which: Tensor) -> Text:
    """The text that has a number of the run."""
    every = tuple(dict.fromkeys(texts))
    return Text.of([Choice(renumbered(which, [every.index(t) for t in texts]), every)])


def renumbered(which: Tensor, numbers: Sequence[int]) -> Tensor:
    """The numbers that texts have elsewhere."""
    if list(numbers) == [*range(len(numbers))]:
        return which

    def element(_: tuple[Index, ...]) -> Expression:
        return _by_number(which.element(()), [number(n, INT64) for n in numbers])

    return Tensor((), INT64, element)


def number_in(text: str, texts: Sequence[str]) -> Tensor:
    """The number that a text has among some; -1 where it is none of them."""
    numbers = {t: n for n, t in enumerate(texts)}
    choice = known_choice(text)
    if choice is not None:
        return renumbered(choice.which, [numbers.get(t, -1) for t in choice.texts])
    known = number(numbers.get(text, -1), INT64)
    return Tensor((), INT64, lambda _: known)


def are_equal(one: str, other: str) -> Any:
    """``one == other``, of which one is a text with values."""
    known = [texts_of(text) for text in (one, other)]
    if known[0] is None or known[1] is None:
        not_known()
    if not {*known[0]} & {*known[1]}:
        return False
    every = [*dict.fromkeys((*known[0], *known[1]))]
    first, second = (number_in(text, every) for text in (one, other))

    def element(_: tuple[Index, ...]) -> Expression:
        return apply("equal", first.element(()), second.element(()))

    return Tensor((), np.dtype(bool), element, bool)


def kept_text(text: str, keep: Callable[[Any], Any]) -> str:
    """A text whose values are kept as they are now."""
    if not isinstance(text, Text):
        return text

    def part(each: object) -> Any:
        if isinstance(each, Part):
            return Part(keep(each.value), each.conversion, each.spec)
        if isinstance(each, Formatted):
            named = tuple((key, whole(value)) for key, value in each.named)
            return Formatted(each.text, each.way, tuple(map(whole, each.values)), named)
        if isinstance(each, Changed):
            parts, given = tuple(map(part, each.parts)), tuple(map(whole, each.arguments))
            return Changed(parts, each.conversion, each.spec, each.method, given)
        if isinstance(each, Choice):
            return Choice(keep(each.which), tuple(kept_text(t, keep) for t in each.texts))
        return each

    def whole(value: object) -> Any:
        return kept_text(value, keep) if isinstance(value, str) else keep(value)

    return Text.of([part(each) for each in text.parts])


def values_in(text: str) -> list[Any]:
    """The values that a text has, also within others."""
    found: list[Any] = []

    def seen(value: object) -> Any:
        found.append(value)
        return value

    kept_text(text, seen)
    return found


def kept_now(run: Context, text: str) -> str:
    """A text that what is written later to its arrays does not change."""
    tracer = run.tracer
    if tracer.map.straight is not None or tracer.map.parallel or _is_said_at_once(tracer):
        return text

    def keep(value: object) -> Any:
        return tracer.stored_anew(value, "said") if isinstance(value, Tensor) else value

    return kept_text(text, keep)


def _is_said_at_once(tracer: Any) -> bool:
    """Whether the statement prints, and calls nothing that might change an array before."""
    statement = tracer.frames[-1].statement if tracer.frames else None
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = [n.func for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return all(isinstance(f, ast.Name) and f.id == "print" for f in called)


# -- what the ranks are told ----------------------------------------------------------------------


def message_parts(tracer: object, parts: Sequence[Any], containers: list[Container]) -> list[Any]:
    """Parts as messages and results have them, and the containers of their values."""
    written: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            if written and isinstance(written[-1], str):
                written[-1] += part
            elif part:
                written.append(part)
        else:
            written.append(_message_part(tracer, part, containers))
    return written


def _message_part(tracer: Any, part: Any, containers: list[Container]) -> dict[str, Any]:
    def own(value: object) -> Any:
        if isinstance(value, Text):
            return {"parts": message_parts(tracer, value.parts, containers)}
        if not isinstance(value, Tensor | sympy.Basic | RunList):
            return value if isinstance(value, str | int | float) else str(value)
        return _value(tracer, Part(value), containers)

    if isinstance(part, Part):
        return _value(tracer, part, containers)
    if isinstance(part, Formatted):
        found = {"format": part.text, "way": part.way, "values": [*map(own, part.values)]}
        return {**found, "named": {k: own(v) for k, v in part.named}}
    if isinstance(part, Choice):
        every = (text.parts if isinstance(text, Text) else (text,) for text in part.texts)
        which = _value(tracer, Part(part.which), containers)
        return {"which": which, "texts": [message_parts(tracer, p, containers) for p in every]}
    found = {"parts": message_parts(tracer, part.parts, containers)}
    if part.method:
        found |= {"method": part.method, "arguments": [*map(own, part.arguments)]}
    return _as_formatted(found, part)


def _as_formatted(found: dict[str, Any], part: Any) -> dict[str, Any]:
    if part.conversion:
        found["conversion"] = part.conversion
    if part.spec:
        found["spec"] = part.spec
    return found


def _value(tracer: Any, part: Part, containers: list[Container]) -> dict[str, Any]:
    if isinstance(part.value, RunList | RealOrComplex):
        return _as_formatted(_whole(tracer, part.value, containers), part)
    tensor = tracer.tensor(as_arrays(tracer, typed(part.value)))
    count = math.prod(n for n in tensor.shape if isinstance(n, int))
    if count > MOST_PRINTED:
        tracer.refuse(
            f"{told(tensor)} is printed, which has more than {MOST_PRINTED} elements; print a part "
            "of it, or return it"
        )
    stored = tensor if isinstance(tensor, View) and tensor.is_whole else None
    if stored is None:
        stored = tracer.stored_anew(tensor, "told")
    containers.append(stored.container)
    found: dict[str, Any] = {"value": len(containers) - 1, "dtype": tensor.dtype.str}
    found |= {"ndim": tensor.ndim, "weak": tensor.weak is not None}
    if tensor.run_type is not None:
        found |= {"types": TYPES, "of_type": _value(tracer, Part(tensor.run_type), containers)}
    if not all(isinstance(n, int) for n in tensor.shape):
        found["lengths"] = [_length(tracer, n, containers) for n in tensor.shape]
    return _as_formatted(found, part)


def _whole(tracer: Any, value: Any, containers: list[Container]) -> dict[str, Any]:
    """A list, or what is real or complex, in the form in which it would be returned."""
    form, found = tracer.hooks.form_of(tracer, value)
    values = [{**_value(tracer, Part(each), containers), "weak": False} for each in found]
    return {"form": base64.b64encode(pickle.dumps(form)).decode(), "values": values}


def _length(tracer: object, length: object, containers: list[Container]) -> Any:
    return length if isinstance(length, int) else _value(tracer, Part(length), containers)
