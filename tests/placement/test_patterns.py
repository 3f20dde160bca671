"""Schedules by patterns over paths of spaces: what they split, on which mesh, and refusals."""

import copy

import dace
import numpy as np
import pytest

import distspmd
from distspmd import Schedule
from distspmd.analysis.meanings import Meanings, tell
from distspmd.errors import MeshError, ScheduleError, UnsupportedProgram
from distspmd.frontend import (
    data_parallel,
    experts,
    fsdp,
    megatron,
    numpy_program,
    sequence_parallel,
    zero,
)
from distspmd.layouts import Mesh
from distspmd.pipeline import list_spaces
from distspmd.placement.schedule import resolve
from distspmd.schedule import OnMesh, Patterns, as_entries


def layers(x: dace.float64[6, 8], w: dace.float64[8, 10], v: dace.float64[10, 8]):
    hidden = np.tanh(x @ w)
    return hidden @ v


@pytest.fixture(scope="module")
def named():
    """The program, with what a front end would say of it."""
    sdfg = numpy_program(layers)
    known = {
        "x": ("batch", "features"),
        "w": ("features", "hidden"),
        "v": ("hidden", "features"),
        "hidden": ("batch", "hidden"),
        "__return": ("batch", "features"),
    }
    paths = {"hidden": "mlp.up.tanh", "__return": "mlp.down.mm"}
    tell(sdfg, Meanings(paths, known, {"w": "parameters", "v": "parameters"}))
    return sdfg


def grids(sdfg, schedule, mesh=None):
    found = resolve(as_entries(schedule, mesh), list_spaces(sdfg))
    return {name: (dict(grid.mesh.axes), grid.splits) for name, grid in found.items()}


def test_parameters_have_the_names_of_the_dimensions_that_they_index(named):
    spaces = {space.name: space for space in list_spaces(named)}
    assert spaces["__return"].dimensions == ("batch", "features", "hidden")
    assert spaces["__return"].path == "mlp.down.mm"
    assert dict(spaces["hidden"].iterates) == {"batch": "0:6", "hidden": "0:10"}
    assert "batch=0:6" in str(list_spaces(named))
    grid = resolve({"__return": {"hidden": 2}}, list_spaces(named))["__return"]
    assert grid.parts == (1, 1, 2)


def test_the_second_dimension_of_one_name_has_a_number():
    sdfg = numpy_program(layers)
    tell(sdfg, Meanings({}, {"x": ("n", "n"), "w": ("n", "m")}, {}))
    product = next(s for s in list_spaces(sdfg) if "x" in s.name)
    assert product.dimensions == ("n", "m", "n2")
    assert product.path == product.name


def test_dimensions_that_no_space_has_together_share_an_axis(named):
    split = {"*.up.*": {"hidden": 2}, "*.down.*": {"features": 2}, "*": {"batch": 3}}
    found = grids(named, split)
    assert found["hidden"] == ({"batch": 3, "hidden": 2}, (("batch",), ("hidden",)))
    assert found["__return"] == ({"batch": 3, "hidden": 2}, (("batch",), ("hidden",), ()))


def test_dimensions_of_one_space_have_axes_of_their_own(named):
    found = grids(named, {"*": {"batch": 2, "hidden": 2}})
    assert found["__return"] == ({"hidden": 2, "batch": 2}, (("batch",), (), ("hidden",)))


def test_an_axis_splits_what_comes_first_in_each_space(named):
    split = {"*.down.*": {"features": "x"}, "*": {"hidden": "x", "batch": "x"}}
    found = grids(named, split, {"x": 2})
    assert found["__return"][1] == ((), ("x",), ())
    assert found["hidden"][1] == ((), ("x",))


def test_names_of_spaces_come_before_patterns(named):
    found = grids(named, {"hidden": (3, 1), "*": {"batch": 2}})
    assert found["hidden"] == ({"__i0": 3, "__i1": 1}, (("__i0",), ("__i1",)))
    assert found["__return"][1] == (("batch",), (), ())


def test_any_dimension_is_one_that_splits_evenly_or_the_longest(named):
    assert grids(named, {"*.up.*": {"*": 5}})["hidden"][1] == ((), ("any",))
    assert grids(named, {"*.up.*": {"*": 4}})["hidden"][1] == ((), ("any",))
    assert grids(named, {"*.up.*": {"*": 3}})["hidden"][1] == (("any",), ())


def test_a_program_without_meanings_is_split_by_its_own_names():
    spaces = list_spaces(numpy_program(layers))
    found = resolve({"h*": {"__i0": 2}}, spaces)
    assert found["hidden"].parts == (2, 1)
    assert set(found) == {"hidden"}


@pytest.mark.parametrize(
    ("split", "mesh", "message"),
    [
        ({"*.attn.*": {"heads": 2}}, None, "fits no iteration space"),
        ({"*": {"heads": 2}}, None, "'heads' in '\\*', but no space .* they have batch, features"),
        ({"*.up.*": {"features": 2}}, None, "no space that this fits has such a dimension"),
        ({"*": {"batch": 7}}, None, "at most 6 long"),
        ({"*": (2, 1)}, None, "Write parts by the names"),
        ({"*": {"batch": 0}}, None, "Write parts by the names"),
        ({"*": {"batch": "x"}, "*.up.*": {"hidden": 2}}, {"x": 2}, "numbers of parts"),
        ({"*": {"batch": "y"}}, {"x": 2}, "has no axis 'y'"),
    ],
)
def test_what_fits_nothing_is_refused(named, split, mesh, message):
    with pytest.raises(ScheduleError, match=message):
        grids(named, split, mesh)


