"""Loops whose iterations have no order become maps, inner ones first.

before -> after:  ``for i in range(n): y[i] = x[i] * 2``  ->  the same in a map over ``i``.
A loop becomes a dimension of each statement in its body where that is possible; else each iteration
of a map runs the body as a program of its own. Sums, products and extremes are combined where they
are written. The dependence test says which loops have no order
(:mod:`distspmd.analysis.dependences`).
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeAlias

import sympy
from dace import SDFG, Memlet, SDFGState, dtypes, symbolic
from dace.libraries import blas
from dace.libraries.standard.nodes import Reduce
from dace.sdfg import nodes
from dace.sdfg.state import BreakBlock, ContinueBlock, ControlFlowBlock, LoopRegion, ReturnBlock

from distspmd.analysis.accesses import bound_around_loop, control_reads_in
from distspmd.analysis.control_values import is_control_value, runs_once
from distspmd.analysis.dependences import LoopRange, first_dependence
from distspmd.analysis.index_bounds import bound_index
from distspmd.analysis.iteration_spaces import source
from distspmd.analysis.loop_orders import mark_order
from distspmd.analysis.loop_reductions import find_reductions
from distspmd.analysis.loop_values import live_after, own_names
from distspmd.analysis.wavefronts import wavefront_of
from distspmd.expressions.ir import IndexValue, parts
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.handing_on import HandingOn
from distspmd.nodes.map_scopes import enter_map, inside_name, leave_map, nest
from distspmd.nodes.scatter import Scatter
from distspmd.nodes.tell import Told
from distspmd.passes.normalize import loop_dimensions
from distspmd.passes.normalize.combining_maps import combine_in_registers
from distspmd.passes.normalize.loop_branches import choose_values, merge_numbers
from distspmd.passes.normalize.loop_dimensions import add_dimension, replace_loop
from distspmd.passes.normalize.loop_distribution import separate
from distspmd.passes.normalize.loop_extremes import search_by_reductions
from distspmd.passes.normalize.loop_parts import part_loop
from distspmd.passes.normalize.loop_symbols import (
    close_symbols,
    count_while,
    drop_checks,
    merge_copies,
    numbers_of_counters,
)

Ends: TypeAlias = tuple[sympy.Expr, sympy.Expr, int]
"""The least value of a loop's variable, the greatest, and the step."""


_PREPARE = (
    merge_copies,
    count_while,
    close_symbols,
    drop_checks,
    numbers_of_counters,
    choose_values,
    merge_numbers,
)
"""What brings loops into the form of which the test and the reductions know, in order."""


def map_loops(sdfg: SDFG) -> None:
    """Make maps of such loops, in place; one that stays is told why."""
    for prepare in _PREPARE:
        prepare(sdfg)
    loops = [r for r in sdfg.all_control_flow_regions(recursive=False) if isinstance(r, LoopRegion)]
    combine: list[nodes.Tasklet] = []
    stay: list[LoopRegion] = []
    for loop in reversed(loops):  # inner ones first
        if _stays(sdfg, loop, combine):
            parts = _in_parts(sdfg, loop) or [loop]
            stay += [part for part in parts if part is loop or _stays(sdfg, part, combine)]
    for loop in reversed(stay):  # outer ones first
        _search(sdfg, loop, combine)
    for loop in stay:
        for part in _separated(sdfg, loop):
            _stays(sdfg, part, combine)
    for loop in reversed(stay):
        if _is_in(sdfg, loop):
            _hand_on(sdfg, loop, combine)
    combine_in_registers(sdfg, combine)


def _search(sdfg: SDFG, loop: LoopRegion, combine: list[nodes.Tasklet]) -> None:
    """Make reductions of a loop that looks for an extreme value, and maps of these."""
    if _is_in(sdfg, loop) and not _beside_writes(loop):
        for part in search_by_reductions(loop, _candidates(sdfg, loop)):
            inside = part.all_control_flow_regions(recursive=False)
            for each in reversed([r for r in inside if isinstance(r, LoopRegion)]):
                _stays(sdfg, each, combine)


