"""Models in ONNX: what is refused, and how names, sizes and memory come through."""

from __future__ import annotations

import contextlib
import inspect
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from dace.sdfg.nodes import MapEntry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from distspmd.execution.binding import binding_of
from distspmd.frontend.operators import OPERATORS
from from_onnx.run_models import plainly

FLOAT = TensorProto.FLOAT


def model(
    *nodes: Any, shape: Any = (2, 3), rank: int = 2, opset: int = 21, **initializers: Any
) -> Any:
    """A model from ``x`` to ``y``."""
    kept = [numpy_helper.from_array(np.asarray(a), name) for name, a in initializers.items()]
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, [None] * rank)],
        kept,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def node(operator: str, *inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(operator, list(inputs), [output], name=f"my_{operator}", **attributes)


def refused(proto: Any, **given: Any) -> str:
    with pytest.raises(UnsupportedProgram) as raised:
        frontend.onnx_model(proto, **given)
    return str(raised.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, "takes a model or the path of its file, but 3 (int) was given"),
        (b"model", "takes a model or the path"),
        ("no/such.onnx", "cannot be read as a model in ONNX: FileNotFoundError"),
    ],
)
def test_what_is_no_model_is_refused(given: Any, told: str) -> None:
    assert told in refused(given)


def test_a_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "text.onnx"
    file.write_text("no model at all")
    assert "cannot be read as a model in ONNX: DecodeError" in refused(file)


@pytest.mark.parametrize("sizes", [3, {"n": 0}, {"n": 2.5}, {"n": True}, {3: 4}, [("n", 3)]])
def test_sizes_that_are_none_are_refused(sizes: Any) -> None:
    assert "sizes=" in refused(model(node("Relu", "x"), shape=("n", 3)), sizes=sizes)


@pytest.mark.parametrize("shape", [(2**40, 3), (2**40, 2**40), (-3, 3)])
def test_extents_that_no_machine_has_are_refused(shape: tuple[int, ...]) -> None:
    assert str(shape[0]) in refused(model(node("Relu", "x"), shape=shape))


def test_names_that_are_no_names_of_programs_are_changed() -> None:
    names = ("double", "\u00fcn\u00ef", "\u00ebn\u00eb", "lambda", "3d", "a-b", "a_b")
    values = [helper.make_tensor_value_info(name, FLOAT, (2, 3)) for name in names]
    result = helper.make_tensor_value_info("int", FLOAT, (2, 3))
    graph = helper.make_graph([helper.make_node("Sum", names, ["int"])], "new", values, [result])
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    sdfg = frontend.onnx_model(whole)
    assert sdfg.name == "new_"
    assert sdfg.arg_names[:5] == ["double_", "n", "n_2", "lambda_", "t_3d"]
    assert len({*sdfg.arg_names}) == len(names)
    assert all(name.isascii() and name.isidentifier() for name in sdfg.arrays)
    sdfg.validate()


def test_a_chain_that_is_too_long_for_the_stack_is_refused() -> None:
    steps = [
        node("Add", "x" if n == 0 else f"v{n - 1}", "x", output=f"v{n}" if n < 399 else "y")
        for n in range(400)
    ]
    before = sys.getrecursionlimit()
    whole = model(*steps)
    sys.setrecursionlimit(len(inspect.stack()) + 300)
    try:
        text = refused(whole)
    finally:
        sys.setrecursionlimit(before)
    assert "operators follow each other" in text or "RecursionError" in text


def test_a_chain_of_hundreds_of_operators_is_several_kernels(unoptimised: None) -> None:
    steps, last = [], "x"
    for n in range(330):
        inputs = (last,) if n % 2 else (last, "x")
        steps.append(node("Sin" if n % 2 else "Add", *inputs, output=f"v{n}" if n < 329 else "y"))
        last = f"v{n}"
    sdfg = frontend.onnx_model(model(*steps))
    kernels = [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, MapEntry)]
    assert 330 / 200 < len(kernels) < 330 / 50
    x = np.random.default_rng(0).random((2, 3), np.float32)
    wanted = x
    for n in range(330):
        wanted = np.sin(wanted) if n % 2 else wanted + x
    found = plainly(sdfg, torch.from_numpy(x))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


PROTO = model(
    node("Gemm", "x", "w", output="h"), node("Relu", "h"), shape=(2, 3), w=np.ones((3, 4), "f")
).SerializeToString()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, len(PROTO) - 1), st.integers(0, 255)), min_size=1))
def test_a_damaged_model_is_refused_or_is_one(edits: list[tuple[int, int]]) -> None:
    damaged = bytearray(PROTO)
    for place, byte in edits[:4]:
        damaged[place] = byte
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "damaged.onnx"
        file.write_bytes(damaged)
        with contextlib.suppress(UnsupportedProgram):
            frontend.onnx_model(file)


