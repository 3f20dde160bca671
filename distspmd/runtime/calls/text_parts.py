"""Texts with values of a run: how their parts are put together, for messages and for results.

``parts`` are strings, and dictionaries: values with ``value`` (a number), ``dtype``, ``ndim``,
``lengths`` of those whose length the run decides, ``types`` and ``of_type`` of those whose type it
decides, whether it is a number of Python (``weak``), ``conversion`` and ``spec`` as in an f-string;
or a text to ``format`` by ``%`` or by its method; or a
``form`` of results with their ``values``, for lists; or one of some ``texts``, and ``which``; or
``parts`` that are formatted
together, or given to a ``method``.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.runtime.calls.form import Made, Result, fill, of_type, on_host
from distspmd.runtime.calls.missing_result import MissingResult


class TextReader:
    """Puts a text together.

    Args:
        array: the elements of a value, as long as the program keeps it, by its part.
    """

    def __init__(self, array: Callable[[dict[str, Any]], Any]) -> None:
        self._array = array

    def text(self, parts: Sequence[Any]) -> str:
        """The text that parts make."""
        return "".join(map(self._part, parts))

    def _part(self, part: Any) -> str:
        if isinstance(part, str):
            return part
        if "format" in part:
            given = tuple(map(self._given, part["values"]))
            named = {k: self._given(v) for k, v in part["named"].items()}
            text: str = part["format"]
            return text % given if part["way"] == "%" else text.format(*given, **named)
        if "texts" in part:
            return self.text(part["texts"][self._value(part["which"])])
        if "parts" in part:
            found: Any = self.text(part["parts"])
            if "method" in part:
                found = getattr(found, part["method"])(*map(self._given, part["arguments"]))
            return _formatted(found, part)
        return _formatted(self._value(part), part)

    def _given(self, value: Any) -> Any:
        """What a format or a method is given."""
        if not isinstance(value, dict):
            return value
        return self._part(value) if "parts" in value else self._value(value)

    def _value(self, part: Any) -> Any:
        if "form" in part:
            results = [self._value(each) for each in part["values"]]
            form = pickle.loads(base64.b64decode(part["form"]))
            return fill(form, lambda result: result.of(results))
        array = self._array(part)
        for d, length in enumerate(part.get("lengths", ())):
            count = self._value(length) if isinstance(length, dict) else length
            array = array[(slice(None),) * d + (slice(count),)]
        value: Any = array if array.ndim else array[()]
        is_python = part.get("weak")
        if "of_type" in part:
            name, is_python = part["types"][self._value(part["of_type"])]
            value = of_type(value, name)
        return value.item() if is_python else value


def _formatted(value: Any, part: dict[str, Any]) -> str:
    conversion = part.get("conversion")
    if conversion:
        value = repr(value) if conversion == "r" else str(value)
    return format(value, part.get("spec", ""))


@dataclass(frozen=True)
class TextOf(Made):
    """A text with values of the run, which a function returns.

    Attributes:
        parts: of it; the number of a value is its place among these.
        values: the arrays that the parts name.
    """

    parts: tuple[Any, ...]
    values: tuple[Result, ...]

    def fill(self, array: Callable[[Result], Any]) -> Any:
        """The text; what stands for a value of it that is not here."""
        found = [array(value) for value in self.values]
        missing = [value for value in found if isinstance(value, MissingResult)]
        if missing:
            return missing[0]
        return TextReader(lambda part: np.asarray(on_host(found[part["value"]]))).text(self.parts)
