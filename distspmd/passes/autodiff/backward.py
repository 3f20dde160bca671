"""Gradients in a program: ``x.requires_grad_()``, ``loss.backward()``, ``x.grad``.

before -> after:  ``backward``, the library node of DaCe's front end  ->  maps and contractions that
compute the requested gradients;  arrays that are marked for gradients  ->  plain arrays.

DaCe's own derivation (2.0.0b1) fails on maxima, kept dimensions, ``x * x`` and more, and does not
initialise sums to zero. Here, the program is a list of operations with known derivatives. Values
that are overwritten, and loops and branches that a gradient would pass through, are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import sympy
from dace import SDFG, SDFGState, data, dtypes
from dace.sdfg import nodes
from dace.sdfg.state import ControlFlowBlock, StateSubgraphView
from dace.transformation.helpers import state_fission

from distspmd.analysis.index_bounds import Range, Scope, bound_index, constant
from distspmd.analysis.iteration_spaces import in_order, source
from distspmd.dace_compat.settings import quiet
from distspmd.errors import UnsupportedProgram
from distspmd.expressions.derivatives import NoDerivative, derivative, product
from distspmd.expressions.ir import Argument, Constant, Expression, Functions, names
from distspmd.expressions.operations import DType
from distspmd.expressions.python import PythonPrinter
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.nodes.host_call import HostCall
from distspmd.passes.autodiff.adjoints import Emitter, Term, index_of, parameters_along, ranges_of
from distspmd.passes.autodiff.host_calls import add_vjp, host_operations
from distspmd.passes.autodiff.operations import Element, ForwardOperation, as_sum, operations_of
from distspmd.passes.normalize.split_reads import separate_reads

_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)


def plain_parameters(sdfg: SDFG) -> None:
    """Make arrays of which gradients are asked plain arrays, in place.

    What ``backward`` writes is no longer marked as zeroed when it is allocated: it may be the
    program's result, and gets all of its values.
    """
    for inner in sdfg.all_sdfgs_recursive():
        for container in inner.arrays.values():
            if type(container).__name__ == "ParameterArray":
                container.__class__ = data.Array
    for state, node in _asked(sdfg):
        for edge in state.out_edges(node):
            edge.dst.setzero = False


def expand_backward(sdfg: SDFG) -> None:
    """Compute the gradients that a program asks for, in place.

    Raises:
        UnsupportedProgram: a gradient through what has no known derivative.
    """
    earlier: list[SDFGState] = []
    while asked := next(_asked(sdfg), None):
        earlier += _Backward(sdfg, *asked, earlier).expand()


def _asked(sdfg: SDFG) -> Iterator[tuple[SDFGState, Any]]:
    library = sys.modules.get("dace.autodiff.library.library")  # loaded if such a node is there
    if library is None:
        return
    for node, state in sdfg.all_nodes_recursive():
        if isinstance(node, library.BackwardPass) and isinstance(state, SDFGState):
            yield state, node


Key = tuple[str, int]
"""A container, and how often it was replaced before."""


@dataclass(frozen=True)
class _Step:
    """A map, a library node, a loop or a branch before the gradient is asked for."""

    block: ControlFlowBlock
    node: Any
    """The map entry or library node; None for a loop or a branch."""
    reads: frozenset[str]
    writes: frozenset[str]

    @property
    def where(self) -> str:
        """The source line for messages."""
        if isinstance(self.block, SDFGState):
            return str(source(self.block, self.node) or f"node {self.node}")
        found = (source(s, n) for s in _states(self.block) for n in s.nodes())
        return str(next(filter(None, found), self.block.label))


def _states(block: ControlFlowBlock) -> Iterator[SDFGState]:
    """The states inside of a loop or a branch."""
    for inner in block.all_control_flow_blocks():  # type: ignore[attr-defined]  # of its class
        if isinstance(inner, SDFGState):
            yield inner


def _steps_until(sdfg: SDFG, end: SDFGState) -> Iterator[_Step]:
    """What runs before a state of the outermost region, and in it, in order."""
    before = nx.ancestors(sdfg.nx, end) | {end}
    for block in nx.topological_sort(sdfg.nx.subgraph(before)):
        if not isinstance(block, SDFGState):
            accessed = [(s, n) for s in _states(block) for n in s.data_nodes()]
            reads = frozenset(n.data for _, n in accessed)
            writes = frozenset(n.data for s, n in accessed if s.in_degree(n))
            yield _Step(block, None, reads, writes)
            continue
        for node in in_order(block):
            if block.entry_node(node) is not None:
                continue
            if isinstance(node, (nodes.MapEntry, nodes.LibraryNode)):
                leave = block.exit_node(node) if isinstance(node, nodes.MapEntry) else node
                reads = frozenset(e.data.data for e in block.in_edges(node) if e.data.data)
                writes = frozenset(e.data.data for e in block.out_edges(leave) if e.data.data)
                yield _Step(block, node, reads, writes)


@dataclass(frozen=True)
class _Active:
    """An operation that a gradient goes through, and versions of what it reads and writes."""

    place: int
    """Of its step."""
    operation: ForwardOperation
    reads: Mapping[str, Key]
    written: Key


class _Backward:
    """The gradients that one ``backward`` asks for."""

    def __init__(
        self, sdfg: SDFG, state: SDFGState, node: Any, earlier: Sequence[SDFGState]
    ) -> None:
        self.sdfg, self.node, self.earlier = sdfg, node, earlier
        self.where = str(source(state, node) or f"node {node}")
        if state.parent_graph is not sdfg:
            raise UnsupportedProgram(
                f"{self.where}: backward() stands inside of a loop, a branch or a function. Write "
                "it behind them, or trace the step with torch: frontend.training_step."
            )
        seeds = self._seeds(state)
        wanted = {e.src_conn: e.data.data for e in state.out_edges(node)}
        self.results = {  # without gradients that nobody reads
            name: wanted[connector]
            for name, connector in sorted(node.required_gradients.items())
            if connector in wanted
        }
        before = self._cut(state)
        self.steps = list(_steps_until(sdfg, before))
        self.active = self._active(seeds)
        self.versions: dict[str, int] = {}
        self.operations = list(self._operations())
        self.asked = self._asked_keys()
        self.terms = {(name, self.versions.get(name, 0)): [t] for name, t in seeds.items()}
        self.gradients: dict[Key, str] = {}
        self.emitter = Emitter(sdfg, sdfg.add_state_after(before, "backward"))

    def _seeds(self, state: SDFGState) -> dict[str, Term]:
        """For each container that is derived its gradient: given, or one."""
        found = {}
        inputs = {e.dst_conn: e.data.data for e in state.in_edges(self.node)}
        for given, derived in self.node.given_gradients.items():
            name, of = inputs[given], inputs[derived]
            shape = self.sdfg.arrays[of].shape
            ranges, index = ranges_of(shape), index_of(shape)
            if name in self.sdfg.constants_prop:
                one = float(self.sdfg.constants_prop[name][1])
                found[of] = Term(ranges, {}, Constant(one, self._type_of(of)), index)
            else:
                reads = {"__g": Element(name, index)}
                found[of] = Term(ranges, reads, self._argument("__g", name), index)
        return found

    def _cut(self, state: SDFGState) -> SDFGState:
        """Remove the node; the state with what stands before it."""
        later = nx.descendants(state.nx, self.node)
        neighbours = [e.src for e in state.in_edges(self.node)]
        neighbours += [e.dst for e in state.out_edges(self.node)]
        state.remove_node(self.node)
        for node in neighbours:
            if node in state.nodes() and state.degree(node) == 0:
                state.remove_node(node)
        kept = [n for n in state.nodes() if n not in later]
        if len(kept) == state.number_of_nodes():
            return state
        if not kept:
            return self.sdfg.add_state_before(state, f"{state.label}_before")
        with quiet():
            return state_fission(StateSubgraphView(state, kept), allow_isolated_nodes=False)

    def _active(self, seeds: Collection[str]) -> set[str]:
        """Containers that depend on what gradients are asked of, and on which the loss depends.

        Gradients that were asked for earlier are numbers like any others, as in torch.
        """
        varied, needed = set(self.results), set(seeds)
        for step in self.steps:
            if step.reads & varied and step.block not in self.earlier:
                varied |= step.writes
        for step in reversed(self.steps):
            if step.writes & needed & varied:
                needed |= step.reads
        floats = {n for n, container in self.sdfg.arrays.items() if container.dtype in _FLOATS}
        return varied & needed & floats

    def _operations(self) -> Iterator[_Active]:
        """Operations that write what is active, in order; counts versions."""
        earlier: dict[Key, list[_Active]] = {}
        for place, step in enumerate(self.steps):
            if not step.writes & self.active:
                continue
            if step.node is None:
                raise UnsupportedProgram(
                    f"{step.where}: a gradient is asked through a loop or a branch, which writes "
                    f"{', '.join(sorted(step.writes & self.active))}. Write out its iterations or "
                    "use dace.map where they are independent, or trace the program with torch: "
                    "frontend.training_step."
                )
            assert isinstance(step.block, SDFGState)
            is_host = isinstance(step.node, HostCall)
            known = (host_operations if is_host else operations_of)(step.block, step.node)
            found = [o for o in known if o.written.data in self.active]
            reads = {e.data: self.versions.get(e.data, 0) for o in found for e in o.reads.values()}
            for operation in found:
                name = operation.written.data
                if self._replaces(operation):
                    self.versions[name] = self.versions.get(name, 0) + 1
                else:
                    operation = as_sum(operation)
                keys = {n: (e.data, reads[e.data]) for n, e in operation.reads.items()}
                written = name, self.versions.get(name, 0)
                active = _Active(place, operation, keys, written)
                self._check_apart(active, earlier.setdefault(written, []))
                earlier[written].append(active)
                yield active

    def _asked_keys(self) -> set[Key]:
        """Versions of containers that depend on those of which gradients are asked."""
        found = {(name, self.versions.get(name, 0)) for name in self.results}
        for active in self.operations:
            if active.operation.state not in self.earlier and found & set(active.reads.values()):
                found.add(active.written)
        return found

    def _replaces(self, operation: ForwardOperation) -> bool:
        """Whether all of a container gets new values."""
        shape = self.sdfg.arrays[operation.written.data].shape
        along = parameters_along(shape, operation.written.indices, operation.ranges)
        return along is not None and not operation.accumulates

    def _check_apart(self, active: _Active, earlier: Sequence[_Active]) -> None:
        """Values that were written must not be written over in part: their gradient would end."""
        if active.operation.accumulates:
            return
        mine = _box(active.operation)
        for other in earlier:
            theirs = _box(other.operation)
            apart = mine and theirs and intervals.is_empty(intervals.intersect(mine, theirs))
            if not apart and any(name in self.active for name, _ in other.reads.values()):
                self._refuse_overwriting(active.operation.written.data, active.operation.where)

    def _refuse_overwriting(self, name: str, where: str) -> None:
        raise UnsupportedProgram(
            f"{where}: {name!r} is written over, and the gradient of line {self.where} needs what "
            "was there before. Give the new values a name of their own, or add to those that "
            "are there: y[1:5] += ..."
        )

    def expand(self) -> list[SDFGState]:
        """Add the states that compute the gradients."""
        for active in reversed(self.operations):
            if active.written in self.terms and active.written in self.asked:
                self._derive(active)
        for name, target in self.results.items():
            current = name, self.versions.get(name, 0)
            shape = self.sdfg.arrays[name].shape
            terms = list(self.terms.get(current, []))
            if current in self.gradients:  # of an intermediate: its sum is there
                whole = {"__g": Element(self.gradients[current], index_of(shape))}
                given = self._argument("__g", self.gradients[current])
                terms = [Term(ranges_of(shape), whole, given, index_of(shape))]
            if any(target in step.writes for step in self.steps):  # gradients add up, as in torch
                old = {"__g": Element(target, index_of(shape))}
                before = self._argument("__g", target)
                terms.append(Term(ranges_of(shape), old, before, index_of(shape)))
            self.emitter.sum_into(target, terms)
        made = [state for state in (self.emitter.zeros, self.emitter.state) if state is not None]
        for state in made:
            separate_reads(state)
        return made

    def _derive(self, active: _Active) -> None:
        """Add the terms of what an operation reads."""
        operation = active.operation
        if isinstance(operation.node, HostCall):
            self._derive_host_call(active)
            return
        own: dict[str, Element] = {}
        if active.written not in self.gradients:
            terms = self.terms[active.written]
            self.gradients[active.written] = self.emitter.gradient(active.written[0], terms)
        gradient = Element(self.gradients[active.written], operation.written.indices)
        factor: Expression = self._argument("__g", gradient.data)
        if operation.reduction in _EXTREMES:
            own, factor = self._of_extreme(active)
        elif operation.reduction not in ("", "Sum"):
            raise UnsupportedProgram(
                f"{operation.where}: a gradient is asked through the reduction "
                f"{operation.reduction}, whose derivative is not known; sums, maxima and minima "
                "have one."
            )
        for name, key in active.reads.items():
            if key[0] not in self.active or key not in self.asked:
                continue
            try:
                slope = derivative(operation.value, name)
            except NoDerivative as unknown:
                raise UnsupportedProgram(
                    f"{operation.where}: a gradient is asked through "
                    f"{PythonPrinter().text(unknown.expression)!r}, whose "
                    "derivative is not known. Write it with functions that have one, such as exp, "
                    "log, sqrt, sin, tanh, maxima and powers."
                ) from None
            if slope is None:
                continue
            if key in self.gradients:
                self._refuse_overwriting(key[0], operation.where)
            value = product(factor, slope)
            elements = {**operation.reads, **own, "__g": gradient}
            reads = {n: elements[n] for n in sorted(names(value)) if n in elements}
            self._check_values(active, reads, own)
            info = operation.info
            target = operation.reads[name].indices
            term = Term(operation.ranges, reads, value, target, info)
            self.terms.setdefault(key, []).append(term)

    def _derive_host_call(self, active: _Active) -> None:
        """Add what the ``vjp`` of a host function gives, once for all of its results."""
        operation = active.operation
        results = [a for a in self.operations if a.operation.node is operation.node]
        if any(result.written in self.gradients for result in results):
            return
        for result in results:
            name = result.written[0]
            terms = self.terms.get(result.written, [])
            self.gradients[result.written] = self.emitter.gradient(name, terms)
        wanted = [n for n, k in active.reads.items() if k[0] in self.active and k in self.asked]
        for name in wanted:
            if active.reads[name] in self.gradients:
                self._refuse_overwriting(active.reads[name][0], operation.where)
        self._check_values(active, operation.reads, ())
        gradients = {result.written[0]: self.gradients[result.written] for result in results}
        terms_by_name = add_vjp(self.emitter, operation, gradients, sorted(wanted))
        for name, term in terms_by_name.items():
            self.terms.setdefault(active.reads[name], []).append(term)

    def _type_of(self, name: str) -> DType:
        dtype: DType = np.dtype(self.sdfg.arrays[name].dtype.as_numpy_dtype())
        return dtype

    def _argument(self, name: str, data: str) -> Argument:
        """An element of a container by a name."""
        return Argument(name, self._type_of(data))

    def _check_values(
        self, active: _Active, reads: Mapping[str, Element], own: Collection[str]
    ) -> None:
        """Values that a derivative is made of must still be there at the end."""
        for name, element in reads.items():
            first = active.place + (name in own)
            if any(element.data in step.writes for step in self.steps[first:]):
                later = [s for s in self.steps[first:] if element.data in s.writes]
                self._refuse_overwriting(element.data, later[0].where)

    def _of_extreme(self, active: _Active) -> tuple[dict[str, Element], Expression]:
        """The gradient goes to what equals the result, in equal parts."""
        operation = active.operation
        shape = self.sdfg.arrays[operation.written.data].shape
        along = parameters_along(shape, operation.written.indices, operation.ranges)
        stored = isinstance(operation.value, Argument)  # computed again it may equal nowhere
        if along is None or operation.accumulates or not stored:
            raise UnsupportedProgram(
                f"{operation.where}: a gradient is asked through a maximum or minimum of an "
                "expression, or with other values that were there. Give the values a name, and "
                "write np.max or np.min of that array."
            )
        dtype = self.sdfg.arrays[operation.written.data].dtype
        f = Functions(self._type_of(operation.written.data))
        test = f.equal(operation.value, self._argument("__o", operation.written.data))
        equal = f.where(test, 1.0, 0.0)
        reads = {**operation.reads, "__o": operation.written}
        term = Term(operation.ranges, reads, equal, (), operation.info)
        kept = [p for p in along if p]
        count = Element(
            self.emitter.total(term, kept, dtype),
            tuple(map(sympy.Symbol, kept)) or (sympy.Integer(0),),
        )
        part = self._argument("__g", operation.written.data) / self._argument("__n", count.data)
        factor = f.where(test, part, 0.0)
        return {"__o": operation.written, "__n": count}, factor


_EXTREMES = ("Max", "Min")


def _box(operation: ForwardOperation) -> Box | None:
    """What an operation writes at most; None if that is not known."""
    scope: Scope = {p: Range(e.begin, e.end - 1) for p, e in operation.ranges.items()}
    found = [bound_index(index, scope) for index in operation.written.indices]
    ends = [(constant(b.lower), constant(b.upper)) for b in found if b is not None]
    box = tuple((lo, hi + 1) for lo, hi in ends if lo is not None and hi is not None)
    return box if len(box) == len(found) else None
