"""What each operator of ATen means, in expressions and kernels."""

from distspmd.frontend.operators import (
    convolutions,
    experts,
    indexing,
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
    "convolutions",
    "evaluate",
    "experts",
    "indexing",
    "orders",
    "pointwise",
    "random_numbers",
    "reductions",
    "scatters",
    "views",
]
