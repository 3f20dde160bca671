"""Examples of NumPy's docstrings are taken as they stand, and are functions of their arrays."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from from_numpy.numpy_docstrings import cases, examples_of, function_of, functions
from from_numpy.outcomes import FOREIGN, WRONG, as_table
from from_numpy.sweep import by_field, sweep

DOC = """Some function.

    >>> x = np.array([[1, 2], [3, 4]])
    >>> y = np.zeros([2, 2])
    >>> x
    array([[1, 2], [3, 4]])
    >>> unrelated = 3
    >>> np.add(x, [1.5, 2], out=y)
    >>> np.put(x, [0, 1], -5)
    >>> x[0], y
    (array([-5, -5]), array([[2.5, 4.], [4.5, 6.]]))
    >>> np.array(["text"])
    array(['text'], dtype='<U4')
    >>> np.zeros(2).reshape(3)
    Traceback (most recent call last):
    ValueError
    >>> np.random.random(3)
    array([0.1, 0.2, 0.3])
    """


def test_an_example_has_the_statements_that_it_needs_and_arrays_as_arguments() -> None:
    made = [function_of("f", each) for each in examples_of(DOC)]
    x, _, last, *random = made
    assert x
    assert x.text == "def f(array_0):\n    x = array_0\n    return x\n"
    assert last
    lines = last.text.splitlines()
    assert [line.split("(")[0].strip() for line in lines] == [
        "def f",
        "x = array_0",
        "y = np.zeros",
        "np.add",
        "np.put",
        "return",
    ]
    assert not any("unrelated" in line for line in lines)
    assert random == [None]  # what NumPy gives is not the same twice
    assert all(isinstance(value, np.ndarray) for value in last.arguments.values())


def test_most_of_numpys_functions_have_examples_in_a_file() -> None:
    assert len(functions()) > 300
    assert len(cases()) > 1200
    case = cases()["np.cumsum-1"]
    assert "np.cumsum" in inspect.getsource(case.function)
    assert case.field == "np.cumsum"


@pytest.mark.slow
def test_no_example_is_wrong_and_none_ends_in_a_foreign_error() -> None:
    outcomes = sweep(list(cases()), which="docstrings", mode="1,2", jobs=2)
    bad = [each for each in outcomes if each.kind in (WRONG, FOREIGN)]
    assert not bad, f"{as_table(bad)}\n{by_field(outcomes, cases())}"
