"""Arrays of texts, objects and dates that are known: NumPy computes with them at reading."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.array([5.0, 3.0, 6.0, 1.0, 2.5, 0.5, 7.25, 9.0])


def inverse_of_texts(x):
    a = np.array(["b", "a", "b"])
    _u, inv = np.unique(a, return_inverse=True)
    return x[:3] * inv


def chosen_by_a_text(x):
    names = np.array(["b", "a", "b", "c", "b", "a", "c", "c"])
    return x[names == "b"].sum()


def means_of_groups(x):
    names = np.array(["b", "a", "b", "c", "b", "a", "c", "c"])
    return np.array([x[names == n].mean() for n in np.unique(names)])


def groups_by_text(x):
    names = np.array(["b", "a", "b", "c", "b", "a", "c", "c"])
    return {str(n): x[names == n].mean() for n in np.unique(names)}


def days_since(x):
    d = np.arange("2020-01-01", "2020-01-05", dtype="datetime64[D]")
    return (d - d[0]).astype(int) * x[:4]


def weeks_since(x):
    d0 = np.datetime64("2020-01-01")
    d = d0 + np.arange(8)
    w = (d - np.datetime64("2019-12-30")) / np.timedelta64(1, "D")
    return x * w


def days_apart(x):
    t = np.array(["2020-01-01", "2020-02-01"], dtype="datetime64[D]")
    return x[0] * (t[1] - t[0]).astype(int), np.diff(t).astype(float) * x[1]


def no_times(x):
    return np.isnat(np.array(["NaT", "2016-01-01"], dtype="datetime64[ns]"))


def real_objects(x):
    a = np.array([1, "2", 3 + 4j], dtype=object)
    return np.isreal(a)


def sorted_by_names(x):
    first = np.array(["Heinrich", "Galileo", "Gustav"])
    last = np.array(["Hertz", "Galilei", "Hertz"])
    return x[np.lexsort((first, last))]


def letters(x):
    s = np.array(list("hello"))
    return (s == "l").sum() * x[0], np.char.upper(s).shape[0]


def lengths(x):
    a = np.array(["aa", "b"])
    return len(a), a.shape, a.size, x[0]


def texts_of_a_loop(x):
    a = np.array(["aa", "b", "ccc"])
    t = 0
    for k, s in enumerate(a):
        t += len(s) * x[k]
    return t


def signs_by_text(x):
    a = np.array(["u", "v", "u", "v", "u", "v", "u", "v"])
    return np.where(a == "u", x, -x)


def among_texts(x):
    a = np.array(["u", "v", "w", "v", "u", "v", "u", "v"])
    return x[np.isin(a, ["u", "w"])]


def places_of_texts(x):
    a = np.array(["u", "v", "w", "v", "u", "v", "u", "v"])
    i = np.argsort(a, kind="stable")
    return x[i], x[np.where(a == "v")[0]], x[np.nonzero(a == "v")]


PROGRAMS = [
    inverse_of_texts,
    chosen_by_a_text,
    means_of_groups,
    groups_by_text,
    days_since,
    weeks_since,
    days_apart,
    no_times,
    real_objects,
    sorted_by_names,
    letters,
    lengths,
    texts_of_a_loop,
    signs_by_text,
    among_texts,
    places_of_texts,
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_what_is_known_of_texts_and_dates_is_computed_by_numpy(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [X.copy()], ()))
    assert outcome.kind == "right", outcome.reason


def test_objects_of_the_run_are_refused() -> None:
    def program(x: Any) -> Any:
        return np.array([x[0], "text"], dtype=object)[0]

    with pytest.raises(UnsupportedProgram, match="elements of the type object"):
        numpy_program(program, X)
