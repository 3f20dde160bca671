"""Models in ONNX: their operators in terms of torch's, which the tracer turns into a program."""

from distspmd.frontend.from_onnx import convolutions, elementwise, places, reductions, shapes
from distspmd.frontend.from_onnx.model import Model
from distspmd.frontend.from_onnx.registry import OPERATORS

__all__ = ["OPERATORS", "Model", "convolutions", "elementwise", "places", "reductions", "shapes"]
