"""The machine as assumed, and as measured on this host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Launch
from hypothesis import given
from hypothesis import strategies as st

import distspmd
from distspmd import cli, doctor
from distspmd.doctor import Check
from distspmd.errors import ArgumentError
from distspmd.layouts import Layout, Mesh
from distspmd.plans.machine import RATES, Kind, Machine, measurements
from distspmd.runtime.measure.hosts import NEVER, caches, nearest, parted, threshold
from distspmd.runtime.measure.library_calls import rate

SLOW = Machine(alpha=1.0, beta=2.0, copy=3.0, single_copy_bytes=4, run_bytes=5)


def stored(alpha: str) -> str:
    numbers = f'{{"alpha": {alpha}, "beta": 1, "copy": 1, "single_copy_bytes": 1, "run_bytes": 1}}'
    return f'{{"latest": "x", "machines": {{"x": {numbers}}}}}'


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))


def test_a_machine_that_was_not_measured_is_as_assumed() -> None:
    assert Machine.measured() == Machine()


def test_the_last_measurement_counts_unless_an_mpi_is_named() -> None:
    SLOW.store("one")
    fast = Machine(alpha=0.5)
    fast.store("other")
    assert Machine.measured() == fast
    assert Machine.measured("one") == SLOW
    assert Machine.measured("none") == Machine()
    SLOW.store("other")
    assert Machine.measured() == SLOW
    assert [file.name for file in measurements().parent.iterdir()] == [measurements().name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"latest": "x"}',
        '{"latest": "x", "machines": {"x": {"alpha": 1}}}',
        stored('"1"'),
        stored("-1"),
    ],
)
def test_a_damaged_measurement_is_passed_over(content: str) -> None:
    SLOW.store("x")
    measurements().write_text(stored("7"))
    assert Machine.measured().alpha == 7
    measurements().write_text(content)
    assert Machine.measured() == Machine()
    SLOW.store("x")
    assert Machine.measured() == SLOW


def test_pulls_begin_where_they_win_for_all_larger_sizes() -> None:
    assert threshold((1, 2, 3), (True, False, True)) == 3
    assert threshold((1, 2, 3), (True, True, True)) == 1
    assert threshold((1, 2, 3), (True, True, False)) == NEVER


def test_a_cache_holds_what_is_read_as_fast_as_in_between() -> None:
    costs = {1: 2.0, 2: 2.1, 4: 2.5, 8: 4.5, 16: 3.0, 32: 6.0}
    assert caches(costs) == {"stream": 6.0, "cached": 2 / 6, "cache": 4}
    assert caches({1: 2.0, 2: 2.1}) == {"stream": 2.1, "cached": 2 / 2.1, "cache": 0}


def test_the_nearest_cache_is_the_first_that_holds_data(tmp_path: Path) -> None:
    told = (("1", "Instruction", "64K"), ("2", "Unified", "2048K"), ("1", "Data", "48K"))
    for number, texts in enumerate(told):
        cache = tmp_path / f"index{number}"
        cache.mkdir()
        for name, text in zip(("level", "type", "size"), texts, strict=True):
            (cache / name).write_text(f"{text}\n")
    assert nearest(tmp_path) == 48 * 1024
    (tmp_path / "index2" / "size").write_text("much\n")
    assert nearest(tmp_path) == 0
    (tmp_path / "index2" / "level").unlink()
    assert nearest(tmp_path) == nearest(tmp_path / "nowhere") == 0


def test_a_byte_of_a_product_costs_what_one_of_few_rows_takes_longer() -> None:
    works = [(1000, 30), (100, 20)]
    seconds = [2.0 * operations + 3.0 * nbytes for operations, nbytes in works]
    assert parted(works, seconds) == pytest.approx({"product": 2.0, "packing": 3.0})
    assert parted(works, [2000.0, 150.0]) == {"product": 2.0, "packing": 0.0}  # noise
    assert parted(works, [2000.0, 9000.0])["product"] > 0


def test_bytes_of_a_product_are_packed_beside_its_operations() -> None:
    machine = Machine(product=2.0, single=0.5, packing=3.0, operation=2.0, stream=0, launch=0)
    found = [machine.computing(10, 5, kind) for kind in Kind if kind not in RATES]
    assert found == [35, 17.5, 20, 20, 10]
    assert machine.computing(10, 5, Kind.PRODUCT, 2) == 35
    assert replace(machine, cores=1).computing(10, 5, Kind.PRODUCT, 2) == 70


def test_library_calls_have_rates_of_their_own_which_a_measurement_keeps() -> None:
    machine = Machine(rates=(("SORT", 2.0, 3.0),), stream=0, launch=0)
    assert machine.computing(10, 5, Kind.SORT) == 35
    assert machine.rate(Kind.SVD) == RATES[Kind.SVD]
    machine.store("x")
    assert Machine.measured() == machine
    assert hash(Machine.measured()) == hash(machine)
    for rates in ('["SORT", 2.0, 3.0]', '[["SORT", 2.0]]', '[["SORT", 2.0, -1]]', '[["A", 1, 1]]'):
        text = stored("7")
        measurements().write_text(text.replace('"alpha"', f'"rates": {rates}, "alpha"'))
        assert Machine.measured() == Machine()
    with pytest.raises(ArgumentError, match=r"'TALK' .* is no kind of work"):
        Machine(rates=(("TALK", 1.0, 1.0),))
    with pytest.raises(ArgumentError, match="a cost is a number from 0 on"):
        Machine(rates=(("SORT", -1.0, 1.0),))


def test_two_calls_of_a_library_tell_what_an_operation_and_a_byte_cost() -> None:
    works = [(1000.0, 30.0), (100000.0, 20.0)]
    assert rate(works, [2.0 * n + 3.0 * nbytes for n, nbytes in works]) == pytest.approx((2.0, 3.0))
    assert rate(works, [9000.0, 200000.0])[0] > 0
    assert rate(works[:1], [500.0]) == (0.5, 0.0)


def test_a_rank_that_moves_bytes_alone_has_the_way_to_memory_for_itself() -> None:
    machine = Machine(cores=2, lone=0.75)
    assert machine.busiest(100, 100) == 75
    assert machine.busiest(100, 200) == 100
    assert replace(machine, cores=0).busiest(100, 100) == 100


COSTS = st.floats(0, 1e-8)


@given(
    machine=st.builds(
        Machine,
        product=COSTS,
        single=st.floats(0, 2),
        packing=COSTS,
        function=st.floats(1, 9),
        copy=COSTS,
        lone=st.floats(0, 1),
        operation=COSTS,
        stream=COSTS,
        cached=st.floats(0, 2),
        cache=st.integers(0, 1 << 24),
        cores=st.sampled_from([0, 1, 1.5, 2, 8]),
    ),
    operations=st.tuples(*[st.integers(0, 1 << 32)] * 2).map(sorted),
    nbytes=st.tuples(*[st.integers(0, 1 << 26)] * 2).map(sorted),
    working=st.tuples(*[st.integers(1, 16)] * 2).map(sorted),
    kind=st.sampled_from(Kind),
)
def test_more_work_never_takes_less(
    machine: Machine, operations: list[int], nbytes: list[int], working: list[int], kind: Kind
) -> None:
    less, more = (
        machine.computing(operations[end], nbytes[end], kind, working[end]) for end in (0, 1)
    )
    assert less <= more * (1 + 1e-12)
    assert machine.busiest(nbytes[0], 4 * nbytes[0]) <= machine.busiest(nbytes[1], 4 * nbytes[1])
    assert machine.arriving(False) <= machine.arriving(True)


def test_what_a_cache_holds_takes_less_and_what_exceeds_it_all_of_memory() -> None:
    machine = Machine(stream=4.0, cached=0.25, cache=100, launch=0.0, operation=0.0, cores=2)
    at_once = np.array([100, 150, 200, 300])
    assert machine.computing(0, at_once, Kind.LOOP, 2).tolist() == [100, 450, 800, 1200]
    assert machine.computing(0, 50, Kind.LOOP, 4) == 2 * 50  # two share a core and its cache
    assert machine.computing(0, 100, Kind.LOOP, 4) == 2 * 400


def test_what_the_doctor_measures_is_what_plans_and_all_ranks_go_by(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "checks", lambda: (Check("all", True, "well"),))
    monkeypatch.setenv("COLUMNS", "400")
    assert cli.main(["doctor", "--measure"]) == 0
    assert str(measurements()) in capsys.readouterr().out
    found = Machine.measured()
    assert found != Machine()
    assert 1e-8 < found.alpha < 1
    assert 1e-12 < found.beta < 1e-6
    assert 1e-12 < found.copy < 1e-6
    assert 0 <= found.run < 1e-6
    assert 1e-13 < found.product < 1e-6
    assert 1e-13 < found.operation < 1e-9  # without what a call of NumPy takes
    assert 0 < found.single < 4  # of the other precision: half, where nothing else runs
    assert 0 <= found.packing < 1e-6
    assert 0 < found.lone <= 1
    assert 1 <= found.function < 100
    assert 1e-12 < found.stream < 1e-6
    assert 0 < found.cached <= 1
    assert 0 <= found.cache < 1 << 28
    assert {name for name, *_ in found.rates} == {k.name for k in RATES} - {"PYTHON", "FETCH"}
    assert all(1e-12 < each < 1e-6 for _, each, _ in found.rates)
    assert 1 << 12 <= found.single_copy_bytes <= NEVER
    assert 1 << 12 <= found.run_bytes <= NEVER
    rows, columns = (Layout.parse(text, Mesh(x=2)) for text in ("[2{x}4, 4]", "[4, 2{x}4]"))
    assert distspmd.plan(rows, columns).machine == found
    assert distspmd.plan(rows, columns, machine=SLOW).machine == SLOW
    launch(
        f"""
import os
from mpi4py import MPI
from distspmd.plans.machine import Machine
from distspmd.runtime.redistribution.redistribute import known_of

if MPI.COMM_WORLD.rank == 1:
    os.environ["DISTSPMD_CACHE"] += "-of-another-host"
    assert Machine.measured() == Machine()
assert known_of(MPI.COMM_WORLD).machine == {found}
""",
        ranks=2,
    )


def test_to_begin_a_space_takes_no_longer_than_its_work() -> None:
    machine = Machine(operation=1e-9, stream=0, launch=2e-7)
    assert machine.computing(3, 0, Kind.LOOP) == pytest.approx(6e-9)
    assert machine.computing(1000, 0, Kind.LOOP) == pytest.approx(1.2e-6)
