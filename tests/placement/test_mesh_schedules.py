"""Schedules whose spaces share the axes of a mesh, what lowering makes of them, and their files."""

import copy
import re

import dace
import numpy as np
import pytest

import distspmd
from distspmd import Schedule
from distspmd.errors import MeshError, ScheduleError
from distspmd.layouts import Mesh
from distspmd.layouts.layout import Layout
from distspmd.pipeline import list_spaces
from distspmd.placement.schedule import resolve
from distspmd.schedule import Grid, OnMesh, as_entries


@dace.program
def chain(x: dace.float64[10, 8], w: dace.float64[8, 6]):
    hidden = np.sin(x)
    return hidden @ w


@dace.program
def stencil(x: dace.float64[12, 9], y: dace.float64[12, 9]):
    for _ in range(3):
        y[1:-1, :] = x[:-2, :] + x[2:, :]
        x[1:-1, :] = 0.5 * y[1:-1, :]


@dace.program
def layers(x: dace.float64[6, 8], w: dace.float64[8, 10], v: dace.float64[10, 8]):
    return np.tanh(x @ w) @ v + x


def check_refused(text, message, folder) -> None:
    """See to it that a file is refused, with a message."""
    path = folder / "schedule.yaml"
    path.write_text(text)
    with pytest.raises(ScheduleError, match=message):
        distspmd.lower(chain.to_sdfg(), path)


def moved(lowering) -> list[str]:
    return [f"{m.data}: {m.layouts} {m.solution.cost.nbytes}" for m in lowering.memlets]


def test_spaces_share_axes_in_any_order():
    split = {"hidden": {"__i0": "x", "__i1": "y"}, "__return": {"__i0": "x", "__i2": "y"}}
    lowering = distspmd.lower(chain.to_sdfg(), split, mesh={"x": 2, "y": 4})
    assert [(s.name, s.mesh, s.splits) for s in lowering.spaces][:2] == [
        ("hidden", Mesh(x=2, y=4), (("x",), ("y",))),
        ("__return", Mesh(x=2, y=4), (("x",), (), ("y",))),
    ]
    assert not [line for line in moved(lowering) if line.startswith("hidden")]


def test_a_parameter_is_split_along_several_axes_and_others_stay_whole():
    spaces = list_spaces(chain.to_sdfg())
    mesh = Mesh(x=2, y=3, z=2)
    for axes in ("yz", ("y", "z"), ["y", "z"]):
        asked = as_entries({"hidden": {"__i0": axes}}, mesh)
        (grid,) = resolve(asked, spaces).values()
        assert grid == Grid(mesh, (("y", "z"), ()))
        assert grid.parts == (6, 1)


@dace.program
def factors(a: dace.float64[12, 12]):
    for k in range(12):
        for i, j in dace.map[k + 1 : 12, k + 1 : 12]:
            a[i, j] -= a[i, k] * a[j, k]
        a[k, k] = a[k, k] + 1


@dace.program
def sweeps(u: dace.float64[12, 12]):
    for k in range(1, 12):
        u[:, k] = u[:, k] + u[:, k - 1]
    for k in range(1, 12):
        u[k, :] = u[k, :] + u[k - 1, :]


@pytest.mark.parametrize("program", [chain, stencil, layers, factors, sweeps])
@pytest.mark.parametrize("parts", [2, 3])
def test_what_propagation_makes_is_given_back_from_a_file_with_the_same_result(
    program, parts, tmp_path
):
    sdfg = program.to_sdfg()
    first = list_spaces(sdfg)[0]
    again = copy.deepcopy(sdfg)
    lowering = distspmd.lower(sdfg, {first.name: (parts, *[1] * (len(first.parameters) - 1))})
    path = tmp_path / "schedule.yaml"
    lowering.schedule.save(path)
    read = Schedule.load(path)
    assert read == lowering.schedule
    repeated = distspmd.lower(again, str(path))
    assert [(s.name, s.mesh, s.splits) for s in repeated.spaces] == [
        (s.name, s.mesh, s.splits) for s in lowering.spaces
    ]
    assert [(h.data, h.layout) for h in repeated.homes] == [
        (h.data, h.layout) for h in lowering.homes
    ]
    assert moved(repeated) == moved(lowering)
    assert repeated.fused == lowering.fused


