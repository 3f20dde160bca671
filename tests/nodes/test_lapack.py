"""`np.linalg.solve` in programs: refusals, and matrices without an inverse."""

from dataclasses import replace

import dace
import numpy as np
import pytest
from parsed_by_dace import numpy_program

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.codegen.implementations import check_lapack, choose_implementations
from distspmd.errors import ToolchainError, UnsupportedProgram
from distspmd.nodes.lapack import Lapack
from distspmd.runtime.compilers.toolchain import find_blas


@dace.program
def solved(a: dace.float64[3, 3], b: dace.float64[3, 4]):
    return np.linalg.solve(a, b)


def test_right_hand_sides_are_the_parameter_of_the_space() -> None:
    (space,) = distspmd.iteration_spaces(numpy_program(solved))
    assert [str(extent) for extent in space.ranges] == ["0:4"]


@pytest.mark.parametrize(
    ("shapes", "dtypes", "message"),
    [
        (((3, 4), (3, 2)), "dd", "takes a square matrix"),
        (((3, 3), (4, 2)), "dd", "as many rows"),
        (((2, 3, 3), (2, 3, 3)), "dd", "for each matrix of a stack"),
        (((3, 3), (3, 2)), "df", "float64 and float32 are given"),
        (((3, 3), (3,)), "ll", "int64 and int64 are given"),
    ],
)
def test_what_lapack_does_not_take_is_refused_with_the_line(
    shapes: tuple[tuple[int, ...], ...], dtypes: str, message: str
) -> None:
    kinds = {"d": dace.float64, "f": dace.float32, "l": dace.int64}
    left, right = (kinds[t][shape] for t, shape in zip(dtypes, shapes, strict=True))

    @dace.program
    def wrong(a: left, b: right):
        return np.linalg.solve(a, b)

    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(wrong)


def test_a_library_without_lapack_is_refused(tmp_path) -> None:
    sdfg = numpy_program(solved)
    assert choose_implementations(sdfg)
    found = find_blas()
    check_lapack(sdfg, found)
    lacking = tmp_path / "libblis.so"
    lacking.write_bytes(b"\0cblas_dgemm\0")
    with pytest.raises(ToolchainError, match="does not have sgesv_ of LAPACK"):
        check_lapack(sdfg, replace(found, library=lacking))


def test_a_matrix_without_an_inverse_gives_no_numbers() -> None:
    compiled = load_unlowered(numpy_program(solved))
    right = np.random.default_rng(0).random((3, 4))
    assert np.isnan(compiled(a=np.ones((3, 3)), b=right)).all()
    np.testing.assert_allclose(compiled(a=np.eye(3)[::-1].copy(), b=right), right[::-1])


def test_lengths_of_one_letter_are_equal() -> None:
    sdfg = dace.SDFG("unequal")
    state = sdfg.add_state()
    node = Lapack("unequal", "solve", "nn,n->n")
    state.add_node(node)
    for connector, shape in (("_in0", [6, 6]), ("_in1", [7])):
        sdfg.add_array(connector, shape, dace.float64)
        read = state.add_read(connector)
        state.add_edge(read, None, node, connector, sdfg.make_array_memlet(connector))
    sdfg.add_array("_out0", [6], dace.float64)
    write = state.add_write("_out0")
    state.add_edge(node, "_out0", write, None, sdfg.make_array_memlet("_out0"))
    with pytest.raises(ValueError, match="'n' is 6 and 7 long"):
        sdfg.expand_library_nodes()
