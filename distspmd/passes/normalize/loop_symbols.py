"""Symbols that iterations hand on: copies of them are merged, and what only counts is a number.

before -> after:  ``if c: m = n + 1 else: m = n``, ``n = m``  ->  ``if c: n = n + 1``  ->
``if c: number = number + 1``, a tasklet, in ``n = number`` behind the loop. So a counter is a sum
like any other.
"""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np
import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState, dtypes, symbolic
from dace.properties import CodeBlock
from dace.sdfg.graph import Edge
from dace.sdfg.state import (
    AbstractControlFlowRegion,
    BreakBlock,
    ConditionalBlock,
    ContinueBlock,
    ControlFlowBlock,
    LoopRegion,
    ReturnBlock,
)

from distspmd.analysis.accesses import bound_around
from distspmd.analysis.dependences import LoopRange, is_place
from distspmd.analysis.loop_values import header_names, names_in, words
from distspmd.analysis.whole_program import is_straight
from distspmd.expressions.ir import Argument, Constant, Expression, IndexValue, apply
from distspmd.nodes.computation import Computation
from distspmd.passes.normalize.put_symbols import can_put_in, put_in, put_in_edge

_OtherEdge = Edge[InterstateEdge]


class _Uses:
    """Which edges assign each symbol, and which edges, states and headers read it."""

    def __init__(self, sdfg: SDFG) -> None:
        self.sdfg = sdfg
        self.assigned: dict[str, list[_OtherEdge]] = {}
        self.read: dict[str, list[Any]] = {}
        for container in sdfg.arrays.values():
            self._add(map(str, container.free_symbols), container)
        for block in sdfg.all_control_flow_blocks():
            if isinstance(block, SDFGState):
                self._add(names_in(block), block)
            elif isinstance(block, LoopRegion | ConditionalBlock):
                self._add(header_names(block), block)
        for edge in sdfg.all_interstate_edges(recursive=False):
            texts = [*edge.data.assignments.values(), edge.data.condition.as_string]
            self._add({word for text in texts for word in words(str(text))}, edge)
            for name in edge.data.assignments:
                self.assigned.setdefault(name, []).append(edge)

    def _add(self, names: Iterable[str], reader: object) -> None:
        for name in names:
            if name in self.sdfg.symbols:
                self.read.setdefault(name, []).append(reader)

    def rename(self, old: str, new: str, copy: _OtherEdge, within: Iterable[_OtherEdge]) -> None:
        """Give a symbol the name of the one that it is copied to at an edge."""
        copy.data.assignments.pop(new)
        for edge in within:
            value = edge.data.assignments.pop(old)
            if str(value) != new:
                edge.data.assignments[new] = value
                self.assigned.setdefault(new, []).append(edge)
            else:
                self.read[new].remove(edge)
        self.assigned[new].remove(copy)
        for known in (self.assigned, self.read):
            known.pop(old, None)
        self.sdfg.remove_symbol(old)


def merge_copies(sdfg: SDFG) -> None:
    """Let copies of symbols that branches and loops make have the names of their originals."""
    regions = list(sdfg.all_control_flow_regions(recursive=False))
    blocks = [r for r in regions if isinstance(r, ConditionalBlock) and _is_in_loop(r)]
    loops = [r for r in regions if isinstance(r, LoopRegion) and _is_in_loop(r)]
    if not blocks and not loops:
        return
    uses = _Uses(sdfg)
    for region in reversed([r for r in regions if r in blocks or r in loops]):
        if isinstance(region, ConditionalBlock):
            _merge_branches(uses, region)
        else:
            _merge_loop(uses, region)


def _is_in_loop(block: ControlFlowBlock) -> bool:
    while block is not block.sdfg:
        block = block.parent_graph
        if isinstance(block, LoopRegion):
            return True
    return False


# -- copies behind branches ---------------------------------------------------------------------


def _merge_branches(uses: _Uses, block: ConditionalBlock) -> None:
    """``if c: m = ... else: m = n``, ``n = m``: the branches assign ``n``."""
    passed: set[str] = set()
    for copy in _edges_behind(block, passed):
        for new, value in list(copy.data.assignments.items()):
            old = str(value)
            others = {
                w for n, v in copy.data.assignments.items() if n != new for w in words(str(v))
            }
            if new not in passed | others and _is_made_inside(uses, block, copy, old, new):
                uses.rename(old, new, copy, uses.assigned[old])
    for condition, branch in list(block.branches):
        if condition is None and _is_empty(branch):
            block.remove_branch(branch)


