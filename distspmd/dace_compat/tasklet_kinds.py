"""Tasklets of our own classes: DaCe's code generators look for methods by names of classes."""

from __future__ import annotations

from typing import TypeVar

from dace.codegen.targets.cpu import CPUCodeGen
from dace.codegen.targets.cuda import CUDACodeGen
from dace.sdfg import nodes

_Kind = TypeVar("_Kind", bound=type[nodes.Tasklet])


def generated_as_tasklet(kind: _Kind) -> _Kind:
    """Let DaCe generate the code of a subclass of tasklets as of tasklets; a decorator."""
    for target in (CPUCodeGen, CUDACodeGen):
        setattr(target, f"_generate_{kind.__name__}", target._generate_Tasklet)
    return kind
