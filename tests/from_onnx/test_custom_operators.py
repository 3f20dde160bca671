"""Operators of other domains in ONNX, of which a user registers what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conftest import call_on_ranks
from onnx import TensorProto, helper, numpy_helper

import distspmd
from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import registered_operators

ROWS, WIDTH = 7, 3
WEIGHTS = np.arange(1.0, 1.0 + WIDTH)
TABLE = np.array([[0.5, 2.0, -1.0]])


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers, no other one knows."""
    monkeypatch.setattr(registered_operators, "_REGISTERED", {})


def swish(x: Any, beta: float) -> Any:
    return x / (1 + np.exp(-beta * x))


def parts(x: Any, weights: Any, bias: Any, axes: list[int], mode: str, table: Any) -> Any:
    if bias is not None:
        x = x + bias
    return x * weights + table, x.sum(axis=axes[0]) if mode == "sum" else x.max(axis=axes[0])


def own_relu(x: Any) -> Any:
    return x * 2 + 1


def register() -> None:
    """Register all of them."""
    frontend.register_operator("com.example::Swish", swish)
    frontend.register_operator("com.example::Parts", parts)
    frontend.register_operator("org.other::Relu", own_relu)


def node(operator: str, inputs: list[str], outputs: list[str], domain: str, **given: Any) -> Any:
    name = f"{operator}_{outputs[0]}"
    return helper.make_node(operator, inputs, outputs, domain=domain, name=name, **given)


def model(kind: int = TensorProto.DOUBLE, told: tuple[int, ...] = (WIDTH,)) -> onnx.ModelProto:
    """A model from ``x`` to ``y`` and ``b``; the type and the shape of ``b`` are told."""
    own = "com.example"
    table = numpy_helper.from_array(TABLE)
    given = {"axes": [0, 1], "mode": "sum", "table": table}
    nodes = [
        node("Swish", ["x"], ["s"], own, beta=2.0),
        node("Parts", ["s", "w", ""], ["a", "b"], own, **given),
        node("Add", ["a", "b"], ["c"], ""),
        node("Relu", ["c"], ["d"], "org.other"),
        node("Swish", ["d"], ["e"], own, beta=0.5),
        node("Relu", ["e"], ["y"], ""),
    ]
    of = helper.make_tensor_value_info
    results = [of("y", TensorProto.DOUBLE, (ROWS, WIDTH))]
    graph = helper.make_graph(
        nodes,
        "small",
        [of("x", TensorProto.DOUBLE, (ROWS, WIDTH))],
        results,
        [numpy_helper.from_array(WEIGHTS, "w")],
        value_info=[of("b", kind, told)],
    )
    versions = [helper.make_opsetid(d, n) for d, n in (("", 21), (own, 1), ("org.other", 3))]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def expected(x: Any) -> Any:
    """The result of the model, by NumPy."""
    a, b = parts(swish(x, 2.0), WEIGHTS, None, [0, 1], "sum", TABLE)
    return np.maximum(swish(own_relu(a + b), 0.5), 0)


def run(comm: Any) -> None:
    """The model beside NumPy."""
    register()
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    sdfg = frontend.onnx_model(model())
    lowering = distspmd.lower(sdfg, {"*": {"batch": "data"}}, mesh={"data": comm.size})
    with distspmd.compile(lowering, comm) as program:
        found = program(x) if comm.rank == 0 else program()
    if comm.rank == 0:
        np.testing.assert_allclose(found, expected(x), rtol=1e-12)


def test_models_with_operators_of_other_domains_are_those_of_numpy_on_3_ranks() -> None:
    call_on_ranks("from_onnx.test_custom_operators", "run(comm)", 3)


def refused(proto: onnx.ModelProto) -> str:
    with pytest.raises(UnsupportedProgram) as raised:
        frontend.onnx_model(proto)
    return str(raised.value)


def test_an_operator_that_nobody_knows_is_refused_with_the_line_to_write() -> None:
    message = refused(model())
    assert "the ONNX operator Swish (the node 'Swish_s')" in message
    assert "distspmd.frontend.register_operator('com.example::Swish', Swish)" in message
    assert "Swish(input_0, beta) of NumPy arrays" in message


@pytest.mark.parametrize(
    ("kind", "told"), [(TensorProto.FLOAT, (WIDTH,)), (TensorProto.DOUBLE, (WIDTH + 1,))]
)
def test_what_the_model_says_of_a_value_is_compared_with_the_function(
    kind: int, told: tuple[int, ...]
) -> None:
    register()
    message = refused(model(kind, told))
    assert "the value 'b' comes out as torch.float64 [3], but the model says" in message


WRONG = {
    "other arguments": (lambda x, alpha: x, "takes (x, alpha)"),
    "what is not covered": (lambda x, beta: np.busday_count(x, x), "busday_count"),
    "no result": (lambda x, beta: None, "it has 1 outputs, but"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_function_that_does_not_fit_is_refused(case: str) -> None:
    register()
    function, told = WRONG[case]
    frontend.register_operator("com.example::Swish", function, replace=True)
    message = refused(model())
    assert "the ONNX operator Swish (the node 'Swish_s')" in message
    assert told in message


def test_what_is_registered_comes_before_what_the_model_defines() -> None:
    register()
    proto = model()
    body = helper.make_node("Neg", ["x"], ["y"])
    version = [helper.make_opsetid("", 21)]
    proto.functions.append(helper.make_function("org.other", "Relu", ["x"], ["y"], [body], version))
    names = {space.name for space in distspmd.iteration_spaces(frontend.onnx_model(proto))}
    assert any(name.startswith("Relu_d") for name in names)
    assert not any("neg" in name for name in names)
