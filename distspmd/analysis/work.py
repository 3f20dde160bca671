"""What an iteration of a space computes: operations, and by which kind of code.

The numbers are estimates for comparing schedules: loops whose length is not known before the run
count as :data:`~distspmd.plans.heuristics.HEURISTICS` says, and each branch counts.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy
from dace import SDFG, SDFGState, dtypes
from dace.libraries import blas, standard
from dace.libraries.linalg import Solve
from dace.libraries.standard.nodes import MergeLibraryNode
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.analysis import library_costs
from distspmd.analysis.accesses import changes_in_loops
from distspmd.analysis.iteration_spaces import IterationSpace, main_map, parameters_of, window_name
from distspmd.analysis.library_costs import Operations
from distspmd.analysis.loop_runs import busiest, times, times_exactly
from distspmd.analysis.scopes import nodes_inside
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Use, Write
from distspmd.expressions.ir import Expression, Operation
from distspmd.expressions.operations import OPERATIONS
from distspmd.layouts.intervals import Interval
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import NEST, Contraction, fastest_implementation
from distspmd.nodes.host_call import HostCall
from distspmd.nodes.lapack import COLUMNS, Lapack, matrix_of
from distspmd.nodes.lapack_together import ROWS, LapackTogether
from distspmd.nodes.line_in_parts import TRANSFORM, LineInParts
from distspmd.nodes.row_exchange import ExchangedRows
from distspmd.nodes.scatter import Scatter
from distspmd.nodes.tell import Told
from distspmd.plans.dealt_matrix import TOGETHER, WIDEST
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.line_exchange import LineExchange
from distspmd.plans.long_transform import LongTransform
from distspmd.plans.machine import RATES, Kind, Machine
from distspmd.plans.matrix_calls import evenly, has_sides
from distspmd.plans.sample_sort import SampleSort
from distspmd.plans.tall_matrix import TALL
from distspmd.plans.tile_work import TileWork

LINE = 64
"""Bytes that a cache gets at once."""
CHOSEN = LINE // 2
"""Bytes of a line that an element takes which data choose, where these are in no order."""


@dataclass(frozen=True)
class Work:
    """What one iteration of a space costs.

    Attributes:
        kind: of the code that runs.
        operations: in one iteration: of floating point, or as :mod:`.library_costs` counts them.
        shared: operations that iterations along some parameters share, whatever their number.
        along: these parameters.
        apart: operations of an iteration more, where several ranks share these parameters.
    """

    kind: Kind
    operations: float
    shared: float = 0.0
    along: frozenset[str] = frozenset()
    apart: float = 0.0

    def in_tile(self, space: IterationSpace, iterations: Any, parts: NDArray[np.int64]) -> Any:
        """Operations of tiles of a space.

        Args:
            iterations: of each tile, in a row for each tiling, or one for each tiling.
            parts: of each parameter, in a row for each tiling.
        """
        found = iterations * self.operations
        own = [d for d, name in enumerate(space.parameters) if name in self.along]
        if self.apart:
            cut = parts[:, own].prod(axis=1) > 1
            cut = cut.reshape(-1, *[1] * (np.ndim(iterations) - 1))
            found = found + self.apart * np.where(cut, iterations, 0.0)
        if not self.shared:
            return found
        extents = [_length((each.end - each.begin) / each.step) for each in space.ranges]
        lengths = np.ceil(np.array(extents)[own] / parts[:, own]).prod(axis=1)
        lengths = lengths.reshape(-1, *[1] * (np.ndim(iterations) - 1))
        return found + self.shared * (iterations / np.maximum(lengths, 1.0))

    def talking(self, parts: NDArray[np.int64], machine: Machine) -> NDArray[np.float64]:
        """Seconds in which ranks tell each other within the space, of each tiling.

        Args:
            parts: of each parameter, in a row for each tiling.
            machine: what messages cost.
        """
        return np.zeros(len(parts))


@dataclass(frozen=True)
class LineWork(Work):
    """The work on a line that ranks have in parts.

    Attributes:
        exchange: what they tell each other, on any parts.
    """

    exchange: LineExchange = field(kw_only=True)

    def talking(self, parts: NDArray[np.int64], machine: Machine) -> NDArray[np.float64]:
        """Seconds in which ranks tell each other, of each tiling."""
        counts = parts.prod(axis=1).tolist()
        known = {n: self.exchange.evenly(n).seconds(machine) for n in dict.fromkeys(counts)}
        return np.array([known[n] for n in counts])


@dataclass(frozen=True)
class DealtWork(Work):
    """The work on one matrix, which ranks deal out where they have different rows of it.

    Attributes:
        call: what is called.
        dealt: operations that ranks share where they have different rows.
        serial: operations that one rank does at a time then.
        levels: whether that is so on each level of a tree of ranks.
        sides: operations on right-hand sides, which ranks share that have other columns of them.
        row: the number of the parameter of rows.
    """

    call: Any = None
    dealt: float = 0.0
    serial: float = 0.0
    levels: bool = False
    sides: float = 0.0
    row: int = 0

    def in_tile(self, space: IterationSpace, iterations: Any, parts: NDArray[np.int64]) -> Any:
        """Operations of tiles: all of the factorisation where a rank has all rows."""
        every = math.prod(_length((each.end - each.begin) / each.step) for each in space.ranges)
        share = iterations / max(1.0, every)
        works = share > 0
        rows = parts[:, self.row].reshape(-1, *[1] * (np.ndim(iterations) - 1))
        serial = self.serial * (np.ceil(np.log2(rows)) if self.levels else 1.0)
        dealt = self.dealt * share + serial * works
        blocks = max(1.0, np.ceil(self.call.sides / WIDEST))  # each is on one rank
        sides = self.sides * np.where(rows > 1, np.maximum(share, works / blocks), share)
        return np.where(rows > 1, dealt, self.operations * works) + sides

    def talking(self, parts: NDArray[np.int64], machine: Machine) -> NDArray[np.float64]:
        """Seconds in which ranks tell each other, of each tiling."""
        others = parts.prod(axis=1) // parts[:, self.row]
        pairs = zip(parts[:, self.row].tolist(), others.tolist(), strict=True)
        call = self.call
        extents = int(call.rows), int(call.columns), int(call.sides)
        return np.array(
            [
                evenly(call.function, call.dtype.itemsize, extents, own, rest).seconds(machine)
                for own, rest in pairs
            ]
        )


_FUNCTION = 4
"""Additions from which on an operation is a function, which a core does not do at the same pace."""

_PRODUCTS = {"f4": (Kind.SINGLE_PRODUCT, 1), "f8": (Kind.PRODUCT, 1)}
_PRODUCTS |= {"c8": (Kind.SINGLE_PRODUCT, 4), "c16": (Kind.PRODUCT, 4)}
"""Code for products of elements of a type, and multiplications of real numbers in one of them."""

_ASSUMED = Machine()
"""By whose speeds operations of one kind count as those of another."""


def work_of(space: IterationSpace) -> Work:
    """The work of each iteration of a space."""
    if isinstance(space.node, nodes.MapEntry):
        return _loop(space, _of_scope(space.state, space.node))
    kinds = (kind for kind in type(space.node).__mro__ if kind in NODES)
    return NODES[next(kinds, nodes.LibraryNode)](space)


def tile_work(
    space: IterationSpace,
    tiling: Tiling,
    uses: Iterable[Use],
    works: Mapping[str, Work],
    dtypes: Mapping[str, np.dtype[Any]],
) -> TileWork:
    """What the busiest rank computes.

    Args:
        space: the space.
        tiling: its parts.
        uses: of containers under it.
        works: of spaces, where they are known already.
        dtypes: of the elements of containers.
    """
    hull = tiling.iterations(space.ranges)
    mean = float(busiest(space, np.array([tiling.parts], np.int64))[0])
    iterations = hull * (mean / max(1.0, float(hull.max(initial=0))))
    parts = zip(space.parameters, tiling.parts, strict=True)
    chosen = math.prod(count for name, count in parts if name in space.moving)
    nbytes = np.zeros(len(hull))
    lines = []
    own = np.array([tiling.parts], np.int64)
    for use in uses:
        held = use.tiles.volumes.astype(np.float64)
        if not isinstance(use, Write) and use.approximate:
            held = np.minimum(held, iterations)
        touched = held * dtypes[use.data].itemsize * min(1.0, use.share * chosen)
        nbytes += touched
        size, most = dtypes[use.data].itemsize, float(touched.max(initial=0))
        if sweep := float(swept_lines(space, use.index, own)[0]):
            lines.append((sweep, most * LINE / size))
        if not isinstance(use, Write) and use.approximate:
            lines.append((float(use.tiles.volumes.max(initial=0)) * size, most * CHOSEN / size))
    work = works.get(space.name) or work_of(space)
    return TileWork(
        float(work.in_tile(space, iterations.max(initial=0, keepdims=True), own)[0]),
        float(nbytes.max(initial=0)),
        work.kind,
        times(space.state),
        int((hull > 0).sum()),
        tuple(lines),
    )


def _contraction(space: IterationSpace) -> Work:
    node: Any = space.node
    operands = len([edge for edge in space.state.in_edges(node) if edge.dst_conn])
    value = node.reduced
    operations = 1.0 + (sum(_of_expression([value]).values()) if value else operands - 1)
    if fastest_implementation(node, space.state) == NEST:
        return Work(Kind.LOOP, operations)
    return _product(space, operations)


def _rows(space: IterationSpace) -> Work:
    return Work(Kind.LOOP, 1.0)


_PLACES = 3.0
"""Elements of a line as long as one takes at a place that data choose."""


_SENT, _SENT_AGAIN = 9.0, 4.0
"""The same more for an index whose owner is found, and gets it with a value; for a value alone."""


def _scatter(space: IterationSpace) -> Work:
    """An index and its value go to who holds the place: with each place goes its share of them."""
    node: Any = space.node
    edges = {e.dst_conn: e.data for e in space.state.in_edges(node) if e.data.data}
    count = _length(edges["_in0"].subset.num_elements())
    ranges = zip(space.ranges, space.parameters, strict=True)
    picked = [(e, name) for d, (e, name) in enumerate(ranges) if d in node.picked]
    each = count / max(1.0, math.prod(_length((e.end - e.begin) / e.step) for e, _ in picked))

    def changes(names: Iterable[str]) -> bool:
        return any(changes_in_loops(space.state, edges[name].data) for name in names)

    sent = _SENT_AGAIN * (not node.one_value and changes(["_value"]))
    sent = _SENT if changes(node.indices) else sent
    along = frozenset(name for _, name in picked)
    return Work(Kind.LINE, _PLACES * each, apart=sent * each, along=along)


_BY_BYTES = 0.4
"""The share of the time of comparisons in which numbers are sorted by their bytes."""


def _line_in_parts(space: IterationSpace) -> Work:
    """An element of a line that is sorted in parts and merged, or chosen, or transformed."""
    node: Any = space.node
    (length,) = (_length((e.end - e.begin) / e.step) for e in space.ranges)
    exchange = replace(line_exchange(space, "", ((0, round(length)),)), source="")
    if node.chooses:
        return LineWork(Kind.LINE, 2.0, exchange=exchange)
    if node.function == TRANSFORM:
        each = library_costs.transformed(length) / max(1.0, length)
        return LineWork(Kind.TRANSFORM, each, exchange=exchange)
    kind = Kind.ORDER if node.with_places else Kind.SORT
    dtype = _line_dtypes(space)[0]
    share = _BY_BYTES if dtype.kind in "biuf" and dtype.itemsize <= 8 else 1.0
    each = share * library_costs.sorted_elements(length) / max(1.0, length)
    return LineWork(kind, each, exchange=exchange)


def _line_dtypes(space: IterationSpace) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Of the elements of a line in parts, and of what is made of it."""
    node: Any = space.node
    arrays = space.state.sdfg.arrays
    made = next(e.data.data for e in space.state.out_edges(node) if e.data.data)
    own = (e.data.data for e in space.state.in_edges(node) if e.dst_conn == "_in")
    given = next(own, made)  # places are chosen by the mask alone
    of, to = (np.dtype(arrays[name].dtype.as_numpy_dtype()) for name in (given, made))
    return of, to


