"""What a rank passes to a program and gets from it, without MPI and without a compiler."""

import copy
from typing import Any

import dace
import numpy as np
import pytest

import distspmd
from distspmd.codegen.build_record import Build, CompiledArgument
from distspmd.errors import ArgumentError
from distspmd.execution.signature import Signature
from distspmd.lowering import CONTEXT, Lowering
from distspmd.runtime.calls.missing_result import MissingResult


@dace.program
def scaled(x: dace.float64[8, 3], y: dace.int32[8], a: dace.int16):
    y[:] = y + 1
    return x * a


LOWERED = scaled.to_sdfg()


def signature(rank: int, **arguments: str) -> Signature:
    sdfg = copy.deepcopy(LOWERED)
    lowering = distspmd.lower(sdfg, {"__return": (4, 1)}, arguments=arguments)
    assert isinstance(lowering, Lowering)
    tile = CompiledArgument("x_tile", "float64", (2, 3), (3, 1))
    visible = [
        CompiledArgument("__return", "float64", (8, 3), (3, 1)),
        CompiledArgument("a", "int16", (1,), (1,)),
        CompiledArgument("x", "float64", (8, 3), (3, 1)),
        CompiledArgument("y", "int32", (8,), (1,)),
    ]
    symbols = [CompiledArgument(name, "int64", (), ()) for name in (CONTEXT, *lowering.symbols)]
    built = Build(
        "scaled", "nowhere.so", (tile, *visible, *symbols), (), ("x", "y", "a"), ("x_tile",), ()
    )
    return Signature.of(built, lowering, rank)


def passed(**changes: Any) -> dict[str, Any]:
    x, y = np.ones((8, 3)), np.zeros(8, np.int32)
    return {"x": x, "y": y, "a": 3, **changes}


def test_tiles_and_symbols_are_no_parameters() -> None:
    found = signature(0)
    assert list(found.parameters) == ["a", "x", "y"]
    assert [p.position for p in found.parameters.values()] == [3, 4, 5]
    assert [(p.name, p.position) for p in found.results] == [("__return", 2)]
    assert found.is_single


def test_arrays_come_by_their_position_and_scalars_as_arrays() -> None:
    given = passed()
    found = signature(0).check(given)
    assert found[4] is given["x"]
    assert found[5] is given["y"]
    assert found[3].tolist() == [3]
    assert found[3].dtype == np.int16


def test_what_is_only_read_may_be_read_only() -> None:
    x = np.ones((8, 3))
    x.flags.writeable = False
    assert signature(0).check(passed(x=x))[4] is x


def test_other_ranks_pass_nothing_and_get_what_says_where_results_are() -> None:
    found = signature(1)
    assert not found.takes_part
    assert found.check({}) == {}
    assert found.allocate() == [None]
    (there,) = found.completed([])
    assert isinstance(there, MissingResult)
    assert "is on rank 0, and not on this rank" in repr(there)
    assert found.returned(found.completed([])) is there


def test_a_result_of_other_ranks_is_passed_on_where_nobody_looks_at_it() -> None:
    (there,) = signature(1).completed([])
    assert signature(1).of_this_rank({"x": there, "s": 2}) == {"s": 2}
    with pytest.raises(ArgumentError, match=r"takes the argument 'x' from rank 1, but <the resul"):
        signature(1, x="replicated").of_this_rank({"x": there})


def test_every_rank_passes_its_tile_of_what_is_distributed() -> None:
    found = signature(2, x="distributed", __return="replicated")
    assert found.takes_part
    assert found.completed([None]) == [None]
    tile = found.tile("x", np.arange(24.0).reshape(8, 3))
    assert tile.tolist() == [[12, 13, 14], [15, 16, 17]]
    assert list(found.check({"x": tile})) == [4]
    (result,) = found.allocate()
    assert result is not None
    assert result.shape == (8, 3)
    with pytest.raises(ArgumentError, match=r"'x' must be float64\[2, 3\] on rank 2, its part of"):
        found.check({"x": np.ones((8, 3))})


def test_positional_arguments_get_their_names() -> None:
    found = signature(0)
    assert found.bind((1, 2), {"a": 3}) == {"x": 1, "y": 2, "a": 3}
    with pytest.raises(ArgumentError, match="'x' is given twice"):
        found.bind((1,), {"x": 2})
    with pytest.raises(ArgumentError, match=r"takes 3 arguments \(x, y, a\), but 4 were given"):
        found.bind((1, 2, 3, 4), {})


READ_ONLY = np.zeros(8, np.int32)
READ_ONLY.flags.writeable = False
ODD = np.zeros(8 * 3 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(8, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": [1, 2]}, r"must be float64\[8, 3\], but \[1, 2\] \(list\) was given. Pass a NumPy"),
        ({"x": np.ones((8, 3), np.float32)}, r"Pass x.astype\('float64'\)"),
        ({"x": np.ones((3, 8))}, r"it has the shape \[3, 8\]"),
        ({"x": np.ones((3, 8)).T}, "np.ascontiguousarray"),
        ({"x": ODD}, "begins at an address that is no multiple of 8"),
        ({"x": np.ma.masked_array(np.ones((8, 3)))}, r"it has a mask. Pass x.filled\(\)"),
        ({"y": READ_ONLY}, "it is read-only. Pass y.copy()"),
        ({"a": 2.5}, "is a scalar of int16, but 2.5"),
        ({"a": 40000}, "from -32768 to 32767, but 40000"),
        ({"z": 1}, "has no argument 'z'; it has x, y, a"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        signature(0).check(passed(**changes))


def test_what_is_missing_is_named_with_its_shape() -> None:
    given = passed()
    del given["y"]
    with pytest.raises(ArgumentError, match=r"'y' is missing on rank 0; pass y=<int32\[8\]>"):
        signature(0).check(given)


def test_no_parameter_has_no_layout() -> None:
    with pytest.raises(ArgumentError, match="no argument or result 'z'"):
        signature(0).layout("z")
    with pytest.raises(ArgumentError, match=r"'x' has the shape \[8, 3\]"):
        signature(0).tile("x", np.ones(3))
