"""Gradients of host functions: a call of their ``vjp``, on the arrays of the call and gradients.

A call is an operation for each of its results, with the windows that it reads and no expression.
Its gradient is one more call, split as the call is, as far as all gradients have the split
dimensions: the gradient of an array that is broadcast over one is a sum over it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
import sympy
from dace import Memlet, SDFGState
from dace.subsets import Range

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Argument, Constant
from distspmd.nodes.host_call import HostCall
from distspmd.passes.autodiff.adjoints import Emitter, Term, index_of, ranges_of
from distspmd.passes.autodiff.operations import Element, ForwardOperation
from distspmd.runtime.host.host_functions import gradients_of

_CALLED = f"{gradients_of.__module__}:{gradients_of.__qualname__}"


def host_operations(state: SDFGState, node: HostCall) -> Iterator[ForwardOperation]:
    """What a call writes, by its results; the names of what it reads are its connectors."""
    reads = {
        str(edge.dst_conn): _first(edge.data)
        for edge in state.in_edges(node)
        if not edge.data.is_empty()
    }
    for edge in sorted(state.out_edges(node), key=lambda edge: str(edge.src_conn)):
        if not edge.data.is_empty():
            dtype = state.sdfg.arrays[edge.data.data].dtype
            nothing = Constant(0.0, np.dtype(dtype.as_numpy_dtype()))
            ranges, element = _window(edge.data)
            yield ForwardOperation(state, node, ranges, reads, element, nothing)


def _first(memlet: Memlet) -> Element:
    return Element(memlet.data, tuple(sympy.sympify(begin) for begin, _, _ in memlet.subset.ranges))


def _window(memlet: Memlet) -> tuple[Any, Element]:
    """Ranges of parameters, and the element of a container that a window has for them."""
    shape = memlet.subset.size()
    indices = (
        sympy.sympify(begin) + sympy.sympify(step) * index
        for index, (begin, _, step) in zip(index_of(shape), memlet.subset.ranges, strict=True)
    )
    return ranges_of(shape), Element(memlet.data, tuple(indices))


def add_vjp(
    emitter: Emitter,
    operation: ForwardOperation,
    gradients: Mapping[str, str],
    wanted: Sequence[str],
) -> dict[str, Term]:
    """Call the ``vjp`` of a host function.

    Args:
        emitter: of the state in which gradients are computed.
        operation: one of those of the call.
        gradients: the container with the gradient of each container that the call writes.
        wanted: connectors of the call for which gradients are needed.

    Returns:
        what is added to the gradient of what each connector reads.

    Raises:
        UnsupportedProgram: the function has no ``vjp``.
    """
    node, state = operation.node, operation.state
    assert isinstance(node, HostCall)
    question = json.loads(node.question)
    if not node.vjp:
        raise UnsupportedProgram(
            f"{operation.where}: a gradient is asked through the host function {question['name']}, "
            "which has none. Write @distspmd.host(vjp=...) with a function that returns the "
            "gradients of its arguments: vjp(gradient, *arguments)."
        )
    made = [_edge(state.out_edges(node), "src_conn", f"_out{n}") for n in _places(node, 1)]
    given = [_edge(state.in_edges(node), "dst_conn", f"_in{n}") for n in _places(node, 0)]
    numbers = [int(name.removeprefix("_in")) for name in wanted]
    call = HostCall(
        f"{node.label}_vjp",
        json.dumps(_question(question, json.loads(node.vjp), numbers)),
        vjp_terms(node.terms, numbers),
        node.everywhere,
    )
    call.debuginfo = operation.info
    emitter.state.add_node(call)
    windows = [
        *(
            (gradients.get(n := edge.data.data) or emitter.gradient(n, ()), edge.data)
            for edge in made
        ),
        *((edge.data.data, edge.data) for edge in given),
    ]
    for number, (name, memlet) in enumerate(windows):
        source = emitter.read(name)
        subset = Memlet(data=name, subset=str(memlet.subset))
        emitter.state.add_edge(source, None, call, f"_in{number}", subset)
    found = {}
    for place, (connector, number) in enumerate(zip(wanted, numbers, strict=True)):
        memlet = given[number].data
        found[connector] = _result(emitter, call, f"_out{place}", memlet, operation)
    return found


def _result(
    emitter: Emitter, call: HostCall, connector: str, memlet: Memlet, operation: ForwardOperation
) -> Term:
    """A container for a result of the call, which is added to a gradient in a window."""
    dtype = emitter.sdfg.arrays[memlet.data].dtype
    shape = memlet.subset.size()
    name, container = emitter.sdfg.add_transient(
        f"{memlet.data}_vjp", shape, dtype, find_new_name=True
    )
    whole = Memlet(data=name, subset=str(Range.from_array(container)))
    emitter.state.add_edge(call, connector, emitter.written(name), None, whole)
    ranges, target = _window(memlet)
    value = Argument("__g", np.dtype(dtype.as_numpy_dtype()))
    reads = {"__g": Element(name, index_of(shape))}
    return Term(ranges, reads, value, target.indices, operation.info)


def _edge(edges: Sequence[Any], which: str, connector: str) -> Any:
    return next(edge for edge in edges if getattr(edge, which) == connector)


def _places(node: HostCall, side: int) -> range:
    terms = node.terms.split("->")[side]
    return range(terms.count(",") + 1 if terms else 0)


def _question(question: Mapping[str, Any], vjp: Any, wanted: Sequence[int]) -> dict[str, Any]:
    """What Python is asked: gradients of inputs, from those of the outputs and all inputs."""
    _, given, named = question["host"]["call"]
    outputs = question["outputs"]
    count = len(outputs)
    parts = [{"value": n} for n in range(count)]
    gradient = parts[0] if question["form"] == "x" else {"tuple": parts}
    arguments = [_moved(each, count) for each in given]
    by_name = {name: _moved(each, count) for name, each in named.items()}
    paths = [_path([*enumerate(given), *named.items()], number) for number in wanted]
    inputs = question["inputs"]
    return {
        "host": {
            "call": [
                {"import": _CALLED},
                [vjp, question["name"], paths, gradient, *arguments],
                by_name,
            ]
        },
        "name": f"{question['name']}.vjp",
        "form": "x" if len(wanted) == 1 else f"({', '.join('x' for _ in wanted)})",
        "copies": question["copies"],
        "inputs": [*([*output, False] for output in outputs), *inputs],
        "outputs": [inputs[number][:3] for number in wanted],
    }


def _moved(tree: Any, count: int) -> Any:
    """A tree whose arrays have later numbers."""
    if isinstance(tree, dict):
        if "value" in tree:
            return {"value": tree["value"] + count}
        return {key: _moved(part, count) for key, part in tree.items()}
    return [_moved(part, count) for part in tree] if isinstance(tree, list) else tree


def _path(arguments: Sequence[tuple[Any, Any]], number: int) -> list[Any]:
    """Which argument an array is, by place or name, and where in it."""
    for key, tree in arguments:
        found = _path_in(tree, number)
        if found is not None:
            return [key, *found]
    raise AssertionError(f"no argument is array {number}")


def _path_in(tree: Any, number: int) -> list[Any] | None:
    if not isinstance(tree, dict):
        return None
    ((kind, part),) = tree.items()
    if kind == "value":
        return [] if part == number else None
    pairs = part if kind == "dict" else enumerate(part) if kind in ("tuple", "list") else ()
    for key, each in pairs:
        found = _path_in(each, number)
        if found is not None:
            return [key, *found]
    return None


def vjp_terms(terms: str, wanted: Sequence[int]) -> str:
    """Dimensions of the call for gradients, split where each of its results has the dimension."""
    before, _, after = terms.partition("->")
    inputs, outputs = before.split(","), after.split(",")
    made = [inputs[number] for number in wanted]
    split = {letter for letter in terms if letter.isupper()}
    whole = sorted(letter for letter in split if not all(letter in term for term in made))
    free = (letter for letter in ascii_lowercase if letter not in terms)
    renamed = {letter: next(free) for letter in whole}
    found = f"{','.join([*outputs, *inputs])}->{','.join(made)}"
    return "".join(renamed.get(letter, letter) for letter in found)
