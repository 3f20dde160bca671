"""Python numbers that a program reads, or computes, when it runs.

They are settings of an optimizer, and values of tensors that a function reads with ``item``. While
the function is traced, such a number stands where torch expects a float. Its arithmetic is traced;
a comparison of a setting has the outcome that it has now, which is an assumption of the program.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import _adafactor
from torch.utils import _pytree as pytree

from distspmd.errors import UnsupportedProgram

Live = Callable[[], Any]
Guard = tuple[str, Callable[[], bool], bool]
"""A comparison that was made: what it says, how it comes out now, and how it did."""
Guards = list[Guard]


@dataclass(frozen=True)
class Read:
    """In the place of a result: the number of a tensor, which is read after the call.

    Attributes:
        result: which of the results.
    """

    result: int


@dataclass(frozen=True)
class Told:
    """In the place of a result: what the function returns at each call.

    Attributes:
        value: a number, a text, or nothing.
    """

    value: float | str | None


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
        beside = next((each for each in operands if isinstance(each, torch.Tensor)), None)
        plain = [each._beside(beside) if isinstance(each, Number) else each for each in operands]
        named = {k: v.tensor if isinstance(v, Number) else v for k, v in given.items()}
        if getattr(func, "__name__", "") in ("lerp", "lerp_"):  # a weight is of their type
            plain[2:] = [each.to(plain[0].dtype) for each in plain[2:]]
            named = {k: v.to(plain[0].dtype) for k, v in named.items()}
        return func(*plain, **named)

    def _with(self, other: Any, function: Callable[[Any, Any], Any], turned: bool = False) -> Any:
        if isinstance(other, torch.Tensor):
            own = self._beside(other)
            return function(other, own) if turned else function(own, other)
        mine, live = self.live, other
        tensor = other
        if isinstance(other, Number):
            tensor, live = other.tensor, other.live
        made = function(tensor, self.tensor) if turned else function(self.tensor, tensor)
        if mine is None or (isinstance(other, Number) and live is None):
            return type(self)(made, None, self.name, self.guards)

        def now() -> Any:
            given = live() if callable(live) else live
            return function(given, mine()) if turned else function(mine(), given)

        return type(self)(made, now, self.name, self.guards)

    def _beside(self, other: torch.Tensor | None) -> torch.Tensor:
        """The number as an operand beside a tensor."""
        return self.tensor

    def _compare(self, other: Any, function: Callable[[Any, Any], bool], symbol: str) -> bool:
        other_live = other.live if isinstance(other, Number) else other
        mine = self.live
        if mine is None or other_live is None:
            raise UnsupportedProgram(
                f"the function decides by a value that it computes ({self.name} {symbol} ...). A "
                "program cannot stop for that: let it use torch.where, torch.minimum or "
                "torch.maximum, or return the tensor, and read it after the call."
            )

        def now() -> bool:
            return bool(function(mine(), other_live() if callable(other_live) else other_live))

        outcome = now()
        self.guards.append((f"{self.name} {symbol} {other_live}", now, outcome))
        return outcome

    def __float__(self) -> float:
        if self.live is None:
            raise UnsupportedProgram(
                f"the function makes a Python number of a value that it computes ({self.name}). "
                "Let it compute with tensors, or return the tensor, and read it after the call."
            )
        value = float(self.live())
        live = self.live
        self.guards.append((f"{self.name} == {value}", lambda: float(live()) == value, True))
        return value

    def __bool__(self) -> bool:
        return self._compare(0, operator.ne, "!=")

    def __int__(self) -> int:
        return int(float(self))

    def __format__(self, form: str) -> str:
        return format(float(self), form)

    def __str__(self) -> str:
        return str(float(self))

    def __abs__(self) -> Any:
        live = self.live
        now = None if live is None else lambda: abs(live())
        return type(self)(self.tensor.abs(), now, self.name, self.guards)

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Any:
        return self._with(-1, operator.mul)


class ReadNumber(Number):
    """What ``item`` gives: beside a tensor without dimensions it takes the tensor's type."""

    def _beside(self, other: torch.Tensor | None) -> torch.Tensor:
        if other is not None and other.is_floating_point() and self.tensor.is_floating_point():
            return self.tensor.to(other.dtype)
        return self.tensor


def placed(result: Any) -> tuple[Any, list[torch.Tensor]]:
    """What a function returns, with what stands for each part in its place, and its tensors.

    Raises:
        UnsupportedProgram: it returns what does not come out of a program.
    """
    tensors: list[torch.Tensor] = []

    def place(leaf: Any) -> Any:
        if leaf is None or type(leaf) in (bool, int, float, str):
            return Told(leaf)
        if not isinstance(leaf, torch.Tensor | Number):
            raise UnsupportedProgram(
                f"the function returns {leaf!r}; only tensors, numbers and texts come out of a "
                "program. Return the tensor itself, and convert it after the call."
            )
        tensors.append((leaf.tensor if isinstance(leaf, Number) else leaf).detach())
        return Read(len(tensors) - 1) if isinstance(leaf, Number) else len(tensors) - 1

    return pytree.tree_map(place, result), tensors


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
