"""Python numbers of an optimizer that a program reads, or computes, when it runs.

While a function is traced, such a number stands where torch expects a float. Its arithmetic is
traced; a comparison has the outcome that it has now, which is an assumption of the program.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.optim import _adafactor

from distspmd.errors import UnsupportedProgram

Live = Callable[[], Any]
Guard = tuple[str, Callable[[], bool], bool]
"""A comparison that was made: what it says, how it comes out now, and how it did."""
Guards = list[Guard]


class Number:
    """A number that is known when the program runs.

    Attributes:
        tensor: it, without dimensions.
        live: gives its value now; None for what only the program knows.
        name: what the caller calls it.
        guards: takes the comparisons that are made.
        known: its value while the function is traced, of what is a setting.
    """

    def __init__(
        self,
        tensor: torch.Tensor,
        live: Live | None,
        name: str,
        guards: Guards,
        known: Any = None,
    ) -> None:
        self.tensor, self.live, self.name, self.guards = tensor, live, name, guards
        self.known = known

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Let a function of torch take the tensor in the number's place."""
        given = dict(kwargs or {})
        operands = list(args)
        for key in ("alpha", "value"):  # factors of an operand: torch takes plain numbers only
            factor = given.get(key)
            if isinstance(factor, Number):
                del given[key]
                operands[1] = operands[1] * factor.tensor
        plain = [each.tensor if isinstance(each, Number) else each for each in operands]
        named = {k: v.tensor if isinstance(v, Number) else v for k, v in given.items()}
        if getattr(func, "__name__", "") in ("lerp", "lerp_"):  # a weight is of their type
            plain[2:] = [each.to(plain[0].dtype) for each in plain[2:]]
            named = {k: v.to(plain[0].dtype) for k, v in named.items()}
        return func(*plain, **named)

    def _with(self, other: Any, function: Callable[[Any, Any], Any], turned: bool = False) -> Any:
        if isinstance(other, torch.Tensor):
            return function(other, self.tensor) if turned else function(self.tensor, other)
        mine, live = self.live, other
        tensor = other
        if isinstance(other, Number):
            tensor, live = other.tensor, other.live
        made = function(tensor, self.tensor) if turned else function(self.tensor, tensor)
        if mine is None or (isinstance(other, Number) and live is None):
            return Number(made, None, self.name, self.guards)

        def now() -> Any:
            given = live() if callable(live) else live
            return function(given, mine()) if turned else function(mine(), given)

        return Number(made, now, self.name, self.guards)

    def _compare(self, other: Any, function: Callable[[Any, Any], bool], symbol: str) -> bool:
        other_live = other.live if isinstance(other, Number) else other
        mine = self.live
        if mine is None or other_live is None:
            raise UnsupportedProgram(
                f"the optimizer decides by a value that it computes ({self.name} {symbol} ...). A "
                "program cannot stop for that: let it use torch.where, torch.minimum or "
                "torch.maximum."
            )

        def now() -> bool:
            return bool(function(mine(), other_live() if callable(other_live) else other_live))

        outcome = now()
        self.guards.append((f"{self.name} {symbol} {other_live}", now, outcome))
        return outcome

    def __float__(self) -> float:
        if self.live is None:
            raise UnsupportedProgram(
                f"the optimizer makes a Python number of a value that it computes ({self.name}). "
                "Let it compute with tensors."
            )
        value = float(self.live())
        live = self.live
        self.guards.append((f"{self.name} == {value}", lambda: float(live()) == value, True))
        return value

    def __bool__(self) -> bool:
        return self._compare(0, operator.ne, "!=")

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Any:
        return self._with(-1, operator.mul)


def _arithmetic() -> None:
    def forwards(function: Callable[[Any, Any], Any]) -> Callable[[Number, Any], Any]:
        return lambda self, other: self._with(other, function)

    def backwards(function: Callable[[Any, Any], Any]) -> Callable[[Number, Any], Any]:
        return lambda self, other: self._with(other, function, turned=True)

    def compared(
        function: Callable[[Any, Any], bool], symbol: str
    ) -> Callable[[Number, Any], bool]:
        return lambda self, other: self._compare(other, function, symbol)

    for name in ("add", "sub", "mul", "truediv", "pow"):
        setattr(Number, f"__{name}__", forwards(getattr(operator, name)))
        setattr(Number, f"__r{name}__", backwards(getattr(operator, name)))
    for name, symbol in (
        ("lt", "<"),
        ("le", "<="),
        ("gt", ">"),
        ("ge", ">="),
        ("eq", "=="),
        ("ne", "!="),
    ):
        setattr(Number, f"__{name}__", compared(getattr(operator, name), symbol))


_arithmetic()


@contextlib.contextmanager
def extremes_of_numbers() -> Iterator[None]:
    """Let Adafactor take extremes of what it computes, which it does with Python's ``min``."""

    def either(plain: Callable[..., Any], of_tensors: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(first: Any, second: Any) -> Any:
            if not isinstance(first, Number | torch.Tensor) and not isinstance(
                second, Number | torch.Tensor
            ):
                return plain(first, second)
            pair = [each.tensor if isinstance(each, Number) else each for each in (first, second)]
            tensors = [torch.as_tensor(each, dtype=torch.float64) for each in pair]
            (guards,) = [e.guards for e in (first, second) if isinstance(e, Number)][:1] or [[]]
            return Number(of_tensors(*tensors), None, "an extreme", guards)

        return chosen

    module: Any = _adafactor
    module.min, module.max = either(min, torch.minimum), either(max, torch.maximum)
    try:
        yield
    finally:
        del module.min, module.max
