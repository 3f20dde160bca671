"""Operators of torch that a user registers: what they compute, with gradients, and refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

import distspmd
from distspmd import frontend
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.frontend import registered_operators
from distspmd.frontend.from_torch.kept_programs import KeptProgram
from from_torch import custom_operators as own

HERE = Path(__file__).resolve()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers, no other one knows."""
    monkeypatch.setattr(registered_operators, "_REGISTERED", {})


class Calls(nn.Module):
    """Calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Tensor) -> Any:
        return self.function(*arguments)


def refused(function: Callable[..., Any], *arguments: Tensor) -> str:
    with pytest.raises(UnsupportedProgram) as raised:
        frontend.torch_module(Calls(function), *(arguments or (torch.ones(3, 4),)))
    return str(raised.value)


def test_modules_with_custom_operators_are_those_of_torch_on_3_ranks() -> None:
    call_on_ranks("from_torch.custom_operators", "forward(comm)", 3)


def test_training_takes_the_gradient_that_is_registered_in_torch() -> None:
    call_on_ranks("from_torch.custom_operators", "train(comm)", 2)


@pytest.mark.slow
def test_custom_operators_stand_among_others() -> None:
    call_on_ranks("from_torch.custom_among_others", "run(comm)", 3)


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_grids_of_what_the_function_does_are_checked(ranks: int) -> None:
    own.register()
    module, x = own.case(own.Wholes, torch.int64)
    sdfg = frontend.torch_module(module, x)
    names = {space.name for space in distspmd.iteration_spaces(sdfg)}
    assert {"relu", "total"} <= names
    checked = distspmd.check(sdfg, {"relu": (ranks, 1), "total": (1, ranks)}, ranks=ranks)
    assert "differ" in str(checked)


def test_results_go_from_function_to_function_without_a_copy() -> None:
    own.register()
    sdfg = frontend.torch_module(Calls(lambda x: own.relu(own.relu(x))), torch.ones(3, 4))
    copies = [space.name for space in distspmd.iteration_spaces(sdfg) if "_of" in space.name]
    assert copies == ["relu_of"]


def test_functions_of_dace_are_registered_too() -> None:
    @dace.program
    def squared(x):
        return x * x - 1

    frontend.register_operator("small::relu", squared)
    sdfg = frontend.torch_module(Calls(own.relu), torch.ones(3, 4))
    assert "relu" in {space.name for space in distspmd.iteration_spaces(sdfg)}


def test_an_operator_that_nobody_knows_is_refused_with_the_line_to_write() -> None:
    message = refused(lambda x: own.swish(x, 2.0))
    line = f"test_custom_operators.py:{line_of('own.swish(x, 2.0)')}"
    assert "small.swish.default" in message
    assert line in message
    assert "distspmd.frontend.register_operator('small::swish', swish)" in message
    assert "swish(x, beta) of NumPy arrays" in message


def line_of(text: str) -> int:
    lines = HERE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_name_of_aten_in_another_namespace_is_another_operator() -> None:
    assert "small::relu" in refused(own.relu)


@torch.library.custom_op("small::filled", mutates_args=("x",))
def filled(x: Tensor) -> None:
    x.fill_(1)


def _filling(x: Tensor) -> Tensor:
    made = x * 2
    filled(made)
    return made


def test_an_operator_that_writes_into_its_arguments_is_refused() -> None:
    message = refused(_filling)
    assert "small.filled.default" in message
    assert "writes into its arguments" in message


@torch.library.custom_op("small::bare", mutates_args=())
def bare(x: Tensor) -> Tensor:
    return 2 * x


def test_an_operator_of_unknown_shapes_is_refused_with_the_line_to_write() -> None:
    assert "torch.library.register_fake('small::bare', function)" in refused(bare)


def test_a_gradient_that_nobody_knows_is_refused_with_the_line_to_write() -> None:
    own.register()
    module = nn.Linear(4, 4)

    def step(x: Tensor) -> Tensor:
        loss: Tensor = own.relu(module(x)).sum()
        loss.backward()
        return loss

    with pytest.raises(UnsupportedProgram, match=r"register_autograd\('small::relu', backward"):
        frontend.training_step(step, torch.ones(3, 4))


WRONG: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "another shape": (lambda x, beta: x[1:], ["returns float32[2, 4]", "says float32[3, 4]"]),
    "another type": (lambda x, beta: np.float64(2) * x, ["returns float64[3, 4]", "float32[3, 4]"]),
    "another number of results": (lambda x, beta: (x, x), ["float32[3, 4], float32[3, 4], but"]),
    "no result": (lambda x, beta: None, ["returns nothing"]),
    "other arguments": (lambda x: x, ["takes (x)", "too many positional arguments"]),
    "a size that data decide": (lambda x, beta: x[x > 0], ["run decides the size"]),
    "a text": (lambda x, beta: (x, "text"), ["what is no array"]),
    "what is not covered": (lambda x, beta: np.busday_count(x, x), ["busday_count"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_function_that_does_not_fit_is_refused(case: str) -> None:
    function, told = WRONG[case]
    frontend.register_operator("small::swish", function)
    message = refused(own.swish)
    for text in ("the operator small.swish.default", "registered for it", *told):
        assert text in message


def test_a_function_that_writes_into_its_argument_is_refused() -> None:
    def squared(x):
        x *= x
        return x

    frontend.register_operator("small::relu", squared)
    message = refused(own.relu)
    assert "writes into its argument 'x'" in message
    assert "squared (" in message


@pytest.mark.parametrize("name", ["swish", "small.swish", "", "small::", "::swish", 3])
def test_names_that_no_operator_has_are_refused(name: Any) -> None:
    with pytest.raises(ArgumentError, match="mylib::swish"):
        frontend.register_operator(name, own.InNumPy.swish)


@pytest.mark.parametrize("name", ["aten::relu", "prims::add", "ai.onnx::Relu"])
def test_operators_of_frameworks_are_not_registered(name: str) -> None:
    with pytest.raises(ArgumentError, match="belongs to the framework"):
        frontend.register_operator(name, own.InNumPy.swish)


@pytest.mark.parametrize("function", [None, 3, np.exp, len, "swish", nn.Identity()])
def test_what_is_no_function_in_python_is_not_registered(function: Any) -> None:
    with pytest.raises(ArgumentError, match="takes a function that is written in Python"):
        frontend.register_operator("small::swish", function)


def test_another_function_of_the_same_name_needs_a_word() -> None:
    frontend.register_operator("small::relu", own.InNumPy.relu)
    frontend.register_operator("small::relu", own.InNumPy.relu)
    with pytest.raises(ArgumentError, match=r"relu \(.*custom_operators.py:.*replace=True"):
        frontend.register_operator("small::relu", own.InNumPy.total)
    frontend.register_operator("small::relu", own.InNumPy.total, replace=True)
    assert "but the operator itself in torch (register_fake) says float32[3, 4]" in refused(
        own.relu
    )


def _key(factor: float) -> str:
    def scaled(x):
        return x * factor

    frontend.register_operator("small::relu", scaled, replace=True)
    module = Calls(own.relu)
    entry = KeptProgram.of(module.forward, [torch.ones(3, 4)], set(), device=None)
    assert entry.key, entry.reason
    return entry.key


def test_programs_are_kept_with_the_text_of_the_function() -> None:
    assert _key(2.0) == _key(2.0) != _key(3.0)


def test_a_saved_program_is_loaded_without_the_registration(tmp_path: Path) -> None:
    own.register()
    module, x = own.case(own.Wholes, torch.int64)
    file = tmp_path / "wholes.lowered"
    distspmd.lower(frontend.torch_module(module, x), {"relu": (2, 1)}).save(file)
    code = f"import distspmd; print(distspmd.explain(distspmd.load({str(file)!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "relu" in done.stdout
