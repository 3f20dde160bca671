"""Which rows ranks have and need, and the exchanges that follow from it."""

from __future__ import annotations

import dace
import pytest

import distspmd
from distspmd.analysis.row_sets import Rows, flat_parts
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.nodes.contraction import Pick, add_contraction
from distspmd.plans.row_exchange import RowSet

MESH = Mesh(a=2, b=2)


@pytest.mark.parametrize(
    ("text", "dims", "parts"),
    [
        ("[3{a}6, 5]", 1, ((0, 3), (0, 3), (3, 6), (3, 6))),
        ("[3{a}6, 5]", None, ((0, 15), (0, 15), (15, 30), (15, 30))),
        ("[6, 3{b}5]", None, None),
        ("[6, 3{b}5]", 1, None),
        ("[1, 3{b}5]", None, ((0, 3), (3, 5), (0, 3), (3, 5))),
        ("[6, 5]", 1, ((0, 6),) * 4),
        ("[2{b,a}5, 4]", 1, ((0, 2), (2, 4), (4, 5), (0, 0))),
    ],
)
def test_boxes_of_rows_are_runs_of_numbers(text, dims, parts):
    assert flat_parts(Layout.parse(text, MESH), dims) == parts


def test_rows_have_the_axes_along_which_they_differ():
    parts = (0, 2), (0, 2), (2, 4), (2, 4)
    assert Rows(MESH, RowSet(parts)).axes == ("a",)
    assert Rows(MESH, RowSet(((0, 4),) * 4)).axes == ()
    assert Rows(MESH, RowSet(((0, 1), (1, 2), (2, 3), (3, 3)))).idle == (False,) * 3 + (True,)


class Program:
    """An SDFG of arrays, maps over rows and contractions that pick."""

    def __init__(self) -> None:
        self.sdfg = dace.SDFG("rows")
        self.state = self.sdfg.add_state()
        self.nodes: dict[str, dace.nodes.AccessNode] = {}

    def array(self, name: str, shape: list[int], dtype: object = dace.float64) -> None:
        self.sdfg.add_array(name, shape, dtype)
        self.nodes[name] = self.state.add_access(name)

    def temporary(self, name: str, shape: list[int]) -> None:
        self.array(name, shape)
        self.sdfg.arrays[name].transient = True

    def map(self, made: str, of: str, code: str) -> None:
        rows, columns = self.sdfg.arrays[made].shape
        self.state.add_mapped_tasklet(
            made,
            {"r": f"0:{rows}", "o": f"0:{columns}"},
            {"value": dace.Memlet(f"{of}[r, o]")},
            f"out = {code}",
            {"out": dace.Memlet(f"{made}[r, o]")},
            external_edges=True,
            input_nodes={of: self.nodes[of]},
            output_nodes={made: self.nodes[made]},
        )

    def pick(self, made: str, subscripts: str, letter: str, *operands: str) -> None:
        values = [f"_v{n}@float64" for n in range(1, len(operands))]
        value = values[0] if len(values) == 1 else f"multiply({', '.join(values)})"
        term = f"pick(_v0@int64, [{letter}]@int64, {value}, 0.0@float64)"
        inputs = [self.nodes[name] for name in operands]
        add_contraction(
            self.state,
            made,
            subscripts,
            inputs,
            self.nodes[made],
            expression=term,
            pick=Pick(letter, 0),
        )


def mixture(code: str) -> Program:
    """Rows of a table at indices, a function of them, and products by members."""
    program = Program()
    for name, rows in {"i": 24, "m": 24}.items():
        program.array(name, [rows], dace.int64)
    program.array("x", [12, 64])
    program.array("w", [3, 64, 64])
    program.array("y", [24, 64])
    for name, rows in {"t": 12, "g": 24, "f": 24}.items():
        program.temporary(name, [rows, 64])
    program.map("t", "x", "2 * value")
    program.pick("g", "s,ro->so", "r", "i", "t")
    program.map("f", "g", code)
    program.pick("y", "s,sk,eko->so", "e", "m", "f", "w")
    return program


def lowered(program: Program, *, parts: int = 3) -> Lowering:
    schedule = {"t": {"r": parts}, "y": {"e": parts}}
    return distspmd.lower(program.sdfg, schedule)


def reason(lowering: Lowering, name: str) -> str:
    return next(str(space.chosen_by) for space in lowering.spaces if space.name == name)


def test_a_map_runs_on_the_rows_that_a_product_needs():
    lowering = lowered(mixture("3 * value"))
    assert [(rows.data, rows.layouts) for rows in lowering.row_exchanges] == [
        ("g", "s where i[s] is the rank's -> s where m[s] is the rank's")
    ]
    assert reason(lowering, "f") == "the rows that its readers need"


def test_what_makes_other_than_zero_of_zero_does_not_run_on_rows():
    lowering = lowered(mixture("math.cos(value)"))
    assert reason(lowering, "f") != "the rows that its readers need"
    assert not any(rows.needs.member for rows in lowering.row_exchanges)


def test_who_reads_all_rows_gets_the_sum():
    program = mixture("3 * value")
    program.array("z", [24, 64])
    program.map("z", "f", "value + 1")
    lowering = lowered(program)
    assert [rows.data for rows in lowering.row_exchanges] == ["f"]
    assert any(memlet.data == "f" for memlet in lowering.memlets)


def test_a_member_that_is_written_twice_decides_nothing():
    program = mixture("3 * value")
    after = program.sdfg.add_state_after(program.state)
    after.add_mapped_tasklet(
        "again",
        {"r": "0:24"},
        {},
        "out = 0",
        {"out": dace.Memlet("m[r]")},
        external_edges=True,
    )
    assert not lowered(program).row_exchanges


def test_one_row_of_words_is_no_reason_to_send_indices():
    program = Program()
    program.array("i", [40], dace.int64)
    program.array("x", [6, 1])
    program.array("z", [40, 1])
    program.temporary("t", [6, 1])
    program.map("t", "x", "2 * value")
    program.pick("z", "s,ro->so", "r", "i", "t")
    lowering = distspmd.lower(program.sdfg, {"t": {"r": 3}, "z": {"s": 3}})
    assert not lowering.row_exchanges