def _edges_behind(block: ControlFlowBlock, passed: set[str]) -> Iterator[_OtherEdge]:
    """Edges from a block on, one after the other; what is read between them is added to a set."""
    region = block.parent_graph
    while True:
        after = region.out_edges(block)
        if len(after) != 1 or not after[0].data.is_unconditional():
            return
        yield after[0]
        made = after[0].data.assignments
        passed |= made.keys() | {w for v in made.values() for w in words(str(v))}
        block = after[0].dst
        if region.in_degree(block) != 1:
            return
        passed |= _mentioned(block)


def _mentioned(block: ControlFlowBlock) -> set[str]:
    """Names that a block reads or assigns."""
    if isinstance(block, SDFGState):
        return names_in(block)
    found = header_names(block) if isinstance(block, LoopRegion | ConditionalBlock) else set()
    if isinstance(block, AbstractControlFlowRegion):
        for edge in block.all_interstate_edges(recursive=False):
            found |= edge.data.assignments.keys() | words(edge.data.condition.as_string)
            found |= {w for v in edge.data.assignments.values() for w in words(str(v))}
        for inner in block.all_control_flow_blocks():
            if inner is not block:
                found |= _mentioned(inner)
    return found


def _is_made_inside(
    uses: _Uses, block: ConditionalBlock, copy: _OtherEdge, old: str, new: str
) -> bool:
    """Whether branches make a symbol for nothing but the copy, and look at no other one there."""
    if old == new or uses.read.get(old) != [copy] or old not in uses.assigned:
        return False
    inside = _edges_in(block)
    if any(edge not in inside for edge in uses.assigned[old]) or _assigned(block, old) != 1:
        return False
    if any(edge in inside for edge in uses.assigned.get(new, ())):
        return False
    for edge in uses.assigned[old]:
        if any(new in words(str(v)) for n, v in edge.data.assignments.items() if n != old):
            return False
    readers = [each for each in uses.read.get(new, ()) if _is_inside(block, each, inside)]
    return all(each in uses.assigned[old] for each in readers)


def _edges_in(region: AbstractControlFlowRegion) -> list[_OtherEdge]:
    return list(region.all_interstate_edges(recursive=False))


def _is_inside(block: AbstractControlFlowRegion, reader: Any, edges: list[_OtherEdge]) -> bool:
    if isinstance(reader, ControlFlowBlock):
        return any(each is reader for each in (block, *block.all_control_flow_blocks()))
    return any(each is reader for each in edges)


def _assigned(region: ControlFlowBlock, name: str) -> int:
    """How often each way through a region assigns a symbol: 0 or 1; else -1."""
    if isinstance(region, ConditionalBlock):
        counts = {_assigned(branch, name) for _, branch in region.branches}
        if all(condition is not None for condition, _ in region.branches):
            counts.add(0)
        return counts.pop() if len(counts) == 1 else -1
    if not isinstance(region, AbstractControlFlowRegion):
        return 0
    found = [_assigned(block, name) for block in region.nodes()]
    found += [int(name in edge.data.assignments) for edge in region.edges()]
    if isinstance(region, LoopRegion) or not is_straight(region):
        return -1 if any(found) else 0
    return -1 if -1 in found or sum(found) > 1 else sum(found)


def _is_empty(region: AbstractControlFlowRegion) -> bool:
    states = all(isinstance(b, SDFGState) and not b.nodes() for b in region.nodes())
    return states and not any(edge.data.assignments for edge in region.edges())


# -- copies around loops ------------------------------------------------------------------------


def _merge_loop(uses: _Uses, loop: LoopRegion) -> None:
    """``m = n``, a loop that changes ``m``, ``n = m``: the loop changes ``n``."""
    inside, before = _edges_in(loop), list(_edges_before(loop))
    passed: set[str] = set()
    for copy in _edges_behind(loop, passed):
        for new, value in list(copy.data.assignments.items()):
            others = {
                w for n, v in copy.data.assignments.items() if n != new for w in words(str(v))
            }
            again = any(new in edge.data.assignments for edge in before)
            if again or new in passed | others | words(str(value)):
                continue
            made = [(e, n) for e in before for n, v in _items(e) if str(v) == new]
            for first, old in [(e, n) for e, n in made if n in words(str(value))][:1]:
                _merge_around(uses, loop, inside, (first, copy), (old, new))


def _edges_before(block: ControlFlowBlock) -> Iterator[_OtherEdge]:
    """Edges to a block, through states that do nothing."""
    region = block.parent_graph
    while True:
        before = region.in_edges(block)
        if len(before) != 1 or not before[0].data.is_unconditional():
            return
        yield before[0]
        block = before[0].src
        if not isinstance(block, SDFGState) or block.nodes() or region.out_degree(block) != 1:
            return


