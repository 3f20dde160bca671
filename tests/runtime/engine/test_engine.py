"""The C++ runtime on ranks. Programs draw from seeds: every rank draws the same."""

import re
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("random_redistributions.py")

PRELUDE = """
import sys
import numpy as np
from mpi4py import MPI
import distspmd.runtime.engine.engine as engine
from distspmd.plans.encoding import Storage
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped

comm = MPI.COMM_WORLD
rank = comm.rank
whole = np.arange(8.0)

def scattered(ranks, name="the memlet x"):
    target = Layout.parse(f"[{-(-8 // ranks)}{{x}}8]", Mesh(x=ranks))
    return name, GridMapped().plan(Redistribution(Layout.root((8,)), target, "float64"))
"""


SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [1, 3, 8, *(pytest.param(n, marks=SLOW) for n in (2, 4, 6))])
def test_random_redistributions_agree_with_the_simulator(launch, ranks):
    done = launch(PROGRAM, str(ranks), "100", ranks=ranks)
    assert f"agree on {ranks} ranks" in done.stdout


@pytest.mark.parametrize("ranks", [4, *(pytest.param(n, marks=SLOW) for n in (1, 2, 8))])
def test_single_copies_from_shared_memory_agree_with_the_simulator(launch, ranks):
    done = launch(PROGRAM, str(ranks + 100), "100", "shared", ranks=ranks)
    assert f"agree on {ranks} ranks" in done.stdout
    assert ranks == 1 or int(re.search(r"(\d+) single copies", done.stdout)[1]) > 20


@pytest.mark.parametrize("ranks", [4, pytest.param(8, marks=SLOW)])
def test_steps_between_nodes_go_as_messages(launch, ranks):
    done = launch(PROGRAM, str(ranks + 300), "100", "nodes", ranks=ranks)
    assert f"agree on {ranks} ranks" in done.stdout
    assert int(re.search(r"(\d+) single copies", done.stdout)[1]) > 5


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=SLOW) for n in (2, 8))])
def test_copy_in_copy_out_agrees_with_the_simulator(launch, ranks):
    done = launch(PROGRAM, str(ranks + 200), "100", "packets", ranks=ranks)
    assert f"agree on {ranks} ranks" in done.stdout
    assert int(re.search(r"(\d+) by copy-in/copy-out", done.stdout)[1]) > 20


def test_large_boxes_arrive_while_the_first_rank_copies_its_own(launch):
    launch(
        PRELUDE
        + """
from distspmd.layouts import intervals
from distspmd.plans.simulator import tiles_of

array = np.random.default_rng(0).random((301, 302))
mesh = Mesh(x=2, y=2)
texts = ["[301, 302]", "[151{x}301, 302]", "[301, 151{x}302]", "[301, 76{x,y}302]"]
layouts = [Layout.parse(text, mesh) for text in texts]
plans = [GridMapped().plan(Redistribution(Layout.root((301, 302)), t, "float64")) for t in layouts]
run = engine.Engine(comm, [(str(plan), plan) for plan in plans])
for number, layout in enumerate(layouts):
    tile = np.zeros(intervals.shape(layout.box(rank)))
    for _ in range(3):
        tile[...] = 0
        run(number, array, tile)
        assert (tile == tiles_of(layout, array)[rank]).all()
run.close()
""",
        ranks=4,
    )


def failing(launch, program, ranks):
    """What a program that fails prints; the launch must end by itself."""
    done = launch(PRELUDE + program, ranks=ranks, check=False)
    assert not done.timed_out
    assert done.returncode != 0
    assert "survived" not in done.stdout
    return done.stderr


def test_an_error_of_mpi_ends_all_ranks_and_names_the_call_and_the_memlet(launch):
    said = failing(
        launch,
        """
def spoilt(plans, rank, *more, words=engine.words):
    table = words(plans, rank, *more)
    if rank == 1:  # its part of the box ends one element early: the message is too long for it
        table[-1] -= 1
    return table

engine.words = spoilt
run = engine.Engine(comm, [scattered(2)])
run(0, whole, np.zeros(4))
comm.Barrier()
print("survived")
""",
        ranks=2,
    )
    assert re.search("distspmd: rank 1: MPI_Wait(any)? failed in the memlet x: ", said)
    assert "trunc" in said.lower()


def test_ranks_with_different_plans_end(launch):
    said = failing(
        launch, 'engine.Engine(comm, [scattered(2, name=f"memlet {rank}")])\nprint("survived")', 2
    )
    assert "the ranks have different plans" in said


def test_too_few_ranks_end_with_the_number_that_is_needed(launch):
    said = failing(launch, 'engine.Engine(comm, [scattered(4)])\nprint("survived")', 2)
    assert "the plans are for 4 ranks, but there are 2. Start 4." in said


