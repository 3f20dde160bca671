"""What NumPy does at divisions by zero and at overflows: a warning or nothing, never an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function


@function(np.seterr)
def _seterr(run: Context, all: Any = None, **kinds: Any) -> dict[str, Any]:
    """The state before, as NumPy has it; warnings are not given by programs."""
    for kind, wanted in (("all", all), *kinds.items()):
        if wanted not in (None, "ignore", "warn"):
            run.tracer.refuse(
                f"{kind}={wanted!r} at floating-point errors: programs go on with inf and nan. "
                "Check the values: if np.any(np.isnan(x)): raise FloatingPointError(...)"
            )
    return dict(np.geterr())
