"""ONNX's own test cases of its operators, and programs of many of them at once."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import dace
import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from distspmd import frontend
from distspmd.codegen.build import load_unlowered
from distspmd.execution.binding import binding_of
from distspmd.frontend.from_onnx import OPERATORS, Model


@dataclass(frozen=True)
class NodeCase:
    """A model of one operator, with inputs and what must come out.

    Inputs that the operator must know when it is imported are constants of the model.
    """

    name: str
    file: str
    operator: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    relative: float

    def different(self, results: Sequence[Any]) -> str:
        """What is wrong with results."""
        for place, (found, wanted) in enumerate(zip(results, self.outputs, strict=False)):
            found, wanted = np.asarray(found), np.asarray(wanted)
            if found.dtype != wanted.dtype or found.shape != wanted.shape:
                return (
                    f"output {place}: {found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
                )
            if not np.allclose(found, wanted, self.relative, 1e-5, equal_nan=True):
                return f"output {place} differs by {np.max(np.abs(found - wanted)):.1e}"
        return ""


def modules() -> list[str]:
    """Files of ONNX's cases, about one for each operator."""
    package = importlib.import_module("onnx.backend.test.case.node")
    return [module.name for module in pkgutil.iter_modules(package.__path__)]


def node_cases(names: Sequence[str]) -> Iterator[NodeCase]:
    """The cases of some files; those that ONNX derives from functions are left out."""
    for name in names:
        for found in _of_file(name):
            if "_expanded" not in found.name:
                yield _case(found, name)


@cache
def _of_file(name: str) -> tuple[Any, ...]:
    """What ONNX adds to its list when it imports a file."""
    package = importlib.import_module("onnx.backend.test.case.node")
    before = len(package._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"onnx.backend.test.case.node.{name}")
    return tuple(package._NodeTestCases[before:])


def _case(found: Any, file: str) -> NodeCase:
    model = onnx.ModelProto()
    model.CopyFrom(found.model)
    for entry in model.opset_import:
        if entry.domain == "" and entry.version < 13:
            entry.version, model.ir_version = 13, max(model.ir_version, 7)
    inputs, outputs = ([_array(x) for x in part] for part in found.data_sets[0])
    named = dict(zip((i.name for i in model.graph.input), inputs, strict=False))
    node = model.graph.node[0]
    meaning = OPERATORS.get(node.op_type)
    constants = [
        name
        for place, name in enumerate(node.input)
        if name in named and meaning is not None and meaning.is_number(place)
    ]
    for name in dict.fromkeys(constants):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(named[name]), name))
    left = tuple(value for name, value in named.items() if name not in constants)
    return NodeCase(found.name, file, node.op_type, model, left, tuple(outputs), found.rtol)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


class Batch(nn.Module):
    """Several models; takes all inputs, gives all outputs."""

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        waiting, results = list(inputs), list[torch.Tensor]()
        for model in self.models:
            count = len(model.inputs)
            found = model(*waiting[:count])
            results += found if isinstance(found, tuple) else [found]
            del waiting[:count]
        return tuple(results)


def problems(cases: Sequence[NodeCase]) -> dict[str, str]:
    """Compile cases as one program and run it; what is wrong with each, by its name."""
    batch = Batch([Model(case.model, {}) for case in cases])
    inputs = [torch.from_numpy(np.array(x)) for case in cases for x in case.inputs]
    sdfg = frontend.torch_module(batch, *inputs, name="onnx_cases")
    with dace.config.set_temporary("compiler", "build_type", value="None"):  # compiles faster
        binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    given = {n: binding.given(n, x) for n, x in zip(sdfg.arg_names, inputs, strict=True)}
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        found = run(**binding.arguments(), **given)
    results = list(binding.returned(found if isinstance(found, (tuple, list)) else [found]))
    wrong = {}
    for case, model in zip(cases, batch.models, strict=True):
        count = len(model.outputs)
        wrong[case.name] = case.different([x.numpy() for x in results[:count]])
        del results[:count]
    return wrong