def _hand_on(sdfg: SDFG, loop: LoopRegion, combine: list[nodes.Tasklet]) -> None:
    """Make a map of a loop in order whose iterations hand a rim on, in place; others stay."""
    values = LoopRange.of(loop)
    if values is None or _beside_writes(loop):
        return
    own = own_names(loop, _candidates(sdfg, loop))
    reductions = find_reductions(loop)
    kinds = {id(e): r.kind for r in reductions for e in (r.before, r.after)}
    if _left_behind(loop, own) or (found := wavefront_of(loop, values, own, kinds)) is None:
        return
    for reduction in reductions:
        if reduction.after.data.data in found.reduced:
            reduction.write_conflict()
            combine.append(reduction.tasklet)
    variable = str(loop.loop_variable)
    ends = values.upwards
    assert ends is not None
    nested = _as_nested(sdfg, loop, ends, sorted(own & {*sdfg.arrays}))
    assert nested is not None
    entry, body = nested
    if values.step < 0:
        turned = sympy.expand(values.first + values.last) - sympy.Symbol(variable)
        body.symbol_mapping[variable] = symbolic.pystr_to_symbolic(str(turned))
    entry.map.schedule = dtypes.ScheduleType.Sequential
    mark = HandingOn("handing_on", [replace(r, data=inside_name(r.data)) for r in found.rims])
    mark.variable, mark.skew = str(found.inner.loop_variable), found.skew
    mark.begin, mark.debuginfo = str(ends[0]), entry.map.debuginfo
    inner = body.sdfg
    inner.add_state_before(inner.start_block, "handing_on", is_start_block=True).add_node(mark)
    _forget(sdfg, {*own, variable})


def _stays(sdfg: SDFG, loop: LoopRegion, combine: list[nodes.Tasklet]) -> bool:
    """Make a map of a loop; whether it stays, which it is told why."""
    why = _map_loop(sdfg, loop, combine)
    if why:
        mark_order(loop, why)
    return bool(why)


def _in_parts(sdfg: SDFG, loop: LoopRegion) -> list[LoopRegion]:
    """The loops that a loop becomes of which one iteration is what the others need."""
    values = LoopRange.of(loop)
    if values is None or _beside_writes(loop):
        return []
    own = own_names(loop, _candidates(sdfg, loop))
    return [] if _left_behind(loop, own) else part_loop(loop, values, own)


def _separated(sdfg: SDFG, loop: LoopRegion) -> list[LoopRegion]:
    """The loops that a loop becomes whose statements separate; none where it stays as it is."""
    values = LoopRange.of(loop)
    if values is None or not _is_in(sdfg, loop) or _beside_writes(loop):
        return []
    own = own_names(loop, _candidates(sdfg, loop))
    if _left_behind(loop, own):
        return []
    found = separate(loop, values, own)
    if found is not None:
        _forget(sdfg, own | {str(loop.loop_variable)})
    return found or []


def _is_in(sdfg: SDFG, loop: LoopRegion) -> bool:
    """Whether a loop is in the program still, outside of maps."""
    return any(region is loop for region in sdfg.all_control_flow_regions(recursive=False))


def _map_loop(sdfg: SDFG, loop: LoopRegion, combine: list[nodes.Tasklet]) -> str:
    """Make a map of a loop; why it stays, if it does.

    Args:
        sdfg: the program.
        loop: the loop.
        combine: gets the tasklets whose values are combined where they are written.
    """
    values, variable = LoopRange.of(loop), str(loop.loop_variable)
    ends = None if values is None else values.upwards
    if values is None or ends is None:
        return "the run decides how often it runs"
    own = own_names(loop, _candidates(sdfg, loop))
    why = _beside_writes(loop) or _left_behind(loop, own) or _in_order(loop, values, own, combine)
    if why:
        return why
    if not _is_bounded(loop, ends):
        return "the run decides how often it runs"
    containers = sorted(own & sdfg.arrays.keys())
    if not add_dimension(loop, ends, containers):
        if not _is_worth_it(loop, ends):
            return "its iterations are few beside those of the statements in it, which are split"
        _as_nested(sdfg, loop, ends, containers)
    _forget(sdfg, {*own, variable})
    return ""


def _is_bounded(loop: LoopRegion, ends: Ends) -> bool:
    """Whether it is known before the run between which numbers a loop runs, which tiles share."""
    scope = bound_around_loop(loop)
    return all(bound_index(sympy.sympify(end), scope) is not None for end in ends[:2])


def _left_behind(loop: LoopRegion, own: set[str]) -> str:
    """A symbol whose value an iteration leaves to others; else nothing."""
    if live_after(loop, [str(loop.loop_variable)]):
        return f"the value of {loop.loop_variable!r} is used behind it"
    assigned = {n for e in loop.all_interstate_edges(recursive=False) for n in e.data.assignments}
    kept = sorted(assigned - own)
    return f"an iteration needs what the one before it left in {kept[0]!r}" if kept else ""


