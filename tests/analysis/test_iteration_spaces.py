"""Names of iteration spaces, their order, their ranges, their places in the program."""

import copy
import html
from html.parser import HTMLParser
from pathlib import Path

import dace
import numpy as np
import pytest
from parsed_by_dace import numpy_program

import distspmd
from distspmd.analysis.iteration_spaces import Source, spaces_of
from distspmd.errors import UnsupportedProgram


@dace.program
def layer(x: dace.float64[8, 6], w: dace.float64[6, 4], b: dace.float64[4]):
    hidden = x @ w + b
    scaled = np.maximum(hidden, 0) * 2
    total = np.sum(scaled, axis=1)
    return total / 4


@dace.program
def layer_with_more_before(x: dace.float64[8, 6], w: dace.float64[6, 4], b: dace.float64[4]):
    extra = np.exp(b) + 1
    other = extra * extra
    hidden = x @ w + b
    scaled = np.maximum(hidden, 0) * 2
    total = np.sum(scaled, axis=1)
    return total / 4 + other[0]


@dace.program
def layer_of_other_size(x: dace.float64[5, 6], w: dace.float64[6, 9], b: dace.float64[9]):
    hidden = x @ w + b

    scaled = np.maximum(hidden, 0) * 2
    total = np.sum(scaled, axis=1)
    return total / 4


@dace.program
def time_steps(x: dace.float64[9], y: dace.float64[9]):
    for _t in range(5):
        for i in dace.map[1:8]:
            y[i] = x[i - 1] + x[i + 1]
        for i in dace.map[1:8]:
            x[i] = y[i - 1] + y[i + 1]
    x[:] = x * 2


@dace.program
def one_container(x: dace.float64[9], y: dace.float64[9]):
    y[:] = x + 1
    y[:] = y * x
    y[:] = np.sin(y)


@dace.program
def copies(x: dace.float64[9], y: dace.float64[9]):
    y[0:2] = x[0:2]
    y[2:9] = x[2:9] * 2
    s = y[3] + 1
    return x + s


@dace.program
def calls_python(x: dace.float64[9]):
    x[:] = x + 1
    return np.cumsum(x)


@dace.program
def stepped(x: dace.float64[20], y: dace.float64[20]):
    for i, j in dace.map[2:20:3, 0:4]:
        y[i] += x[i] * j


def names(program) -> list[str]:
    return [space.name for space in distspmd.iteration_spaces(program.to_sdfg())]


def test_names_are_those_of_the_variables_and_unique():
    found = names(layer)
    assert len(found) == len(set(found))
    assert {"hidden", "scaled", "total", "__return"} <= set(found)


def test_names_stay_when_something_else_is_edited():
    before, after = names(layer), names(layer_with_more_before)
    assert set(before) - {"__return"} <= set(after)
    assert names(layer_of_other_size) == before


def test_names_stay_when_the_program_is_parsed_copied_or_stored_again():
    sdfg = layer.to_sdfg()
    wanted = [space.name for space in distspmd.iteration_spaces(sdfg)]
    for other in (layer.to_sdfg(), copy.deepcopy(sdfg), dace.SDFG.from_json(sdfg.to_json())):
        assert [space.name for space in distspmd.iteration_spaces(other)] == wanted


def test_spaces_that_write_one_container_are_numbered_in_program_order():
    spaces = distspmd.iteration_spaces(one_container.to_sdfg())
    written = [space for space in spaces if space.writes == ("y",)]
    assert [space.name for space in written] == ["y", "y.2", "y.3"]
    lines = [space.source.line for space in spaces]
    assert lines == sorted(lines)


def test_the_table_names_what_a_schedule_can_name_copies_included():
    sdfg = copies.to_sdfg()
    listed = [space.name for space in distspmd.iteration_spaces(sdfg)]
    assert listed == ["y", "y.2", "y_index", "s", "__return"]
    lowered = distspmd.lower(sdfg, {"y.2": (2,)})
    assert [space.name for space in lowered.spaces] == listed
    assert {s.name: s.parts for s in lowered.spaces}["y.2"] == (2,)


def test_listing_leaves_the_program_as_it_is():
    sdfg = copies.to_sdfg()
    before = sdfg.to_json()
    distspmd.iteration_spaces(sdfg)
    assert sdfg.to_json() == before


def test_spaces_are_in_program_order_also_inside_loops():
    spaces = distspmd.iteration_spaces(time_steps.to_sdfg())
    assert [space.name for space in spaces] == ["y", "x", "x_slice", "x.2"]
    assert [space.source.line for space in spaces] == sorted(s.source.line for s in spaces)
    assert str(spaces[0].ranges[0]) == "1:8"


def test_spaces_of_programs_that_cannot_be_lowered_are_listed_too():
    found = [space.name for space in distspmd.iteration_spaces(calls_python.to_sdfg())]
    assert "x_slice" in found


