"""Run under mpiexec: what steps of each kind carry, counted and as their plans say.

Usage: counted_bytes.py LIBRARY [transports | free | named]

LIBRARY, made of counted_calls.cpp, is preloaded and counts the calls of MPI. Transports: all plans
run three times: as messages, with nothing shared; and with shared memory, where each step that may
go there goes by packets, or by single copies. Free, named: they run as messages, and what MPI
itself sends is counted, where it chooses its algorithms, or is told to use chains and rings.
"""

import ctypes
import os
import sys

LIBRARY, HOW = sys.argv[1:]
COUNTED_BY_LIBRARY = {"OMPI_MCA_pml_monitoring_enable": "1"}
CHAINS_AND_RINGS = {
    "OMPI_MCA_coll": "^han,adapt,acoll,hcoll,ucc,xhc,sm",
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
    "OMPI_MCA_coll_tuned_reduce_algorithm": "3",
    "OMPI_MCA_coll_tuned_allreduce_algorithm": "4",
    "OMPI_MCA_coll_tuned_allgatherv_algorithm": "3",
}
if LIBRARY not in os.environ.get("LD_PRELOAD", ""):
    more = {"LD_PRELOAD": LIBRARY}
    if HOW != "transports":
        more |= COUNTED_BY_LIBRARY
    if HOW == "named":
        more |= CHAINS_AND_RINGS
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **more})
del os.environ["LD_PRELOAD"]

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from distspmd.layouts import intervals  # noqa: E402
from distspmd.layouts.layout import Layout, Partial  # noqa: E402
from distspmd.layouts.mesh import Mesh  # noqa: E402
from distspmd.plans.collectives import StepKind  # noqa: E402
from distspmd.plans.cost import cost  # noqa: E402
from distspmd.plans.machine import Machine  # noqa: E402
from distspmd.plans.plan import Message, Plan, Step  # noqa: E402
from distspmd.plans.redistribution import Redistribution  # noqa: E402
from distspmd.plans.rewrites.rank_order import order_by_rank  # noqa: E402
from distspmd.plans.rewrites.split_reductions import split_reductions  # noqa: E402
from distspmd.plans.simulator import simulate  # noqa: E402
from distspmd.plans.verifier import verify  # noqa: E402
from distspmd.runtime.engine.engine import Engine  # noqa: E402
from distspmd.runtime.measure.hosts import NEVER  # noqa: E402
from distspmd.runtime.shared_memory.windows import SharedNode  # noqa: E402
from distspmd.solvers.collectives.solver import Collectives  # noqa: E402
from distspmd.solvers.exchange import Exchange  # noqa: E402
from distspmd.solvers.grid_mapped import GridMapped  # noqa: E402

comm = MPI.COMM_WORLD
counter = ctypes.CDLL(LIBRARY)
TIMES = 2