def line_exchange(space: IterationSpace, made: str, parts: tuple[Interval, ...]) -> LineExchange:
    """What ranks tell each other within a call on a line in parts.

    Args:
        space: of the call.
        made: the container that gets what is made of the line.
        parts: of the line by ranks.
    """
    node: Any = space.node
    given, own = (dtype.itemsize for dtype in _line_dtypes(space))
    size = own + max(own, given) if node.with_places else own  # as a struct of both
    rest = parts, str(space.source or ""), times_exactly(space.state)
    if node.function == TRANSFORM:
        return LongTransform(made, size, *rest)
    return SampleSort(made, size, *rest, chooses=node.chooses)


def _lapack(space: IterationSpace) -> Work:
    """One call for each matrix of a stack; columns of right-hand sides share its factorisation."""
    node: Any = space.node
    function, extents, dtype, sides = matrix_of(node, space.state)
    row = library_costs.FUNCTIONS[function]
    sizes = [_length(sympy.sympify(n)) for n in extents]
    factor = library_costs.TYPES.get(np.dtype(dtype.type).str[1:], 1.0)
    whole, each = factor * row.operations(*sizes), factor * sides * row.each(*sizes)
    if COLUMNS in space.parameters:
        return Work(row.kind, each, whole, frozenset((COLUMNS,)))
    return Work(row.kind, whole + each)


