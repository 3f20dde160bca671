import xml.etree.ElementTree as ET

import pytest

import distspmd
from distspmd.cli import main
from distspmd.layouts.draw import picture
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.on_paper import drawing, report

SWAP = ["reshard", "--mesh", "x=4,y=6", "[3{x}12, 2{y}12]", "[2{y}12, 3{x}12]"]


def test_a_picture_shows_who_holds_which_tile():
    layout = Layout.parse("[2{x}5, 6]", Mesh(x=3, y=2))
    assert picture(layout).splitlines() == [
        "      0:6",
        "    +-----+",
        "0:2 | 0-1 |",
        "    +-----+",
        "2:4 | 2-3 |",
        "    +-----+",
        "4:5 | 4-5 |",
        "    +-----+",
    ]


def test_a_picture_has_a_plane_for_each_tile_of_the_other_dimensions():
    text = picture(Layout.parse("[2{x}4, 1{y}2, 3]", Mesh(x=2, y=2)))
    assert text.count(":, :]") == 2
    assert "[0:2, :, :]" in text


def test_what_no_rank_holds_is_marked():
    assert "-" in picture(Layout.parse("boxes[4]{0: 0:2}", Mesh(x=1))).splitlines()[2].split("|")[2]


def test_the_command_prints_steps_bytes_pictures_and_losers(capsys, tmp_path):
    file = tmp_path / "swap.svg"
    assert main([*SWAP, "--svg", str(file)]) == 0
    printed = capsys.readouterr().out
    for wanted in ("on 24 ranks", "|  23   |", "received", "bound", "collectives", "refused:"):
        assert wanted in printed
    root = ET.fromstring(file.read_text())
    assert len([item for item in root if item.tag.endswith("rect")]) == 1 + 24 + 24


def test_a_solver_and_a_memory_can_be_given(capsys):
    assert main([*SWAP, "--solver", "collectives", "--max-memory", "4096"]) == 0
    assert "permute" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--solver", "magic"], "no solver 'magic'"),
        (["--max-memory", "8"], "max_memory is 8"),
        (["--dtype", "float31"], "no dtype 'float31'"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(capsys, changed, message):
    assert main([*SWAP, *changed]) == 1
    assert message in capsys.readouterr().err


def test_scratch_is_drawn_between_source_and_target():
    mesh = Mesh(x=2, y=2)
    source, target = Layout.parse("[2{x}4, 4]", mesh), Layout.parse("[4, 1{y,x}4]", mesh)
    plan = distspmd.plan(source, target, solver="collectives")
    assert drawing(plan).count("after step") == len(plan.scratch)
    assert "all plans" in report(plan)
