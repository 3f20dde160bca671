"""Calls of host functions: a statement that Python answers, on whole arrays or on blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.lengths import common_length
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.asked import ask
from distspmd.frontend.from_numpy.host.blocks import emit_call, letters_of_whole, term_of
from distspmd.frontend.from_numpy.host.probes import Form, Leaf, NoForm, Operand, form_of
from distspmd.frontend.from_numpy.numpy.asking import Question
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.runtime.host.host_functions import HostFunction, Signature


@function(HostFunction)
def _call_host(
    run: Context, host: HostFunction, given: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """What a host function gives.

    Raises:
        Refusal: it stands in a parallel map, or what it returns is not known.
    """
    tracer = run.tracer
    if tracer.map.parallel or tracer.map.own:
        tracer.refuse(f"{host.name} in a parallel map: put it before, or write range for the map")
    question = _HostQuestion(run, host)
    parts = [host.reference(), [question.tree(v) for v in given]]
    return question.ask({"call": [*parts, {k: question.tree(v) for k, v in named.items()}]})


class _HostQuestion(Question):
    """A call of a host function, and the tensors that it takes."""

    def __init__(self, run: Context, host: HostFunction) -> None:
        super().__init__(run)
        self.host = host
        self._terms: Sequence[str] = ()
        self._made: Sequence[str] = ()

    def _form(self, tree: Any) -> Form:
        if self.host.signature is not None:
            return self._of_blocks(self.host.signature)
        operands = [Operand(t.shape, t.dtype, t.weak) for t in self.data]
        try:
            if self.host.like is None:
                self.run.tracer.refuse(
                    f"what the host function {self.host.name} returns is not known: write "
                    "@distspmd.host(like=lambda a: np.empty(a.shape)) with a function of its "
                    "arguments that returns something of that shape and type, or '-> float' for a "
                    "number"
                )
            return form_of({"call": [self.host.like, *tree["call"][1:]]}, operands, _of_no_length)
        except NoForm as problem:
            message = f"like= of the host function {self.host.name}: {problem}"
            raise Refusal(self.run.tracer.message(message)) from problem

    # -- blocks ---------------------------------------------------------------------------------

    def _of_blocks(self, signature: Signature) -> Form:
        """What it gives by its signature, and the letters of the dimensions of each operand."""
        tracer, name = self.run.tracer, self.host.name
        if len(self.data) != len(signature.inputs):
            tracer.refuse(
                f"the host function {name} has the signature {signature.text!r}, of "
                f"{len(signature.inputs)} arrays, and gets {len(self.data)}"
            )
        lengths: dict[str, Length] = {}
        blocks = []
        for tensor, core in zip(self.data, signature.inputs, strict=True):
            lead = tensor.ndim - len(core)
            if lead < 0:
                tracer.refuse(
                    f"the host function {name} has the signature {signature.text!r}, and gets an "
                    f"array of {tensor.ndim} dimensions for ({','.join(core)})"
                )
            blocks.append(tuple(tensor.shape[:lead]))
            for dimension, length in zip(core, tensor.shape[lead:], strict=True):
                known = lengths.setdefault(dimension, length)
                common_length(tracer, known, length, [t.shape for t in self.data])
        batch = tracer.broadcast_shape(blocks)
        pairs = zip(blocks, signature.inputs, strict=True)
        self._terms = [term_of(block, batch, core, [*lengths]) for block, core in pairs]
        self._made = [term_of(batch, batch, core, [*lengths]) for core in signature.outputs]
        shapes = [(*batch, *(lengths[d] for d in core)) for core in signature.outputs]
        types = self._types(len(shapes))
        leaves = [Leaf(s, t, None) for s, t in zip(shapes, types, strict=True)]
        examples = [np.zeros((1,) * len(s), t) for s, t in zip(shapes, types, strict=True)]
        text = "x" if len(leaves) == 1 else "(" + ", ".join("x" for _ in leaves) + ")"
        return Form(examples[0] if len(examples) == 1 else tuple(examples), text, tuple(leaves))

    def _types(self, count: int) -> list[DType]:
        """Types of the results: as ``like`` has them, or those of the arguments together."""
        if self.host.like is not None:
            found = self.host.like(*(np.zeros((1,) * t.ndim, t.dtype) for t in self.data))
            parts = found if isinstance(found, tuple) else (found,) * count
            return [np.asarray(part).dtype for part in parts]
        found = np.result_type(*(t.dtype for t in self.data))
        if found.kind not in "fc":
            self.run.tracer.refuse(
                f"the type that the host function {self.host.name} returns is not known: write "
                "like=np.float64 beside its signature, or another type"
            )
        return [found] * count

    # -- the statement --------------------------------------------------------------------------

    def _answered(self, tree: object, form: Form) -> list[Tensor]:
        run, tracer = self.run, self.run.tracer
        shapes = [tuple(leaf.shape) for leaf in form.leaves]
        every = [n for shape in (*(t.shape for t in self.data), *shapes) for n in shape]
        if tracer.is_decided_by_data(*every) or _is_handled(tracer):
            return self._answered_as_whole(tree, form)
        terms = self._terms or [letters_of_whole(t.ndim) for t in self.data]
        made = self._made or [letters_of_whole(len(shape)) for shape in shapes]
        vjp = json.dumps(self.host.vjp.reference()) if self.host.vjp else ""
        return emit_call(
            run,
            self.host.name,
            tree,
            form,
            self.data,
            terms,
            made,
            where=self.host.where,
            vjp=vjp,
        )

    def _answered_as_whole(self, tree: object, form: Form) -> list[Tensor]:
        """The answer where the run decides lengths, or where handlers are around."""
        outputs = [(leaf.shape, leaf.dtype) for leaf in form.leaves]
        asked = {"ask": tree, "form": form.text, "lengths": {}}
        found: list[Tensor] = ask(
            self.run,
            self.host.name,
            asked,
            self.data,
            outputs,
            where=self.host.where,
        )
        return found

    def ask(self, tree: object) -> Any:
        """What the function gives; of nothing it is called all the same."""
        form = self._form(tree)
        answers = self._answered(tree, form)
        weak = [leaf.weak for leaf in form.leaves]
        found = iter([replace(t, weak=w) if w else t for t, w in zip(answers, weak, strict=True)])
        return self._rebuilt(form.example, found, tree) if form.leaves else None


def _of_no_length(number: int, example: object) -> None:
    return None


def _is_handled(tracer: Any) -> bool:
    """Whether a handler of a ``try`` is around."""
    return any(frame.attempts for frame in tracer.frames)
