"""Calls of host functions in programs that DaCe's parser reads: those that ask for gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dace import SDFG
from dace.frontend.python.common import SDFGConvertible
from dace.frontend.python.parser import DaceProgram

from distspmd.runtime.host.host_functions import HostFunction

Reader = Callable[..., SDFG]
"""Makes an SDFG of a function and examples of its arguments, as ``read_program`` does."""


def take_host_functions(program: DaceProgram, read: Reader) -> None:
    """Let a program call the host functions that it names, each as an SDFG of its call."""
    for name, value in program.global_vars.items():
        if isinstance(value, HostFunction):
            program.global_vars[name] = _Convertible(value, read)


class _Convertible(SDFGConvertible):
    """A host function as DaCe's parser takes it."""

    def __init__(self, function: HostFunction, read: Reader) -> None:
        self.function, self.read = function, read
        self.names = list(inspect.signature(function).parameters)

    def __sdfg__(self, *arguments: object, **named: object) -> SDFG:
        """The call for arguments of some types."""
        sdfg = self.read(self.function, "numpy", arguments, named)
        sdfg.name = self.function.name.rpartition(".")[2]
        for node, _ in sdfg.all_nodes_recursive():
            if hasattr(node, "debuginfo"):
                node.debuginfo = None  # the line is that of the call
        return sdfg

    def __sdfg_closure__(self, reevaluate: object = None) -> dict[str, Any]:
        """No arrays from around it."""
        return {}

    def __sdfg_signature__(self) -> tuple[Sequence[str], Sequence[str]]:
        """Its arguments."""
        return self.names, []