def plans(ranks):
    """Plans of the ranks of a mesh, on uneven tiles, under what they are for."""
    mesh, extents = Mesh(x=ranks), (11, 7)
    root, whole = Layout.root(extents), Layout.parse("[11, 7]", mesh)
    tile, column = -(-11 // ranks), -(-7 // ranks)
    rows = Layout.parse(f"[{tile}{{x}}11, 7]", mesh)
    columns = Layout.parse(f"[11, {column}{{x}}7]", mesh)
    operands = Layout(mesh, extents, splits=whole.splits, partial=Partial("sum", ("x",)))

    def by(solver, source, target, dtype="float64"):
        return solver.plan(Redistribution(source, target, dtype))

    turned = [rows.box((rank - 1) % ranks) for rank in mesh]
    to_next = tuple(Message((r - 1) % ranks, r, box) for r, box in enumerate(turned))
    of_boxes = Redistribution(rows, Layout.of_boxes(mesh, extents, turned), "int16")
    permute = Step(StepKind.PERMUTE, 0, 1, (tuple(mesh),), to_next)
    reduce = by(GridMapped(), operands, root)
    all_reduce = by(Collectives(), operands, whole, "float32")
    return {
        "copy": by(GridMapped(), root, root),
        "scatter": by(GridMapped(), root, rows, "complex64"),
        "broadcast": by(GridMapped(), root, whole),
        "reduce": reduce,
        "gather": by(GridMapped(), rows, root),
        "exchange": by(Exchange(), columns, rows),
        "all_to_all": by(Collectives(), rows, columns),
        "all_gather": by(Collectives(), rows, whole),
        "permute": Plan(of_boxes, "by hand", (permute,)),
        "reduce_scatter": by(Collectives(), operands, rows),
        "all_reduce": all_reduce,
        "a large reduce": split_reductions(reduce, least=1),
        "a large all_reduce": split_reductions(all_reduce, least=1),
        "in the order of ranks": order_by_rank(reduce),
    }


def tiles_of(plan, node):
    """Source and target of this rank, in memory that the ranks share where there is a node."""
    found = []
    for layout in plan.buffers[:2]:
        shape, dtype = intervals.shape(layout.box(comm.rank)), plan.redistribution.dtype
        found.append(node.allocate(shape, dtype) if node else np.zeros(shape, dtype))
    return [tile if tile.size else None for tile in found]


def drawn(plan):
    """The source tiles of all ranks, in small whole numbers."""
    numbers = np.random.default_rng(1)
    source = plan.redistribution.source
    array = numbers.integers(0, 9, source.extents).astype(plan.redistribution.dtype)
    return [array[intervals.slices(source.box(rank))] for rank in range(source.ranks)]


def counted_calls():
    numbers = (ctypes.c_int64 * 4)()
    counter.counted_read(numbers)
    return dict(zip(("sent", "received", "combined", "strange"), numbers, strict=True))


def sent_by_library():
    numbers = (ctypes.c_int64 * comm.size)()
    assert HOW == "transports" or counter.library_read(numbers), "it does not tell what it sends"
    return np.array(numbers)


def measured(engine, number, plan, pair):
    """Run a plan; what this rank received as the runtime, calls and the library count it."""
    source, target = pair
    given = drawn(plan)
    before = sent_by_library()
    counter.counted_reset()
    for _ in range(TIMES):
        if source is not None:
            source[...] = given[comm.rank]
        engine(number, source, target)
    calls = counted_calls()
    after = sent_by_library()
    if target is not None:
        np.testing.assert_array_equal(target, simulate(plan, given)[comm.rank])
    counted = engine.statistics(number)
    assert counted.calls == TIMES
    assert counted.least_bytes == TIMES * plan.bound.received(comm.rank)
    library = np.sum([row[comm.rank] for row in comm.allgather(after - before)])
    return {"runtime": counted.received_bytes, "library": int(library), **calls}


def compare(name, plan, found, way):
    """What ranks received, against what the plan says; ``found`` of each rank."""
    each = [TIMES * plan.received(rank) for rank in range(comm.size)]
    told = {key: [rank[key] for rank in found] for key in found[0]}
    case = f"{name} on {comm.size} ranks ({HOW}, {way}): {told}, planned {each}"
    combines = any(step.kind.spec.is_combined for step in plan.steps)
    forwarded = any(step.kind.spec.is_called for step in plan.steps)
    assert not any(told["strange"]), case
    assert told["runtime"] == each, case
    assert cost(plan, Machine()).nbytes * TIMES == sum(each), case
    least = [TIMES * plan.bound.received(rank) for rank in range(comm.size)]
    assert sum(least) <= sum(each), case
    assert sum(told["sent"]) == sum(told["received"]), case
    if way == "messages":
        assert combines or told["received"] == each, case
        assert sum(told["received"]) + sum(told["combined"]) == sum(each), case
    else:
        assert sum(told["combined"]) == (sum(each) if combines else 0), case
        assert sum(told["received"]) == 0, case
    if HOW == "named":
        assert told["library"] == each, case
    if HOW == "free":
        assert sum(told["library"]) >= sum(each), case
        assert forwarded or told["library"] == each, case


def run(made, way, node):
    """Run plans in one way, and compare what they carry."""
    pairs = [tiles_of(plan, node if way != "messages" else None) for plan in made.values()]
    least = 0 if way == "copies" else NEVER
    with Engine(comm, list(made.items())) as engine:
        if way != "messages":
            engine.share(node, pairs, Machine(single_copy_bytes=least, run_bytes=NEVER))
            assert engine.single_copies if way == "copies" else engine.copies_in_out
        for number, (name, plan) in enumerate(made.items()):
            found = comm.allgather(measured(engine, number, plan, pairs[number]))
            compare(name, plan, found, way)


def main():
    if HOW != "transports":
        assert counter.library_watch(), "the library has no counters of what it sends"
    made = plans(comm.size)
    idle = plans(comm.size - 1) if comm.size > 2 else {}
    made |= {f"{name}, with an idle rank": plan for name, plan in idle.items()}
    kinds = {step.kind for plan in made.values() for step in plan.steps}
    assert kinds == set(StepKind), kinds
    for name, plan in made.items():
        verify(plan)
        assert len(plan.steps) > 1 or f"{plan.steps[0].kind}" in f"{name} exchange", name
    node = SharedNode(comm)
    for way in ("messages", "packets", "copies") if HOW == "transports" else ("messages",):
        run(made, way, node)
    if comm.rank == 0:
        print(f"{len(made)} plans carry what they say")


if __name__ == "__main__":
    main()
