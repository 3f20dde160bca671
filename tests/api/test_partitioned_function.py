"""Functions under the decorator, as scripts call them on ranks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_function_without_a_schedule_is_searched_for_once_and_said_once(
    launch: Callable[..., Any], root: Path
) -> None:
    new = str(random.SystemRandom().uniform(1e-12, 2e-12))
    done = launch(root / "tests" / "ranks" / "searched.py", new, ranks=4)
    told = done.stdout + done.stderr
    assert told.count("product: searched: 4 ranks, predicted ") == 1, told
    assert told.count("on_two: searched: 2 ranks, predicted ") == 1, told
    assert told.count("sum_of_all: searched: 4 ranks, and one is predicted to be the fastest") == 1
    assert told.count("doubled: searched: 4 ranks, predicted ") == 1
    warned = [line for line in told.splitlines() if "ScheduleWarning: " in line]
    idle = {line.split("ScheduleWarning: ")[1].split(":")[0]: line for line in warned}
    assert len(warned) == len(idle)
    assert idle.keys() == {"on_two", "sum_of_all", "unsearched"}
    assert (
        "2 of 4 ranks are idle, and 0% of the work stays whole: the search was for 2"
        in idle["on_two"]
    )
    assert "3 of 4 ranks are idle, and 100% of the work stays whole" in idle["sum_of_all"]
    assert "write ranks=4" in idle["unsearched"]


def test_a_result_that_is_used_on_another_rank_is_one_error_that_ends_all(
    launch: Callable[..., Any], root: Path
) -> None:
    script = root / "tests" / "ranks" / "elsewhere.py"
    done = launch(script, "use", ranks=3, check=False)
    told = done.stdout + done.stderr
    assert done.returncode != 0
    assert told.count("sum on rank 0: 36.0") == 1, told
    assert told.count("<the result of simulate(...) is on rank 0, and not on this rank>") == 2
    assert told.count("ResultElsewhere: the result of simulate(...) is on rank 0") == 1
    assert told.count("Traceback") == 1
    assert "elsewhere.py" in told.split("Traceback")[1]
