"""What a clock says while the program runs, which is printed or returned and decides nothing.

The numbers of readings stand for what they will say; sums and differences of them are written down
as they are. Ranks have clocks of their own: what would depend on one is refused.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from distspmd.frontend.from_numpy.arrays.transcript import Refusal

_INSTEAD = (
    "what the clock says while the program runs may be printed or returned, added and subtracted; "
    "what is computed and decided does not depend on it. Measure around the call"
)


@dataclass(frozen=True, eq=False)
class Seconds:
    """A number of seconds: readings of clocks with factors, and a number.

    Attributes:
        factors: by the number of the reading.
        more: is added.
        digits: to which it is rounded.
    """

    factors: Mapping[int, float] = field(default_factory=dict)
    more: float = 0.0
    digits: int | None = None

    def __repr__(self) -> str:
        return "what a clock says"

    def _plus(self, other: Any, sign: int) -> Any:
        if self.digits is not None or getattr(other, "digits", None) is not None:
            self._refuse()
        if isinstance(other, Seconds):
            every = {*self.factors, *other.factors}
            sums = {n: self.factors.get(n, 0) + sign * other.factors.get(n, 0) for n in every}
            return Seconds(sums, self.more + sign * other.more)
        if not isinstance(other, numbers.Real):
            self._refuse()
        return replace(self, more=self.more + sign * float(other))

    def _times(self, factor: Any) -> Any:
        if self.digits is not None or not isinstance(factor, numbers.Real):
            self._refuse()
        return Seconds(
            {n: f * float(factor) for n, f in self.factors.items()}, self.more * float(factor)
        )

    def __add__(self, other: Any) -> Any:
        return self._plus(other, 1)

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1)

    def __neg__(self) -> Any:
        return self._times(-1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._plus(other, 1)

    def __mul__(self, other: Any) -> Any:
        return self._times(other)

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, numbers.Real):
            self._refuse()
        return self._times(1 / other)

    def __round__(self, digits: int | None = None) -> Any:
        return replace(self, digits=digits or 0)

    __radd__, __rmul__ = __add__, __mul__

    def _refuse(self, *_: Any) -> NoReturn:
        raise Refusal(_INSTEAD)

    __bool__ = __float__ = __int__ = __index__ = __complex__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __pow__ = __floordiv__ = __mod__ = _refuse
    __rtruediv__ = __rfloordiv__ = __rpow__ = __rmod__ = __abs__ = __len__ = __iter__ = _refuse

    def described(self) -> dict[str, Any]:
        """What a message says of it."""
        return {"seconds": sorted(self.factors.items()), "more": self.more, "digits": self.digits}
