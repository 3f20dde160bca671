"""Golden texts of the code that operators become; nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import torch
from autodiff.programs import GRADIENTS
from from_onnx.cases import node_cases
from parsed_by_dace import numpy_program
from torch import Tensor, nn

from distspmd import frontend
from distspmd.passes.normalize.pipeline import normalize
from expressions.cases import REAL, REDUCTIONS, STEPS, VIEWS, WHOLE, Function
from expressions.emitted import emitted

Golden = Callable[[str, str], None]
ONNX = """
    abs bitshift clip celu elu gelu hardsigmoid isinf leakyrelu mod prelu selu shrink softplus
    softsign swish thresholdedrelu where pow sign onehot trilu
"""
NUMPY = ("elements", "perceptron", "reductions", "ranges", "powers")


class _Of(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.function(x, y)


def sections(texts: Iterator[tuple[str, str]]) -> str:
    """One text of several, each under its name."""
    return "\n".join(f"== {name}\n{text}\n" for name, text in texts)


@pytest.mark.parametrize(
    ("group", "functions", "dtype"),
    [
        ("real", REAL, torch.float32),
        ("real_double", {name: REAL[name] for name in ("sigmoid", "clamp", "erf")}, torch.float64),
        ("whole", WHOLE, torch.int64),
        ("whole_narrow", {n: WHOLE[n] for n in ("shift_right", "clamp", "sum")}, torch.int32),
        ("reductions", REDUCTIONS, torch.float32),
        ("views", VIEWS, torch.float32),
    ],
)
def test_operators_of_torch(
    golden: Golden, group: str, functions: Mapping[str, Function], dtype: torch.dtype
) -> None:
    inputs = torch.ones(5, 6, dtype=dtype), torch.ones(5, 6, dtype=dtype)
    programs = (
        (name, frontend.torch_module(_Of(function), *inputs, name="program"))
        for name, function in functions.items()
    )
    golden(f"torch_{group}", sections((name, emitted(sdfg)) for name, sdfg in programs))


def _step(loss: Function) -> Callable[[Tensor], Tensor]:
    held = nn.ParameterList([torch.ones(5, 6)])
    optimizer = torch.optim.AdamW(held.parameters(), lr=0.1)

    def step(y: Tensor) -> Tensor:
        optimizer.zero_grad()
        found = loss(held[0], y)
        found.backward()
        optimizer.step()
        return found

    return step


def test_training_steps(golden: Golden) -> None:
    steps = ((n, frontend.training_step(_step(f), torch.ones(5, 6))) for n, f in STEPS.items())
    golden("torch_steps", sections((name, emitted(sdfg)) for name, sdfg in steps))


def _of_onnx() -> dict[str, str]:
    """Of each file of ONNX's own cases of element-wise operators the first that passes."""
    names: dict[str, str] = {}
    for line in (
        (Path(__file__).parent.parent / "from_onnx" / "passing.txt").read_text().split("\n")
    ):
        file, _, name = line.partition(" ")
        if file in ONNX.split():
            names.setdefault(file, name)
    found = {}
    for case in node_cases(list(names)):
        if case.name == names[case.file]:
            found[case.file] = emitted(frontend.onnx_model(case.model, name="model"))
    return found


def test_operators_of_onnx(golden: Golden) -> None:
    found = _of_onnx()
    assert len(found) == len(ONNX.split())
    golden("onnx", sections(iter(found.items())))


@pytest.mark.slow
def test_gradients_of_numpy_programs(golden: Golden) -> None:
    def texts() -> Iterator[tuple[str, str]]:
        for case in GRADIENTS:
            if case.name not in NUMPY:
                continue
            sdfg = numpy_program(case.program)
            normalize(sdfg)
            yield case.name, emitted(sdfg)

    golden("gradients", sections(texts()))
