"""What ranks hold for a program goes to another from rank to rank, or a warning says."""

from __future__ import annotations

from conftest import call_on_ranks


def test_what_is_held_goes_to_a_program_with_other_dimensions() -> None:
    call_on_ranks("ranks.held_in_other_dimensions", "check(comm)", 3)
