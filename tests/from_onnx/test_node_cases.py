"""ONNX's own cases: of those in `passing.txt`, one or two of each operator, run as programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from from_onnx.cases import NodeCase, node_cases, problems

PASSING = [
    tuple(line.split()) for line in Path(__file__).with_name("passing.txt").read_text().splitlines()
]
FILES = sorted({file for file, _ in PASSING})
PARTS = 4


def chosen(files: list[str]) -> list[NodeCase]:
    """The first and the last case that passes of each file."""
    of = {file: [name for own, name in PASSING if own == file] for file in files}
    names = {name for passing in of.values() for name in (passing[0], passing[-1])}
    return [case for case in node_cases(files) if case.name in names]


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_give_what_onnx_says(part: int) -> None:
    cases = chosen(FILES[part::PARTS])
    assert len(cases) > 20
    wrong = {name: problem for name, problem in problems(cases).items() if problem}
    assert not wrong
