"""Ranks call different things: all of them get the error, which says who called what, and go on."""

import os
import threading
import time
from collections.abc import Callable

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, DisagreementError
from distspmd.layouts import Layout, Mesh
from distspmd.runtime.watch.agreement import Agreement

comm = MPI.COMM_WORLD
first = comm.rank == 0
rows = Layout.parse("[1{x}3, 5]", Mesh(x=3))
columns = Layout.parse("[3, 2{x}5]", Mesh(x=3))
root = Layout.root((3, 5))
tile = np.ones((1, 5))


@dace.program
def product(a: dace.float64[10, 8], b: dace.float64[8, 6]):
    return a @ b


@dace.program
def scaled(x: dace.float64[9]):
    return x * 2


@dace.program
def sized(x: dace.float64[dace.symbol("N")]):
    return x + 1


def apart(*texts: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Rank 0 makes one call and the others another one; the error has some texts on all ranks."""
    with pytest.raises(DisagreementError) as raised:
        ours() if first else theirs()
    for text in ("rank 0: ", "ranks 1, 2: ", *texts):
        assert text in str(raised.value), raised.value
    assert str(raised.value).count("disagreeing.py:") >= 2
    assert comm.allreduce(1) == comm.size


def move(target: Layout, **options: object) -> Callable[[], object]:
    return lambda: distspmd.redistribute(comm, tile, rows, target, **options)


def redistributions() -> None:
    move(columns)()
    move(columns)()
    different = "the ranks ask for different redistributions"
    to_columns, to_root = f"{rows} -> {columns}", f"{rows} -> {root}"
    # One of them has asked for its target before, the others have not.
    apart(different, to_columns, to_root, ours=move(columns), theirs=move(root))
    apart(different, ours=move(root), theirs=move(columns))
    move(root)()
    # All have asked for theirs.
    apart(different, to_columns, to_root, ours=move(columns), theirs=move(root))
    narrow = np.ones((1, 5), np.float32)
    apart(
        "dtype=float64",
        "dtype=float32",
        ours=move(columns),
        theirs=lambda: distspmd.redistribute(comm, narrow, rows, columns),
    )
    apart("solver=exchange", ours=move(columns, solver="exchange"), theirs=move(columns))
    apart("max_memory=100000", ours=move(columns), theirs=move(columns, max_memory=100_000))
    apart(
        "allocate(...)",
        "redistribute(",
        ours=lambda: distspmd.runtime.allocate(comm, 3),
        theirs=move(columns),
    )
    # What a rank cannot use is told to all.
    with pytest.raises(ArgumentError, match=r"a layout is a distspmd\.layouts\.Layout"):
        distspmd.redistribute(comm, tile, "rows" if first else rows, columns)
    assert np.array_equal(move(columns)(), np.ones(columns.shape(comm.rank)))


def lowered(program: object, schedule: object) -> object:
    sdfg = program.to_sdfg()
    return distspmd.lower(sdfg, schedule)


def programs() -> None:
    by_rows = lowered(product, {"_MatMult_": (3, 1, 1)})
    by_columns = lowered(product, {"_MatMult_": (1, 3, 1)})
    other = lowered(scaled, {"__return": (3,)})

    def compiling(sdfg: object, **options: object) -> Callable[[], object]:
        return lambda: distspmd.compile(sdfg, comm, **options)

    different = "the ranks compile different programs"
    apart(
        different, "(3, 1, 1)", "(1, 3, 1)", ours=compiling(by_rows), theirs=compiling(by_columns)
    )
    apart(different, "product", "scaled", ours=compiling(by_rows), theirs=compiling(other))
    apart("strict", ours=compiling(by_rows, arithmetic="strict"), theirs=compiling(by_rows))
    with compiling(by_rows)() as one, compiling(other if first else None)() as two:
        a, b, x = np.ones((10, 8)), np.ones((8, 6)), np.arange(9.0)
        one(a, b) if first else one()
        apart(
            "the ranks call different things",
            "product(...)",
            "scaled(...)",
            ours=lambda: one(a, b),
            theirs=two,
        )
        with compiling(by_rows)() as twin:
            twice = ("product(...), program 1 of", "product(...), program 3 of")
            apart(*twice, ours=lambda: one(a, b), theirs=twin)
        apart("product(...)", "redistribute(", ours=lambda: one(a, b), theirs=move(columns))
        apart("compile(...)", "scaled(...)", ours=compiling(by_rows), theirs=two)
        apart("scaled.close()", "scaled(...)", ours=two.close, theirs=two)
        result = two(x) if first else two()
        assert not first or np.array_equal(result, 2 * x)
    for call in (one, two.collect, two.statistics, two.reset_statistics):
        with pytest.raises(ArgumentError, match=r"is closed: its memory and plans are freed"):
            call()
    two.close()


def sizes() -> None:
    program = distspmd.compile(lowered(sized, {"__return": (3,)}), comm)
    x = np.arange(5.0)
    result = program(x) if first else program()
    assert not first or np.array_equal(result, x + 1)
    apart(
        "at({'N': 5})", "at({'N': 6})", ours=lambda: program.at(N=5), theirs=lambda: program.at(N=6)
    )
    program.close()
    program.close()
    with pytest.raises(ArgumentError, match="sized is closed"):
        program()


def functions() -> None:
    def made(parts: int) -> object:
        @distspmd.program(schedule={"__return": (parts,)})
        def doubled(x):
            return 2 * x

        return doubled

    two, three = made(2), made(3)
    x = np.arange(7.0)
    schedules = ("doubled(...), with the schedule {'__return': (2,)}", "{'__return': (3,)}")
    apart(*schedules, ours=lambda: two(x), theirs=lambda: three(x))
    result = three(x)
    assert not first or np.array_equal(result, 2 * x)
    three.close()


def communicators() -> None:
    twin = comm.Dup()
    distspmd.redistribute(twin, tile, rows, columns)
    held = distspmd.compile(lowered(scaled, {"__return": (3,)}), twin)
    twin.Free()
    for freed in (twin, MPI.COMM_NULL):
        with pytest.raises(ArgumentError, match=r"is MPI.COMM_NULL: it was freed"):
            distspmd.redistribute(freed, tile, rows, columns)
        with pytest.raises(ArgumentError, match=r"is MPI.COMM_NULL: it was freed"):
            distspmd.compile(None, freed)
    x = np.arange(9.0)
    result = held(x) if first else held()  # it has a communicator of its own
    assert not first or np.array_equal(result, 2 * x)
    held.close()
    with pytest.raises(ArgumentError, match=r"needed, but None was given. Pass MPI.COMM_WORLD"):
        distspmd.runtime.allocate(None, 3)
    half = comm.Split(int(first))
    between = half.Create_intercomm(0, comm, 1 if first else 0)
    with pytest.raises(ArgumentError, match=r"an intercommunicator was given"):
        distspmd.redistribute(between, tile, rows, columns)
    between.Free()


def threads() -> None:
    """While a thread of rank 0 waits in a call, another one is refused."""
    rank_state = Agreement.of(comm).rank_state
    refused = []

    def late() -> None:
        while rank_state.came == rank_state.met:
            time.sleep(0.01)
        with pytest.raises(ArgumentError, match=r"in one thread, and .* in another one"):
            move(columns)()
        refused.append(True)
        for other in (1, 2):
            comm.send(None, other)

    if first:
        helper = threading.Thread(target=late)
        helper.start()
        move(columns)()
        helper.join()
        assert refused
    else:
        comm.recv(source=0)
        move(columns)()


def forks() -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            move(columns)()
        except ArgumentError as error:
            code = 0 if "was forked from a rank" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


redistributions()
threads()
programs()
sizes()
functions()
communicators()
forks()
comm.Barrier()
if first:
    print("all disagreements were told")
