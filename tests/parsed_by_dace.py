"""Programs through DaCe's parser, for tests of what becomes of its SDFGs: names, passes, plans."""

from __future__ import annotations

from typing import Any

from dace import SDFG

from distspmd import frontend


def numpy_program(program: Any, *examples: Any, **sizes: Any) -> SDFG:
    """The SDFG that DaCe's parser makes of a program."""
    return frontend.numpy_program(program, *examples, frontend="dace", **sizes)
