"""What each operator of ATen means, in expressions and kernels."""

from distspmd.frontend.operators import convolutions, indexing, pointwise, reductions, views
from distspmd.frontend.operators.aten_registry import OPERATORS, evaluate

__all__ = [
    "OPERATORS",
    "convolutions",
    "evaluate",
    "indexing",
    "pointwise",
    "reductions",
    "views",
]