def _in_order(
    loop: LoopRegion, values: LoopRange, own: set[str], combine: list[nodes.Tasklet]
) -> str:
    """The dependence that keeps the order of a loop; where there is none, reductions are written.

    Those alone without which there would be one: other writes stay as they are.
    """
    if first_dependence(loop, values, own) is None:
        return ""
    reductions = find_reductions(loop)
    kinds = {id(e): r.kind for r in reductions for e in (r.before, r.after)}
    found = first_dependence(loop, values, own, kinds)
    if found is not None:
        return str(found)
    for reduction in reductions:
        if reduction.after.data.data not in own:
            reduction.write_conflict()
            combine.append(reduction.tasklet)
    return ""


def _candidates(sdfg: SDFG, loop: LoopRegion) -> set[str]:
    """What an iteration may have for itself: temporaries, and symbols that edges assign."""
    used = {node.data for state in loop.states() for node in state.data_nodes()}
    found = {name for name in used if sdfg.arrays[name].transient}
    edges = loop.all_interstate_edges(recursive=False)
    return found | {name for edge in edges for name in edge.data.assignments}


def _beside_writes(loop: LoopRegion) -> str:
    """What a body does beside writing containers, or where control flow leaves it; else nothing."""
    known = _LIBRARY_NODES + (_PRODUCTS if _decides_extents(loop) else ())
    for block in loop.all_control_flow_blocks():
        leaves = isinstance(block, BreakBlock | ContinueBlock) and _innermost(block) is loop
        if leaves or isinstance(block, ReturnBlock):
            return "it may end before its last iteration"
        for node, parent in block.all_nodes_recursive() if isinstance(block, SDFGState) else ():
            if not _is_plain_node(node, parent, known):
                if isinstance(node, Told):
                    return "an iteration may fail, as an index may be outside, and the first tells"
                return f"an iteration runs {node}, whose effects have an order"
    return ""


def _innermost(block: ControlFlowBlock) -> LoopRegion:
    region = block.parent_graph
    while not isinstance(region, LoopRegion):
        region = region.parent_graph
    return region


_LIBRARY_NODES: tuple[type, ...] = (Contraction, Reduce, Scatter)
_PRODUCTS: tuple[type, ...] = (blas.MatMul, blas.Gemm, blas.Gemv, blas.Dot)
"""What DaCe's parser makes of products; where an iteration decides extents no ranks share them."""


def _is_plain_node(node: object, parent: Any, library_nodes: tuple[type, ...]) -> bool:
    if isinstance(node, nodes.Tasklet):
        known = isinstance(node, Computation) or node.language is dtypes.Language.Python
        once = is_control_value(node) or runs_once(node)
        return known and not node.has_side_effects(parent.sdfg) and not once
    if isinstance(node, nodes.EntryNode):
        return (
            isinstance(node, nodes.MapEntry) and not is_control_value(node) and not runs_once(node)
        )
    if isinstance(node, nodes.LibraryNode):
        return isinstance(node, library_nodes)
    return True


# -- bodies as programs of their own --------------------------------------------------------------


def _is_worth_it(loop: LoopRegion, ends: Ends) -> bool:
    """Whether the iterations are many, beside those of the maps in one of them.

    These would be split no more. A temporary whose extents an iteration decides has no others.
    """
    if _decides_extents(loop):
        return True
    length = sympy.expand((ends[1] - ends[0]) / ends[2])
    if not length.is_number:
        return False
    longest = 0
    for state in loop.states():
        for node in state.nodes():
            if isinstance(node, nodes.MapEntry):
                sizes = list(node.map.range.size())
            elif isinstance(node, nodes.LibraryNode):
                sizes = [n for e in state.all_edges(node) for n in e.data.subset.size()]
            else:
                continue
            known = [int(n) for n in map(sympy.sympify, sizes) if n.is_Integer]
            longest = max([longest, *known])
    return int(length) + 1 >= max(loop_dimensions.MANY, longest)


def _decides_extents(loop: LoopRegion) -> bool:
    """Whether a temporary in the loop has an extent that an edge in the loop assigns."""
    edges = loop.all_interstate_edges(recursive=False)
    assigned = {name for edge in edges for name in edge.data.assignments}
    used = {node.data for state in loop.states() for node in state.data_nodes()}
    arrays = loop.sdfg.arrays
    temporaries = (arrays[name] for name in used if arrays[name].transient)
    return any(assigned & set(map(str, c.free_symbols)) for c in temporaries)