def test_a_file_is_edited_and_names_meshes(tmp_path):
    path = tmp_path / "schedule.yaml"
    path.write_text(
        "version: 1\n"
        "meshes:\n"
        "  rows: {x: 4, y: 2}\n"
        "spaces:\n"
        "  hidden: {mesh: rows, split: {__i0: [x, y]}}\n"
        "  __return: [2, 1, 3]\n"
    )
    lowering = distspmd.lower(chain.to_sdfg(), path)
    assert {s.name: s.parts for s in lowering.spaces if s.name in ("hidden", "__return")} == {
        "hidden": (8, 1),
        "__return": (2, 1, 3),
    }


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ("  hiden: [2, 1]\n", r"schedule.yaml:5: the schedule names 'hiden'"),
        ("  hidden: {mesh: columns}\n", r"schedule.yaml:5: there is no mesh 'columns'; .* rows"),
        ("  hidden: {mesh: rows, split: {i: x}}\n", "schedule.yaml:5: .* no parameter 'i'"),
        ("  hidden: {mesh: rows, split: {__i0: z}}\n", "schedule.yaml:5: .* no axis 'z'; it has x"),
        ("  hidden: {mesh: rows, by: x}\n", "schedule.yaml:5: 'by' is neither 'mesh' nor 'split'"),
        ("  hidden: {msh: rows, split: {__i0: x}}\n", "schedule.yaml:5: .* of no mesh"),
        ("  hidden: {mesh: rows, split: x}\n", "schedule.yaml:5: split is no mapping"),
        ("  hidden: [2, 1]\nranks: 3\n", "schedule.yaml:1: a schedule of version 1 with"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_line(spaces, message, tmp_path):
    text = f"version: 1\nmeshes:\n  rows: {{x: 4, y: 2}}\nspaces:\n{spaces}"
    check_refused(text, message, tmp_path)


def test_homes_that_a_schedule_gives_are_kept_in_files_and_taken(tmp_path):
    split = {
        "hidden": OnMesh(Mesh(x=4), {"__i0": "x"}),
        "__return": OnMesh(Mesh(x=4), {"__i0": "x"}),
    }
    own = distspmd.lower(chain.to_sdfg(), split)
    home = next(home.layout for home in own.homes if home.data == "hidden")
    assert home.splits
    assert home.splits[0].axes == ("x",)
    mesh = Mesh(a=2, b=2)
    other = Layout.parse("[10, 4{a}8]", mesh)
    given = Schedule(split, homes={"hidden": other})
    assert "hidden in [" in str(given)
    given.save(tmp_path / "schedule.yaml")
    for schedule in (given, tmp_path / "schedule.yaml"):
        lowering = distspmd.lower(chain.to_sdfg(), schedule)
        assert {h.data: h.layout for h in lowering.homes}["hidden"] == other
        counts = [[m.data for m in each.memlets].count("hidden") for each in (own, lowering)]
        assert counts[0] == 0 < counts[1]  # no space works on these tiles


@pytest.mark.parametrize(
    ("homes", "message"),
    [
        ("[1]", "schedule.yaml:6: homes is no mapping"),
        ("\n  hidden: '[4]'", "schedule.yaml:7: '.4.' is no layout"),
        ("\n  hidden: {mesh: rows, layout: '[3{z}12]'}", "schedule.yaml:7: .* no axis 'z'"),
        ("\n  hidden: {mesh: columns, layout: '[12]'}", "schedule.yaml:7: there is no mesh"),
        ("\n  hiden: {mesh: rows, layout: '[3{x}12]'}", "schedule.yaml:7: there is no array 'hid"),
        ("\n  hidden: {mesh: rows, layout: '[3{x}12]'}", "live in .* but its extents are"),
        ("\n  hidden: {mesh: more, layout: '[2{x}10, 8]'}", "schedule.yaml:7: .* on 5 ranks, but"),
    ],
)
def test_homes_that_do_not_fit_are_refused(homes, message, tmp_path):
    meshes = "meshes: {rows: {x: 4}, more: {x: 5}}"
    text = f"version: 1\n{meshes}\n\nspaces:\n  hidden: [4, 1]\nhomes: {homes}\n"
    check_refused(text, message, tmp_path)


def test_a_home_that_lacks_what_is_used_is_refused():
    parts = {"hidden": OnMesh(Mesh(x=2), {"__i0": "x"})}
    home = next(
        h.layout for h in distspmd.lower(chain.to_sdfg(), parts).homes if h.data == "hidden"
    )
    _, columns = home.extents
    less = Layout.of_boxes(Mesh(x=2), home.extents, [((0, 1), (0, columns))] * 2)
    with pytest.raises(ScheduleError, match="its tiles lack elements that are used"):
        distspmd.lower(chain.to_sdfg(), Schedule(parts, homes={"hidden": less}))


def test_other_versions_and_meshes_that_are_none_are_refused(tmp_path):
    path = tmp_path / "schedule.yaml"
    path.write_text("version: 3\nspaces: {}\n")
    with pytest.raises(ScheduleError, match=r"version 3 .* Write version: 2"):
        Schedule.load(path)
    path.write_text("version: 1\nmeshes:\n  rows: {x: 0}\nspaces: {}\n")
    with pytest.raises(ScheduleError, match=r"schedule.yaml:3: mesh axis 'x' has size 0"):
        Schedule.load(path)
    with pytest.raises(ScheduleError, match=r"nowhere\.yaml is neither YAML nor JSON"):
        distspmd.lower(chain.to_sdfg(), "nowhere.yaml")


@pytest.mark.parametrize(
    ("schedule", "mesh", "message"),
    [
        ({"hidden": {"__i0": "x"}}, None, "of no mesh. Write mesh="),
        ({"hidden": (2, 1)}, {"x": 2}, "no entry of the schedule names axes"),
        ({"hidden": {"__i0": "x", "__i1": "x"}}, {"x": 2}, "the axis 'x' splits twice"),
        ({"hidden": {"__i0": ("x", 2)}}, {"x": 2}, "write axes of the mesh x=2"),
        ({"hidden": {"__i0": "x", "__i1": 2}}, {"x": 2}, "write axes of the mesh x=2"),
        ({"hidden": OnMesh({"x": 2}, {"__i0": "x"})}, None, r"Write OnMesh\(Mesh\("),
    ],
)
def test_mistakes_are_answered_with_what_to_write(schedule, mesh, message):
    with pytest.raises(ScheduleError, match=message):
        distspmd.lower(chain.to_sdfg(), schedule, mesh=mesh)


def test_no_mesh_is_refused():
    with pytest.raises(MeshError, match="has size 'a'"):
        distspmd.lower(chain.to_sdfg(), {"hidden": {"__i0": "x"}}, mesh={"x": "a"})


def test_idle_ranks_along_axes_are_told():
    with pytest.warns(distspmd.errors.ScheduleWarning, match="Split it along fewer axes"):
        distspmd.lower(chain.to_sdfg(), {"hidden": {"__i1": ("x", "y")}}, mesh=Mesh(x=3, y=4))


def test_results_on_a_mesh_are_those_of_numpy():
    split = {"hidden": {"__i0": "y", "__i1": "x"}, "__return": {"i": "y", "k": "x"}}
    checked = distspmd.check(chain, split, 6, mesh={"x": 3, "y": 2}, runs=1)
    assert checked.lowering.ranks == 6


HELD = "version: 2\nmeshes: {}\nspaces:\n  hidden: [4, 1]\narguments:\n"


def test_how_arguments_are_held_is_kept_in_files_and_taken(tmp_path):
    held = {"x": "replicated", "__return": "distributed"}
    lowering = distspmd.lower(chain.to_sdfg(), {"hidden": (4, 1)}, arguments=held)
    path = tmp_path / "schedule.yaml"
    lowering.schedule.save(path)
    again = distspmd.lower(chain.to_sdfg(), path)
    assert again.arguments == lowering.arguments == held
    assert again.argument_layouts == lowering.argument_layouts
    told = distspmd.lower(chain.to_sdfg(), path, arguments={"x": "distributed"})
    assert told.arguments == {**held, "x": "distributed"}


def test_a_preset_in_a_file_says_how_parameters_are_held(tmp_path):
    given = Schedule({"hidden": (4, 1)}, held={"parameters": "distributed"})
    path = tmp_path / "schedule.yaml"
    given.save(path)
    assert Schedule.load(path).held == {"parameters": "distributed"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HELD + "  x: everywhere\n", "schedule.yaml:6: 'x' is to be held 'everywhere'; write one"),
        (HELD + "  z: replicated\n", "schedule.yaml:6 names 'z', which"),
        (HELD.replace("arguments:\n", "arguments: [x]\n"), "schedule.yaml:5: arguments is no map"),
        (
            HELD.replace("arguments:", "held:") + "  x: root\n",
            "schedule.yaml:6: 'x' is held; write",
        ),
        (
            HELD.replace("2", "1", 1) + "  x: root\n",
            "schedule.yaml:1: a schedule of version 1 with",
        ),
    ],
)
def test_how_arguments_are_held_is_refused_with_its_line(text, message, tmp_path):
    path = tmp_path / "schedule.yaml"
    path.write_text(text)
    with pytest.raises(ScheduleError, match=re.escape(message)):
        distspmd.lower(chain.to_sdfg(), path)
