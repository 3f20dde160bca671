"""Frontends: each turns a program of another kind into an SDFG, with names and bound arguments."""

from __future__ import annotations

if __name__ != "distspmd.frontend":
    raise ImportError("this package is imported as distspmd.frontend")

from distspmd.frontend.binding import parameters, resident
from distspmd.frontend.onnx_models import onnx_model
from distspmd.frontend.training import torch_module, training_step

__all__ = ["onnx_model", "parameters", "resident", "torch_module", "training_step"]
