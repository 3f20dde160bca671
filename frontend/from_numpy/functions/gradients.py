"""Gradients inside of a program, which are those of DaCe's parser: refused with what to write."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.functions.registry import METHODS, attribute


def _refuse(run: Any, *_: Any, **__: Any) -> Any:
    run.tracer.refuse(
        "gradients inside of a program are read by DaCe's parser: "
        'numpy_program(function, frontend="dace")'
    )


METHODS["requires_grad_"] = METHODS["backward"] = METHODS["detach"] = _refuse
attribute("grad")(_refuse)
