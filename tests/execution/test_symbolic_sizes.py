"""Symbolic sizes: numbers from shapes, contradictions, and what is lowered for them."""

from __future__ import annotations

from pathlib import Path

import dace
import pytest
import sympy
from conftest import Launch
from hypothesis import given
from hypothesis import strategies as st

import distspmd
from distspmd.analysis.infer_sizes import infer
from distspmd.errors import ArgumentError, ScheduleError, UnsupportedProgram
from distspmd.symbolic_lowering import SymbolicLowering

N, M, K = (dace.symbol(name) for name in "NMK")
SHAPES = {"x": (N, M + 1), "w": (2 * M, sympy.Integer(3)), "z": (N * K,)}


@dace.program
def scaled(x: dace.float64[N, M]):
    return x * N


def found(**shapes: tuple[int, ...]) -> dict[str, int]:
    return infer("f", ("K", "M", "N"), SHAPES, shapes, {})


@given(n=st.integers(1, 99), m=st.integers(0, 99), k=st.integers(0, 99))
def test_sizes_are_those_of_the_shapes(n: int, m: int, k: int) -> None:
    shapes = {"z": (n * k,), "w": (2 * m, 3), "x": (n, m + 1)}
    assert found(**shapes) == {"K": k, "M": m, "N": n}
    without_x = {"z": (n * k,), "w": (2 * m, 3)}
    assert infer("f", ("K", "M", "N"), SHAPES, without_x, {"N": n}) == {"K": k, "M": m, "N": n}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"w": (7, 3)}, "dimension 0 of 'w' has 7, which no M makes of 2*M"),
        ({"x": (4, 0)}, "dimension 1 of 'x' has 0, which no M makes of M + 1"),
        ({"x": (4, 6), "z": (5,)}, "dimension 0 of 'z' has 5, which no K makes of 4*K"),
        (
            {"x": (4, 6), "w": (8, 3)},
            "dimension 0 of 'w' has 8, but 2*M is 10: M is 5, as dimension 1 of 'x' has 6",
        ),
        ({"x": (4, 6), "w": (10, 4)}, "dimension 1 of 'w' has 4, and must have 3."),
        ({"x": (4,)}, "'x' must have the shape [N, M + 1], but it has [4], 1 dimensions for 2"),
        ({"x": (4, 6), "w": (10, 3)}, "the size K is open, because the argument 'z'"),
        ({"w": (4, 3), "z": (6,)}, "the size N is open, because the argument 'x'"),
    ],
)
def test_sizes_that_cannot_be_are_told(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        found(**shapes)
    assert message in str(raised.value)


def test_a_symbol_that_no_shape_has_is_asked_for() -> None:
    with pytest.raises(ArgumentError, match=r"determines the size T; pass T=<number>"):
        infer("f", ("N", "T"), {"x": (N,)}, {"x": (3,)}, {})
    both = {"x": ((N - 2) ** 2,)}
    with pytest.raises(ArgumentError, match=r"N=\d and \d both make of .*; pass N=<number>"):
        infer("f", ("N",), both, {"x": (1,)}, {})
    assert infer("f", ("N",), both, {"x": (1,)}, {"N": 3}) == {"N": 3}


def test_a_symbolic_program_is_lowered_for_numbers() -> None:
    sdfg = scaled.to_sdfg()
    lowering = distspmd.lower(sdfg, {"__return": {"__i0": 3}})
    assert isinstance(lowering, SymbolicLowering)
    assert lowering.ranks == 3
    assert "lowering.at(M=..., N=...)" in str(lowering)
    assert "<td>(3, 1)</td>" in lowering._repr_html_()
    for n in (10, 2):
        home = next(home for home in lowering.at(N=n, M=5).homes if home.data == "x")
        assert str(home.layout) == f"[{-(-n // 3)}{{__i0}}{n}, 5]"
    assert str(distspmd.lower(sdfg, {"__return": {"__i0": 3}})) == str(lowering)
    with pytest.raises(ArgumentError, match="has the sizes M, N: M is missing"):
        lowering.at(N=3)
    with pytest.raises(ArgumentError, match="there is no T"):
        lowering.at(N=3, M=2, T=1)
    with pytest.raises(ArgumentError, match=r"the size N is 2\.5; write an integer"):
        lowering.at(N=2.5, M=2)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="symbolic sizes"):
        distspmd.explain(lowering)


def test_what_can_be_checked_before_the_sizes_is() -> None:
    for schedule, message in [
        ({"y": (2, 1)}, "no iteration"),
        ({"__return": (2,)}, "2 parameters"),
    ]:
        with pytest.raises(ScheduleError, match=message):
            distspmd.lower(scaled.to_sdfg(), schedule)


def test_one_program_runs_at_several_sizes_and_tells_mistakes_to_all_ranks(launch: Launch) -> None:
    done = launch(Path(__file__).parents[1] / "ranks" / "sizes.py", ranks=3)
    assert "all sizes ran" in done.stdout


def test_a_check_and_the_command_take_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = distspmd.check(scaled.to_sdfg(), {"__return": (2, 1)}, 2, sizes={"N": 5, "M": 3})
    assert checked.largest == 0
    with pytest.raises(UnsupportedProgram, match="symbolic sizes M, N"):
        distspmd.check(scaled.to_sdfg(), {"__return": (2, 1)}, 2)
    from distspmd.cli import main

    file = tmp_path / "of_sizes.py"
    file.write_text(
        "import dace\nN = dace.symbol('N')\n@dace.program\n"
        "def doubled(x: dace.float64[N]):\n    return 2 * x\n"
    )
    asked = ["lower", f"{file}:doubled", "-s", "__return=2"]
    assert main([*asked, "--size", "N=7"]) == 0
    assert "[4{__i0}7]" in capsys.readouterr().out
    assert main(asked) == 0
    assert "The sizes N are symbolic" in capsys.readouterr().out
    assert main([*asked, "--size", "N"]) == 1
    assert "Write N=100" in capsys.readouterr().err
