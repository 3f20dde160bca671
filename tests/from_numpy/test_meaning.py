"""Programs that plain DaCe gets wrong without a word: right by ``numpy_program``, or told of."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.errors import ArgumentError, ProgramWarning, UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.passes.normalize.pipeline import normalize

N = dace.symbol("N")
f8, f4, i1, i4 = dace.float64, dace.float32, dace.int8, dace.int32


def drawn(container: Any, rng: np.random.Generator) -> Any:
    dtype = np.dtype(container.dtype.as_numpy_dtype())
    shape = tuple(map(int, container.shape))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return (rng.random(shape) * 200 - 90).astype(dtype)


def check_as_numpy(program: Any, *examples: Any, **sizes: int) -> None:
    """Compare a program with its function run by NumPy: results, dtypes and arguments."""
    sdfg = numpy_program(program, *examples, **sizes)
    function: Callable[..., Any] = getattr(program, "f", program)
    rng = np.random.default_rng(0)
    names = [name for name in sdfg.arglist() if not name.startswith("__return")]
    given = {name: drawn(sdfg.arrays[name], rng) for name in names}
    wanted, found = copy.deepcopy(given), copy.deepcopy(given)
    results = [call(**named) for call, named in ((function, wanted), (load_unlowered(sdfg), found))]
    want, have = ([r] if not isinstance(r, tuple) else list(r) for r in results)
    for one, other in zip(want + list(wanted.values()), have + list(found.values()), strict=True):
        if one is None:
            continue
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape or one.size == other.size == 1
        np.testing.assert_allclose(other.reshape(one.shape), one, rtol=1e-6)


@dace.program
def outer_products(x: f8[5, 5], y: f8[5, 5]):
    for k in range(5):
        y += x[:, k : k + 1] * x[k : k + 1, :]
    return x[:, 2:3] - x[:, -1:], x[1:2, 3:4] * x


@dace.program
def steps(u: f8[8], v: f8[2], w: f8[8, 6]):
    u[2:-2:2] += v
    w[1::2, ::3] *= w[::2, 1::3]
    w[:, 1:2] -= w[:, 0:1]


@dace.program
def broadcast(u: f8[4, 2], v: f8[2], w: f8[4, 1]):
    u[1:3] += v
    u[:, 0:2] -= w
    u[2:4, 1:2] = w[0:2, :]


@dace.program
def sums(a: i1[5, 5], b: i4[5], c: dace.uint8[5], d: dace.bool[5], e: dace.int64[5]):
    total = np.sum(a) + a.sum() + np.add.reduce(b)
    for _ in range(2):
        total += np.sum(b)
    means = np.mean(a, axis=0) + np.mean(e) + d.mean()
    return total, means, np.sum(d), a.prod(), np.multiply.reduce(a, axis=1), np.sum(c)


@dace.program
def small_sums(x: f4[5], y: f8[5]):
    return np.sum(x), np.mean(x), np.sum(y), x.mean()


@dace.program
def square_column(x: f8[5, 5]):
    return x[:, 0:1] + x


@dace.program
def one_head(q: f8[2, 1, 4, 3], k: f8[2, 1, 5, 3]):
    return np.einsum("bhik,bhjk->bhij", q, k)


RIGHT = [outer_products, steps, broadcast, sums, small_sums, square_column, one_head]


@pytest.mark.parametrize("program", RIGHT, ids=lambda p: p.f.__name__)
def test_a_program_computes_what_numpy_does(program: Any) -> None:
    check_as_numpy(program)


@pytest.mark.parametrize(
    ("program", "line", "what"),
    [
        (square_column, "x[:, 0:1]", "one element wide"),
        (steps, "u[2:-2:2]", "leaves out the step"),
    ],
    ids=lambda value: getattr(getattr(value, "f", None), "__name__", None),
)
def test_of_what_plain_dace_parsed_the_user_is_told(program: Any, line: str, what: str) -> None:
    with pytest.warns(
        ProgramWarning, match=re.escape(f"distspmd.lower({program.f.__name__}")
    ) as told:
        distspmd.lower(program.to_sdfg(), {})
    said = [str(each.message) for each in told if what in str(each.message)]
    where, _ = said[0].split(": ", 1)
    file, number = where.split(":")
    assert file == "test_meaning.py"
    text = Path(__file__).read_text().splitlines()[int(number) - 1]
    assert line in text


@pytest.mark.parametrize("program", [outer_products, one_head], ids=lambda p: p.f.__name__)
@pytest.mark.filterwarnings("ignore::distspmd.errors.ProgramWarning")
def test_what_is_no_view_of_anything_is_refused(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"pass the function itself to distspmd\.lower"):
        distspmd.lower(program.to_sdfg(), {})


@pytest.mark.parametrize("program", [square_column, steps], ids=lambda p: p.f.__name__)
def test_an_sdfg_from_a_file_is_taken_for_what_it_says(program: Any) -> None:
    saved = json.loads(json.dumps(program.to_sdfg().to_json()))
    assert distspmd.lower(dace.SDFG.from_json(saved), {}).ranks == 1


def test_no_file_decides_whether_a_program_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "doubling.py"
    text = "import dace\n\n@dace.program\ndef doubled(x: dace.float64[4]):\n    return x + x\n"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("doubling", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sdfg = module.doubled.to_sdfg()
    file.write_text(text.replace("x + x", "np.einsum('i->i', x[0:1])"))
    assert distspmd.lower(copy.deepcopy(sdfg), {}).ranks == 1
    file.unlink()
    assert distspmd.lower(sdfg, {}).ranks == 1


def test_what_numpy_program_parsed_is_lowered_also_from_a_file() -> None:
    sdfg = numpy_program(outer_products)
    again = dace.SDFG.from_json(json.loads(json.dumps(sdfg.to_json())))
    assert distspmd.lower(again, {}).ranks == 1


@dace.program
def sorted_pairs(x: f8[12]):
    for i in dace.map[0:6]:
        lo = min(x[2 * i], x[2 * i + 1])
        hi = max(x[2 * i], x[2 * i + 1])
        x[2 * i] = lo
        x[2 * i + 1] = hi


@pytest.mark.parametrize("parse", [numpy_program, type(sorted_pairs).to_sdfg])
def test_a_map_reads_what_it_writes_over_before(parse: Callable[[Any], dace.SDFG]) -> None:
    sdfg = parse(sorted_pairs)
    normalize(sdfg)
    x = np.random.default_rng(0).random(12)
    wanted = x.copy()
    sorted_pairs.f(wanted)
    load_unlowered(sdfg)(x=x)
    assert (x == wanted).all()


@dace.program
def counted(a: i4[5, 3]):
    return np.sum(a, axis=0)


def test_of_a_sum_of_narrow_integers_that_plain_dace_parsed_the_user_is_told() -> None:
    with pytest.warns(
        ProgramWarning, match=r"test_meaning.py:\d+: DaCe reduces int32 in that type"
    ):
        distspmd.lower(counted.to_sdfg(), {})


def plain_function(x: f8[N, 3], y):
    return x * y + 1


def test_a_plain_function_has_sizes_and_examples() -> None:
    check_as_numpy(plain_function, np.zeros((4, 3)), np.zeros(3), N=4)
    symbolic = numpy_program(plain_function, y=np.zeros(3, np.float32))
    assert symbolic.arrays["y"].dtype == f4
    assert "N" in symbolic.free_symbols


def test_a_missing_example_is_told() -> None:
    with pytest.raises(ArgumentError, match="'y' has neither an annotation nor an example"):
        numpy_program(plain_function)
    with pytest.raises(ArgumentError, match="has 2 arguments, but 3 examples"):
        numpy_program(plain_function, 1, 2, 3)
    with pytest.raises(ArgumentError, match="takes a function"):
        numpy_program(numpy_program(plain_function, y=np.zeros(3)))


@dace.program
def mismatched(u: f8[4, 2], v: f8[3]):
    u[:] = v


@dace.program
def unknown(u: f8[4, 2]):
    u[::-1] = u[::-1] @ u


@pytest.mark.parametrize("program", [mismatched, unknown], ids=lambda p: p.f.__name__)
def test_what_cannot_be_parsed_is_refused_with_its_line(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"^test_meaning.py:\d+: "):
        numpy_program(program)


def functions_of_a_comprehension(x):
    last = [lambda y: y * i for i in range(3)]  # noqa: B023
    own = [lambda y, i=i: y * i for i in range(3)]
    by_name = {k: (lambda y: y + k) for k in range(4)}  # noqa: B023
    now = [(lambda y: y - j)(x) for j in range(2)]
    return last[0](x), own[0](x), own[1](x), by_name[0](x), now[1]


def a_name_of_a_comprehension(x):
    k, i = 10, 20
    table = {k: k * 2 for k in range(3)}
    values = [i + 1 for i in range(3)]
    return x * k + i + table[1] + values[2]


@pytest.mark.parametrize("function", [functions_of_a_comprehension, a_name_of_a_comprehension])
def test_comprehensions_have_variables_of_their_own(function: Any) -> None:
    x = np.arange(4.0)
    wanted, found = function(x), load_unlowered(numpy_program(function, x))(x=x)
    every = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other in zip(found if isinstance(found, tuple) else (found,), every, strict=True):
        np.testing.assert_array_equal(one, other)
