"""Indexing of random kinds means what it means in NumPy: reading, assigning, and views of views.

Hypothesis draws statements; several of them become one function, whose text is written into a file
as a user's is, so that one program is compiled for all. NumPy and the program run it on the same
arrays, and all arrays are compared afterwards.
"""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import distspmd
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import REFUSED, RIGHT

Draw = Callable[[st.SearchStrategy[Any]], Any]
_numbers = itertools.count()


# --- indices, as texts, with the shapes that they give ---


def bounds(draw: Draw, extent: int) -> str:
    """A slice of any ends, signs and step."""

    def end() -> str:
        near = st.integers(-extent - 2, extent + 2)
        return draw(st.one_of(st.just(""), near.map(str)))

    step = draw(st.sampled_from(["", "", ":1", ":2", ":3", ":-1", ":-2", ":-3", ":"]))
    return f"{end()}:{end()}{step}"


def basic_index(draw: Draw, shape: tuple[int, ...]) -> str:
    """Numbers, slices, an ellipsis and new axes, for some of the dimensions."""
    used = draw(st.integers(0, len(shape)))
    parts = []
    for extent in shape[:used]:
        kind = draw(st.sampled_from(["slice", "slice", "slice", "number"]))
        number = st.integers(-extent, extent - 1) if extent else st.nothing()
        parts.append(str(draw(number)) if kind == "number" and extent else bounds(draw, extent))
    if draw(st.booleans()):
        later = draw(st.integers(0, len(shape) - used))
        tail = [bounds(draw, extent) for extent in shape[len(shape) - later :]] if later else []
        parts += ["...", *tail]
    for _ in range(draw(st.integers(0, 1))):
        parts.insert(
            draw(st.integers(0, len(parts))), draw(st.sampled_from(["None", "np.newaxis"]))
        )
    return ", ".join(parts) or "..."


def fancy_index(draw: Draw, shape: tuple[int, ...]) -> str:
    """Masks, and arrays of numbers beside slices and numbers, wherever they stand."""
    kind = draw(st.sampled_from(["mask", "mask of one", "arrays", "arrays", "lists"]))
    if kind == "mask":
        return draw(st.sampled_from(["x > 0", "x % 3 == 0", "~(x < 5)", "(x > -9) & (x < 9)"]))
    if kind == "mask of one":
        position = draw(st.integers(0, len(shape) - 1))
        return ", ".join([*[":"] * position, f"mask_{shape[position]}"])
    parts = []
    for extent in shape:
        if kind == "lists":
            number = st.integers(-extent, extent - 1)
            array = str(draw(st.lists(number, min_size=3, max_size=3)))
        else:
            array = draw(
                st.sampled_from([f"index_{extent}", f"index_{extent}[::-1]", f"column_{extent}"])
            )
        other = draw(
            st.sampled_from([bounds(draw, extent), ":", str(draw(st.integers(0, extent - 1)))])
        )
        parts.append(draw(st.sampled_from([array, array, other])))
    return ", ".join(parts)


def arrays_of(shapes: set[int]) -> dict[str, np.ndarray]:
    """Masks and indices for extents, by the names that texts use."""
    found: dict[str, np.ndarray] = {}
    for extent in sorted(shapes):
        rng = np.random.default_rng(extent)
        found[f"mask_{extent}"] = rng.random(extent) < 0.5
        found[f"index_{extent}"] = rng.integers(-extent, extent, 3)
        found[f"column_{extent}"] = rng.integers(0, extent, (2, 1))
    return found


# --- statements ---


def reading(draw: Draw, shape: tuple[int, ...], n: int) -> list[str]:
    """A result that is read by an index, and perhaps by another one from it."""
    index = draw_index(draw, shape)
    if "mask" in index or " " in index.replace(", ", ""):  # so many elements as are true
        return [
            f"r{n} = x[{index}].{draw(st.sampled_from(['sum()', 'mean()', 'max(initial=-99)']))}"
        ]
    lines = [f"r{n} = x[{index}]"]
    found = try_read(shape, index)
    if found and draw(st.booleans()):
        lines = [f"r{n} = x[{index}][{basic_index(draw, found)}]"]
    return [*lines, f"r{n} = r{n} + 1"] if draw(st.booleans()) else lines


