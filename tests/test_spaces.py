"""Iteration spaces: their names last, their order is the program's, and they print."""

from __future__ import annotations

import dace
import numpy as np

from distspmd.pipeline import iteration_spaces


@dace.program
def short(x: dace.float64[10, 6], w: dace.float64[6, 4]):
    hidden = np.sin(x) + 1
    return hidden @ w


@dace.program
def longer(x: dace.float64[10, 6], w: dace.float64[6, 4], z: dace.float64[5]):
    z[:] = z * 2 + 1
    other = np.cos(x)
    hidden = np.sin(x) + 1
    x[:] = other
    return hidden @ w


@dace.program
def looping(x: dace.float64[10], y: dace.float64[10]):
    for t in range(5):
        y[:] = x + t
        for i in dace.map[1:9]:
            x[i] = (y[i - 1] + y[i + 1]) / 2


@dace.program
def twice(x: dace.float64[10, 4], y: dace.float64[10]):
    y[:] = 0.0
    for i, j in dace.map[0:10, 0:4]:
        y[i] += x[i, j]


def test_names_are_unique_and_last_when_the_program_is_edited_elsewhere() -> None:
    before = [space.name for space in iteration_spaces(short.to_sdfg())]
    after = [space.name for space in iteration_spaces(longer.to_sdfg())]
    assert len(set(after)) == len(after)
    assert [name for name in after if name in before] == before


def test_spaces_that_write_the_same_container_are_numbered_in_order() -> None:
    spaces = iteration_spaces(twice.to_sdfg())
    assert [space.name for space in spaces] == ["y", "y.2"]
    assert spaces[1].parameters == ("i", "j")


def test_spaces_come_in_program_order_with_lines_of_the_source() -> None:
    spaces = iteration_spaces(short.to_sdfg())
    assert [space.label for space in spaces] == ["_numpy_sin__map", "_Add__map", "_MatMult_"]
    assert all(space.source is not None for space in spaces)
    lines = [space.source.line for space in spaces if space.source]
    assert lines == sorted(lines)
    assert all(space.source.file.endswith("test_spaces.py") for space in spaces if space.source)


def test_spaces_inside_loops_are_found() -> None:
    spaces = iteration_spaces(looping.to_sdfg())
    assert {"y", "x"} <= {space.name for space in spaces}
    inner = next(space for space in spaces if space.name == "x")
    assert [str(extent) for extent in inner.ranges] == ["1:9"]


def test_spaces_inside_nested_sdfgs_are_found() -> None:
    inner = short.to_sdfg()
    outer = dace.SDFG("outer")
    state = outer.add_state()
    for name, shape in (("x", (10, 6)), ("w", (6, 4)), ("__return", (10, 4))):
        outer.add_array(name, shape, dace.float64)
    node = state.add_nested_sdfg(inner, {"x", "w"}, {"__return"})
    for name in ("x", "w"):
        state.add_edge(
            state.add_read(name), None, node, name, dace.Memlet.from_array(name, outer.arrays[name])
        )
    result = dace.Memlet.from_array("__return", outer.arrays["__return"])
    state.add_edge(node, "__return", state.add_write("__return"), None, result)
    names = [space.name for space in iteration_spaces(outer)]
    assert names == [space.name for space in iteration_spaces(short.to_sdfg())]


def test_library_nodes_have_the_space_of_their_expansion_and_stay() -> None:
    sdfg = short.to_sdfg()
    product = iteration_spaces(sdfg)[-1]
    assert [str(extent) for extent in product.ranges] == ["0:10", "0:4", "0:6"]
    assert type(product.node).__name__ == "MatMul"
    assert any(type(node).__name__ == "MatMul" for node, _ in sdfg.all_nodes_recursive())


def test_spaces_print_as_a_table_and_as_html() -> None:
    spaces = iteration_spaces(short.to_sdfg())
    text, page = str(spaces), spaces._repr_html_()
    for part in ("sin_x", "__i0=0:10, __i1=0:6", "_MatMult_", "test_spaces.py:"):
        assert part in text
        assert part in page
    assert page.startswith("<table>")
    assert page.count("<tr>") == len(spaces) + 1
