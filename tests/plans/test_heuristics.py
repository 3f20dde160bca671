from dataclasses import fields

import dace

import distspmd
from distspmd.plans.heuristics import HEURISTICS, STAGES, Heuristics


@dace.program
def twice(x: dace.float64[8]):
    return 2 * x


def test_each_number_says_why_it_is_what_it_is():
    for each in fields(Heuristics):
        assert f"        {each.name}: " in Heuristics.__doc__, each.name
        assert each.metadata["stage"] in STAGES


def test_all_numbers_are_shown_with_what_decides_by_them():
    explained = distspmd.explain(distspmd.lower(twice.to_sdfg(), {"__return": (2,)}))
    for text in (str(explained), explained._repr_html_()):
        for each in fields(Heuristics):
            assert f"{each.name} {getattr(HEURISTICS, each.name):_}" in text
