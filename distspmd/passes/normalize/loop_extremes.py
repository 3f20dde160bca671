"""Loops that look for the greatest value, or the least, and keep where it was found.

before -> after:  ``for i: if x[i] > best: best = x[i]; at = i``  ->  ``most = max(x[i])``,
``first = min(i where x[i] == most)``, and ``if most > best: best = most; at = first``. Both are
reductions over the loop, and over those in it where they are one nest. What the branch keeps beside
the value may be anything that it reads at its place. A NaN is never greater, in Python and here.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from dace import InterstateEdge, Memlet, SDFGState, dtypes
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import (
    ConditionalBlock,
    ControlFlowBlock,
    ControlFlowRegion,
    LoopRegion,
)

from distspmd.analysis.dependences import LoopRange
from distspmd.analysis.loop_reductions import GREATER, neutral, without_nan
from distspmd.analysis.loop_values import names_in, own_names, words
from distspmd.analysis.symbol_values import ElementValue, values_at
from distspmd.analysis.whole_program import is_straight
from distspmd.expressions.ir import (
    Argument,
    Expression,
    IndexValue,
    Operation,
    apply,
    names,
    substitute,
)
from distspmd.nodes.computation import Computation
from distspmd.passes.normalize.loop_dimensions import replace_loop
from distspmd.passes.normalize.put_symbols import put_in

_WHOLE = np.dtype(np.int64)


@dataclass(frozen=True)
class _Search:
    """A nest of loops that keeps an extreme value.

    Attributes:
        loops: the nest, outermost first, each with its values.
        places: of each loop the factor of its turns in the number of an iteration.
        block: the branch.
        state, tasklet: what compares.
        best: the container of the best value.
        guard: what has to hold beside; None where nothing has.
        value: what is compared.
        sign: 1 of a maximum, -1 of a minimum.
        is_strict: whether the first of several such values is kept, and not the last.
        others: containers that the nest writes for other purposes.
    """

    loops: Sequence[tuple[LoopRegion, LoopRange]]
    places: Sequence[int]
    block: ConditionalBlock
    state: SDFGState
    tasklet: Computation
    best: str
    guard: Expression | None
    value: Expression
    sign: int
    is_strict: bool
    others: set[str] = field(default_factory=set)


def search_by_reductions(loop: LoopRegion, candidates: Collection[str]) -> list[LoopRegion]:
    """Replace such a loop by two that reduce, in place; these, or none where it is another one.

    Args:
        loop: the outermost one of a nest.
        candidates: names that iterations may have for themselves.
    """
    found = _search_of(loop, candidates)
    return [] if found is None else _replace(found)


# -- what is looked for ---------------------------------------------------------------------------


def _search_of(loop: LoopRegion, candidates: Collection[str]) -> _Search | None:
    nest: list[tuple[LoopRegion, LoopRange]] = []
    inner: ControlFlowBlock = loop
    while isinstance(inner, LoopRegion):
        values = LoopRange.of(inner)
        if values is None or not is_straight(inner):
            return None
        nest.append((inner, values))
        rest = [b for b in inner.nodes() if not isinstance(b, SDFGState)]
        if len(rest) != 1:
            return None
        (inner,) = rest
    places = _places([values for _, values in nest], [str(r.loop_variable) for r, _ in nest])
    if not isinstance(inner, ConditionalBlock) or len(inner.branches) != 1 or places is None:
        return None
    ((condition, branch),) = inner.branches
    if condition is None or not is_straight(branch):
        return None
    compared = _comparison(inner, condition.as_string.strip(), _written(branch.states()))
    if compared is None:
        return None
    state, tasklet, best, guard, value, (sign, is_strict) = compared
    search = _Search(nest, places, inner, state, tasklet, best, guard, value, sign, is_strict)
    return search if _keeps_alone(search, branch, candidates) else None


def _places(ranges: Sequence[LoopRange], variables: Sequence[str]) -> list[int] | None:
    """Factors with which the turns of loops give each iteration a number of its own, in order."""
    known: dict[str, tuple[int, int]] = {}
    widths: list[int] = []
    for values, name in zip(ranges, variables, strict=True):
        ends = [_extremes(e, known) for e in (values.first, values.last)]
        if abs(values.step) != 1 or (None in ends and widths):
            return None
        found = [e for each in ends if each for e in each]
        if None not in ends:
            known[name] = min(found), max(found)
        widths.append(max(found) - min(found) + 1 if found else 1)
    factors = [1]
    for width in reversed(widths[1:]):
        factors.insert(0, factors[0] * max(width, 1))
    return factors if factors[0] * max(widths[0], 1) < 1 << 62 else None


def _extremes(value: sympy.Expr, known: dict[str, tuple[int, int]]) -> tuple[int, int] | None:
    """The least and the greatest that a sum of symbols with such ends can be."""
    low = high = 0
    for term, factor in sympy.expand(value).as_coefficients_dict().items():
        ends = (1, 1) if term == 1 else known.get(str(term))
        if ends is None or not sympy.sympify(factor).is_Integer:
            return None
        both = sorted(int(factor) * e for e in ends)
        low, high = low + both[0], high + both[1]
    return low, high


def _comparison(block: ConditionalBlock, condition: str, kept: Collection[str]) -> Any:
    """What is compared before a branch: the tasklet, the best value, and the other one."""
    sdfg, known = block.sdfg, values_at(block).get(condition)
    if not isinstance(known, ElementValue):
        return None
    for state in (s for s in block.parent_graph.nodes() if isinstance(s, SDFGState)):
        for node in state.nodes():
            if not isinstance(node, Computation) or len(state.out_edges(node)) != 1:
                continue
            (leaving,) = state.out_edges(node)
            found = node.assignments()
            if leaving.data.data != known.data or not found or len(found) != 1:
                continue
            compared = _compared(state, node, found[0][1], kept)
            writers = [n for s in sdfg.states() for n in s.data_nodes() if n.data == known.data]
            once = sum(n is not leaving.dst for n in writers) == 0
            return (state, node, *compared) if compared and once else None
    return None


def _compared(
    state: SDFGState, tasklet: Computation, value: Expression, kept: Collection[str]
) -> Any:
    """The best value, which a branch writes, what guards, the other value, and which is kept."""
    parts = _conjuncts(value)
    by = {str(e.dst_conn): e for e in state.in_edges(tasklet)}
    for place, part in enumerate(parts):
        if not isinstance(part, Operation) or part.name not in GREATER:
            continue
        guards = [*parts[:place], *parts[place + 1 :]]
        for sign, (new, old) in ((1, part.arguments), (-1, part.arguments[::-1])):
            if not isinstance(old, Argument) or old.name not in by or new.dtype != old.dtype:
                continue
            best = str(by[old.name].data.data)
            others = [n for n, e in by.items() if e.data.data == best]
            used = {n for each in (new, *guards) for n in names(each)}
            number = state.sdfg.arrays[best].total_size == 1 and best in kept
            if number and others == [old.name] and old.name not in used:
                guard = functools.reduce(_and, guards) if guards else None
                return best, guard, new, (sign * GREATER[part.name], "equal" not in part.name)
    return None


def _conjuncts(value: Expression) -> list[Expression]:
    if isinstance(value, Operation) and value.name == "logical_and":
        return [part for each in value.arguments for part in _conjuncts(each)]
    return [value]


def _and(one: Expression, other: Expression) -> Expression:
    return apply("logical_and", one, other)


def _written(states: Iterable[SDFGState]) -> set[str]:
    return {n.data for s in states for n in s.data_nodes() if s.in_degree(n)}


def _read(states: Iterable[SDFGState]) -> set[str]:
    return {n.data for s in states for n in s.data_nodes() if s.out_degree(n)}


def _keeps_alone(search: _Search, branch: ControlFlowRegion, candidates: Collection[str]) -> bool:
    """Whether a branch keeps the best value and what belongs to it, and nothing else needs these.

    What else the nest does needs none of it, and the search needs nothing of that.
    """
    loop, best = search.loops[0][0], search.best
    inside = [s for s in branch.nodes() if isinstance(s, SDFGState)]
    if search.value.dtype.kind not in "fiu" or len(inside) < len(branch.nodes()):
        return False
    kept = {n for edge in branch.edges() for n in edge.data.assignments}
    written = _written(inside)
    if best not in written or not all(map(_is_simple, inside)):
        return False
    own = own_names(loop, candidates)
    outside = [s for s in loop.states() if s not in inside]
    edges = [e for e in loop.all_interstate_edges(recursive=False) if e not in branch.edges()]
    if not {n for e in edges for n in e.data.assignments} <= own:
        return False
    made = _written(outside)
    search.others.update(made - own)
    if made & written or not all(_is_separate(s, search.others) for s in outside):
        return False
    words_read = {w for s in loop.states() for w in names_in(s)}
    words_read |= {w for e in loop.all_interstate_edges(recursive=False) for w in _read_by(e)}
    if words_read & (search.others | kept | written):
        return False
    if any(n.data == best for s in outside if s is not search.state for n in s.data_nodes()):
        return False
    read = _read(outside) | _read(inside)
    return not read & (written - {best}) and _is_copied(search, inside, made)


def _is_separate(state: SDFGState, others: Collection[str]) -> bool:
    """Whether tasklets of their own make some containers, which nothing else reads."""
    for edge in state.edges():
        if edge.data.data not in others:
            continue
        tasklet = edge.dst if isinstance(edge.src, nodes.AccessNode) else edge.src
        after = state.out_edges(tasklet)
        if not isinstance(tasklet, Computation) or any(e.data.data not in others for e in after):
            return False
    return True


def _is_simple(state: SDFGState) -> bool:
    return all(
        isinstance(n, nodes.AccessNode) or (isinstance(n, Computation) and n.assignments())
        for n in state.nodes()
    )


def _read_by(edge: Any) -> set[str]:
    return {w for value in edge.data.assignments.values() for w in words(str(value))}


def _is_copied(search: _Search, inside: Sequence[SDFGState], made: set[str]) -> bool:
    """Whether the branch copies what was compared, and reads nothing else that iterations make."""
    wanted = str(_by_places(search.state, search.tasklet, search.value))
    found = False
    for state in inside:
        for tasklet in (n for n in state.nodes() if isinstance(n, Computation)):
            written = {str(e.data.data) for e in state.out_edges(tasklet)}
            if search.best in written:
                ((_, value),) = tasklet.assignments() or ()
                found = str(_by_places(state, tasklet, value)) == wanted
                if not found or len(written) > 1:
                    return False
            elif any(e.data.data in made | {search.best} for e in state.in_edges(tasklet)):
                return False
    return found


def _by_places(state: SDFGState, tasklet: Computation, value: Expression) -> Expression:
    """An expression whose arguments have the names of what they read."""
    by = {
        str(e.dst_conn): Argument(f"{e.data.data}[{e.data.subset}]", _WHOLE)
        for e in state.in_edges(tasklet)
    }
    return substitute(value, by)


# -- what is done instead -------------------------------------------------------------------------


def _replace(search: _Search) -> list[LoopRegion]:
    sdfg, loop = search.block.sdfg, search.loops[0][0]
    container = sdfg.arrays[search.best]
    dtype = search.value.dtype
    most, _ = sdfg.add_transient(
        f"most_{search.best.lstrip('_')}", [1], container.dtype, find_new_name=True
    )
    place, _ = sdfg.add_transient(
        f"place_{search.best.lstrip('_')}", [1], dtypes.int64, find_new_name=True
    )
    kind = "maximum" if search.sign > 0 else "minimum"
    of_place = "minimum" if search.is_strict else "maximum"
    none = neutral(of_place, _WHOLE)
    value: Expression = without_nan(kind, search.value)
    value = _guarded(search, value, neutral(kind, dtype))
    first = _reducing(search, most, kind, value, None)
    number = _number(search)
    equal = apply("equal", search.value, Argument("_most", dtype))
    value = apply(
        "where", equal if search.guard is None else _and(search.guard, equal), number, none
    )
    second = _reducing(search, place, of_place, value, most)
    begin, behind = SDFGState("extremes", sdfg), SDFGState("is_better", sdfg)
    _compute(begin, most, neutral(kind, dtype), {})
    _compute(begin, place, none, {})
    condition = f"better_{search.best.lstrip('_')}"
    condition, _ = sdfg.add_transient(condition, [1], dtypes.bool_, find_new_name=True)
    compare = {1: "greater", -1: "less"}[search.sign] + ("" if search.is_strict else "_equal")
    arguments = Argument("_most", dtype), Argument("_best", dtype)
    found = apply("not_equal", Argument("_place", _WHOLE), none)
    better = apply("logical_and", found, apply(compare, *arguments))
    _compute(behind, condition, better, {"_most": most, "_best": search.best, "_place": place})
    kept = _kept(search, most)
    region = loop.parent_graph
    rest = _rest(search)
    replace_loop(loop, [begin, first, second, behind, kept, *rest])
    _decode(search, region, behind, kept, condition, place)
    sdfg.reset_cfg_list()
    return [first, second, *rest]


def _rest(search: _Search) -> list[LoopRegion]:
    """The nest without the branch, where it does something else."""
    if not search.others:
        return []
    loop, inner, block, state, tasklet = _copy(search)
    _put(inner, block, SDFGState("searched", search.block.sdfg))
    (leaving,) = state.out_edges(tasklet)
    state.remove_nodes_from([leaving.dst, tasklet])
    _remove_unused(state)
    return [loop]


def _copy(search: _Search) -> tuple[LoopRegion, Any, Any, SDFGState, Computation]:
    """A copy of the nest: its innermost loop, the branch in that, and what compares."""
    loop = copy.deepcopy(search.loops[0][0])
    inner: Any = loop
    original: Any = search.loops[0][0]
    for nested, _ in search.loops[1:]:
        place = original.nodes().index(nested)
        inner, original = inner.nodes()[place], nested
    block = inner.nodes()[original.nodes().index(search.block)]
    state = inner.nodes()[original.nodes().index(search.state)]
    tasklet = state.nodes()[search.state.nodes().index(search.tasklet)]
    text: Any = search.block.branches[0][0]
    (condition,) = words(text.as_string)
    for edge in inner.edges():
        edge.data.assignments.pop(condition, None)
    return loop, inner, block, state, tasklet


def _remove_unused(state: SDFGState) -> None:
    for node in list(state.data_nodes()):
        if not state.all_edges(node):
            state.remove_node(node)


def _guarded(search: _Search, value: Expression, otherwise: Expression) -> Expression:
    return value if search.guard is None else apply("where", search.guard, value, otherwise)


def _number(search: _Search) -> IndexValue:
    """The number of an iteration among all of the nest."""
    total = sympy.Integer(0)
    for (loop, values), factor in zip(search.loops, search.places, strict=True):
        turn = (sympy.Symbol(str(loop.loop_variable)) - values.first) * values.step
        total += factor * turn
    terms, constant = [], 0
    plain = {s: sympy.Symbol(s.name) for s in total.free_symbols}
    for term, factor in sympy.expand(total.subs(plain)).as_coefficients_dict().items():
        if term == 1:
            constant = int(factor)
        elif factor:
            terms.append((str(term), int(factor)))
    return IndexValue(tuple(sorted(terms)), constant)


def _reducing(
    search: _Search, target: str, kind: str, value: Expression, most: str | None
) -> LoopRegion:
    """A copy of the nest that combines a value of each iteration."""
    loop, inner, block, state, tasklet = _copy(search)
    loop.label = f"{loop.label}_{target}"
    dtype = np.dtype(search.block.sdfg.arrays[target].dtype.type)
    (leaving,) = state.out_edges(tasklet)
    state.remove_node(leaving.dst)
    for edge in state.in_edges(tasklet):
        if edge.data.data == search.best:
            state.remove_edge(edge)
            tasklet.remove_in_connector(edge.dst_conn)
            if not state.all_edges(edge.src):
                state.remove_node(edge.src)
    old = _add_read(state, tasklet, "_old", target)
    if most is not None:
        _add_read(state, tasklet, "_most", most)
    output = leaving.src_conn
    memlet = Memlet(data=target, subset="0")
    state.add_edge(tasklet, output, state.add_write(target), None, memlet)
    combined = apply(kind, Argument(old, dtype), value, dtype=dtype)
    tasklet.assign(((output, combined),))
    _put(inner, block, SDFGState(f"combined_{target}", search.block.sdfg))
    for own in loop.states():
        edges = own.edges()
        made = [e.src for e in edges if e.data.data in search.others and e.src in own.nodes()]
        own.remove_nodes_from(list({n for n in made if isinstance(n, Computation)}))
        _remove_unused(own)
    return loop


def _add_read(state: SDFGState, tasklet: Computation, connector: str, name: str) -> str:
    tasklet.add_in_connector(connector)
    memlet = Memlet(data=name, subset="0")
    state.add_edge(state.add_read(name), None, tasklet, connector, memlet)
    return connector


def _put(region: Any, block: ControlFlowBlock, other: ControlFlowBlock) -> None:
    """Another block in the place of one."""
    before, after = region.in_edges(block), region.out_edges(block)
    starts = region.start_block is block
    region.remove_node(block)
    region.add_node(other, is_start_block=starts, ensure_unique_name=True)
    for edge in before:
        region.add_edge(edge.src, other, edge.data)
    for edge in after:
        region.add_edge(other, edge.dst, edge.data)


def _compute(state: SDFGState, target: str, value: Expression, reads: dict[str, str]) -> None:
    tasklet = Computation(target, (("_out", value),), dict.fromkeys(reads), {"_out": None})
    state.add_node(tasklet)
    for connector, name in reads.items():
        memlet = Memlet(data=name, subset="0")
        state.add_edge(state.add_read(name), None, tasklet, connector, memlet)
    state.add_edge(tasklet, "_out", state.add_write(target), None, Memlet(data=target, subset="0"))


def _kept(search: _Search, most: str) -> ConditionalBlock:
    """The branch, which copies the best value from where it is now."""
    block = copy.deepcopy(search.block)
    dtype = search.value.dtype
    for state in block.states():
        for tasklet in [n for n in state.nodes() if isinstance(n, Computation)]:
            (leaving,) = state.out_edges(tasklet)
            if leaving.data.data != search.best:
                continue
            for edge in state.in_edges(tasklet):
                state.remove_edge(edge)
                if not state.all_edges(edge.src):
                    state.remove_node(edge.src)
                if edge.dst_conn:
                    tasklet.remove_in_connector(edge.dst_conn)
            _add_read(state, tasklet, "_most", most)
            tasklet.assign(((str(leaving.src_conn), Argument("_most", dtype)),))
    return block


def _decode(
    search: _Search,
    region: Any,
    behind: SDFGState,
    kept: ConditionalBlock,
    condition: str,
    place: str,
) -> None:
    """Let the branch behind the loops know where the value was found."""
    sdfg = search.block.sdfg
    taken = sdfg.find_new_symbol(f"{condition}_value")
    sdfg.add_symbol(taken, dtypes.bool_)
    (edge,) = region.edges_between(behind, kept)
    edge.data.assignments[taken] = f"{condition}[0]"
    ((_, branch),) = kept.branches
    kept.branches[0] = (CodeBlock(taken), branch)
    number = sdfg.find_new_symbol(f"{place}_now")
    sdfg.add_symbol(number, dtypes.int64)
    by: dict[str, sympy.Expr] = {}
    steps, rest = [{number: f"{place}[0]"}], sympy.Symbol(number)
    for (loop, values), factor in zip(search.loops, search.places, strict=True):
        turn = sympy.Function("int_floor")(rest, factor) if factor != 1 else rest
        name = sdfg.find_new_symbol(f"{loop.loop_variable}_found")
        sdfg.add_symbol(name, dtypes.int64)
        first = values.first.subs({s: by.get(s.name, s) for s in values.first.free_symbols})
        steps.append({name: str(sympy.expand(first + values.step * turn))})
        by[str(loop.loop_variable)] = sympy.Symbol(name)
        rest = sympy.expand((sympy.Symbol(name) - first) * values.step * -factor + rest)
    put_in(branch, by)
    start = branch.start_block
    for assignments in reversed(steps):
        state = SDFGState("found", sdfg)
        branch.add_node(state, is_start_block=True, ensure_unique_name=True)
        branch.add_edge(state, start, InterstateEdge(assignments=assignments))
        start = state
