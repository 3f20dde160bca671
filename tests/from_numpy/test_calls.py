"""How programs are called: what arguments are and are named, and which numbers come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.execution.call_keys import kind_of
from distspmd.frontend import numpy_program
from from_numpy import arguments, results


@pytest.mark.parametrize("module", [arguments, results])
def test_arguments_and_results_are_what_they_are_in_numpy(module: Any, launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", module.__name__, ranks=2)
    count = len(module.CASES)
    assert done.stdout.endswith(f"{count} of {count} right\n"), done.stdout


def test_an_array_of_no_dimensions_is_no_number_and_a_number_is_no_array() -> None:
    assert kind_of(np.array(1.0)) != kind_of(np.float64(1.0)) != kind_of(1.0)
    lowering = distspmd.lower(numpy_program(arguments.added_to, np.array(1.0)))
    program = distspmd.compile(lowering, MPI.COMM_SELF)
    with pytest.raises(ArgumentError, match="array of no dimensions"):
        program(np.float64(1.0))
    x = np.array(1.0)
    assert program(x) == 4
    assert x == 2
    x.flags.writeable = False
    with pytest.raises(ArgumentError, match="can be written"):
        program(x)


def test_names_that_words_of_cpp_have_are_those_that_users_write() -> None:
    def enum(new: Any, new_: Any) -> Any:
        return new - new_

    x = np.arange(3.0)
    lowering = distspmd.lower(numpy_program(enum, x, x), arguments={"new": "replicated"})
    assert "new" in lowering.call_form.inside
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        assert list(program(x, new_=x - 1)) == list(program(new=x, new_=x - 1)) == [1, 1, 1]
        with pytest.raises(ArgumentError, match="given twice"):
            program(x, x, new=x)


width = np.random.default_rng(0)


def test_a_name_that_a_function_binds_is_not_the_one_outside() -> None:
    def widest(x: Any) -> Any:
        largest = 0.0
        for value in x:
            if value < 2:
                continue
            width = value * 2  # beside a generator of this name, which a script might have
            largest = max(largest, width)
        return largest

    def before(x: Any) -> Any:
        if width:  # noqa: F823
            width = x  # which makes it a variable of the function: Python finds no value
        return x, width

    with distspmd.compile(
        distspmd.lower(numpy_program(widest, np.ones(5))), MPI.COMM_SELF
    ) as program:
        assert program(np.arange(5.0)) == 8
    with pytest.raises(UnsupportedProgram, match="the name 'width' is not defined"):
        numpy_program(before, np.ones(5))


def test_check_compares_with_functions_of_such_arguments() -> None:
    def union(template: dace.float64[5], this: dace.int64) -> Any:
        template += this
        return template * 2

    checked = distspmd.check(union, {}, ranks=1, inputs={"template": np.arange(5.0)})
    assert checked.oracle == "the Python function, run by NumPy"


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        ("float64[N, M + 1]", "(N, M + 1)"),
        ("dace.float64[N, 20]", "(N, 20)"),
        ("Float64[Array, 'N 2*N 4']", "(N, 2*N, 4)"),
        ("Float[Array, 'N 4']", None),
        ("Float64[Array, '*batch N']", None),
        ("npt.NDArray[np.float64]", None),
        (type("Float64", (), {"dtypes": ("float64",), "dim_str": "rows 3"}), "(rows, 3)"),
        (type("Float", (), {"dtypes": ("float32", "float64"), "dim_str": "rows"}), None),
    ],
)
def test_annotations_name_sizes_as_those_of_jaxtyping_do(annotation: Any, shape: Any) -> None:
    def doubled(x):
        return x * 2

    doubled.__annotations__["x"] = annotation
    if shape is None:
        with pytest.raises(ArgumentError, match="of its type and shape after the function"):
            numpy_program(doubled)
    else:
        container = numpy_program(doubled).arrays["x"]
        assert (container.dtype, str(container.shape)) == (dace.float64, shape)
    assert numpy_program(doubled, np.ones((3, 4), np.float32)).arrays["x"].dtype == dace.float32