_ALONE = 3.0
"""Operations of a whole matrix as long as one takes in a block, which is narrow."""


@dataclass(frozen=True)
class MatrixCall:
    """A function of LAPACK on one matrix, and right-hand sides, by their lengths."""

    function: str
    dtype: np.dtype[Any]
    rows: float
    columns: float
    sides: float


def matrix_call(space: IterationSpace) -> MatrixCall:
    """What a space calls in which ranks share a matrix, as it is before the matrix is in parts."""
    assert space.expansion is not None
    node: Any = space.node
    arrays, (has, are_given) = space.expansion.arrays, has_sides(node.function)
    matrix = arrays[window_name("_in0")]
    sides: Any = sympy.Min(*matrix.shape) if has else 0
    if are_given:
        sides = (*arrays[window_name("_in1")].shape, 1)[1]
    m, n, c = (_length(sympy.sympify(extent)) for extent in (*matrix.shape, sides))
    return MatrixCall(str(node.function), np.dtype(matrix.dtype.type), m, n, c)


def _together(space: IterationSpace) -> Work:
    """A call in which ranks share the work on one matrix, but for that on each block."""
    call = matrix_call(space)
    row, m, n = library_costs.FUNCTIONS[call.function], call.rows, call.columns
    factor = library_costs.TYPES.get(call.dtype.str[1:], 1.0)
    whole, each = factor * row.operations(m, n), factor * call.sides * row.each(m, n)
    make = functools.partial(
        DealtWork, row.kind, whole, call=call, sides=each, row=space.parameters.index(ROWS)
    )
    if call.function in TALL:  # two triangles on each level; then ranks multiply their factors
        level = factor * (row.operations(2 * n, n) + 2 * _cube(n))
        return make(dealt=whole + factor * 2 * m * n * n, serial=level, levels=True)
    serial = min(whole, _ALONE * factor * m * n * WIDEST / 2)
    return make(dealt=TOGETHER[call.function].times * whole - serial, serial=serial)


