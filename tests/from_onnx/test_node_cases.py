"""ONNX's own cases: of those that pass the first and the last of each operator, as programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from from_onnx.cases import NodeCase, node_cases, problems

PASSING = [
    tuple(line.split()) for line in Path(__file__).with_name("passing.txt").read_text().splitlines()
]
FILES = sorted({file for file, _ in PASSING})
PARTS = 4


def chosen(files: list[str], place: int) -> list[NodeCase]:
    """The first or the last case that passes of each file."""
    of = {file: [name for own, name in PASSING if own == file] for file in files}
    names = {passing[place] for passing in of.values()}
    return [case for case in node_cases(files) if case.name in names]


@pytest.mark.parametrize("place", [0, pytest.param(-1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("part", range(PARTS))
def test_operators_give_what_onnx_says(part: int, place: int) -> None:
    cases = chosen(FILES[part::PARTS], place)
    assert len(cases) > 15
    wrong = {name: problem for name, problem in problems(cases).items() if problem}
    assert not wrong
