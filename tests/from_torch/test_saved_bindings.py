"""Saved programs of PyTorch and ONNX: bound again to what they were traced from, or refused."""

from __future__ import annotations

from typing import Any

import dace
import numpy as np
import onnx
import pytest
import torch
from conftest import Launch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

import distspmd
from distspmd import frontend, saved
from distspmd.errors import ArgumentError, SavedError
from distspmd.saved.programs import carried_binding

STEP = """
import torch
from torch import Tensor, nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)


def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


x, y = torch.randn(8, 6), torch.randn(8, 3)
"""
"""A file of a user."""


def made(text: str = STEP) -> Any:
    found: dict[str, Any] = {"__name__": "step"}
    exec(compile(text, "step.py", "exec"), found)
    return found


def read_again(lowering: Any) -> Any:
    return saved.from_bytes(saved.to_bytes(lowering))


def lowered_step(of: dict[str, Any]) -> Any:
    sdfg = frontend.training_step(of["step"], of["x"], of["y"])
    return distspmd.lower(sdfg, frontend.data_parallel(2))


def test_a_step_is_bound_to_the_tensors_of_another_process() -> None:
    read, other = read_again(lowered_step(made())), made()
    assert frontend.bind(read, other["step"]) is read
    arrays = carried_binding(read).arguments()
    weights = next(a for n, a in arrays.items() if n.endswith("0_weight"))
    assert np.shares_memory(weights, other["model"][0].weight.detach().numpy())
    frontend.bind(read_again(read_again(read)), made()["step"])


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("nn.Linear(8, 3)", "nn.Linear(8, 3, bias=False)", r"works on '2.bias'.*has no tensor"),
        ("nn.Linear(6, 8)", "nn.Linear(6, 8).double()", r"'0.weight' is of torch.float64"),
        ("lr=0.1", "lr=0.1, weight_decay=0.5", r"'weight_decay' of group 0 .* was 0.01.*is 0.5"),
        ("return loss", "return loss * 2", r"the code of step\(\) was"),
    ],
)
def test_a_step_that_is_another_one_is_refused(before: str, now: str, told: str) -> None:
    read = read_again(lowered_step(made()))
    with pytest.raises(ArgumentError, match=told):
        frontend.bind(read, made(STEP.replace(before, now))["step"])


def test_a_rate_may_be_another_one() -> None:
    frontend.bind(read_again(lowered_step(made())), made(STEP.replace("lr=0.1", "lr=0.2"))["step"])


def test_a_step_that_is_not_bound_says_what_to_write(launch: Launch) -> None:
    read = read_again(lowered_step(made()))
    with pytest.raises(ArgumentError, match=r"frontend.bind\(lowering, function\)"):
        carried_binding(read).bound()


def test_programs_without_tensors_are_bound_to_nothing() -> None:
    lowering = distspmd.lower(_doubled, {"__return": (2,)})
    with pytest.raises(ArgumentError, match="this one needs no module"):
        frontend.bind(read_again(lowering), made()["step"])


def _doubled(x: dace.float64[8]) -> Any:
    return x * 2


def test_what_was_decided_by_values_is_not_saved() -> None:
    outside = torch.ones(6)

    def scaled(x: Tensor) -> Tensor:
        return x * outside

    sdfg = frontend.training_step(scaled, torch.ones(4, 6))
    with pytest.raises(SavedError, match="it was made for outside, which no other process has"):
        saved.to_bytes(distspmd.lower(sdfg, {}))


def _model() -> onnx.ModelProto:
    weight = np.arange(24, dtype=np.float32).reshape(6, 4)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 4])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_ranks_go_on_with_saved_steps_and_models(launch: Launch, tmp_path: Any) -> None:
    of = made()
    lowered_step(of).save(tmp_path / "step.lowered")
    distspmd.lower(frontend.onnx_model(_model()), {"y_mm": (2, 1, 1)}).save(tmp_path / "m.lowered")
    own = made()
    losses = [own["step"](own["x"], own["y"]).item() for _ in range(3)]
    (tmp_path / "step.py").write_text(STEP)
    launch(
        f"""
        import numpy as np
        from mpi4py import MPI
        import distspmd
        from distspmd import frontend
        import step

        comm = MPI.COMM_WORLD
        lowering = frontend.bind(distspmd.load("step.lowered"), step.step)
        program = distspmd.compile(lowering, comm)
        found = [program(x=step.x, y=step.y) for _ in range(3)]
        if comm.rank == 0:
            np.testing.assert_allclose([float(f) for f in found], {losses!r}, rtol=1e-5)
        model = distspmd.compile(distspmd.load("m.lowered"), comm)
        x = np.random.default_rng(0).random((8, 6), np.float32)
        y = model(x=x)
        if comm.rank == 0:
            w = np.arange(24, dtype=np.float32).reshape(6, 4)
            np.testing.assert_allclose(y, x @ w, rtol=1e-5)
        try:
            distspmd.compile(distspmd.load("step.lowered"), comm)
            raise SystemExit("a program without tensors was compiled")
        except distspmd.errors.ArgumentError as problem:
            assert "frontend.bind" in str(problem)
        """.replace("\n        ", "\n"),
        ranks=2,
    )
