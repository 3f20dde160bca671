"""The statement that calls a function of Python, with a letter for each dimension of its arrays.

Upper case letters are dimensions over which blocks are split; the others the function needs whole.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

from distspmd.frontend.from_numpy.arrays.elements import is_one
from distspmd.frontend.from_numpy.arrays.shapes import reshape
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, view_of
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.probes import Form
from distspmd.frontend.from_numpy.numpy.lapack_calls import whole_container
from distspmd.frontend.tensor_ir.statements import Length, Library
from distspmd.nodes.host_call import BROADCAST, HostCall

_BLOCKS, _WHOLE = "ABCDEFGH", "abcdefghijklmnopqrstuvwxyz"
MOST_BLOCKS = len(_BLOCKS)
"""So many dimensions may be split."""


def term_of(
    block: Sequence[Length], batch: Sequence[Length], core: Sequence[str], names: Sequence[str]
) -> str:
    """The letters of an operand.

    Args:
        block: extents of its dimensions that are split.
        batch: those of the whole call, to which they are broadcast.
        core: names of its other dimensions.
        names: of all such dimensions.
    """
    shift = len(batch) - len(block)
    split = [
        BROADCAST if is_one(n) and not is_one(batch[shift + d]) else _BLOCKS[shift + d]
        for d, n in enumerate(block)
    ]
    return "".join([*split, *(_WHOLE[names.index(name)] for name in core)])


def letters_of_whole(ndim: int) -> str:
    """The letters of an operand that is not split."""
    return _WHOLE[:ndim]


def emit_call(
    run: Context,
    name: str,
    tree: object,
    form: Form,
    data: Sequence[Tensor],
    terms: Sequence[str],
    made: Sequence[str],
    *,
    where: str = "one",
    vjp: str = "",
    copies: bool = False,
    stays: bool = True,
    into: Sequence[Any] = (),
    lines: str = "",
    tells: bool = False,
) -> list[Tensor]:
    """Call a function of Python; what it gives.

    Args:
        run: the interpreter.
        name: of the function, for messages and the name of the space.
        tree: of the call, as ``distspmd/runtime/host/library_calls.py`` reads it.
        form: of what it returns.
        data: arrays that the tree names.
        terms: their letters.
        made: letters of the results.
        where: "one" rank or "all" run it, if no dimension is split.
        vjp: the reference to what gives its gradients, if there is any.
        copies: whether it gets copies of its arrays, which it may write to.
        stays: whether it is called also where nobody reads what it gives.
        into: for each result the array that it changes; None for one of its own.
        lines: where it stands, of statements of the program.
        tells: whether the user is told of them.
    """
    tracer = run.tracer
    shapes = [tuple(leaf.shape) for leaf in form.leaves]
    given = [t if t.ndim else reshape(tracer, t, [1]) for t in data]
    terms = [term or BROADCAST for term in terms]
    made = [term or BROADCAST for term in made] or [BROADCAST]  # something tells who calls it
    label = name.rpartition(".")[2]
    views = [
        view_of(old.container)
        if old is not None and old.is_whole
        else tracer.fresh(tracer.target or label, shape or (1,), leaf.dtype)
        for shape, leaf, old in itertools.zip_longest(shapes, form.leaves, into)
    ] or [tracer.fresh(label, (1,), INT64)]
    question = {
        "host": tree,
        "name": name,
        "form": form.text,
        "copies": copies,
        "lines": lines,
        "tells": tells,
        "inputs": [
            [t.dtype.str, len(term), not t.ndim, t.weak is not None]
            for t, term in zip(data, terms, strict=True)
        ],
        "outputs": [
            [view.dtype.str, len(term), term == BROADCAST]
            for view, term in zip(views, made, strict=True)
        ],
    }
    subscripts = f"{','.join(terms)}->{','.join(made)}"
    inputs = {f"_in{n}": whole_container(run, t, t.dtype) for n, t in enumerate(given)}
    outputs = {f"_out{n}": view.container for n, view in enumerate(views)}
    make = _maker(label, json.dumps(question), subscripts, where == "all", vjp)
    tracer.add(Library(make, inputs, outputs, stays=stays))
    return [
        view if shape else run.part_of(view, 0) for view, shape in zip(views, shapes, strict=False)
    ]


def _maker(
    label: str, question: str, terms: str, everywhere: bool, vjp: str
) -> Callable[[], HostCall]:
    return lambda: HostCall(label, question, terms, everywhere, vjp)
