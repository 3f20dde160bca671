"""``print`` and texts with values that are known at run time only."""

from __future__ import annotations

import builtins
from typing import Any

from distspmd.frontend.from_numpy.checks import Text, add_print, described, has_data
from distspmd.frontend.from_numpy.functions.registry import function


@function(builtins.print)
def _print(run: Any, *values: Any, **options: Any) -> None:
    add_print(run, values, dict(options))


@function(builtins.str)
def _str(run: Any, value: Any = "", *more: Any) -> Any:
    return Text.of(described(value)) if has_data(value) else str(value, *more)


@function(builtins.repr)
def _repr(run: Any, value: Any) -> Any:
    return Text.of(described(value, "r")) if has_data(value) else repr(value)


@function(builtins.format)
def _format(run: Any, value: Any, spec: str = "") -> Any:
    return Text.of(described(value, "", spec)) if has_data(value) else format(value, spec)