def writing(draw: Draw, shape: tuple[int, ...], n: int) -> list[str]:
    """A copy of which elements are assigned or changed by an index, with what fits them."""
    index = draw_index(draw, shape)
    value = draw(st.sampled_from(["7", "-1.5", "other"]))
    if value == "other":
        value = f"(2 * x - 1)[{index}]"
        if draw(st.booleans()):
            value = f"{value}.copy()"
    sign = draw(st.sampled_from(["=", "=", "+=", "-=", "*="]))
    return [f"r{n} = x.copy()", f"r{n}[{index}] {sign} {value}"]


def through_views(draw: Draw, shape: tuple[int, ...], n: int) -> list[str]:
    """A view of a view that is written, before and after its base is."""
    first = basic_index(draw, shape)
    lines = [f"r{n} = x.copy()", f"v{n} = r{n}[{first}]"]
    found = try_read(shape, first)
    if not found:
        return [*lines, f"r{n} *= 2"]
    second = basic_index(draw, found)
    twice = try_read(found, second)
    lines.append(f"w{n} = v{n}[{second}]")
    changes = [f"v{n} += 1", f"v{n}[...] = 3", f"r{n}[0] -= 5"]
    if twice:
        changes += [f"w{n} *= 2", f"w{n}[:] = w{n}[::-1]", f"w{n} += v{n}[{second}]"]
    chosen = draw(st.lists(st.sampled_from(changes), min_size=1, max_size=3))
    return [*lines, *chosen, f"s{n} = w{n} * 1"]


def scattering(draw: Draw, shape: tuple[int, ...], n: int) -> list[str]:
    """Elements that several indices name, which ``np.add.at`` adds to each time."""
    ufunc = draw(st.sampled_from(["np.add", "np.maximum", "np.multiply"]))
    return [
        f"r{n} = x.copy()",
        f"{ufunc}.at(r{n}, index_{shape[0]}, {draw(st.sampled_from(['2', 'x[:3]', '1.5']))})"
        if shape[0] >= 3
        else f"{ufunc}.at(r{n}, index_{shape[0]}, 2)",
    ]


def draw_index(draw: Draw, shape: tuple[int, ...]) -> str:
    return draw(st.sampled_from([basic_index, fancy_index]))(draw, shape)


def try_read(shape: tuple[int, ...], index: str) -> tuple[int, ...]:
    """The shape that an index gives; of what is no array with elements, or no index, none."""
    names = {"np": np, "x": np.ones(shape), **arrays_of(set(shape))}
    try:
        found = eval(f"x[{index}]", names)
    except IndexError:
        return ()
    return found.shape if found.size else ()


KINDS = {
    "reading": reading,
    "writing": writing,
    "through_views": through_views,
    "scattering": scattering,
}


# --- functions of statements ---


