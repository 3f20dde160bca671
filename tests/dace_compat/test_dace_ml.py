"""Programs of dace.ml, where DaCeML lives on: their SDFGs are lowered, and compared on ranks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from dace import SDFG
from numpy.typing import NDArray
from torch import nn

import distspmd

onnx = pytest.importorskip("onnx")

Array = NDArray[np.float32]
RNG = np.random.default_rng(0)
INPUT = RNG.standard_normal((6, 12), dtype=np.float32)
WEIGHT = RNG.standard_normal((12, 8), dtype=np.float32)
BIAS = RNG.standard_normal(8, dtype=np.float32)


def imported() -> SDFG:
    """The SDFG that dace.ml makes of a model in ONNX: a product of matrices, ReLU, softmax."""
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="gemm"),
            helper.make_node("Relu", ["h"], ["r"], name="relu"),
            helper.make_node("Softmax", ["r"], ["y"], name="softmax", axis=-1),
        ],
        "graph",
        [helper.make_tensor_value_info("x", number, [6, 12])],
        [helper.make_tensor_value_info("y", number, [6, 8])],
        [onnx.numpy_helper.from_array(WEIGHT, "w"), onnx.numpy_helper.from_array(BIAS, "b")],
    )
    opset = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dace.ml import ONNXModel

        made = ONNXModel("imported", model, onnx_simplify=False, auto_optimize=False)
    sdfg: SDFG = made.sdfg
    return sdfg


def softmax_of_relu(x: Array, w: Array, b: Array) -> Array:
    """What NumPy says."""
    found = np.exp(np.maximum(x @ w + b, 0))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def test_a_model_in_onnx_that_dace_imports_runs_on_ranks() -> None:
    sdfg = imported()
    kinds = {type(node).__name__ for state in sdfg.states() for node in state.nodes()}
    assert {"ONNXGemm_13", "ONNXRelu_14", "ONNXSoftmax_13"} <= kinds  # nothing is expanded yet
    schedule = {"gemm": (2, 1, 1), "__return": (2, 1)}
    inputs = {"x": INPUT, "w": WEIGHT, "b": BIAS}
    done = distspmd.check(sdfg, schedule, 2, inputs=inputs, reference=softmax_of_relu)
    assert done.lowering.ranks == 2
    assert done.lowering.memlets


@pytest.mark.slow
def test_a_module_that_dace_imports_runs_on_ranks() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8)).eval()
    x = torch.from_numpy(INPUT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dace.ml import DaceModule

        options = {"onnx_simplify": False, "auto_optimize": False}
        made = DaceModule(module, dummy_inputs=(x,), sdfg_name="perceptron", **options)
    sdfg: Any = made.sdfg
    (given,) = (name for name in sdfg.arglist() if "DOT" not in name and name != "__return")
    own = {f"ONNX_{n.replace('.', 'DOT')}": p for n, p in module.state_dict().items()}
    inputs = {given: INPUT, **{name: tensor.numpy() for name, tensor in own.items()}}

    def reference(**arrays: Array) -> Array:
        return np.asarray(module(torch.from_numpy(arrays[given])).detach().numpy())

    done = distspmd.check(sdfg, {"__return": (2, 1)}, 2, inputs=inputs, reference=reference)
    assert done.lowering.ranks == 2
