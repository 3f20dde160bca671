"""Models in ONNX as SDFGs, through the same operators as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import torch
from dace import SDFG
from numpy.typing import NDArray

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.api import program_of
from distspmd.frontend.from_torch.arguments import MemoryBinding
from distspmd.frontend.from_torch.trace import trace

if TYPE_CHECKING:
    import onnx


class _Arrays(MemoryBinding):
    """Results are NumPy arrays."""

    def _result(self, array: NDArray[Any], shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)


def onnx_model(
    model: str | PathLike[str] | onnx.ModelProto,
    *,
    sizes: Mapping[str, int] | None = None,
    name: str | None = None,
) -> SDFG:
    """A model in ONNX as an SDFG.

    Its inputs are the arguments that a compiled program takes, its outputs are returned as NumPy
    arrays. Initializers are arguments with their names in ONNX, other characters than letters and
    digits as underscores, which the program passes itself, without a copy.

    Args:
        model: or the path of its file.
        sizes: of its symbolic dimensions, by name.
        name: of the program; that of the graph by default.

    Raises:
        UnsupportedProgram: an operator that is not covered, control flow, sizes that are not given,
            a version of the operators that is not covered.
    """
    try:
        import onnx

        from distspmd.frontend.from_onnx import Model
    except ImportError as error:
        raise UnsupportedProgram(
            f"models in ONNX need the package onnx ({error}): pip install 'distspmd[onnx,torch]'."
        ) from None
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(model)
    module = Model(proto, sizes or {})
    inputs = [torch.zeros(shape, dtype=dtype) for shape, dtype in module.inputs.values()]
    with torch.no_grad():
        traced = trace(module.forward, inputs, list(module.inputs))
        return program_of(traced, name or proto.graph.name or "model", inputs, _Arrays)
