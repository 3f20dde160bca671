"""Tasklets that carry their expressions: through copies, JSON, renaming, and code generation."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dace import SDFG, Memlet, SDFGState, float32
from dace.properties import CodeBlock
from dace.sdfg.replace import replace_dict

from distspmd.expressions.ir import Argument, IndexValue, apply, cast
from distspmd.nodes.computation import Computation

REAL = np.dtype(np.float32)
X = Argument("_in0", REAL)
ROOT = apply("sqrt", X)
ASSIGNED = (
    ("_out0", apply("multiply", ROOT, ROOT)),
    ("_out1", apply("add", ROOT, cast(IndexValue((("__i", 2),), 1), REAL))),
)
CODE = """\
const float __t0 = std::sqrt(_in0);
const float __t1 = (__t0 * __t0);
const float __t2 = (__t0 + float(int64_t(__i * 2 + 1)));
_out0 = float(__t1);
_out1 = float(__t2);"""


@pytest.fixture
def program() -> tuple[SDFG, SDFGState, Computation]:
    sdfg = SDFG("computation")
    for name in "xyz":
        sdfg.add_array(name, [8], float32)
    state = sdfg.add_state()
    node = Computation("compute", ASSIGNED, {"_in0": None}, {"_out0": None, "_out1": None})
    entry, leave = state.add_map("compute", {"__i": "0:8"})
    state.add_node(node)
    here = {name: Memlet(data=name, subset="__i") for name in "xyz"}
    state.add_memlet_path(state.add_read("x"), entry, node, dst_conn="_in0", memlet=here["x"])
    for name, connector in (("y", "_out0"), ("z", "_out1")):
        goal = state.add_write(name)
        state.add_memlet_path(node, leave, goal, src_conn=connector, memlet=here[name])
    sdfg.validate()
    return sdfg, state, node


def only(sdfg: SDFG) -> Computation:
    (found,) = (n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, Computation))
    return found


def test_code_and_expressions_are_one(program: tuple[SDFG, SDFGState, Computation]) -> None:
    *_, node = program
    assert node.code.as_string == CODE
    assert node.assignments() == ASSIGNED


def test_expressions_stay_in_copies_and_in_json(
    program: tuple[SDFG, SDFGState, Computation],
) -> None:
    sdfg, *_ = program
    for twin in (copy.deepcopy(sdfg), SDFG.from_json(sdfg.to_json())):
        assert only(twin).assignments() == ASSIGNED
        assert only(twin).code.as_string == CODE


READ_IN_ANOTHER_PROCESS = """
import sys
import distspmd
import dace
(found,) = (n for n, _ in dace.SDFG.from_file(sys.argv[1]).all_nodes_recursive()
            if isinstance(n, dace.nodes.Tasklet))
print(type(found).__name__, len(found.assignments()))
"""


def test_a_file_has_tasklets_and_another_process_reads_their_class(
    program: tuple[SDFG, SDFGState, Computation], tmp_path: Path
) -> None:
    sdfg, *_ = program
    file = tmp_path / "program.sdfg"
    sdfg.save(str(file))
    types = {
        node["type"] for state in json.loads(file.read_text())["nodes"] for node in state["nodes"]
    }
    assert types == {"AccessNode", "MapEntry", "MapExit", "Tasklet"}  # all that viewers draw
    command = [sys.executable, "-c", READ_IN_ANOTHER_PROCESS, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Computation", "2"]


def test_what_dace_declares_for_renamed_parameters_stays(
    program: tuple[SDFG, SDFGState, Computation],
) -> None:
    _, state, node = program
    replace_dict(state, {"__i": "__k"})
    assert node.code.as_string == f"auto __i = __k;\n{CODE}"
    assert node.assignments() == ASSIGNED
    node.assign(ASSIGNED[1:])
    assert node.assignments() == ASSIGNED[1:]
    assert node.code.as_string.startswith("auto __i = __k;\nconst float __t0 = std::sqrt(_in0);")


def test_other_code_has_no_expressions(program: tuple[SDFG, SDFGState, Computation]) -> None:
    *_, node = program
    node.code = CodeBlock("_out0 = 1; _out1 = 2;", node.language)
    assert node.assignments() is None


def test_dace_generates_code_of_it_as_of_a_tasklet(
    program: tuple[SDFG, SDFGState, Computation],
) -> None:
    sdfg, *_ = program
    frame = sdfg.generate_code()[0].clean_code
    assert all(line in frame for line in CODE.splitlines())
