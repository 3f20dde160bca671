"""Statements that ask Python while the program runs: a question, its inputs and its outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.lines import cpp, flat, run_on_lines
from distspmd.frontend.from_numpy.arrays.shapes import reshape, size_of
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import held
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.nodes.tell import literal

HEADER = "kernels/ask.hpp"


def ask(
    run: Context,
    name: str,
    question: Mapping[str, Any],
    inputs: Sequence[Tensor],
    outputs: Sequence[tuple[tuple[Length, ...], DType]],
    *,
    where: str = "",
) -> list[Tensor]:
    """Ask a question; the program ends with an error where there is no answer.

    Args:
        run: the interpreter.
        name: of what is asked, for messages and the name of the space.
        question: what ``runtime/host/library_calls.py`` reads, but for its inputs and outputs.
        inputs: that it names by their numbers.
        outputs: shapes and types of what the answer is written to.
        where: "all" ranks ask, or "one" alone; any that have the inputs where it says nothing.
    """
    tracer = run.tracer
    if tracer.map.parallel or tracer.map.own:
        tracer.refuse(f"{name} in a parallel map: put it before, or write range for the map")
    lines = [reshape(tracer, t, [1]) if not t.ndim else flat(tracer, t) for t in inputs]
    every: list[tuple[tuple[Length, ...], DType]] = [((1,), INT64), *outputs]
    told = {
        **question,
        "inputs": [[t.dtype.str, t.ndim, t.weak is not None] for t in inputs],
        "outputs": [[np.dtype(dtype).str, len(shape)] for shape, dtype in every],
    }
    shapes = [*(t.shape for t in inputs), *(shape for shape, _ in every)]
    extents = [n for shape in shapes for n in shape]
    status, *found = run_on_lines(
        tracer,
        name.replace(".", "_"),
        (),
        lines,
        [],
        [(size_of(shape) if shape else 1, dtype) for shape, dtype in every],
        _code(json.dumps(told), len(lines), len(every), extents),
        HEADER,
        question=json.dumps(told),
        extents=tuple(extents),
        where=where,
    )
    run.call(held.checked, [run.part_of(status, 0), f"{name} gave no answer; "], {})
    return [_of_shape(run, view, shape) for view, (shape, _) in zip(found, outputs, strict=True)]


def _of_shape(run: Context, view: View, shape: Sequence[Length]) -> Tensor:
    found: Tensor = run.part_of(view, 0) if not shape else reshape(run.tracer, view, shape)
    return found


def _code(text: str, inputs: int, outputs: int, extents: Sequence[Length]) -> str:
    pointers = ", ".join(f"_line{n}" for n in range(inputs)) or "nullptr"
    results = ", ".join(f"_result{n}" for n in range(outputs))
    numbers = ", ".join(map(cpp, extents)) or "0"
    return (
        f"const void *const __asked[] = {{{pointers}}};\n"
        f"void *const __answers[] = {{{results}}};\n"
        f"const int64_t __extents[] = {{{numbers}}};\n"
        f"distspmd::ask({literal(text)}, __asked, __answers, __extents);"
    )
