"""Types of elements in ONNX and in torch."""

from __future__ import annotations

import onnx
import torch
from onnx import numpy_helper

from distspmd.errors import UnsupportedProgram

_TYPES: dict[int, torch.dtype] = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.INT64: torch.int64,
    onnx.TensorProto.INT32: torch.int32,
    onnx.TensorProto.INT16: torch.int16,
    onnx.TensorProto.INT8: torch.int8,
    onnx.TensorProto.UINT8: torch.uint8,
    onnx.TensorProto.BOOL: torch.bool,
}
_NUMBERS = {torch_type: number for number, torch_type in _TYPES.items()}


def torch_type(number: int) -> torch.dtype:
    """A type of ONNX in torch.

    Raises:
        UnsupportedProgram: programs have no such elements.
    """
    if number not in _TYPES:
        known = ", ".join(map(onnx.TensorProto.DataType.Name, _TYPES))
        name = onnx.TensorProto.DataType.Name(number)
        raise UnsupportedProgram(f"elements of the type {name} are not covered; {known} are.")
    return _TYPES[number]


def onnx_type(tensor: torch.Tensor) -> onnx.TypeProto:
    """The type and shape of a tensor, as ONNX writes them."""
    return onnx.helper.make_tensor_type_proto(_NUMBERS[tensor.dtype], tuple(tensor.shape))


def tensor_of(proto: onnx.TensorProto) -> torch.Tensor:
    """The elements of a tensor in a model."""
    torch_type(proto.data_type)
    return torch.from_numpy(numpy_helper.to_array(proto).copy())
