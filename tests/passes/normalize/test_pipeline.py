"""Copies, views and single operations become maps; what cannot is refused with the line."""

from pathlib import Path

import dace
import numpy as np
import pytest
from dace.libraries.linalg import Transpose
from dace.sdfg import nodes
from parsed_by_dace import numpy_program

import distspmd
from distspmd import pipeline
from distspmd.errors import UnsupportedProgram
from distspmd.passes.normalize.pipeline import normalize

N = dace.symbol("N")


@dace.program
def reshaped(x: dace.float64[4, 6]):
    return np.reshape(x, (8, 3)) + 1


@dace.program
def sliced(a: dace.float64[9, 6], b: dace.float64[6, 4]):
    return a[1:5] @ b


@dace.program
def transposed_view(a: dace.float64[4, 5], b: dace.float64[5, 5]):
    return np.einsum("ij,kj->ik", a, b)


@dace.program
def constants(x: dace.float32[5]):
    return x - np.float32(2)


@dace.program
def symbolic(x: dace.float64[N, 4]):
    return x + 1


@dace.program
def unknown_range(x: dace.float64[10], n: dace.int64):
    for i in dace.map[0:n]:
        x[i] = x[i] + 1


@dace.program
def bounded(x: dace.float64[10], n: dace.int64):
    x[:n] = x[:n] * 2


@dace.program
def inverted(x: dace.float64[5, 5]):
    return np.linalg.inv(x)


@dace.program
def without_a_memlet(x: dace.int64[8, 1]):
    y = np.min(x, axis=0)
    return y - y


@dace.program
def range_of_a_loop(x: dace.float64[10]):
    for t in range(5):
        for i in dace.map[t:9:2]:
            x[i] = x[i] + 1


@dace.program
def branch(x: dace.float64[10], k: dace.int64[3]):
    if x[k[2]] > 0:
        x += 1


@dace.program
def calls_python(x: dace.float64[10]):
    return np.cumsum(x)


@dace.program
def largest_place(x: dace.float64[10]):
    return np.argmax(x)