def _merge_around(
    uses: _Uses,
    loop: LoopRegion,
    inside: list[_OtherEdge],
    copies: tuple[_OtherEdge, _OtherEdge],
    names: tuple[str, str],
) -> None:
    """Let a loop change a symbol in place of its copy, if it does nothing else with either."""
    (first, last), (old, new) = copies, names
    others = [e for e in uses.assigned[old] if e is not first]
    readers = [r for r in uses.read.get(old, ()) if r is not last]
    free = not any(_is_inside(loop, r, inside) for r in uses.read.get(new, ()))
    free &= not any(e in inside for e in uses.assigned.get(new, ()))
    if not free or not all(e in inside for e in (*others, *readers)):
        return
    value = str(last.data.assignments[new])
    uses.rename(old, new, last, [])
    if value != old:
        last.data.assignments[new] = _put(value, old, new)
        uses.assigned[new].append(last)
        uses.read[new].append(last)
    first.data.assignments.pop(old)
    uses.read[new].remove(first)
    for edge in {id(e): e for e in (*others, *readers)}.values():
        found = {_put(n, old, new): _put(str(v), old, new) for n, v in _items(edge)}
        edge.data.assignments = found
    uses.assigned.setdefault(new, []).extend(others)
    uses.read[new].extend(readers)


def _items(edge: _OtherEdge) -> Iterator[tuple[str, Any]]:
    yield from edge.data.assignments.items()


def _put(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}\b", new, text)


# -- symbols that grow evenly -------------------------------------------------------------------


def close_symbols(sdfg: SDFG) -> None:
    """Put ``n + 2 * i`` for a symbol to which each iteration adds two, in place, inner loops first.

    Behind the loop it is assigned once.
    """
    for loop in reversed(list(sdfg.all_control_flow_regions(recursive=False))):
        if isinstance(loop, LoopRegion) and is_straight(loop) and not _may_end(loop):
            values = LoopRange.of(loop)
            names = {name for edge in loop.edges() for name in edge.data.assignments}
            if values is not None:
                for name in sorted(names):
                    _close(loop, values, name)


def _may_end(loop: LoopRegion) -> bool:
    kinds = (BreakBlock, ContinueBlock, ReturnBlock)
    return any(isinstance(block, kinds) for block in loop.all_control_flow_blocks())


