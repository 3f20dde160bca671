"""Functions of NumPy that are not covered, and what to write instead; for `docs/numpy.md`."""

from __future__ import annotations

import builtins
import time
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.transcript import AsksForGradients
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import METHODS, attribute, refused

_OUTSIDE = "read or write files outside of the program"

refused(
    *(np.shares_memory, np.may_share_memory),
    instead="it is known where the program is written; leave it out",
)
refused(
    *(np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.fromregex, np.fromstring),
    *(np.save, np.savetxt, np.savez, np.savez_compressed),
    *("tofile", "dump", "dumps", "tobytes"),
    instead=_OUTSIDE,
)
refused(
    *("getfield", "setfield", "setflags"),
    instead="it is about bytes in memory, and a program has tiles; use astype",
)
refused(np.random.bytes, instead="draw it before the program, and pass it", always=True)
refused(
    *(np.random.get_state, np.random.set_state),
    instead="a generator is its seed and the number of its draws; seed it anew",
    always=True,
)
refused(
    *(builtins.open, builtins.input, builtins.exec, time.sleep),
    instead="Python runs what has effects outside of the program",
    always=True,
)
refused(builtins.eval, instead="write the expression itself", always=True)


def _refuse(run: Context, *_: object, **__: object) -> Any:
    raise AsksForGradients(run.tracer.message("gradients inside of a program"))


METHODS["requires_grad_"] = METHODS["backward"] = METHODS["detach"] = _refuse
attribute("grad")(_refuse)
