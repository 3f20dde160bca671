"""``logging``: what its settings leave out when a program is read is no part of the program."""

from __future__ import annotations

import ast
import logging
import sys
from typing import Any

from distspmd.frontend.from_numpy.arrays.checks import add_print
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function


def _write(run: Context, logger: logging.Logger, level: str, message: Any, values: Any) -> None:
    """Let rank 0 write a message to the standard error, as ``logging`` does without handlers."""
    if logger.isEnabledFor(getattr(logging, level)):
        told = run.binary(ast.Mod(), message, values) if values else message
        add_print(run, [f"{level}:{logger.name}:", told], {"sep": "", "file": sys.stderr})


def _of_root(level: str) -> Any:
    def call(run: Context, msg: Any, *args: Any, **_: Any) -> None:
        _write(run, logging.getLogger(), level, msg, args)

    return call


def _of_logger(level: str) -> Any:
    def call(run: Context, self: logging.Logger, msg: Any, *args: Any, **_: Any) -> None:
        _write(run, self, level, msg, args)

    return call


for _level in ("debug", "info", "warning", "error", "critical"):
    function(getattr(logging, _level))(_of_root(_level.upper()))
    function(getattr(logging.Logger, _level))(_of_logger(_level.upper()))
