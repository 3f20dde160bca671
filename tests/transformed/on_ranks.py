"""Transformed programs, compiled, on all ranks beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowering.running import check

import distspmd


def run(comm: Any, names: Sequence[str]) -> None:
    """Lower each program with all its spaces split, run it, and see to it that it is right."""
    for name in names:
        sdfg = data = None
        if comm.rank == 0:
            from transformed.outcomes import lowered_of
            from transformed.programs import PROGRAMS, arguments_of, wanted_of
            from transformed.transformations import changed, transformations

            transformation, program = name.rsplit("/", 1)
            made = changed(transformations()[transformation], PROGRAMS[program])
            assert made is not None
            sdfg = lowered_of(made, comm.size).sdfg
            data = (arguments_of(program), *wanted_of(program))
        with distspmd.compile(sdfg, comm) as compiled:
            wrong = check(compiled, data, comm)
        assert not any(comm.allgather(wrong)), f"{name}: {wrong}"