def _cube(n: float) -> float:
    return n * n * n


def _python(space: IterationSpace) -> Work:
    """One call for all iterations of a rank."""
    node: Any = space.node
    row = library_costs.PYTHON.get(str(node.runs).rpartition(".")[2])
    every = frozenset(space.parameters)
    if row is None:
        return Work(Kind.PYTHON, 0.0, 1.0, every)
    kind, operations = row
    given = [e.data.subset for e in space.state.in_edges(space.node) if e.data.subset is not None]
    elements = max((_length(subset.num_elements()) for subset in given), default=1.0)
    count = math.prod(_length((e.end - e.begin) / e.step) for e in space.ranges)
    return Work(kind, operations(elements) / max(1.0, count))


def _told(space: IterationSpace) -> Work:
    return Work(Kind.PYTHON, 1.0)


def _by_expansion(space: IterationSpace) -> Work:
    """What the pure expansion computes: a product of matrices, or a loop."""
    assert space.expansion is not None
    reduced = len(space.parameters) > max(
        (
            len(edge.data.subset.size())
            for edge in space.state.out_edges(space.node)
            if edge.data.subset
        ),
        default=0,
    )
    if reduced and len([e for e in space.state.in_edges(space.node) if e.dst_conn]) >= 2:
        return _product(space, 2.0)
    state, entry = main_map(space.expansion)
    return _loop(space, _of_scope(state, entry))


