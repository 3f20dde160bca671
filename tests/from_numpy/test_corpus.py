"""Programs of the corpus are programs of NumPy, and the harness tells what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus import CORPUS, Case
from from_numpy.outcomes import FOREIGN, REFUSED, RIGHT, WRONG, counts, differences
from from_numpy.run_in_numpy import problem, sensitivity
from from_numpy.sweep import sweep


@pytest.mark.parametrize("case", CORPUS.values(), ids=lambda case: case.name)
def test_a_program_runs_in_numpy_and_its_results_are_not_those_of_roundings(case: Case) -> None:
    assert not problem(case)
    assert not sensitivity(case)


def test_there_are_programs_of_many_fields_most_of_them_at_two_sizes() -> None:
    sizes: dict[str, int] = {}
    for case in CORPUS.values():
        sizes[case.function.__name__] = sizes.get(case.function.__name__, 0) + 1
    assert len(sizes) == len({case.function for case in CORPUS.values()}) >= 200
    assert len({case.field for case in CORPUS.values()}) >= 15
    assert sum(count > 1 for count in sizes.values()) > len(sizes) // 2


def _without_functions(value: Any) -> Any:
    """Positional and named arguments but functions, which each call of a maker gives anew."""
    positional, named = value
    kept = {name: each for name, each in named.items() if not callable(each)}
    return tuple(each for each in positional if not callable(each)), kept


def test_arguments_are_the_same_each_time_and_of_their_own() -> None:
    for case in CORPUS.values():
        one, other = case.arguments(), case.arguments()
        assert not list(differences(*(_without_functions(given) for given in (one, other))))
        assert not any(a is b for a, b in zip(one[0], other[0], strict=True) if hasattr(a, "shape"))


def test_a_case_that_crashes_costs_no_other_case() -> None:
    found = sweep(["scaled", "crashes", "refused"], which="faulty", mode="paper", limit=200)
    assert [each.kind for each in found] == [RIGHT, FOREIGN, REFUSED]
    assert "ended with code" in found[1].reason
    assert "faulty_cases.py:" in found[2].reason


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["paper", "2"])
def test_a_case_that_crashes_or_never_ends_costs_no_other_case(mode: str) -> None:
    names = ["scaled", "crashes", "negated", "never_ends", "refused", "raises", "shifted"]
    found = sweep(names, which="faulty", mode=mode, limit=20)
    kinds = {each.name: each.kind for each in found}
    assert kinds == {
        **dict.fromkeys(["scaled", "negated", "shifted"], RIGHT),
        **dict.fromkeys(["crashes", "never_ends", "raises"], FOREIGN),
        "refused": REFUSED,
    }
    told = {each.name: each.reason for each in found}
    assert "did not end in its time" in told["never_ends"]
    assert "ended with code" in told["crashes"]
    assert "LookupError: of the maker" in told["raises"]
    assert "faulty_cases.py:" in told["refused"]
    assert counts(found).startswith("7 cases: 3 right, 1 refused, 0 wrong, 3 foreign; 0 refusals")


def test_what_differs_from_numpy_is_told() -> None:
    wanted = (np.arange(3.0), np.int8(4), [True, None], {"a": 1 + 2j}, "text")
    assert not list(differences(wanted, wanted))
    wrong = {
        "result[0]: dtype float32 for float64": (np.arange(3, dtype="f4"), *wanted[1:]),
        "result[0]: shape [4] for [3]": (np.arange(4.0), *wanted[1:]),
        "result[0][2] is 2.5, not 2.0": (np.array([0, 1, 2.5]), *wanted[1:]),
        "result[1]: dtype int64 for int8": (wanted[0], 4, *wanted[2:]),
        "result[2][0]": (*wanted[:2], [False, None], *wanted[3:]),
        "result[2][1]": (*wanted[:2], [True, 0], *wanted[3:]),
        "the keys ['a']": (*wanted[:3], {"b": 1 + 2j}, "text"),
        "result[3]['a'] is (1+3j)": (*wanted[:3], {"a": 1 + 3j}, "text"),
        "result[4]: str 'other'": (*wanted[:4], "other"),
        "for 5 values": wanted[:4],
        "result: NoneType None": None,
    }
    for words, found in wrong.items():
        assert any(words in told for told in differences(found, wanted)), words
    nan = np.array([np.nan, 1])
    assert not list(differences(nan, nan.copy()))
    assert WRONG in counts([])