def _close(loop: LoopRegion, values: LoopRange, name: str) -> None:
    sdfg, count = loop.sdfg, values.count
    every = _edges_in(loop)
    own = [edge for edge in every if name in edge.data.assignments]
    varying = {n for e in every for n in e.data.assignments} | {str(loop.loop_variable)}
    if count is None or not all(edge in loop.edges() for edge in own):
        return
    if name not in sdfg.symbols or not all(can_put_in(b, name) for b in loop.nodes()):
        return
    added: dict[int, int] = {}
    for edge in own:
        more = _more(sdfg, symbolic.pystr_to_symbolic(str(edge.data.assignments[name])), name)
        others = {w for n, v in edge.data.assignments.items() if n != name for w in words(str(v))}
        if not isinstance(more, Constant) or name in others or name in header_names(loop):
            return
        added[id(edge)] = _whole(more)
    total = sum(added.values())
    if total % values.step or {str(s) for s in count.free_symbols} & varying:
        return
    variable = sympy.Symbol(str(loop.loop_variable))
    begin = _begin(loop, name)
    _put_places(loop, name, begin + total // values.step * (variable - values.first), added)
    last = loop.parent_graph.add_state_after(loop, f"{name}_last")  # type: ignore[arg-type]
    (leaving,) = loop.parent_graph.edges_between(loop, last)
    leaving.data.assignments[name] = f"({begin} + {total} * Max(0, {count}))"


def _whole(number: Constant) -> int:
    value: Any = number.value
    return int(value)


def _put_places(loop: LoopRegion, name: str, place: sympy.Expr, added: dict[int, int]) -> None:
    """Put in what a symbol is in each iteration; edges assign it no more, which add to it."""
    for block in nx.topological_sort(loop.nx):
        put_in(block, {name: sympy.expand(place)})
        for edge in loop.out_edges(block):
            edge.data.assignments.pop(name, None)
            put_in_edge(edge.data, {name: sympy.expand(place)})
            place += added.get(id(edge), 0)


def _begin(loop: LoopRegion, name: str) -> sympy.Expr:
    """What a symbol is before a loop: the number that it was given last, if that is seen."""
    region: Any = loop.parent_graph
    block: Any = loop
    while len(region.in_edges(block)) == 1:
        (edge,) = region.in_edges(block)
        if name in edge.data.assignments:
            value = symbolic.pystr_to_symbolic(str(edge.data.assignments[name]))
            return value if value.is_Integer else sympy.Symbol(name)
        block = edge.src
        inside = [] if isinstance(block, SDFGState) else _edges_in(block)
        if any(name in each.data.assignments for each in inside):
            break
    return sympy.Symbol(name)


# -- loops that count themselves ----------------------------------------------------------------

_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def count_while(sdfg: SDFG) -> None:
    """``while i < n: ...; i = i + 1`` is a loop over a range, in place."""
    for loop in list(sdfg.all_control_flow_regions(recursive=False)):
        if isinstance(loop, LoopRegion) and not loop.loop_variable and is_straight(loop):
            found = None if _may_end(loop) else _compared(loop)
            if found is not None:
                _make_range(loop, *found)


def _compared(loop: LoopRegion) -> tuple[str, str, str] | None:
    """The symbol in the condition of a loop, the comparison, and an end that stays the same."""
    tree = ast.parse(loop.loop_condition.as_string.strip(), mode="eval").body
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or loop.inverted:
        return None
    operator = _COMPARED.get(type(tree.ops[0]))
    end = ast.unparse(tree.comparators[0])
    changed = {n for e in _edges_in(loop) for n in e.data.assignments} | loop.sdfg.arrays.keys()
    if not isinstance(tree.left, ast.Name) or operator is None or words(end) & changed:
        return None
    return tree.left.id, operator, end


def _make_range(loop: LoopRegion, name: str, operator: str, end: str) -> None:
    sdfg = loop.sdfg
    edges = [edge for edge in _edges_in(loop) if name in edge.data.assignments]
    if len(edges) != 1 or edges[0] not in loop.edges() or name not in sdfg.symbols:
        return
    (edge,) = edges
    more = _more(sdfg, symbolic.pystr_to_symbolic(str(edge.data.assignments[name])), name)
    others = {w for n, v in edge.data.assignments.items() if n != name for w in words(str(v))}
    if not isinstance(more, Constant) or name in others:
        return
    step = _whole(more)
    upwards = operator in ("<", "<=")
    if step == 0 or (step > 0) != upwards or not all(can_put_in(b, name) for b in loop.nodes()):
        return
    variable = sdfg.find_new_symbol(name)
    sdfg.add_symbol(variable, sdfg.symbols[name])
    first = _begin(loop, name)
    _put_places(loop, name, sympy.Symbol(variable), {id(edge): step})
    loop.loop_variable = variable
    loop.init_statement = CodeBlock(f"{variable} = {first}")
    loop.loop_condition = CodeBlock(f"{variable} {operator} {end}")
    loop.update_statement = CodeBlock(f"{variable} = {variable} + ({step})")
    last = loop.parent_graph.add_state_after(loop, f"{name}_last")  # type: ignore[arg-type]
    (leaving,) = loop.parent_graph.edges_between(loop, last)
    length = f"({end}) - ({first})" if upwards else f"({first}) - ({end})"
    closed = 1 if operator in ("<=", ">=") else 0
    turns = f"int_floor(Max(0, {length} + {abs(step) - 1 + closed}), {abs(step)})"
    leaving.data.assignments[name] = f"({first} + {step} * {turns})"


# -- indices that are surely inside -------------------------------------------------------------


def drop_checks(sdfg: SDFG) -> None:
    """Put indices in the place of symbols that compare them, where they are surely inside."""
    edges = list(sdfg.all_interstate_edges(recursive=False))
    times = collections.Counter(name for edge in edges for name in edge.data.assignments)
    for loop in list(sdfg.all_control_flow_regions(recursive=False)):
        if not isinstance(loop, LoopRegion) or LoopRange.of(loop) is None:
            continue
        for edge in loop.edges() if is_straight(loop) else ():
            for name, value in list(edge.data.assignments.items()):
                if times[name] == 1 and str(value).startswith("distspmd_checked_index"):
                    _drop_check(loop, edge, name, str(value))


def _drop_check(loop: LoopRegion, edge: _OtherEdge, name: str, text: str) -> None:
    value = symbolic.pystr_to_symbolic(text)
    if len(value.args) != 3 or not all(can_put_in(block, name) for block in loop.nodes()):
        return
    index, extent, _ = value.args
    changed = {n for e in _edges_in(loop) for n in e.data.assignments} | loop.sdfg.arrays.keys()
    if {str(s) for s in value.free_symbols} & changed:
        return
    if not is_place(index, extent, bound_around(edge.src)):
        return
    edge.data.assignments.pop(name)
    by = {name: index.subs({s: sympy.Symbol(s.name) for s in index.free_symbols})}
    for block in loop.nodes():
        put_in(block, by)
        for each in loop.out_edges(block):
            put_in_edge(each.data, by)


# -- counters -----------------------------------------------------------------------------------


def numbers_of_counters(sdfg: SDFG) -> None:
    """Let symbols that a loop only adds to be numbers in containers within it, in place."""
    uses: _Uses | None = None
    for loop in list(sdfg.all_control_flow_regions(recursive=False)):
        if not isinstance(loop, LoopRegion) or LoopRange.of(loop) is None:
            continue
        inside = _edges_in(loop)
        names = {name for edge in inside for name in edge.data.assignments}
        for name in sorted(names & sdfg.symbols.keys()):
            uses = uses or _Uses(sdfg)
            added = _added(uses, loop, name, inside)
            if added is not None:
                _count(loop, name, added)
                uses = None


def _added(
    uses: _Uses, loop: LoopRegion, name: str, inside: list[_OtherEdge]
) -> list[tuple[_OtherEdge, Expression]] | None:
    """What edges in a loop add to a symbol that nothing else there reads; None for others."""
    if uses.sdfg.symbols[name] != dtypes.int64:
        return None
    edges = [edge for edge in uses.assigned[name] if edge in inside]
    readers = [each for each in uses.read.get(name, ()) if _is_inside(loop, each, inside)]
    if not all(each in edges for each in readers):
        return None
    found = []
    for edge in edges:
        others = {n: v for n, v in edge.data.assignments.items() if n != name}
        value = str(edge.data.assignments[name])
        if words(value) & others.keys() or any(name in words(str(v)) for v in others.values()):
            return None
        more = _more(uses.sdfg, symbolic.pystr_to_symbolic(value), name)
        if more is None:
            return None
        found.append((edge, more))
    return found


def _more(sdfg: SDFG, value: sympy.Expr, name: str) -> Expression | None:
    """What is added to a symbol: a number, or a sum of symbols; None of what is not that."""
    terms: list[tuple[str, int]] = []
    constant, times = 0, 0
    for term, factor in sympy.expand(value).as_coefficients_dict().items():
        if not sympy.sympify(factor).is_Integer:
            return None
        if term == 1:
            constant = int(factor)
        elif not isinstance(term, sympy.Symbol) or term.name in sdfg.arrays:
            return None
        elif term.name == name:
            times = int(factor)
        else:
            terms.append((term.name, int(factor)))
    if times != 1:
        return None
    whole = np.dtype(np.int64)
    return IndexValue(tuple(terms), constant) if terms else Constant(constant, whole)


def _count(loop: LoopRegion, name: str, added: list[tuple[_OtherEdge, Expression]]) -> None:
    """Keep a symbol in a container while a loop runs."""
    sdfg, whole = loop.sdfg, np.dtype(np.int64)
    number, _ = sdfg.add_transient(f"{name}_counted", [1], dtypes.int64, find_new_name=True)
    region: Any = loop.parent_graph
    starts = region.start_block is loop
    first = region.add_state_before(loop, f"{name}_first", is_start_block=starts)
    _assign(first, number, IndexValue(((name, 1),), 0), reads=False)
    last = region.add_state_after(loop, f"{name}_last")
    (leaving,) = region.edges_between(loop, last)
    leaving.data.assignments[name] = f"{number}[0]"
    for edge, more in added:
        graph = next(r for r in loop.all_control_flow_regions(recursive=False) if edge in r.edges())
        state = graph.add_state(f"{name}_counted")
        _assign(state, number, apply("add", Argument("_before", whole), more), reads=True)
        edge.data.assignments.pop(name)
        graph.remove_edge(edge)
        graph.add_edge(edge.src, state, edge.data)
        graph.add_edge(state, edge.dst, InterstateEdge())


def _assign(state: SDFGState, number: str, value: Expression, *, reads: bool) -> None:
    inputs = {"_before": None} if reads else {}
    tasklet = Computation(number, (("_out", value),), inputs, {"_out": None})
    state.add_node(tasklet)
    if reads:
        state.add_edge(state.add_read(number), None, tasklet, "_before", Memlet(f"{number}[0]"))
    state.add_edge(tasklet, "_out", state.add_write(number), None, Memlet(f"{number}[0]"))