NODES: Mapping[type, Callable[[IterationSpace], Work]] = {
    Contraction: _contraction,
    ExchangedRows: _rows,
    Scatter: _scatter,
    LineInParts: _line_in_parts,
    LapackTogether: _together,
    Lapack: _lapack,
    Solve: _lapack,
    HostCall: _python,
    Told: _told,
    **dict.fromkeys(
        (blas.MatMul, blas.Gemm, blas.BatchedMatMul, blas.Gemv, blas.Dot), _by_expansion
    ),
    standard.Reduce: _by_expansion,
    MergeLibraryNode: _by_expansion,
    nodes.LibraryNode: _by_expansion,
}
"""The work of library nodes, by their classes; that of others is the last one's."""


def _loop(space: IterationSpace, counted: Operations) -> Work:
    """A loop with some operations: plain ones, those of functions, and library calls."""
    calls = [kind for kind in counted if kind in RATES]
    if calls:
        seconds = {kind: n * _ASSUMED.rate(kind)[0] for kind, n in counted.items()}
        kind = max(seconds, key=lambda each: seconds[each])
        return Work(kind, max(1.0, sum(seconds.values()) / _ASSUMED.rate(kind)[0]))
    plain, functions = (counted.get(kind, 0.0) for kind in (Kind.LOOP, Kind.FUNCTION))
    operations = max(1.0, float(plain + functions))
    if functions <= plain:
        return Work(Kind.LOOP, operations)
    is_single = _written(space) == np.dtype(np.float32)
    return Work(Kind.SINGLE_FUNCTION if is_single else Kind.FUNCTION, operations)


def _written(space: IterationSpace) -> np.dtype[Any] | None:
    """The type of the elements that a space writes; None where memlets do not tell them."""
    state, node = space.state, space.node
    end = state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
    data = next((edge.data.data for edge in state.out_edges(end) if edge.data.data), None)
    return None if data is None else np.dtype(state.sdfg.arrays[data].dtype.type)


