"""Programs of symbolic sizes, and a model of ONNX, which one process calls on ranks."""

import sys

import dace
import numpy as np
import pytest

import distspmd

RANKS = 3
N, M = dace.symbol("N"), dace.symbol("M")


@dace.program
def scaled(x: dace.float64[N, M], w: dace.float64[M]):
    return x * w + N


@distspmd.program(schedule={"__return": (RANKS,)})
def grown(x: dace.float64[N]):
    for _ in range(T):
        x = x * 2.0
    return x


T = dace.symbol("T")


def of_symbolic_sizes(ranks):
    program = distspmd.compile(distspmd.lower(scaled.to_sdfg(), {"__return": (RANKS, 1)}), ranks)
    rng = np.random.default_rng(0)
    for n, m in [(7, 5), (3, 4), (1, 9), (2, 2), (7, 5)]:
        x, w = rng.random((n, m)), rng.random(m)
        np.testing.assert_array_equal(program(x=x, w=w), x * w + n)
    assert len(program.seconds) == 4, program.seconds
    with pytest.raises(distspmd.errors.ArgumentError, match="dimension 0 of 'w' has 5"):
        program(x=np.ones((3, 4)), w=np.ones(5))
    np.testing.assert_array_equal(program(x=np.ones((3, 4)), w=np.ones(4)), np.full((3, 4), 4.0))
    assert sum(counted.received_bytes for _, counted in program.statistics()) > 0
    program.close()


def of_a_decorated_function():
    for extent, times in [(5, 2), (8, 2), (8, 3)]:
        x = np.arange(float(extent))
        np.testing.assert_array_equal(grown(x, T=times), x * 2.0**times)


def of_onnx(ranks):
    try:
        import torch  # noqa: F401  the models run through its operators
        from onnx import TensorProto, checker, helper
    except ImportError:
        return
    rng = np.random.default_rng(1)
    weights = {"w": rng.random((6, 5), np.float32), "b": rng.random(5, np.float32)}
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="up"),
            helper.make_node("Relu", ["h"], ["y"]),
        ],
        "layer",
        [helper.make_tensor_value_info("x", floats, ["batch", 6])],
        [helper.make_tensor_value_info("y", floats, ["batch", 5])],
        [helper.make_tensor(n, floats, v.shape, v.tobytes(), raw=True) for n, v in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    checker.check_model(model)
    sdfg = distspmd.frontend.onnx_model(model, sizes={"batch": 4})
    program = distspmd.compile(distspmd.lower(sdfg, {"up_addmm": {"batch": RANKS}}), ranks)
    for _ in range(2):
        x = rng.random((4, 6), np.float32) - 0.5
        wanted = np.maximum(x @ weights["w"] + weights["b"], 0)
        np.testing.assert_allclose(program(x), wanted, rtol=1e-5, atol=1e-6)
    assert sum(counted.received_bytes for _, counted in program.statistics()) > 0
    program.close()


def main():
    with distspmd.ranks(RANKS) as ranks:
        of_symbolic_sizes(ranks)
        of_a_decorated_function()
        of_onnx(ranks)
    print("all sizes are right")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