@st.composite
def functions(draw: Draw, kind: str) -> tuple[str, tuple[int, ...], str]:
    """The text of a function of several statements, the shape of its array, and its type."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    dtype = draw(st.sampled_from(["float64", "int64", "float32", "int32", "complex128"]))
    if dtype == "complex128":
        dtype = "float64" if kind in ("writing", "scattering") else dtype
    arrays = arrays_of(set(shape))
    body: list[str] = []
    results: list[str] = []
    for n in range(draw(st.integers(1, 6))):
        lines = KINDS[kind](draw, shape, n)
        if runs(lines, shape, dtype, arrays):
            body += lines
            results += [line.split()[0] for line in lines if line[0] in "rs" and line[1].isdigit()]
    names = [name for name in dict.fromkeys(results) if "[" not in name]
    head = f"def indexed(x, {', '.join(arrays)}):"
    end = f"return {', '.join(names)}" if len(names) != 1 else f"return {names[0]}"
    return "\n    ".join([head, *body, end if names else "return x.sum()"]), shape, dtype


def runs(
    lines: list[str], shape: tuple[int, ...], dtype: str, arrays: dict[str, np.ndarray]
) -> bool:
    """Whether NumPy runs statements, and what they give has elements."""
    names = {"np": np, "x": values_of(shape, dtype), **arrays}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as the mean of nothing
            exec("\n".join(lines), names)
    except (IndexError, ValueError, TypeError, RuntimeWarning):  # as NumPy says it
        return False
    made = [value for name, value in names.items() if name[0] in "rsvw" and name[1:].isdigit()]
    return all(isinstance(value, np.ndarray | np.number) and value.size for value in made)


def values_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(-20, 20, shape).astype(dtype)


def case_of(text: str, shape: tuple[int, ...], dtype: str, folder: Path) -> Case:
    """A case whose function stands in a file of its own."""
    file = folder / f"indexed_{next(_numbers)}.py"
    file.write_text(f"import numpy as np\n\n\n{text}\n")
    described = importlib.util.spec_from_file_location(file.stem, file)
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)

    def arguments(_: Any) -> tuple[Any, ...]:
        return (values_of(shape, dtype), *arrays_of(set(shape)).values())

    return Case(file.stem, module.indexed, "indexing", "hypothesis", arguments, ())


def shaped_as_in_numpy(kind: str, data: st.DataObject, folder: Path) -> None:
    text, shape, dtype = data.draw(functions(kind))
    note(text)
    found = on_paper(case_of(text, shape, dtype, folder))
    assert found.kind in (RIGHT, REFUSED), found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_indexed_has_numpys_shape_and_type(
    kind: str, data: st.DataObject, tmp_path: Path
) -> None:
    shaped_as_in_numpy(kind, data, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_indexed_has_numpys_shape_and_type(
    kind: str, data: st.DataObject, tmp_path: Path
) -> None:
    shaped_as_in_numpy(kind, data, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=60,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink is to compile
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_what_is_indexed_has_numpys_values(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    text, shape, dtype = data.draw(functions(kind))
    note(text)
    found = run_here(case_of(text, shape, dtype, tmp_path))
    assert found.kind in (RIGHT, REFUSED), found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_functions_that_are_drawn_run_in_numpy(
    kind: str, data: st.DataObject, tmp_path: Path
) -> None:
    case = case_of(*data.draw(functions(kind)), tmp_path)
    case.function(*case.arguments()[0])


# --- selections of nothing ---


def chosen_of_nothing(x: Any) -> Any:
    r = x.copy()
    r[[0, 0, -1], [5, -4, 5], 2:] += 7
    r[[0, 0], [5, 4], 2:] = x[[0, 0], [5, 4], 3:]
    np.add.at(r, ([0, 0], [5, 4], slice(2, None)), 3.0)
    r[3:3] += 1
    r[:, 7:] = r[:, :0]
    return r, x[[], 1], x[[0, 0], [5, 4], 2:].sum(), x[..., None][:, 7:]


def reductions_of_nothing(x: Any) -> Any:
    y, nothing = x[0], x[:, 7:]
    sums = nothing.sum(axis=1), nothing.prod(axis=1), np.count_nonzero(nothing)
    truths = np.any(nothing), np.all(nothing), nothing.max(axis=1, initial=3.0)
    products = y[:0].T @ y[7:], np.einsum("ijk,ijk->k", nothing, nothing), np.linalg.norm(y[7:])
    shaped = np.cumsum(y[7:, 0]), y[7:].ravel(), np.tile(y[7:, 0], 3), np.concatenate((y[7:], y))
    return *sums, *truths, *products, *shaped


def compared_complex_numbers(x: Any) -> Any:
    z = np.round(x / 4) + 1j * np.round(x % 3)
    w = z[:, ::-1]
    return z < w, z <= w, z > w, z >= w, z[z > 1].sum()


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(
    "function", [chosen_of_nothing, reductions_of_nothing, compared_complex_numbers]
)
def test_selections_of_nothing_and_comparisons(function: Callable[..., Any]) -> None:
    given = np.arange(14.0).reshape(1, 7, 2)
    case = Case(function.__name__, function, "indexing", "", lambda _: (given.copy(),), ())
    found = run_here(case)
    assert found.kind == RIGHT, found


def looked_up(x: Any, where: Any) -> Any:
    return x[where] * 2


def test_a_program_with_indices_of_the_run_is_lowered_without_a_warning_of_dace() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distspmd.lower(numpy_program(looked_up, np.ones(9), np.arange(4), host="refuse"), ranks=2)
