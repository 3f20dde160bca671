"""Frontends: each turns a program of another kind into an SDFG, with names and bound arguments.

What needs torch is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if __name__ != "distspmd.frontend":
    raise ImportError("this package is imported as distspmd.frontend")

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.program import numpy_program
    from distspmd.frontend.from_onnx.api import onnx_model
    from distspmd.frontend.from_torch.api import torch_module, training_step
    from distspmd.frontend.from_torch.arguments import parameters, resident
    from distspmd.frontend.from_torch.checkpoints import initialize, load, save
    from distspmd.frontend.from_torch.initialisers import deferred
    from distspmd.frontend.from_torch.modules import module
    from distspmd.frontend.from_torch.partitioned import partitioned
    from distspmd.frontend.from_torch.saved_bindings import bind
    from distspmd.frontend.presets import (
        data_parallel,
        experts,
        fsdp,
        megatron,
        sequence_parallel,
        zero,
    )
    from distspmd.frontend.registered_operators import register_operator

__all__ = [
    "bind",
    "data_parallel",
    "deferred",
    "experts",
    "fsdp",
    "initialize",
    "load",
    "megatron",
    "module",
    "numpy_program",
    "onnx_model",
    "parameters",
    "partitioned",
    "register_operator",
    "resident",
    "save",
    "sequence_parallel",
    "torch_module",
    "training_step",
    "zero",
]

_LATER = {
    "bind": "distspmd.frontend.from_torch.saved_bindings",
    "data_parallel": "distspmd.frontend.presets",
    "deferred": "distspmd.frontend.from_torch.initialisers",
    "experts": "distspmd.frontend.presets",
    "fsdp": "distspmd.frontend.presets",
    "initialize": "distspmd.frontend.from_torch.checkpoints",
    "load": "distspmd.frontend.from_torch.checkpoints",
    "megatron": "distspmd.frontend.presets",
    "module": "distspmd.frontend.from_torch.modules",
    "numpy_program": "distspmd.frontend.from_numpy.program",
    "onnx_model": "distspmd.frontend.from_onnx.api",
    "parameters": "distspmd.frontend.from_torch.arguments",
    "partitioned": "distspmd.frontend.from_torch.partitioned",
    "register_operator": "distspmd.frontend.registered_operators",
    "resident": "distspmd.frontend.from_torch.arguments",
    "save": "distspmd.frontend.from_torch.checkpoints",
    "sequence_parallel": "distspmd.frontend.presets",
    "torch_module": "distspmd.frontend.from_torch.api",
    "training_step": "distspmd.frontend.from_torch.api",
    "zero": "distspmd.frontend.presets",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'distspmd.frontend' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