def test_a_null_pointer_ends_with_the_name_of_the_memlet(launch):
    said = failing(
        launch,
        """
run = engine.Engine(comm, [scattered(1)])
run._library.distspmd_execute(run.context, 0, None, None)
print("survived")
""",
        1,
    )
    assert "distspmd: rank 0: the memlet x: its input is a null pointer" in said


def test_a_table_that_is_cut_off_ends_with_its_word(launch):
    said = failing(
        launch,
        """
words = engine.words
engine.words = lambda *given: words(*given)[:-1].copy()
engine.Engine(comm, [scattered(1)])
print("survived")
""",
        1,
    )
    assert "bad plan table: the table: it is cut off (word 3 of" in said


def test_one_array_in_two_layouts_is_refused(launch):
    said = failing(
        launch,
        """
rows = Layout.parse("[2{x}4, 4]", Mesh(x=2))
columns = Layout.parse("[4, 2{x}4]", Mesh(x=2))
move = Redistribution(rows, columns, "float64")
run = engine.Engine(comm, [("the memlet x", Exchange().plan(move))])
memory = np.zeros(8)
run(0, memory.reshape(2, 4), memory.reshape(4, 2))
print("survived")
""",
        2,
    )
    assert "input and output are one array, but tiles of different layouts" in said


def test_wrong_tiles_are_refused_in_python(launch):
    launch(
        PRELUDE
        + """
import pytest
from distspmd.errors import ArgumentError

run = engine.Engine(comm, [scattered(1)])
wrong = [
    (None, whole, "the memlet x: the source tile of rank 0 is missing"),
    (whole, np.zeros(7), r"the target tile of rank 0 is float64\\[7\\]; .* float64\\[8\\]"),
    (whole.astype(int), whole, r"is int64\\[8\\]"),
    (np.zeros(16)[::2], whole, r"has the strides \\(16,\\), but the plan \\[8\\]"),
]
for source, target, message in wrong:
    with pytest.raises(ArgumentError, match=message):
        run(0, source, target)
""",
        ranks=1,
    )


def test_several_engines_live_at_once_and_count_for_themselves(launch):
    launch(
        PRELUDE
        + """
first, second = (engine.Engine(comm, [scattered(2), scattered(2)]) for _ in range(2))
tile = np.zeros(4)
for _ in range(3):
    first(1, whole, tile)
second(0, whole, tile)
assert tile.tolist() == [4 * rank + i for i in range(4)]
assert [run.statistics(plan).calls for run in (first, second) for plan in (0, 1)] == [0, 3, 1, 0]
assert first.statistics(1).received_bytes == (96 if rank == 1 else 0)
assert first.statistics(1).seconds > 0
first.reset_statistics()
assert first.statistics(1) == engine.Statistics(0.0, 0, 0)
first.close()
second(1, whole, tile)
second.close()
second.close()
""",
        ranks=2,
    )


def test_a_communicator_of_some_ranks_has_ranks_of_its_own(launch):
    launch(
        PRELUDE
        + """
half = comm.Split(rank % 2, -rank)
run = engine.Engine(half, [scattered(2)])
half.Free()
tile = np.zeros(4)
run(0, whole + comm.rank % 2, tile)
assert tile.tolist() == [4 * run.rank + i + rank % 2 for i in range(4)]
""",
        ranks=4,
    )


def test_a_compiler_that_fails_fails_on_all_ranks(launch, tmp_path, monkeypatch):
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho this compiler is broken >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    launch(
        PRELUDE
        + """
import pytest
from distspmd.errors import CompilationError

with pytest.raises(CompilationError, match="this compiler is broken"):
    engine.Engine(comm, [scattered(2)])
print("all refused")
""",
        ranks=2,
    )


def test_the_compiled_runtime_is_kept(tmp_path, monkeypatch):
    from distspmd.runtime.engine import compile_runtime

    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_runtime, "FLAGS", (*compile_runtime.FLAGS, "-O0"))
    library = compile_runtime.build_runtime()
    made = library.stat().st_mtime_ns
    assert compile_runtime.build_runtime() == library
    assert library.stat().st_mtime_ns == made
    assert len([*tmp_path.rglob(library.name)]) == 1


@pytest.mark.parametrize(
    "call", ["distspmd_post(run.context, 0, 1, 0, None", "distspmd_meet(run.context, 0, None"]
)
def test_messages_of_more_bytes_than_mpi_counts_end_with_the_name_of_the_memlet(launch, call):
    said = failing(
        launch,
        f"""
run = engine.Engine(comm, [scattered(1)])
run._library.{call}, 2**31{", None" if "meet" in call else ""})
print("survived")
""",
        1,
    )
    assert "rank 0: the memlet x: a message of 2147483648 bytes, of which MPI counts" in said