def test_an_operator_that_is_not_covered_is_named_with_its_node() -> None:
    text = refused(model(node("Det", "x"), shape=(3, 3), rank=0))
    assert "the ONNX operator Det (the node 'my_Det')" in text
    assert "Covered are Abs, " in text


def test_an_operator_whose_pieces_are_not_covered_is_named_with_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(OPERATORS, "diagonal")
    text = refused(model(node("Einsum", "x", equation="ii->i"), shape=(3, 3), rank=1))
    assert "aten.diagonal" in text
    assert "my_Einsum" in text


def test_control_flow_is_refused() -> None:
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", FLOAT, [None, None])],
    )
    whole = model(node("If", "c", then_branch=branch, else_branch=branch), c=np.array(True))
    assert "my_If'): control flow is not covered" in refused(whole)


def test_shapes_that_depend_on_inputs_are_refused() -> None:
    whole = model(
        node("ReduceSum", "x", output="s", keepdims=0),
        node("Cast", "s", output="n", to=TensorProto.INT64),
        node("Expand", "one", "n"),
        rank=1,
        one=np.ones((1,), np.float32),
    )
    assert "its input 'n' (shape) depends on the inputs of the model" in refused(whole)


def test_symbolic_dimensions_need_a_size() -> None:
    whole = model(node("Relu", "x"), shape=("batch", 3))
    assert "the symbolic dimension 'batch': [batch, 3]" in refused(whole)
    assert "sizes={'batch': 8}" in refused(whole)
    assert "symbolic dimensions batch" in refused(whole, sizes={"b": 4, "batch": 2})
    sdfg = frontend.onnx_model(whole, sizes={"batch": 4})
    assert tuple(sdfg.arrays["x"].shape) == (4, 3)


def test_versions_of_the_operators_are_checked() -> None:
    assert "(opset) 11; versions 13 to" in refused(model(node("Relu", "x"), opset=11))


def test_types_that_programs_do_not_have_are_refused() -> None:
    whole = model(node("Add", "x", "w"), w=np.ones((3,), np.float16))
    assert "the initializer 'w': elements of the type FLOAT16" in refused(whole)


def test_models_that_are_not_valid_are_refused() -> None:
    assert "the model is not valid" in refused(model(node("Relu", "nowhere")))


def test_values_without_elements_are_refused() -> None:
    whole = model(
        node("Slice", "x", "zero", "zero", output="s"),
        node("Relu", "s"),
        zero=np.zeros(1, np.int64),
    )
    assert "'s' has no elements" in refused(whole)


def test_initializers_are_arguments_with_their_names(tmp_path: Path) -> None:
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    whole = model(node("MatMul", "x", "layer.weight"), **{"layer.weight": weights})
    onnx.save(whole, tmp_path / "small.onnx")
    sdfg = frontend.onnx_model(tmp_path / "small.onnx")
    binding = binding_of(sdfg)
    assert sdfg.name == "small"
    assert sdfg.arg_names == ["x"]
    assert binding is not None
    first, again = binding.arguments(), binding.arguments()
    assert np.array_equal(first["layer_weight"], weights)
    assert first["layer_weight"].ctypes.data == again["layer_weight"].ctypes.data
    assert "my_MatMul_mm" in sdfg.arrays or "__return" in sdfg.arrays


def test_what_is_computed_from_shapes_is_a_constant() -> None:
    whole = model(
        node("Shape", "x", output="s"),
        node("Gather", "s", "one", output="n", axis=0),
        node("Concat", "minus", "n", output="t", axis=0),
        node("Reshape", "x", "t"),
        shape=(2, 3),
        one=np.array([1]),
        minus=np.array([-1]),
    )
    sdfg = frontend.onnx_model(whole)
    assert tuple(sdfg.arrays["__return"].shape) == (2, 3)
    assert not any("int" in str(array.dtype) for array in sdfg.arrays.values())


NAMES = ("forward", "training", "inputs", "outputs", "_buffers", "_modules", "__class__", "class")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_models_may_be_those_of_attributes(name: str) -> None:
    product = helper.make_node("MatMul", ["x", name], ["h"], name=name)
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    sdfg = frontend.onnx_model(
        model(product, helper.make_node("Relu", ["h"], ["y"], name=name), **{name: weight})
    )
    (kept,) = [
        value for key, value in binding_of(sdfg).arguments().items() if name.strip("_") in key
    ]
    np.testing.assert_array_equal(kept, weight)
