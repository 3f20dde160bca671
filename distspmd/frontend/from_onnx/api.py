"""Models in ONNX as SDFGs, through the same operators as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import torch
from dace import SDFG

from distspmd.errors import DistSPMDError, UnsupportedProgram, describe
from distspmd.frontend.from_torch.api import program_of
from distspmd.frontend.from_torch.arguments import ArrayBinding
from distspmd.frontend.from_torch.trace import trace
from distspmd.layouts.dimension import is_count

if TYPE_CHECKING:
    import onnx


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
        UnsupportedProgram: no model in ONNX, an operator that is not covered, control flow, sizes
            that are not given, a version of the operators that is not covered.
    """
    try:
        import onnx

        from distspmd.frontend.from_onnx import Model
    except ImportError as error:
        raise UnsupportedProgram(
            f"models in ONNX need the package onnx ({error}): pip install 'distspmd[onnx,torch]'."
        ) from None
    proto = model if isinstance(model, onnx.ModelProto) else _read(onnx.load, model)
    title = name or proto.graph.name or "model"
    if not isinstance(title, str):
        raise UnsupportedProgram(f"the name of a program is a text, not {describe(title)}.")
    try:
        module = Model(proto, _checked(sizes))
        inputs = _inputs(module.inputs)
        with torch.no_grad():
            traced = trace(module.forward, inputs, list(module.inputs))
            return program_of(traced, title, inputs, ArrayBinding)
    except DistSPMDError:
        raise
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise UnsupportedProgram(
            f"the model {title!r} cannot be imported: {type(error).__name__}: {first}"
        ) from error


def _read(load: Callable[[Any], Any], model: Any) -> Any:
    """The model in a file."""
    if not isinstance(model, (str, PathLike)):
        raise UnsupportedProgram(
            f"onnx_model takes a model or the path of its file, but {describe(model)} was given."
        )
    try:
        return load(model)
    except Exception as error:  # of the file system, of protobuf, and of onnx
        first = str(error).strip().partition("\n")[0]
        raise UnsupportedProgram(
            f"the file {str(model)!r} cannot be read as a model in ONNX: "
            f"{type(error).__name__}: {first}"
        ) from None


def _checked(sizes: object) -> Mapping[str, int]:
    """Sizes of symbolic dimensions, by name."""
    given = {} if sizes is None else sizes
    if not isinstance(given, Mapping):
        raise UnsupportedProgram(f"sizes={describe(sizes)} is no mapping of names to numbers.")
    for name, size in given.items():
        if not isinstance(name, str) or not is_count(size) or size < 1:
            raise UnsupportedProgram(
                f"sizes= has {describe(size)} for {name!r}; a size is an integer of at least 1."
            )
    return given


def _inputs(
    described: Mapping[str, tuple[tuple[int, ...], torch.dtype]],
) -> list[torch.Tensor]:
    """Tensors of the types and shapes of the arguments."""
    try:
        return [torch.zeros(shape, dtype=dtype) for shape, dtype in described.values()]
    except (RuntimeError, MemoryError):
        shapes = ", ".join(f"{name} {list(shape)}" for name, (shape, _) in described.items())
        raise UnsupportedProgram(
            f"the inputs {shapes} need more memory than this machine has."
        ) from None
