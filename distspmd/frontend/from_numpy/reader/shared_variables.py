"""Variables of a function that those bind which it defines: all that have them see the change."""

from __future__ import annotations

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.frames import Frame


def change_outer(run: Context, frame: Frame) -> None:
    """Give the variables that a function shares with others what they are now.

    The function around has them, and so have those that it defines and that are being read.

    Raises:
        CannotRoll: the call is in a loop or a branch, which would not know of the change.
    """
    for name in frame.of_outer:
        if frame.around is None or frame.variables.get(name) is frame.around.variables.get(name):
            continue
        if run.tracer.inner:
            raise CannotRoll(f"{name!r} of the function around is changed in a call")
        owner = frame.around
        while name in owner.free and owner.around is not None:
            owner = owner.around
        for each in (owner, *(f for f in run.tracer.frames if name in f.free)):
            if each is owner or _is_within(each, owner):
                each.variables[name] = frame.variables[name]


def _is_within(frame: Frame, owner: Frame) -> bool:
    """Whether a function is defined in another one."""
    around = frame.around
    return around is not None and (around is owner or _is_within(around, owner))
