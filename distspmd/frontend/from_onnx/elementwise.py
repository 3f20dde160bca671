"""Operators on elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_onnx.registry import OPERATORS, Meaning, operator
from distspmd.frontend.from_onnx.types import torch_type

_OF_ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "BitwiseNot": torch.bitwise_not,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "HardSwish": functional.hardswish,
    "Identity": lambda x: x,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Mish": functional.mish,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Relu": torch.relu,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softplus": lambda x: functional.softplus(x, threshold=1e9),
    "Softsign": lambda x: x / (1 + x.abs()),
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}
_OF_TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "And": torch.logical_and,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Equal": torch.eq,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Mul": torch.mul,
    "Or": torch.logical_or,
    "PRelu": lambda x, slope: torch.where(x < 0, slope * x, x),
    "Sub": torch.sub,
    "Xor": torch.logical_xor,
}
_OF_SEVERAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Max": torch.maximum,
    "Min": torch.minimum,
    "Sum": torch.add,
}


def _one(function: Callable[[Tensor], Tensor]) -> Meaning:
    return Meaning(lambda x: function(x))


def _two(function: Callable[[Tensor, Tensor], Tensor]) -> Meaning:
    return Meaning(lambda x, y: function(x, y))


def _several(function: Callable[[Tensor, Tensor], Tensor]) -> Meaning:
    return Meaning(lambda *inputs: functools.reduce(function, inputs))


OPERATORS.update({name: _one(function) for name, function in _OF_ONE.items()})
OPERATORS.update({name: _two(function) for name, function in _OF_TWO.items()})
OPERATORS.update({name: _several(function) for name, function in _OF_SEVERAL.items()})


@operator("Mean")
def _mean(*inputs: Tensor) -> Tensor:
    return functools.reduce(torch.add, inputs) / len(inputs)


@operator("Div")
def _div(x: Tensor, y: Tensor) -> Tensor:
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


@operator("Pow")
def _pow(x: Tensor, y: Tensor) -> Tensor:
    return torch.pow(x, y).to(x.dtype)


@operator("Mod")
def _mod(x: Tensor, y: Tensor, fmod: int = 0) -> Tensor:
    return torch.fmod(x, y) if fmod else torch.remainder(x, y)


@operator("BitShift")
def _shift(x: Tensor, y: Tensor, direction: str) -> Tensor:
    shift = torch.bitwise_left_shift if direction == "LEFT" else torch.bitwise_right_shift
    return shift(x, y)


@operator("Where")
def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return torch.where(condition, x, y)


@operator("Clip")
def _clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    if low is not None:
        x = torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


@operator("IsInf")
def _is_inf(x: Tensor, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    infinity = float("inf")
    positive, negative = x == infinity, x == -infinity
    if detect_negative and detect_positive:
        return positive | negative
    return positive if detect_positive else negative if detect_negative else x != x & False


@operator("Cast")
def _cast(x: Tensor, to: int, saturate: int = 1) -> Tensor:
    return x.to(torch_type(to))


@operator("CastLike")
def _cast_like(x: Tensor, like: Tensor, saturate: int = 1) -> Tensor:
    return x.to(like.dtype)


@operator("Elu")
def _elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return functional.elu(x, alpha)


@operator("Celu")
def _celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.where(x > 0, x, alpha * torch.expm1(x / alpha))


@operator("Selu")
def _selu(x: Tensor, alpha: float, gamma: float) -> Tensor:
    return gamma * torch.where(x > 0, x, alpha * torch.expm1(x))


@operator("LeakyRelu")
def _leaky(x: Tensor, alpha: float = 0.01) -> Tensor:
    return functional.leaky_relu(x, alpha)


@operator("ThresholdedRelu")
def _thresholded(x: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.where(x > alpha, x, 0.0)


@operator("HardSigmoid")
def _hard_sigmoid(x: Tensor, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return torch.clamp(alpha * x + beta, 0.0, 1.0)


@operator("Gelu")
def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return functional.gelu(x, approximate=approximate)


@operator("Swish")
def _swish(x: Tensor, alpha: float = 1.0) -> Tensor:
    return x * torch.sigmoid(alpha * x)


@operator("Shrink")
def _shrink(x: Tensor, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, 0.0)).to(x.dtype)


@operator("Dropout", numbers=("ratio", "training"))
def _dropout(
    x: Tensor, ratio: Any = 0.5, training: Any = False, seed: Any = None, outputs: int = 1
) -> Any:
    if training and ratio:
        raise UnsupportedProgram(
            "it drops elements, as in training. Export the model for inference."
        )
    return (x, torch.ones_like(x, dtype=torch.bool))[:outputs]
