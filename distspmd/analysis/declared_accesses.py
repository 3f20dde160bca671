"""What library nodes of others read and write: by their pure expansion, as they state it, or whole.

A node runs as what it is, with the implementation that its user chose; what is said here serves
analysis alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dace import SDFG, Memlet
from dace.sdfg import nodes

from distspmd.errors import UnsupportedProgram, describe
from distspmd.nodes.blas_products import LOOPS

PURE = (LOOPS, "pure", "specialize", "reduction")
"""Expansions that become maps in the end, the best first."""
_UNDECIDED = (None, "Auto")
"""Implementations that leave the choice to DaCe."""
_WHOLE = "__whole"
"""The parameter of a node that runs whole: it has one value."""

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class NodeAccesses:
    """The one map that a library node is, as far as its operands are concerned.

    ``NodeAccesses({"i": n}, {"_x": "i, 0:m"}, {"_y": "i"})`` says that the element ``i`` of ``_y``
    is made of the row ``i`` of ``_x``.

    Attributes:
        parameters: each with its extent, or its range, ``"1:n"``.
        reads: connector -> what an iteration reads of its operand, in indices that begin at 0.
        writes: connector -> what an iteration writes; all iterations together write all of it.
        reductions: connector -> the function that combines what several iterations write to one
            element, ``"lambda a, b: a + b"``; the node begins at its neutral element.
    """

    parameters: Mapping[str, Any]
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    reductions: Mapping[str, str] = field(default_factory=dict)


Stated = Callable[[Any, Mapping[str, Shape]], "NodeAccesses | SDFG"]
_stated: dict[type, Stated] = {}


def node_accesses(kind: type) -> Callable[[Stated], Stated]:
    """Say what library nodes of a class read and write, so that ranks share their work.

    ``@distspmd.analysis.node_accesses(MyNode)`` above a function of a node and of the shapes of its
    operands, by connector. The function returns :class:`NodeAccesses`, or an SDFG of one map whose
    containers are called as the connectors. Each rank then runs the node, with the implementation
    that it has, on its part. Subclasses are meant, too.

    Args:
        kind: a class of library nodes.
    """
    if not (isinstance(kind, type) and issubclass(kind, nodes.LibraryNode)):
        raise UnsupportedProgram(
            f"node_accesses: {describe(kind)} is no class of library nodes. Write the class that "
            "@dace.library.node decorates."
        )

    def register(function: Stated) -> Stated:
        _stated[kind] = function
        return function

    return register


def stated_by(node: nodes.LibraryNode) -> Stated | None:
    """The function that says what a node reads and writes, if there is one."""
    return next((_stated[kind] for kind in type(node).__mro__ if kind in _stated), None)


def implementations(node: nodes.LibraryNode) -> list[str]:
    """Names of the expansions of a kind of node."""
    return list(getattr(type(node), "implementations", {}))


def is_of_others(node: nodes.Node) -> bool:
    """Whether a node is a library node that is none of this package."""
    kinds = nodes.LibraryNode, type(node).__module__.startswith("distspmd.")
    return isinstance(node, kinds[0]) and not kinds[1]


def has_chosen(node: nodes.LibraryNode) -> bool:
    """Whether the user chose an implementation that is no pure expansion, or its class has one."""
    chosen = node.implementation or getattr(type(node), "default_implementation", None)
    return chosen not in _UNDECIDED and chosen not in PURE and chosen in implementations(node)


def runs_as_it_is(node: nodes.Node) -> bool:
    """Whether a library node of others stays, with its implementation: no maps take its place."""
    if not is_of_others(node):
        return False
    assert isinstance(node, nodes.LibraryNode)
    is_pure = any(name in PURE for name in implementations(node))
    return has_chosen(node) or stated_by(node) is not None or not is_pure


def add_stated(proxy: SDFG, node: nodes.LibraryNode, windows: Mapping[str, str]) -> None:
    """Fill an SDFG that has the windows of a node with what is stated of it.

    Args:
        proxy: in which each window is a container.
        node: of which something is stated.
        windows: connector -> container.
    """
    function = stated_by(node)
    assert function is not None
    found = function(node, {c: tuple(proxy.arrays[name].shape) for c, name in windows.items()})
    if isinstance(found, SDFG):
        _add_nested(proxy, node, windows, found)
    elif isinstance(found, NodeAccesses):
        _check(node, windows, found)
        _add_map(proxy, node, windows, found)
    else:
        raise UnsupportedProgram(
            f"{node.label}: what is stated of {type(node).__name__} is {describe(found)}; write "
            "NodeAccesses({'i': n}, reads={...}, writes={...}), or an SDFG."
        )


def add_whole(proxy: SDFG, node: nodes.LibraryNode, windows: Mapping[str, str]) -> None:
    """Fill an SDFG with one iteration that reads and writes the windows of a node whole."""
    subsets = {
        connector: ", ".join(f"0:{extent}" for extent in proxy.arrays[name].shape)
        for connector, name in windows.items()
    }
    reads = {c: s for c, s in subsets.items() if c in _entering(node)}
    writes = {c: s for c, s in subsets.items() if c not in reads}
    _add_map(proxy, node, windows, NodeAccesses({_WHOLE: 1}, reads, writes))


def is_whole(parameters: tuple[str, ...]) -> bool:
    """Whether these are the parameters of a node that runs whole."""
    return parameters == (_WHOLE,)


def _entering(node: nodes.LibraryNode) -> set[str]:
    return {*map(str, node.in_connectors), "_in"}


def _check(node: nodes.LibraryNode, windows: Mapping[str, str], found: NodeAccesses) -> None:
    named = {*found.reads, *found.writes}
    if named != {*windows}:
        wrong = min(named ^ {*windows})
        raise UnsupportedProgram(
            f"{node.label}: what is stated of {type(node).__name__} "
            + (f"names {wrong!r}, which is no" if wrong in named else f"does not name {wrong!r}, a")
            + f" connector of it; it has {', '.join(sorted(windows))}."
        )


def _add_map(
    proxy: SDFG, node: nodes.LibraryNode, windows: Mapping[str, str], found: NodeAccesses
) -> None:
    inside = SDFG("stated")
    for connector, name in windows.items():
        inside.add_array(connector, proxy.arrays[name].shape, proxy.arrays[name].dtype)
    ranges: dict[str, Any] = {
        name: extent if isinstance(extent, str) and ":" in extent else f"0:{extent}"
        for name, extent in found.parameters.items()
    }
    inputs = {f"__in{n}": Memlet(f"{c}[{s}]") for n, (c, s) in enumerate(found.reads.items())}
    outputs = {
        f"__out{n}": Memlet(f"{c}[{s}]", wcr=found.reductions.get(c))
        for n, (c, s) in enumerate(found.writes.items())
    }
    for memlet in (*inputs.values(), *outputs.values()):
        shape = inside.arrays[memlet.data].shape
        if memlet.subset.dims() != len(shape):
            raise UnsupportedProgram(
                f"{node.label}: what is stated of {type(node).__name__} has {memlet.subset.dims()} "
                f"indices for {memlet.data!r}, {memlet.subset}, whose shape is {tuple(shape)}."
            )
    code = "\n".join(f"{name} = 0" for name in outputs)
    try:
        begin = inside.add_state()
        for connector in found.reductions:
            shape = inside.arrays[connector].shape
            extents: dict[str, Any] = {f"__i{d}": f"0:{e}" for d, e in enumerate(shape)}
            first = {"__out": Memlet(f"{connector}[{', '.join(extents)}]")}
            begin.add_mapped_tasklet("begin", extents, {}, "__out = 0", first, external_edges=True)
        state = inside.add_state_after(begin)
        state.add_mapped_tasklet(node.label, ranges, inputs, code, outputs, external_edges=True)
        _add_nested(proxy, node, windows, inside)
    except Exception as problem:  # of whatever somebody states
        raise UnsupportedProgram(
            f"{node.label}: what is stated of {type(node).__name__}, {found}, is no map over its "
            f"operands: {problem}"
        ) from problem


def _add_nested(
    proxy: SDFG, node: nodes.LibraryNode, windows: Mapping[str, str], inside: SDFG
) -> None:
    """Put an SDFG with containers of the names of the connectors between the windows."""
    missing = [connector for connector in windows if connector not in inside.arrays]
    if missing:
        raise UnsupportedProgram(
            f"{node.label}: the SDFG that is stated of {type(node).__name__} has no container "
            f"{missing[0]!r}; it needs one for each connector, {', '.join(sorted(windows))}."
        )
    state, entering = proxy.add_state(), _entering(node)
    reads = [connector for connector in windows if connector in entering]
    writes = [connector for connector in windows if connector not in entering]
    symbols = {str(s): s for s in inside.free_symbols}
    taken: dict[str, Any] = dict.fromkeys(reads)
    given: dict[str, Any] = dict.fromkeys(writes)
    nested = state.add_nested_sdfg(inside, taken, given, symbol_mapping=symbols)
    for connector in reads:
        memlet = Memlet.from_array(windows[connector], proxy.arrays[windows[connector]])
        state.add_edge(state.add_read(windows[connector]), None, nested, connector, memlet)
    for connector in writes:
        memlet = Memlet.from_array(windows[connector], proxy.arrays[windows[connector]])
        state.add_edge(nested, connector, state.add_write(windows[connector]), None, memlet)
