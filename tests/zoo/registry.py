"""The table of architectures: each is entered once by name, with the tests that try it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

RANKS, EXACT, PAPER = "compiled, on ranks", "on paper, without rounding", "on paper"
"""The tests: `test_zoo.py`, and `test_on_paper.py` with two bounds of what may differ."""
_MODULES = (
    "more_architectures",
    "own_models",
    "other_texts",
    "other_images",
    "architectures",
)
"""Where architectures are entered."""


@dataclass(frozen=True)
class Architecture:
    """A model, and what it is called with.

    Attributes:
        module: gives a tensor.
        inputs: of a call.
        is_single: the model computes in single precision, whatever its parameters are.
    """

    module: nn.Module
    inputs: tuple[Tensor, ...]
    is_single: bool = False


Make = Callable[[], Architecture]
_TABLE: dict[str, tuple[Make, tuple[str, ...]]] = {}


def enter(name: str, make: Make, *tests: str) -> None:
    """Enter an architecture."""
    assert name not in _TABLE
    assert tests
    _TABLE[name] = make, tests


def architecture(*tests: str) -> Callable[[Make], Make]:
    """Enter a function by its name."""

    def entered(function: Make) -> Make:
        enter(function.__name__, function, *tests)
        return function

    return entered


def named(*tests: str) -> list[str]:
    """The architectures that some of these tests try; without tests all of them."""
    for module in _MODULES:
        importlib.import_module(f"zoo.{module}")
    return [name for name, (_, own) in _TABLE.items() if not tests or {*tests} & {*own}]


def tried_by(name: str) -> tuple[str, ...]:
    """The tests that try an architecture."""
    return _TABLE[name][1]


def build(name: str) -> Architecture:
    """An architecture, with the same parameters and inputs at each call."""
    tell_torchvision()
    assert name in named(), f"{name}: there are {', '.join(named())}"
    torch.manual_seed(0)
    return _TABLE[name][0]()


@cache
def tell_torchvision() -> Any:
    """Its compiled operators may not load beside a torch for the CPU; models do without."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
