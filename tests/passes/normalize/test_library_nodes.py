"""Library nodes that are not ours become maps and contractions, which keep to their windows."""

import inspect

import dace
import numpy as np
import pytest
from dace.libraries.linalg import TensorDot, TensorTranspose
from dace.sdfg import nodes
from parsed_by_dace import numpy_program

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.nodes.contraction import Contraction
from distspmd.passes.normalize.library_nodes import expand_library_nodes

pytestmark = pytest.mark.usefixtures("unoptimised")


@dace.program
def turned_twice(x: dace.float64[5, 7, 3]):
    y = np.transpose(x, (1, 0, 2))
    return np.transpose(y, (2, 1, 0))


@dace.program
def contracted(a: dace.float64[4, 5, 3], b: dace.float64[3, 6, 5]):
    return np.tensordot(a, b, axes=([1, 2], [2, 0]))


@dace.program
def shifted(x: dace.float64[10]):
    return np.roll(x, 3)


@dace.program
def of_one_column(x: dace.float64[5, 1]):
    return np.transpose(x) + 1


def kinds(sdfg: dace.SDFG) -> set[type]:
    return {type(n) for n, _ in sdfg.all_nodes_recursive() if isinstance(n, nodes.LibraryNode)}


@pytest.mark.parametrize(
    "program", [turned_twice, contracted, shifted, of_one_column], ids=lambda p: p.name
)
def test_what_they_compute_stays_the_same(program) -> None:
    sdfg = program.to_sdfg()
    rng = np.random.default_rng(0)
    given = {name: rng.random(d.shape) for name, d in sdfg.arglist().items() if name in "xab"}
    expand_library_nodes(sdfg)
    sdfg.validate()
    found = load_unlowered(sdfg)(**given)
    assert np.allclose(found, program.f(**given))


def test_those_of_dace_are_gone() -> None:
    for program, left in ((turned_twice, set()), (contracted, {Contraction}), (shifted, set())):
        sdfg = program.to_sdfg()
        assert kinds(sdfg) - {Contraction}, "the parser makes no library node any more"
        expand_library_nodes(sdfg)
        assert not kinds(sdfg) & {TensorDot, TensorTranspose}
        assert kinds(sdfg) == left


def test_spaces_have_the_lines_of_the_user() -> None:
    sdfg = numpy_program(turned_twice)
    first = inspect.getsourcelines(turned_twice.f)[1]
    found = [space.source and space.source.line for space in distspmd.iteration_spaces(sdfg)]
    assert len(found) == 2
    assert all(line is not None and first < line <= first + 3 for line in found)


def test_a_rank_that_has_nothing_runs_over_nothing() -> None:
    sdfg = numpy_program(turned_twice)
    lowered = distspmd.lower(sdfg, {"y": (2, 3, 1)})
    assert lowered.ranks == 6
    maps = [n.map for n, _ in lowered.sdfg.all_nodes_recursive() if isinstance(n, nodes.MapEntry)]
    assert maps
    assert all(each.range.free_symbols for each in maps), "a range does not depend on the rank"
