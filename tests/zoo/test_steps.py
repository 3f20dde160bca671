"""Training steps as people publish them do what they do in torch, on paper and on ranks."""

from __future__ import annotations

import pytest

from zoo.steps.run_steps import PAPER, outcome
from zoo.steps.sweep import run
from zoo.steps.table import STEPS

REFUSED = {
    "jetmoe": "reads the value of a tensor",
    "vilt": "depends on the values of tensors",
    "conformer": "decides by a value that it computes",
    "deberta_sentences": "depends on the values of tensors",
}
"""Those whose shapes or branches data decide, with what is said."""
ON_RANKS = (
    *("actor_critic", "word_language_model"),
    *("boxes_of_cells", "sasrec_by_indices", "categorical_dqn"),
)
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", STEPS)
def test_a_step_means_what_it_does_in_torch(name: str) -> None:
    found = outcome(name, PAPER)
    wanted = REFUSED.get(name)
    assert found["found"] == ("refused" if wanted else "right"), found["said"]
    assert (wanted or "") in found["said"]


@pytest.mark.parametrize("preset", ["data_parallel(2)"])
@pytest.mark.parametrize("name", ON_RANKS)
def test_a_step_does_what_torch_does_on_ranks(name: str, preset: str) -> None:
    found = run(name, preset, ranks=2, seconds=900)
    assert found["found"] == "right", found["said"]
