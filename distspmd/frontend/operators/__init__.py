"""What each operator of ATen means, in expressions and kernels."""

from distspmd.frontend.operators import (
    complex_numbers,
    convolutions,
    custom,
    experts,
    indexing,
    matrices,
    orders,
    pointwise,
    random_numbers,
    reductions,
    scatters,
    views,
)
from distspmd.frontend.operators.aten_registry import OPERATORS, evaluate

__all__ = [
    "OPERATORS",
    "complex_numbers",
    "convolutions",
    "custom",
    "evaluate",
    "experts",
    "indexing",
    "matrices",
    "orders",
    "pointwise",
    "random_numbers",
    "reductions",
    "scatters",
    "views",
]
