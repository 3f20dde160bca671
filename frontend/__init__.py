"""Frontends: each turns a program of another kind into an SDFG, with names and bound arguments."""

from __future__ import annotations

if __name__ != "distspmd.frontend":
    raise ImportError("this package is imported as distspmd.frontend")

from distspmd.frontend.from_onnx.api import onnx_model
from distspmd.frontend.from_torch.api import torch_module, training_step
from distspmd.frontend.from_torch.arguments import parameters, resident

__all__ = ["onnx_model", "parameters", "resident", "torch_module", "training_step"]
