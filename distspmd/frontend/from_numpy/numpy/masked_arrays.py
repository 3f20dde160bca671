"""``np.ma``: masked arrays are objects of the program, also where all is known before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import masked
from distspmd.frontend.from_numpy.numpy.registry import named


def _read_as(python: Callable[..., Any], *names: str) -> None:
    def handler(run: Context, *given: Any, **options: Any) -> Any:
        return run.call(python, list(given), options)

    named("numpy.ma", *(names or (python.__name__,)), always=True)(handler)


_read_as(masked.masked_array, "MaskedArray", "array")
for _each in (
    *(masked.masked_where, masked.masked_invalid, masked.masked_equal, masked.masked_not_equal),
    *(masked.masked_greater, masked.masked_greater_equal, masked.masked_less),
    *(masked.masked_less_equal, masked.masked_inside, masked.masked_outside),
    *(masked.getmaskarray, masked.getdata, masked.filled),
):
    _read_as(_each)


def _method(name: str) -> None:
    """A function that is a method of masked arrays, too."""

    @named("numpy.ma", name, always=True)
    def handler(run: Context, a: Any, *given: Any, **options: Any) -> Any:
        if not isinstance(a, masked.Masked):
            a = run.call(masked.masked_array, [a], {})
        return run.call(getattr(masked.Masked, name), [a, *given], options)


for _name in ("sum", "prod", "mean", "var", "std", "max", "min", "count", "compressed", "copy"):
    _method(_name)