def test_patterns_are_on_one_mesh(named):
    split = {
        "*.up.*": OnMesh(Mesh(x=2), {"hidden": "x"}),
        "*": OnMesh(Mesh(x=3), {"batch": "x"}),
    }
    with pytest.raises(ScheduleError, match="Write one mesh"):
        grids(named, split)


def test_presets_take_what_a_program_has(named):
    assert grids(named, megatron(2))["hidden"][1] == ((), ("model",))
    assert grids(named, experts(2))["hidden"][1] == (("experts",), ()), "by batch"
    with pytest.raises(ScheduleError, match="splits nothing of this program"):
        grids(named, Patterns({"*": {"experts": "x"}}, {"x": 2}))


def joined(a: dace.float64[6, 2, 4], y: dace.float64[6, 16]):
    for b, s, u, v in dace.map[0:6, 0:2, 0:2, 0:4]:
        y[b, 8 * s + 4 * u + v] = a[b, u, v]


def test_presets_split_as_far_as_tiles_do_not_mix():
    """Halves of each half are no box, and two ranks would write between those of the other."""
    sdfg = numpy_program(joined)
    both = Patterns({"*": {"u": "x", "b": "y"}}, {"x": 2, "y": 3})
    (space,) = distspmd.lower(copy.deepcopy(sdfg), both).spaces
    assert space.asked == {"b": ("y",)}
    (alone,) = distspmd.lower(copy.deepcopy(sdfg), Patterns({"*": {"u": "x"}}, {"x": 2})).spaces
    assert str(alone.chosen_by) == "the schedule, whole on each rank"
    with pytest.raises(UnsupportedProgram, match="several ranks write into one part"):
        distspmd.lower(copy.deepcopy(sdfg), {"y": {"u": 2}})


def test_a_preset_says_what_a_program_lacks(named):
    lowering = distspmd.lower(copy.deepcopy(named), experts(2))
    assert lowering.remarks[0] == (
        "No iteration space has the dimension 'experts', which '*' splits first along 'experts': "
        "only batch is split."
    )
    other = distspmd.lower(copy.deepcopy(named), data_parallel(2))
    assert not any("No iteration space" in sentence for sentence in other.remarks)


def test_products_split_along_the_axes_of_both(named):
    both = data_parallel(3) * megatron(2)
    assert both.mesh == Mesh(data=3, model=2)
    assert grids(named, both)["__return"][1] == (("data",), (), ("model",))
    assert both.held == {"parameters": "distributed", "states": "distributed"}
    twice = Patterns({"*": {"batch": "outer"}}, {"outer": 2}) * data_parallel(3)
    assert grids(named, twice)["hidden"][1] == (("data", "outer"), ())
    with pytest.raises(ScheduleError, match="both have the axis 'data': write one of them, of 6"):
        data_parallel(2) * zero(1, 3)


def test_presets_print_as_the_patterns_that_they_are(named):
    assert str(zero(1, 4) * megatron(2)) == (
        "{\n"
        "    '*.update': {'*': 'data'},\n"
        "    '*': {'batch': 'data', 'heads': 'model', 'hidden': 'model', 'vocabulary': 'model'},\n"
        "}, mesh={'data': 4, 'model': 2}\n"
        "parameters distributed, states distributed"
    )
    again = {"*.update": {"*": "data"}, "*": {"batch": "data"}}
    assert grids(named, zero(2, 2)) == grids(named, Patterns(again, {"data": 2}))


def test_presets_say_how_parameters_are_held(named):
    lowering = distspmd.lower(copy.deepcopy(named), megatron(2))
    assert set(lowering.argument_layouts) == {"w", "v"}
    moved = {m.data for m in lowering.memlets if m.solution.cost.nbytes}
    assert moved == {"x", "__return"}
    other = distspmd.lower(copy.deepcopy(named), megatron(2), arguments={"w": "root"})
    assert set(other.argument_layouts) == {"v"}
    assert fsdp(2).held["parameters"] == zero(3, 2).held["parameters"] == "gathered"
    assert zero(1, 2).held["parameters"] == "replicated"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2"])
def test_presets_are_for_numbers_of_ranks(wrong):
    for preset in (data_parallel, megatron, sequence_parallel, fsdp, experts):
        with pytest.raises((ScheduleError, MeshError)):
            preset(wrong)
    with pytest.raises(ScheduleError, match="stages 1, 2 and 3"):
        zero(4, 2)


def test_a_preset_has_its_mesh():
    with pytest.raises(ScheduleError, match="Leave the mesh out"):
        as_entries(megatron(2), {"x": 2})


def test_patterns_are_kept_in_files(named, tmp_path):
    path = tmp_path / "patterns.yaml"
    preset = Patterns({"*": {"batch": "x", "hidden": ("y", "z")}}, {"x": 3, "y": 2, "z": 1})
    preset.save(path)
    assert grids(named, Schedule.load(path)) == grids(named, preset)


def test_a_batch_of_fewer_than_the_ranks_leaves_some_idle(named):
    found = grids(named, data_parallel(64))
    assert found["hidden"][1] == (("data",), ())