def _as_nested(
    sdfg: SDFG, loop: LoopRegion, ends: Ends, own: list[str]
) -> tuple[nodes.MapEntry, nodes.NestedSDFG] | None:
    """A map whose iterations run the body each; nothing of a loop that leaves nothing behind."""
    reads, writes = _touched(loop)
    if writes <= {*own}:
        replace_loop(loop, [SDFGState(f"no_{loop.loop_variable}", sdfg)])
        return None
    conflicts = _only_combined(loop, writes)
    lines = [n.debuginfo for s in loop.states() for n in s.data_nodes() if source(s, n)]
    lines += [n.debuginfo for s in loop.states() for n in s.nodes() if hasattr(n, "debuginfo")]
    lines = [info for info in lines if info is not None and info.start_line]
    label = f"each_{loop.loop_variable}"
    inner = _program_of(sdfg, loop, label, reads | writes | {*own}, own)
    state = SDFGState(label, sdfg)
    replace_loop(loop, [state])
    reads, writes = reads - {*own}, writes - {*own}
    info = lines[0] if lines else None
    nested = nest(state, inner, sorted(reads), sorted(writes), info)
    entry, leave = state.add_map(label, {str(loop.loop_variable): "0:1"})
    entry.map.range.ranges[0] = ends
    entry.map.debuginfo = info
    for name in sorted(reads):
        memlet = Memlet.from_array(name, sdfg.arrays[name])
        enter_map(state, sdfg, entry, state.add_read(name), nested, inside_name(name), memlet)
    if not reads:
        state.add_nedge(entry, nested, Memlet())
    for name in sorted(writes):
        memlet = Memlet.from_array(name, sdfg.arrays[name])
        memlet.wcr = conflicts.get(name)
        leave_map(state, sdfg, leave, nested, inside_name(name), memlet, state.add_write(name))
    return entry, nested


def _program_of(
    sdfg: SDFG, loop: LoopRegion, label: str, used: set[str], own: Collection[str]
) -> SDFG:
    """The body of a loop as a program; the loop is empty then."""
    inner = SDFG(label)
    inner.constants_prop.update(sdfg.constants_prop)
    for name in sorted(_symbols_used(sdfg, loop)):
        if name in sdfg.symbols:
            inner.add_symbol(name, sdfg.symbols[name])
    for name in sorted(used):
        container = copy.deepcopy(sdfg.arrays[name])
        container.transient = name in own
        inner.add_datadesc(name, container)
    start = loop.start_block
    between = [(e.src, e.dst, e.data) for e in loop.edges()]
    for block in loop.nodes():
        inner.add_node(block, is_start_block=block is start)
    for edge in between:
        inner.add_edge(*edge)
    for block in inner.states():
        for node in block.nodes():
            if isinstance(node, nodes.NestedSDFG):
                node.sdfg.parent_sdfg = inner
    return inner


def _touched(loop: LoopRegion) -> tuple[set[str], set[str]]:
    reads = {access.data for access in control_reads_in(loop)}
    writes: set[str] = set()
    for state in loop.states():
        read, written = state.read_and_write_sets()
        reads |= read
        writes |= written
    return reads, writes


def _only_combined(loop: LoopRegion, names: set[str]) -> dict[str, str]:
    """Containers that all writes combine with what is there, with the function."""
    found: dict[str, set[str | None]] = {}
    for state in loop.states():
        for node in state.data_nodes():
            if node.data in names:
                wcrs = {edge.data.wcr for edge in state.in_edges(node)}
                found.setdefault(node.data, set()).update(wcrs)
    return {n: str(next(iter(w))) for n, w in found.items() if len(w) == 1 and None not in w}


def _symbols_used(sdfg: SDFG, loop: LoopRegion) -> set[str]:
    """Symbols that the body names, also in code of C++, in which DaCe looks for none."""
    found = {str(s) for s in loop.free_symbols} | {str(loop.loop_variable)}
    found |= {n for e in loop.all_interstate_edges(recursive=False) for n in e.data.assignments}
    for region in loop.all_control_flow_regions(recursive=False):
        if isinstance(region, LoopRegion):
            found.add(str(region.loop_variable))
    for state in loop.states():
        for node, _ in state.all_nodes_recursive():
            if isinstance(node, Computation):
                every = [p for _, value in node.assignments() or () for p in parts(value)]
                terms = [v for p in every if isinstance(p, IndexValue) for v, _ in p.terms]
                found |= set(map(str, terms))
    return found & (set(sdfg.symbols) | {str(loop.loop_variable)})


def _forget(sdfg: SDFG, own: Collection[str]) -> None:
    """Remove symbols and containers of a loop that nothing uses any more."""
    regions = sdfg.all_control_flow_regions(recursive=False)
    used = {str(r.loop_variable) for r in regions if isinstance(r, LoopRegion)}
    used |= {n for e in sdfg.all_interstate_edges(recursive=False) for n in e.data.assignments}
    used |= {node.data for state in sdfg.states() for node in state.data_nodes()}
    for name in sorted(set(own) - used):
        if name in sdfg.symbols:
            sdfg.remove_symbol(name)
        elif name in sdfg.arrays:
            sdfg.remove_data(name, validate=False)
