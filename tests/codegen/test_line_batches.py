"""Code that takes lines one by one gets all lines of its map, and their steps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from dace import SDFG, Memlet, dtypes
from dace.sdfg import nodes

import distspmd
from distspmd.codegen.line_batches import batch_lines
from distspmd.frontend import numpy_program

CODE = "distspmd::fourier::complex_to_complex(_lines, _line0, 8, _result0, 8, false, 1.0);"


def defined(sdfg: SDFG) -> list[str]:
    """What the code of a program says of its lines, once maps of such code are gone."""
    batch_lines(sdfg)
    found = [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, nodes.Tasklet)]
    texts = [
        re.match(r"const distspmd::fourier::Lines _lines\{(.*)\};", n.code.as_string) for n in found
    ]
    return [text[1] for text in texts if text]


def maps(sdfg: SDFG) -> int:
    return sum(isinstance(n, nodes.MapEntry) for n, _ in sdfg.all_nodes_recursive())


def of_map(ranges: dict[str, str], read: str, written: str, shape: tuple[int, ...]) -> SDFG:
    sdfg = SDFG("lines")
    for name in "xy":
        sdfg.add_array(name, shape, dtypes.complex128)
    state = sdfg.add_state()
    tasklet, _, _ = state.add_mapped_tasklet(
        "lines",
        ranges,
        {"_line0": Memlet(read)},
        CODE,
        {"_result0": Memlet(written)},
        language=dtypes.Language.CPP,
        external_edges=True,
    )
    pointer = dtypes.pointer(dtypes.complex128)
    tasklet.in_connectors["_line0"] = tasklet.out_connectors["_result0"] = pointer
    return sdfg


@pytest.mark.parametrize(
    ("read", "written", "said"),
    [
        ("x[i, j, 0:8]", "y[i, j, 0:8]", "{{5, 48, 48}, {6, 8, 8}}, 1, 1"),
        ("x[i, 0:6, j]", "y[i, j, 0:8]", "{{5, 48, 48}, {6, 1, 8}}, 8, 1"),
        ("x[0:8, i + 1, j]", "y[i + 1, j, 0:8]", "{{5, 8, 48}, {6, 1, 8}}, 48, 1"),
    ],
)
def test_a_map_of_lines_becomes_one_call_with_its_steps(read: str, written: str, said: str) -> None:
    sdfg = of_map({"i": "0:5", "j": "0:6"}, read, written, (8, 6, 8))
    assert defined(sdfg) == [said]
    assert maps(sdfg) == 0
    sdfg.validate()


def test_lines_whose_places_are_no_multiples_stay_in_their_map() -> None:
    sdfg = of_map({"i": "0:3"}, "x[i*i, 0:8]", "y[i, 0:8]", (9, 8))
    assert defined(sdfg) == ["{}, 1, 1"]
    assert maps(sdfg) == 1
    sdfg = of_map({"i": "0:3"}, "x[2 - i, 0:8]", "y[i, 0:8]", (3, 8))
    assert defined(sdfg) == ["{}, 1, 1"]
    sdfg = of_map({"i": "0:3", "j": "0:i + 1"}, "x[i, j, 0:8]", "y[i, j, 0:8]", (3, 3, 8))
    assert defined(sdfg) == ["{}, 1, 1"]
    assert maps(sdfg) == 1


def transformed(x: Any) -> Any:
    return np.fft.ifft2(np.fft.fft2(x, axes=(0, 2)), axes=(1, 0))


@pytest.mark.parametrize("ranks", [1, 2])
def test_no_dimension_of_a_transform_is_moved(ranks: int) -> None:
    x = np.ones((6, 8, 10), complex)
    lowering = distspmd.lower(numpy_program(transformed, x, host="refuse"), ranks=ranks)
    assert len(defined(lowering.sdfg)) == 4
    assert maps(lowering.sdfg) == 0
