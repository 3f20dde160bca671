"""Arguments that are lists, tuples or dictionaries of arrays."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.values import View
from distspmd.runtime.call_form import Part, rebuilt


def form_of(value: Any) -> Any:
    """An argument with the name of the argument of the SDFG in the place of each array in it."""
    if isinstance(value, View):
        return Part(value.container.name)
    if isinstance(value, list | tuple):
        return rebuilt(value, [form_of(each) for each in value])
    return {k: form_of(v) for k, v in value.items()} if isinstance(value, dict) else value
