"""First values of tensors without memory: what initialisers would write, computed part by part.

While a module is initialised on the device ``meta``, a :class:`Tape` notes what is done to its
tensors. Of each tensor that gives a :class:`Recipe`, which all ranks get. Operators that write each
element by itself are carried out on any part alone; those that need the whole tensor, such as a
decomposition of a matrix, or a table of frequencies, on all of it, one tensor at a time.

Random numbers are functions of a seed, the name of the tensor, the number of the draw for this
tensor, and the place of the element in the whole tensor: the same on any number of ranks, and other
ones than torch draws (the same generator as in kernels/counter_rng.hpp).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from distspmd.errors import UnsupportedProgram

Places = NDArray[np.uint64]
"""Places of elements in a whole tensor, in the order of its memory."""

_POINTWISE = frozenset(
    f"{name}_"
    for name in (
        *("abs", "add", "ceil", "clamp", "clamp_max", "clamp_min", "div", "erfinv", "exp", "expm1"),
        *("fill", "floor", "log", "log1p", "mul", "neg", "normal", "pow", "reciprocal", "round"),
        *("rsqrt", "sigmoid", "sqrt", "sub", "tanh", "uniform", "zero"),
    )
)
"""Operators that write each element of their first argument by itself."""
_FILLED: Mapping[str, Callable[..., Any]] = {
    "zeros": lambda size, *_: 0,
    "zeros_like": lambda like, *_: 0,
    "new_zeros": lambda like, *_: 0,
    "ones": lambda size, *_: 1,
    "ones_like": lambda like, *_: 1,
    "new_ones": lambda like, *_: 1,
    "full": lambda size, value, *_: value,
    "full_like": lambda like, value, *_: value,
    "new_full": lambda like, size, value, *_: value,
}
"""Operators that make a tensor of one number, with the number."""
_EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
"""Operators that make a tensor and write nothing."""
_FORGETTING = frozenset({"copy_", "fill_", "normal_", "uniform_", "zero_"})
"""Of these and ``copy_`` those after which nothing is left of what was there."""


@dataclass(frozen=True)
class View:
    """A part of a tensor's memory.

    Attributes:
        storage: the number of the memory.
        size, strides, offset: as torch has them, in elements.
        dtype: of the elements.
    """

    storage: int
    size: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.size)

    def covers(self, length: int) -> bool:
        """Whether it is the whole memory, of some length, in order."""
        return self.count == length and self.offset == 0 and _is_in_order(self.size, self.strides)

    def of(self, memory: torch.Tensor) -> torch.Tensor:
        """The part of a memory."""
        return memory.as_strided(self.size, self.strides, self.offset)

    def places(self) -> Places:
        """The places of its elements."""
        found = np.full((1,) * len(self.size), self.offset, np.uint64)
        for dimension, (extent, stride) in enumerate(zip(self.size, self.strides, strict=True)):
            steps = np.arange(extent, dtype=np.uint64) * np.uint64(stride)
            found = found + steps.reshape(
                [-1 if d == dimension else 1 for d in range(len(self.size))]
            )
        return found.reshape(-1)

    def contains(self, places: Places) -> NDArray[np.bool_]:
        """Which places are those of its elements, where no two of its elements share one."""
        rest = places.astype(np.int64) - self.offset
        found = rest >= 0
        for stride, extent in sorted(zip(self.strides, self.size, strict=True), reverse=True):
            if extent != 1 and stride:
                step = np.minimum(rest // stride, extent - 1)
                rest = rest - step * stride
        return np.asarray(found & (rest == 0))


def _is_in_order(size: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for extent, stride in reversed([*zip(size, strides, strict=True)]):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


@dataclass(frozen=True)
class Record:
    """An operator that was called, with views in place of tensors without memory."""

    operator: str
    arguments: Any
    named: Mapping[str, Any]
    written: tuple[View, ...]
    is_in_place: bool

    @property
    def name(self) -> str:
        """Without its namespace and overload."""
        return self.operator.split(".")[1]

    @property
    def read(self) -> set[int]:
        """The memories that it reads."""
        if self.name in _FILLED or self.name in _MADE_DRAWN:  # of the same shape as another one
            return set()
        leaves = pytree.tree_leaves((self.arguments, dict(self.named)))
        found = {leaf.storage for leaf in leaves if isinstance(leaf, View)}
        if self.is_in_place and self.name in _FORGETTING:
            found -= {view.storage for view in self.written}
        return found


class Tape(TorchDispatchMode):
    """Notes, while it is entered, all operators on tensors without memory."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []
        self._storages: dict[int, int] = {}
        self._kept: list[torch.Tensor] = []  # else others could get their addresses
        self._lengths: dict[int, int] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call an operator, and note it."""
        named = dict(kwargs or {})
        given = pytree.tree_leaves((args, named))
        known = {x.untyped_storage()._cdata for x in given if _has_no_memory(x)}
        result = func(*args, **named)
        made = [x for x in pytree.tree_leaves(result) if _has_no_memory(x)]
        in_place = bool(func._schema.is_mutable)
        fresh = [x for x in made if x.untyped_storage()._cdata not in known]
        if in_place and known and not str(func).split(".")[1].endswith("_"):
            raise UnsupportedProgram(
                f"an initialiser calls {func}, which writes several tensors, or one that is given "
                "by a name. Write it with operators such as normal_ and copy_."
            )
        if (in_place and known) or (fresh and func.__name__.split(".")[0] not in _EMPTY):
            arguments = pytree.tree_map(self._noted, args)
            written = tuple(map(self.view, [args[0]] if in_place else made))
            operands = {k: self._noted(v) for k, v in named.items()}
            self.records.append(Record(str(func), arguments, operands, written, in_place))
        return result

    def view(self, tensor: torch.Tensor) -> View:
        """Where a tensor without memory would lie."""
        storage = tensor.untyped_storage()
        number = self._storages.get(storage._cdata)
        if number is None:
            number = self._storages[storage._cdata] = len(self._storages)
            self._kept.append(tensor)
            self._lengths[number] = storage.nbytes() // tensor.element_size()
        strides = tensor.stride(), int(tensor.storage_offset())
        return View(number, tuple(tensor.shape), *strides, tensor.dtype)

    def _noted(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return self.view(value) if value.is_meta else value.detach().clone()

    def recipe(self, tensor: torch.Tensor, name: str) -> Recipe | None:
        """How to compute the values of a tensor without memory; None where nobody wrote them.

        Args:
            tensor: which was written while the tape was entered.
            name: under which it draws random numbers.
        """
        target = self.view(tensor)
        needed, found = {target.storage}, []
        for record in reversed(self.records):
            if not needed.intersection(view.storage for view in record.written):
                continue
            found.append(record)
            whole = all(view.covers(self._lengths[view.storage]) for view in record.written)
            if not record.is_in_place or (whole and record.name in _FORGETTING):
                needed -= {view.storage for view in record.written}
            needed |= record.read
            if not needed:
                break
        if needed:
            return None
        found.reverse()
        lengths = {view.storage: self._lengths[view.storage] for r in found for view in r.written}
        return Recipe(target, tuple(found), lengths, name)


def _has_no_memory(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


@dataclass(frozen=True)
class Recipe:
    """How to compute the first values of a tensor.

    Attributes:
        target: the tensor.
        records: what is to be done, in order.
        lengths: elements of each memory that is written.
        name: of the tensor; decides which random numbers it gets.
    """

    target: View
    records: tuple[Record, ...]
    lengths: Mapping[int, int]
    name: str
    _whole: list[torch.Tensor] = field(default_factory=list, compare=False)

    @property
    def is_by_element(self) -> bool:
        """Whether each element is written by itself."""
        return all(
            r.written[0].storage == self.target.storage
            and (r.name in _FILLED or (r.is_in_place and r.name in _POINTWISE))
            and (r.name in _FILLED or all(map(_is_number, pytree.tree_leaves(r.arguments[1:]))))
            and not any(isinstance(x, View) for x in r.named.values())
            for r in self.records
        ) and self.target.covers(self.lengths[self.target.storage])

    def values(self, places: Places, seed: int) -> torch.Tensor:
        """The values at some places of the tensor.

        Raises:
            UnsupportedProgram: an operator draws random numbers in a way that is not covered.
        """
        if self.is_by_element:
            return self._by_element(places, seed)
        if not self._whole:
            self._whole.append(self._computed(seed).contiguous().reshape(-1))
        return self._whole[0][torch.from_numpy(places.astype(np.int64))]

    def forget(self) -> None:
        """Give back the memory of a tensor that was computed as a whole."""
        self._whole.clear()

    def _by_element(self, places: Places, seed: int) -> torch.Tensor:
        found = torch.zeros(len(places), dtype=self.target.dtype)
        length = self.lengths[self.target.storage]
        for number, record in enumerate(self.records):
            (view,) = record.written
            if view.covers(length):
                self._write(record, number, found, places, seed)
            else:
                chosen = view.contains(places)
                part = found[torch.from_numpy(chosen)]
                self._write(record, number, part, places[chosen], seed)
                found[torch.from_numpy(chosen)] = part
        return found

    def _write(
        self, record: Record, number: int, tensor: torch.Tensor, places: Places, seed: int
    ) -> None:
        """Carry out an operator that writes a tensor in place."""
        if record.name in _FILLED:
            tensor.fill_(_FILLED[record.name](*record.arguments))
        elif record.name in _DRAWN:
            drawn = _drawn(record, stream(seed, self.name, number), places)
            tensor.copy_(torch.from_numpy(drawn).reshape(tensor.shape))
        else:
            _function(record)(tensor, *record.arguments[1:], **record.named)

    def _computed(self, seed: int) -> torch.Tensor:
        """The whole tensor, by all operators in their order."""
        memories: dict[int, torch.Tensor] = {}

        def real(value: Any) -> Any:
            if isinstance(value, View):
                return value.of(memories[value.storage])
            return torch.device("cpu") if isinstance(value, torch.device) else value

        for number, record in enumerate(self.records):
            for view in record.written:
                if view.storage not in memories:
                    memories[view.storage] = torch.zeros(
                        self.lengths[view.storage], dtype=view.dtype
                    )
            target = record.written[0]
            if record.name in _FILLED:
                target.of(memories[target.storage]).fill_(_FILLED[record.name](*record.arguments))
                continue
            if record.is_in_place and record.name in _POINTWISE:
                moved = {k: real(v) for k, v in record.named.items()}
                arguments = pytree.tree_map(real, record.arguments[1:])
                plain = Record(record.operator, (None, *arguments), moved, record.written, True)
                self._write(
                    plain, number, target.of(memories[target.storage]), target.places(), seed
                )
                continue
            results = self._called(record, number, real, seed)
            for view, result in zip(record.written, results, strict=True):
                if not record.is_in_place:
                    view.of(memories[view.storage]).copy_(result)
        return self.target.of(memories[self.target.storage])

    def _called(
        self, record: Record, number: int, real: Callable[[Any], Any], seed: int
    ) -> Sequence[torch.Tensor]:
        """The results of an operator that is no write of elements by themselves."""
        if record.name in _MADE_DRAWN:
            (view,) = record.written
            places = np.arange(view.count, dtype=np.uint64)
            drawn = _drawn(record, stream(seed, self.name, number), places)
            return [torch.from_numpy(drawn).reshape(view.size).to(view.dtype)]
        function = _function(record)
        if torch.Tag.nondeterministic_seeded in function.tags:
            raise UnsupportedProgram(
                f"{self.name!r} is initialised by {record.name}, whose random numbers are not "
                "drawn by the ranks. Draw uniform or normal numbers, or load it: frontend.load."
            )
        named = {k: real(v) for k, v in record.named.items()}
        result = function(*pytree.tree_map(real, record.arguments), **named)
        return [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def _is_number(value: Any) -> bool:
    return not isinstance(value, View) and getattr(value, "ndim", 0) == 0


def _function(record: Record) -> Any:
    space, name, overload = record.operator.split(".")
    return getattr(getattr(getattr(torch.ops, space), name), overload)


# -- random numbers -----------------------------------------------------------------------------

_DRAWN = ("normal_", "uniform_")
_MADE_DRAWN = ("rand", "rand_like", "randn", "randn_like")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def stream(seed: int, name: str, draw: int) -> np.uint64:
    """What the numbers of a draw for a tensor are made from."""
    digest = hashlib.blake2b(f"{seed} {name} {draw}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def uniform(stream: np.uint64, places: Places) -> NDArray[np.float64]:
    """Numbers of [0, 1) with 53 random bits, each by its place."""
    with np.errstate(over="ignore"):
        bits = (places + np.uint64(1)) * _GOLDEN + stream
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits ^= bits >> np.uint64(shift)
            bits *= np.uint64(factor)
        bits ^= bits >> np.uint64(31)
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53, np.float64)


def normal(stream: np.uint64, places: Places) -> NDArray[np.float64]:
    """Numbers of a normal distribution: each a distance and an angle (Box and Muller)."""
    doubled = places * np.uint64(2)
    distance = np.sqrt(-2 * np.log1p(-uniform(stream, doubled)))
    angle = 2 * np.pi * uniform(stream, doubled + np.uint64(1))
    return np.asarray(distance * np.cos(angle), np.float64)


def _drawn(record: Record, stream: np.uint64, places: Places) -> NDArray[np.float64]:
    if record.name in _MADE_DRAWN:
        return (normal if "randn" in record.name else uniform)(stream, places)
    numbers = [float(x) for x in record.arguments[1:] if isinstance(x, int | float)]
    first, second = numbers + [0.0, 1.0][len(numbers) :]
    if record.name == "uniform_":
        return uniform(stream, places) * (second - first) + first
    return normal(stream, places) * second + first
