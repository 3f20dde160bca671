"""Fused maps: which become one, under which name, and what the schedule keeps apart."""

import dace
import numpy as np

import distspmd
from distspmd import frontend
from distspmd.lowering import Lowering


@dace.program
def chain(x: dace.float64[12, 9], y: dace.float64[9]):
    a = np.sin(x) * y
    b = a + 1
    return b * b


@dace.program
def read_twice(x: dace.float64[12]):
    a = x + 1
    return a * 2, a * 3


@dace.program
def neighbours(x: dace.float64[12], z: dace.float64[12]):
    a = x + 1
    z[1:-1] = a[:-2] + a[2:]


@dace.program
def later_in_a_loop(x: dace.float64[12], z: dace.float64[12]):
    a = np.zeros((12,), np.float64)
    for _t in range(3):
        z += a
        a[:] = x * 2


@dace.program
def named_parameters(x: dace.float64[12, 9], z: dace.float64[9, 12]):
    a = x + 1
    for j, i in dace.map[0:12, 0:9]:
        z[i, j] = a[j, i] * j


@dace.program
def five_points(x: dace.float64[12, 12], z: dace.float64[12, 12]):
    for _t in range(5):
        z[1:-1, 1:-1] = 0.2 * (
            x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        )
        x[1:-1, 1:-1] = 0.2 * (
            z[1:-1, 1:-1] + z[:-2, 1:-1] + z[2:, 1:-1] + z[1:-1, :-2] + z[1:-1, 2:]
        )


def names(program, schedule, **options) -> list[str]:
    return [space.name for space in lowering_of(program, schedule, **options).spaces]


def lowering_of(program, schedule, **options) -> Lowering:
    return distspmd.lower(program.to_sdfg(), schedule, **options)


def test_a_chain_becomes_one_map_with_the_name_of_its_end() -> None:
    assert names(chain, {"__return": (3, 1)}) == ["__return"]
    assert len(names(chain, {"__return": (3, 1)}, fuse=False)) == 4


def test_spaces_of_the_schedule_take_others_in_and_are_not_taken() -> None:
    assert names(chain, {"a": (3, 1)}) == ["a", "__return"]
    assert names(chain, {"b": (1, 3), "__return": (1, 3)}) == ["b", "__return"]


def test_a_temporary_that_is_read_twice_stays() -> None:
    assert names(read_twice, {}) == ["a", "__return_0", "__return_1"]


def test_a_temporary_that_neighbours_read_stays() -> None:
    assert names(neighbours, {}) == ["a", "z"]


def test_a_temporary_that_another_iteration_reads_stays() -> None:
    assert names(later_in_a_loop, {}) == ["a", "z", "a.2"]


def test_a_map_keeps_its_parameters_when_it_takes_others_in() -> None:
    (space,) = lowering_of(named_parameters, {"z": {"i": 3}}).spaces
    assert space.iterates == (("j", "0:12"), ("i", "0:9"))
    assert space.parts == (1, 3)


def test_a_fused_stencil_exchanges_its_halo_and_no_more() -> None:
    lowering = lowering_of(five_points, {"x": (2, 2), "z": (2, 2)})
    assert [space.name for space in lowering.spaces] == ["z", "x"]
    inside = [m for m in lowering.memlets if not (m.from_caller or m.to_caller)]
    halo = 2 * 5 * np.dtype(np.float64).itemsize  # a row and a column of 5 from two neighbours
    for name in ("x", "z"):
        plans = [memlet.solution.plan for memlet in inside if memlet.data == name]
        assert [sum(plan.received(rank) for plan in plans) for rank in range(4)] == [halo] * 4


def own_names(function, *arrays, **options) -> list[str]:
    program = frontend.numpy_program(function, *arrays, host="refuse")
    return [space.name for space in distspmd.lower(program, {}, **options).spaces]


def test_temporaries_of_an_unrolled_loop_are_fused_each_by_itself() -> None:
    def of_directions(x, y):
        for k, c in enumerate((2.0, 3.0, 5.0)):
            along = np.exp(c * x)
            y[:, k] = along + along * x

    arrays = np.zeros(12), np.zeros((12, 3))
    assert own_names(of_directions, *arrays, fuse=False) == [
        "along", "y", "along.2", "y.2", "along.3", "y.3"
    ]  # fmt: skip
    found = own_names(of_directions, *arrays)
    assert "along.2" not in found
    assert [name for name in found if name.startswith("y")] == ["y", "y.2", "y.3"]


def test_a_temporary_that_the_next_iteration_reads_is_not_taken_for_one_of_its_own() -> None:
    def lagging(x, y):
        last = x * 1.0
        for k in range(3):
            y[:, k] = last
            last = np.exp(last + x)
            y[:, k] += last

    found = own_names(lagging, np.zeros(12), np.zeros((12, 3)))
    assert any(name.startswith("last") for name in found)


def test_a_temporary_that_is_written_in_part_stays() -> None:
    def patched(x, y):
        for k in (0, 1, 2):
            t = np.exp(x)
            t[0] = k
            y[:, k] = t * x

    assert sum(n.startswith("t") for n in own_names(patched, np.zeros(12), np.zeros((12, 3)))) > 2


def test_an_array_that_is_assigned_to_itself_is_not_copied() -> None:
    def same(x, y):
        x[:, 0] = x[:, 0]
        y[:] = np.roll(y, 0) + 1

    assert own_names(same, np.zeros((12, 3)), np.zeros(12)) == ["y"]