def test_spaces_inside_nested_sdfgs_are_listed():
    inner = dace.SDFG("inner")
    inner.add_array("v", [6], dace.float64)
    inner.add_state().add_mapped_tasklet(
        "double",
        {"i": "0:6"},
        {"_i": dace.Memlet("v[i]")},
        "_o = 2 * _i",
        {"_o": dace.Memlet("v[i]")},
        external_edges=True,
    )
    sdfg = dace.SDFG("outer")
    sdfg.add_array("v", [6], dace.float64)
    state = sdfg.add_state()
    node = state.add_nested_sdfg(inner, {"v"}, {"v"})
    state.add_edge(state.add_read("v"), None, node, "v", dace.Memlet("v[0:6]"))
    state.add_edge(node, "v", state.add_write("v"), None, dace.Memlet("v[0:6]"))
    (space,) = distspmd.iteration_spaces(sdfg)
    assert space.name == "v"
    assert distspmd.lower(sdfg, {"v": (2,)}).ranks == 2


def test_ranges_have_their_begins_and_steps():
    (space,) = distspmd.iteration_spaces(stepped.to_sdfg())
    assert space.parameters == ("i", "j")
    assert [str(extent) for extent in space.ranges] == ["2:20:3", "0:4"]


def test_a_library_node_has_the_space_of_its_pure_expansion_and_stays():
    sdfg = layer.to_sdfg()
    space = next(s for s in distspmd.iteration_spaces(sdfg) if s.label == "_MatMult_")
    assert len(space.parameters) == 3
    assert [str(extent) for extent in space.ranges] == ["0:8", "0:4", "0:6"]
    assert type(space.node).__name__ == "MatMul"
    assert space.node in space.state.nodes()
    assert space.state.sdfg is sdfg


def test_records_say_what_is_written_and_where_it_comes_from():
    space = next(s for s in distspmd.iteration_spaces(layer.to_sdfg()) if s.name == "scaled")
    assert space.writes == ("scaled",)
    assert space.source.file.endswith("test_iteration_spaces.py")
    line = open_lines()[space.source.line - 1]
    assert "scaled = " in line
    assert str(Source("/somewhere/model.py", 7)) == "model.py:7"


def open_lines() -> list[str]:
    with open(__file__) as file:
        return file.read().splitlines()


def test_every_space_of_a_numpy_program_has_its_line():
    for space in distspmd.iteration_spaces(layer.to_sdfg()):
        assert space.source is not None, space.name
        assert space.where.startswith("test_iteration_spaces.py:")


@dace.program
def places(x: dace.float64[6, 4], y: dace.float64[4]):
    z = y + 1
    return z + np.argmax(x, axis=0) + np.mean(x, axis=0)


def test_no_space_has_a_line_of_dace_itself():
    spaces = spaces_of(places.to_sdfg())
    files = {space.source and Path(space.source.file).name for space in spaces}
    assert files <= {"test_iteration_spaces.py", None}
    assert all(space.where == f"node {space.label}" for space in spaces if not space.source)


def test_the_table_has_a_row_for_each_space():
    spaces = distspmd.iteration_spaces(layer.to_sdfg())
    text = str(spaces)
    for space in spaces:
        (row,) = (line for line in text.splitlines() if f" {space.name} " in line)
        assert str(space.source) in row
        for parameter, extent in zip(space.parameters, space.ranges, strict=True):
            assert f"{parameter}={extent}" in row
    for title in ("name", "iterates over", "label", "source"):
        assert title in text


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1] and data.strip():
            self.rows[-1][-1] += data


def test_the_table_in_a_notebook_has_the_same_cells():
    spaces = distspmd.iteration_spaces(layer.to_sdfg())
    parser = Cells()
    parser.feed(spaces._repr_html_())
    rows = [row for row in parser.rows if row]
    assert [row[0] for row in rows[-len(spaces) :]] == [space.name for space in spaces]
    assert html.escape(spaces[0].label) in spaces._repr_html_()


def test_spaces_are_a_sequence():
    spaces = distspmd.iteration_spaces(time_steps.to_sdfg())
    assert len(spaces) == 4
    assert spaces[-1].name == "x.2"
    assert [space.name for space in spaces[1:]] == ["x", "x_slice", "x.2"]


def test_a_program_without_work_has_no_spaces():
    sdfg = dace.SDFG("empty")
    sdfg.add_array("x", [3], dace.float64)
    sdfg.add_state()
    assert list(distspmd.iteration_spaces(sdfg)) == []
    assert "name" in str(distspmd.iteration_spaces(sdfg))


def test_a_library_node_without_a_pure_expansion_is_refused_with_its_name():
    @dace.program
    def inverse(a: dace.float64[4, 4]):
        return np.linalg.inv(a)

    with pytest.raises(
        UnsupportedProgram, match=r"test_iteration_spaces.py:\d+: .*inv.* \(Inv\) has no"
    ):
        spaces_of(inverse.to_sdfg())


def test_lines_are_not_sought_in_the_stack(monkeypatch) -> None:
    @dace.program
    def weights(x: dace.float64[6, 4], w: dace.float64[4, 4]):
        return np.einsum("ij,kj->ik", np.exp(x - np.max(x, axis=1)[:, np.newaxis]), w) @ w

    sdfg = numpy_program(weights)

    def stack():
        raise AssertionError("this is slow, and would find a line of ours")

    monkeypatch.setattr("inspect.stack", stack)
    distspmd.lower(sdfg, {"__return": (2, 1, 1)})