@dace.program
def scattered(x: dace.float64[10], c: dace.int64[10], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[c[i]] = x[i]


def kinds(sdfg: dace.SDFG) -> set[str]:
    return {
        type(node).__name__
        for state in sdfg.states()
        for node in state.nodes()
        if state.entry_node(node) is None
    }


@pytest.mark.parametrize("program", [reshaped, sliced, transposed_view, constants])
def test_only_maps_and_library_nodes_work_at_the_top_level(program):
    sdfg = numpy_program(program)
    normalize(sdfg)
    sdfg.validate()
    allowed = {"AccessNode", "MapEntry", "MapExit", "MatMul", "Reduce", "Contraction"}
    assert kinds(sdfg) <= allowed
    assert not [d for d in sdfg.arrays.values() if isinstance(d, dace.data.View)]
    for state in sdfg.states():
        for edge in state.edges():
            assert not (
                isinstance(edge.src, nodes.AccessNode) and isinstance(edge.dst, nodes.AccessNode)
            )


@pytest.mark.parametrize(
    ("program", "shapes"),
    [(reshaped, [(4, 6)]), (sliced, [(9, 6), (6, 4)]), (transposed_view, [(4, 5), (5, 5)])],
)
def test_the_prepared_program_computes_the_same(program, shapes):
    rng = np.random.default_rng(0)
    arguments = [rng.random(shape) for shape in shapes]
    sdfg = numpy_program(program)
    normalize(sdfg)
    names = [name for name in numpy_program(program).arglist() if not name.startswith("__return")]
    found = sdfg(**dict(zip(names, arguments, strict=True)))
    np.testing.assert_allclose(found, program.f(*arguments))


@pytest.mark.parametrize("program", [sliced, branch])
def test_preparing_twice_changes_nothing(program):
    sdfg = numpy_program(program)
    normalize(sdfg)
    before = sdfg.to_json()
    normalize(sdfg)
    assert sdfg.to_json() == before


def test_control_flow_reads_nothing_but_scalars():
    sdfg = branch.to_sdfg()
    normalize(sdfg)
    edges = [edge.data for edge in sdfg.all_interstate_edges()]
    read = {name for edge in edges for name in edge.free_symbols & sdfg.arrays.keys()}
    assert read == {"k_value", "x_value"}


def test_control_flow_that_reads_a_whole_array_is_refused():
    sdfg = dace.SDFG("whole")
    sdfg.add_array("x", [4], dace.float64)
    first, second = sdfg.add_state(), sdfg.add_state()
    sdfg.add_edge(first, second, dace.InterstateEdge("x > 0"))
    with pytest.raises(UnsupportedProgram, match=r"reads 'x', an array of several .*np.max\(x\)"):
        normalize(sdfg)


def message(program, schedule=None) -> str:
    sdfg = numpy_program(program) if hasattr(program, "to_sdfg") else program
    with pytest.raises(UnsupportedProgram) as caught:
        distspmd.lower(sdfg, schedule or {})
    return str(caught.value)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(n for n, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("program", "line", "what", "instead"),
    [
        (unknown_range, "for i in dace.map[0:n]", "runs over i=0:", "Give the range as numbers"),
        (range_of_a_loop, "for i in dace.map[t:9:2]", "runs over i=t:9:2", "a condition inside"),
        (inverted, "np.linalg.inv(x)", "no pure expansion", "np.linalg.solve"),
        (without_a_memlet, "return y - y", "'y' is read, which is neither", "Add a memlet"),
        (calls_python, "np.cumsum(x)", "calls back into Python", "Take the call out"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_refusals_name_the_line_and_what_to_write(program, line, what, instead):
    found = message(program)
    assert what in found
    assert instead in found
    file, number = found.split(":")[:2]
    assert file == "test_pipeline.py"
    assert abs(int(number) - line_of(line)) <= 1


def test_a_library_node_that_dace_cannot_expand_is_refused_by_name():
    sdfg = dace.SDFG("cube")
    for name in ("x", "y"):
        sdfg.add_array(name, [2, 3, 4], dace.float64)
    state = sdfg.add_state()
    node = Transpose("flip", dace.float64)
    state.add_edge(state.add_read("x"), None, node, "_inp", dace.Memlet("x[0:2, 0:3, 0:4]"))
    state.add_edge(node, "_out", state.add_write("y"), None, dace.Memlet("y[0:2, 0:3, 0:4]"))
    found = message(sdfg)
    assert "flip (Transpose) cannot be expanded: " in found
    assert "Write the operation as maps" in found


def test_a_scalar_that_bounds_a_slice_is_refused_with_the_symbol_that_may():
    assert "n = dace.symbol('n')" in message(bounded)


def test_symbolic_sizes_are_refused_with_what_sets_them():
    with pytest.raises(UnsupportedProgram) as caught:
        pipeline.lower_numbers(symbolic.to_sdfg(), {})
    assert "has the symbolic sizes N" in str(caught.value)
    assert "sizes={'N': 1024}" in str(caught.value)
    sdfg = symbolic.to_sdfg()
    sdfg.replace_dict({"N": 12})
    assert distspmd.lower(sdfg, {"__return": (4, 1)}).ranks == 4


def test_a_reduction_of_pairs_is_refused_on_ranks_and_runs_on_one():
    found = message(largest_place, {"argmax_x.2": (2,)})
    assert "with the conflict resolution lambda a, b: " in found
    assert "ranks cannot combine" in found
    assert distspmd.lower(largest_place.to_sdfg(), {}).ranks == 1


def test_a_scatter_is_refused_on_ranks_and_runs_on_one():
    assert "several ranks may write the same elements of 'y'" in message(scattered, {"y": (2,)})
    assert distspmd.lower(scattered.to_sdfg(), {"y": (1,)}).ranks == 1


@dace.program
def smallest_so_far(x: dace.float64[9], y: dace.float64[1]):
    for i in dace.map[0:9]:
        y[0] = min(y[0], x[i])


def test_a_reduction_that_dace_does_not_see_is_refused_on_ranks_and_runs_on_one():
    found = message(smallest_so_far, {"y": (3,)})
    assert "several ranks write into one part of 'y'" in found
    assert "ranks 0 and 1 into [0:1]" in found
    assert distspmd.lower(smallest_so_far.to_sdfg(), {"y": (1,)}).ranks == 1


@dace.program
def last_of_rows(x: dace.float64[6, 4], y: dace.float64[6]):
    for i, j in dace.map[0:6, 0:4]:
        y[i] = x[i, j]


@dace.program
def number_of_last(y: dace.float64[6]):
    for i, j in dace.map[0:6, 0:4]:
        y[i] = j


@dace.program
def same_of_rows(x: dace.float64[6], y: dace.float64[6]):
    for i, _j in dace.map[0:6, 0:4]:
        y[i] = x[i] * 2


def test_different_values_for_one_element_are_refused_and_the_same_value_is_not():
    for program in (last_of_rows, number_of_last):
        assert "would depend on which of them comes last" in message(program, {"y": (1, 2)})
        assert distspmd.lower(program.to_sdfg(), {"y": (2, 1)}).ranks == 2
    assert distspmd.lower(same_of_rows.to_sdfg(), {"y": (2, 2)}).ranks == 4


def test_streams_and_objects_are_refused():
    sdfg = dace.SDFG("streams")
    sdfg.add_stream("s", dace.float64, transient=True)
    sdfg.add_array("x", [4], dace.float64)
    state = sdfg.add_state()
    state.add_mapped_tasklet(
        "push",
        {"i": "0:4"},
        {"_x": dace.Memlet("x[i]")},
        "_s = _x",
        {"_s": dace.Memlet("s[0]")},
        external_edges=True,
    )
    assert "'s' is a Stream of double; only arrays and scalars" in message(sdfg)


def with_view(dtype: dace.typeclass, written: str = "0:6") -> dace.SDFG:
    """A map that writes a view of x, or a part of it."""
    sdfg = dace.SDFG("with_view")
    sdfg.add_array("x", [2, 3], dace.float64)
    sdfg.add_view("v", [6], dtype)
    state = sdfg.add_state()
    _, _, leave = state.add_mapped_tasklet(
        "fill", {"i": written}, {}, "_v = i", {"_v": dace.Memlet("v[i]")}, external_edges=True
    )
    (edge,) = state.out_edges(leave)
    view = edge.dst
    view.add_out_connector("views")
    state.add_edge(view, "views", state.add_write("x"), None, dace.Memlet("x[0:2, 0:3]"))
    return sdfg


def test_a_view_that_is_written_whole_is_copied_back():
    lowering = distspmd.lower(with_view(dace.float64), {"v": (3,)})
    assert {space.name for space in lowering.spaces} == {"v", "x"}


def test_a_view_as_another_type_is_refused():
    assert "'v' is a view of 'x' as int64_t" in message(with_view(dace.int64))


def test_a_view_of_which_a_part_is_written_is_refused():
    assert "a part of 'v', a view of another array, is" in message(with_view(dace.float64, "0:4"))
