"""The dimensions over which the gradient of a host function is split."""

from __future__ import annotations

import pytest

from distspmd.passes.autodiff.host_calls import vjp_terms


@pytest.mark.parametrize(
    ("terms", "wanted", "found"),
    [
        ("Ab,Ab->Ab", [0, 1], "Ab,Ab,Ab->Ab,Ab"),
        ("Ab,b->Ab", [0], "Ab,Ab,b->Ab"),
        ("Ab,b->Ab", [0, 1], "ab,ab,b->ab,b"),  # a sum over what is broadcast is not split
        ("ABc,Bc->ABc", [1], "aBc,aBc,Bc->Bc"),
        ("ab->1", [0], "1,ab->ab"),
    ],
)
def test_a_gradient_is_split_where_all_results_have_the_dimension(
    terms: str, wanted: list[int], found: str
) -> None:
    def renamed(text: str) -> str:
        """Whole dimensions by their order."""
        order = dict.fromkeys(letter for letter in text if letter.islower())
        return "".join(str([*order].index(c)) if c in order else c for c in text)

    assert renamed(vjp_terms(terms, wanted)) == renamed(found)