def swept_lines(
    space: IterationSpace, index: Sequence[str | None], parts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Bytes of lines that loops go through between two neighbours in a row of an array.

    They are those of the loops within the one that goes along the row. The cache has the line of
    the neighbour still if it holds all of them. 0 where loops go along rows first, or do not go
    through the array in such a simple way.

    Args:
        index: parameter that indexes each dimension of the array.
        parts: of each parameter, in a row for each tiling.
    """
    found = np.zeros(len(parts))
    along = index[-1] if index else None
    if along is None or not isinstance(space.node, nodes.MapEntry):
        return found
    outer = space.parameters.index(along)
    within = [d for d, name in enumerate(space.parameters) if d > outer and name in index]
    ranges = [space.ranges[d] for d in within]
    lengths = [sympy.sympify((each.end - each.begin) / each.step) for each in ranges]
    if not within or not all(length.is_number for length in lengths):
        return found
    each = np.ceil(np.array([float(length) for length in lengths]) / parts[:, within])
    lines: NDArray[np.float64] = LINE * each.prod(axis=1)
    return lines


def _product(space: IterationSpace, operations: float) -> Work:
    """Products of matrices, by the type of their elements."""
    dtype = _written(space)
    if dtype is None:
        return Work(Kind.LOOP, operations)
    kind, times = _PRODUCTS.get(dtype.str[1:], (Kind.PRODUCT, 1))
    return Work(kind, times * operations)


def _of_scope(state: SDFGState, entry: nodes.MapEntry) -> Operations:
    """Operations of one iteration of a map, with all that is inside, by kind."""
    found: Operations = {}
    for node in nodes_inside(state, entry):
        if isinstance(node, nodes.CodeNode):
            _add(found, _of_code(state, node), _inner(state, node, entry))
    return found


def _add(found: Operations, other: Operations, times: float) -> None:
    for kind, operations in other.items():
        found[kind] = found.get(kind, 0.0) + operations * times


def _inner(state: SDFGState, node: nodes.Node, outer: nodes.MapEntry) -> float:
    """How often a node of a map runs in one iteration of it, for the maps between both."""
    count, entry = 1.0, state.entry_node(node)
    while entry is not None and entry is not outer:
        assert isinstance(entry, nodes.MapEntry)
        _, ranges = parameters_of(entry)
        for extent in ranges:
            count *= _length((extent.end - extent.begin) / extent.step)
        entry = state.entry_node(entry)
    return count


def _length(iterations: sympy.Expr) -> float:
    """Iterations as a number; of what is not known before the run, some."""
    found = sympy.sympify(iterations)
    return max(0.0, float(found)) if found.is_number else float(HEURISTICS.unknown_loop)


def _of_code(state: SDFGState, node: nodes.CodeNode) -> Operations:
    if isinstance(node, nodes.NestedSDFG):
        return _of_sdfg(node.sdfg)
    if isinstance(node, Computation):
        known = node.assignments()
        if known is not None:
            return _of_expression([value for _, value in known])
    if isinstance(node, nodes.Tasklet) and node.language is dtypes.Language.Python:
        counted = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare, ast.BoolOp, ast.IfExp)
        body = (ast.walk(line) for line in node.code.code if isinstance(line, ast.AST))
        return {
            Kind.LOOP: float(sum(isinstance(part, counted) for parts in body for part in parts))
        }
    if isinstance(node, nodes.Tasklet):
        return _of_routine(state, node)
    return {Kind.LOOP: 1.0}


def _of_routine(state: SDFGState, node: nodes.Tasklet) -> Operations:
    """The work of code in C++; a routine goes through windows of containers."""
    edges = [(e.dst_conn, e.data) for e in state.in_edges(node)]
    edges += [(e.src_conn, e.data) for e in state.out_edges(node)]
    sizes = {"_line": 0.0, "_result": 0.0, "_whole": 0.0}
    for connector, memlet in edges:
        name = str(connector).rstrip("0123456789")
        if name in sizes and memlet.subset is not None:
            sizes[name] = max(sizes[name], _length(memlet.subset.num_elements()))
    line = max(sizes["_line"], sizes["_result"])
    code = node.code.as_string
    return (
        library_costs.routine_operations(code, line, sizes["_whole"]) if line else {Kind.LOOP: 1.0}
    )


def _of_sdfg(sdfg: SDFG) -> Operations:
    """Operations of a nested SDFG: each state as often as its loops say."""
    found: Operations = {}
    for state in sdfg.states():
        each: Operations = {}
        for node in state.nodes():
            if not isinstance(node, nodes.CodeNode):
                continue
            count, entry = 1.0, state.entry_node(node)
            while entry is not None:
                assert isinstance(entry, nodes.MapEntry)
                _, ranges = parameters_of(entry)
                lengths = (_length((e.end - e.begin) / e.step) for e in ranges)
                count *= math.prod(lengths)
                entry = state.entry_node(entry)
            _add(each, _of_code(state, node), count)
        _add(found, each, times(state))
    return found


def _of_expression(values: Iterable[Expression]) -> Operations:
    """The work of the operations in expressions, each part counted once."""
    seen: set[int] = set()
    pending: list[Any] = list(values)
    found: Operations = {}
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if part.arguments:
            work = OPERATIONS[part.name].work if isinstance(part, Operation) else 1
            kind = Kind.FUNCTION if work >= _FUNCTION else Kind.LOOP
            found[kind] = found.get(kind, 0.0) + work
            pending += part.arguments
    return found
