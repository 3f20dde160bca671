"""Tensors that a function closes over outside of modules: tables, caches, parameters of its own.

They are found where the function can reach them: in variables, lists, dictionaries, and attributes
of objects. While the function is traced, traced tensors stand in for those that it uses. What it
puts into such a place is written into the tensor that was there; whatever else it leaves behind in
Python's objects a program could not repeat, and is refused.
"""

from __future__ import annotations

import contextlib
import operator
import random
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.closures import Closed, functions_of, variables_of
from distspmd.frontend.from_torch.run_time_numbers import Number

_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_FOREIGN = ("torch", "numpy", "builtins", "collections", "functools", "threading", "logging")
"""Packages whose objects hold no tensor of a user's."""
_DICTIONARIES = (dict, OrderedDict, defaultdict)
"""Those of other classes may make what they are asked for."""
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_TAKE = ("send", "throw", "read", "readline", "readlines", "readinto", "read1")
"""Methods of generators and files that take something."""
_MOST = 100_000
"""So many objects are looked at."""


_PLAIN = (bool, int, float, str)
_ALONE = (
    ". A program does not change objects of Python, and would do the same at each call: do it "
    "before the call, and pass a tensor."
)


@dataclass(frozen=True)
class Place:
    """Where the caller has a tensor.

    Attributes:
        name: as the caller writes it.
        tensor: that was there when the function was traced.
        get: what is there now.
        put: puts something there; None where nothing can be put.
    """

    name: str
    tensor: torch.Tensor
    get: Callable[[], Any]
    put: Callable[[Any], None] | None


@dataclass
class Outside:
    """All that a function can reach outside of modules.

    Attributes:
        places: of tensors, each once, by the identity of the tensor.
        others: further places of the same tensors.
        numbers: that variables have: what holds each, its name, and its value.
        holders: dictionaries and lists, with what is in them, and what the caller calls them.
        iterators: what holds each, under which key, what the caller calls it, and itself.
        generators: of random numbers, by what the caller calls them.
        queues: double-ended queues and sets, with what is in them.
    """

    places: dict[int, Place] = field(default_factory=dict)
    others: list[Place] = field(default_factory=list)
    numbers: list[tuple[Any, str, Any]] = field(default_factory=list)
    holders: list[tuple[str, Any, Any]] = field(default_factory=list)
    iterators: list[tuple[Any, Any, str, Any]] = field(default_factory=list)
    generators: list[tuple[str, Any]] = field(default_factory=list)
    queues: list[tuple[str, Any, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, function: Callable[..., Any], closed: Closed) -> Outside:
        """Look for them, in the function and in what it and its modules lead to."""
        found = cls()
        for each in functions_of(function, closed):
            found._function(each)
        own = getattr(function, "__self__", None)
        if own is not None and not isinstance(own, nn.Module):
            found._walk(own, "self")
        for root, top in closed.modules.items():
            for path, module in top.named_modules():
                found._attributes(module, ".".join(filter(None, [root, path])))
        for tensor in [*closed.parameters.values(), *closed.buffers.values()]:
            found.places.pop(id(tensor), None)
        return found

    # -- what can be reached ----------------------------------------------------------------------

    def __post_init__(self) -> None:
        self._seen: set[int] = set()
        self._of_modules: set[int] = set()  # what is in them is theirs to restore
        self._keys: dict[int, torch.Tensor] = {}

    def _function(self, function: types.FunctionType) -> None:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, value in variables_of(function):
            if name in cells:
                cell = cells[name]
                held: Any = _Cell(cell)
            else:
                held = function.__globals__ if name in function.__globals__ else {name: value}
            if type(value) in (int, float):
                self.numbers.append((held, name, value))
            self._item(held, name, name, value)

    def _item(self, holder: Any, key: Any, name: str, value: Any) -> None:
        """Something that a dictionary, a list, a tuple or a cell has."""
        if isinstance(value, torch.Tensor):
            if type(value) not in (torch.Tensor, nn.Parameter) or value.layout != torch.strided:
                return

            def get() -> Any:
                return holder[self._key(key)]

            def put(new: Any) -> None:
                holder[self._key(key)] = new

            fixed = isinstance(holder, tuple)
            place = Place(name, value, get, None if fixed else put)
            if self.places.setdefault(id(value), place) is not place:
                self.others.append(place)
            return
        if isinstance(value, Iterator) and not isinstance(holder, tuple):
            self.iterators.append((holder, key, name, value))
        elif isinstance(value, _GENERATORS):
            self.generators.append((name, value))
        self._walk(value, name)

    def _walk(self, value: Any, name: str) -> None:
        if id(value) in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add(id(value))
        if type(value) in _DICTIONARIES:
            self._entries(value, name, value, "[{!r}]")
        elif type(value) is list or isinstance(value, tuple):
            self._entries(value, name, dict(enumerate(value)), "[{}]")
        elif isinstance(value, deque | set):
            self.queues.append((name, value, value.copy()))
        elif not isinstance(value, nn.Module | torch.optim.Optimizer) and _is_users(value):
            self._attributes(value, name)

    def _entries(self, holder: Any, name: str, items: Mapping[Any, Any], form: str) -> None:
        if not isinstance(holder, tuple) and id(holder) not in self._of_modules:
            self.holders.append((name, holder, holder.copy()))
        for number, (key, item) in enumerate(list(items.items())):
            told = f"[tensor {number}]" if isinstance(key, torch.Tensor) else form.format(key)
            self._item(holder, key, name + told, item)

    def _attributes(self, value: Any, name: str) -> None:
        """Those of an object; of a module, what its class or its user has given it."""
        held = vars(value)
        mine = isinstance(value, nn.Module)
        own = {k: x for k, x in held.items() if not (mine and k in _OF_EVERY_MODULE)}
        if not mine:
            self.holders.append((name, held, dict(held)))
        for key, item in own.items():
            if mine:
                self._of_modules.add(id(item))
            self._item(held, key, f"{name}.{key}", item)

    def give_optimizers(self, closed: Closed) -> None:
        """Let what optimizers update be parameters, where the function leads to no module of it."""
        for name, optimizer in closed.optimizers.items():
            tensors = (tensor for group in optimizer.param_groups for tensor in group["params"])
            for number, tensor in enumerate(tensors):
                own = Place(f"{name}.{number}", tensor, lambda tensor=tensor: tensor, None)  # type: ignore[misc]
                place = self.places.get(id(tensor), own)
                if id(tensor) not in closed.names:
                    closed.take(place.name, place.tensor, place.get)

    # -- while the function is traced -----------------------------------------------------------

    @contextlib.contextmanager
    def standing_in(
        self, stands: Mapping[int, torch.Tensor], met: dict[str, Place]
    ) -> Iterator[Standing]:
        """Let tensors stand in for those of the caller; afterwards all is as it was.

        Args:
            stands: what stands in, by the identity of the caller's tensor.
            met: gets the places of tensors that are used, and for which nothing stands in.
        """
        standing = Standing(self, dict(stands), met)
        back = self._let_stand(stands)
        try:
            yield standing
            self._rename(back)
            standing.settle()
        finally:
            self._rename(back)
            self._restore()

    @contextlib.contextmanager
    def asked(self, refuse: Callable[[str, str], None]) -> Iterator[None]:
        """Let nobody take the next element of an iterator; then ``refuse`` is told its name."""
        for holder, key, name, value in self.iterators:
            holder[key] = _Iterator(name, value, refuse)
        try:
            yield
        finally:
            for holder, key, _, value in self.iterators:
                holder[key] = value

    def _let_stand(self, stands: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
        """Let what stands in for tensors be the keys that these are; what to rename back."""
        keys = [
            key
            for _, holder, _ in self.holders
            if type(holder) in _DICTIONARIES
            for key in holder
            if isinstance(key, torch.Tensor) and id(key) in stands
        ]
        own = {id(key): stands[id(key)] for key in keys}
        self._rename(own)
        self._keys = own
        return {id(stands[id(key)]): key for key in keys}

    def _rename(self, keys: Mapping[int, torch.Tensor]) -> None:
        """Put other tensors in for keys of dictionaries, which keep their order."""
        self._keys = {}
        for _, holder, _ in self.holders if keys else ():
            if type(holder) in _DICTIONARIES and any(map(_is_tensor, holder)):
                items = [(keys.get(id(k), k) if _is_tensor(k) else k, x) for k, x in holder.items()]
                holder.clear()
                holder.update(items)

    def _key(self, key: Any) -> Any:
        """What a key of a dictionary is now."""
        return self._keys.get(id(key), key) if _is_tensor(key) else key

    def _restore(self) -> None:
        for place in [*self.places.values(), *self.others]:
            if place.put is not None and _now(place) is not place.tensor:
                place.put(place.tensor)
        for holder, key, value in self.numbers:
            holder[key] = value
        for _, holder, content in self.holders:
            if isinstance(holder, list):
                holder[:] = content
            else:
                for key in [k for k in holder if k not in content]:
                    del holder[key]
                holder.update(content)
        for _, held, content in self.queues:
            if held != content:
                held.clear()
                (held.update if isinstance(held, set) else held.extend)(content)


@dataclass
class Standing:
    """Which tensors stand in for those of the caller, and which of them were used.

    Attributes:
        outside: what the function can reach.
        stands: by the identity of the caller's tensor.
        met: places of tensors for which none stood in.
    """

    outside: Outside
    stands: dict[int, torch.Tensor]
    met: dict[str, Place]

    def replaced(self, value: Any) -> Any:
        """An argument of a function of torch, with what stands in for the caller's tensors."""
        if isinstance(value, torch.Tensor):
            return self._stand(value)
        if type(value) in (list, tuple):
            return type(value)(self.replaced(item) for item in value)
        if type(value) is dict:
            return {key: self.replaced(item) for key, item in value.items()}
        return value

    def _stand(self, tensor: torch.Tensor) -> torch.Tensor:
        found = self.stands.get(id(tensor))
        if found is None:
            place = self.outside.places.get(id(tensor))
            if place is None or tensor is not place.tensor:
                return tensor
            self.met[place.name] = place
            found = torch.empty(tensor.shape, dtype=tensor.dtype)
            found = self.stands[id(tensor)] = found.requires_grad_(tensor.requires_grad)
        return found

    def settle(self) -> None:
        """Write what the function has put into places into the tensors that were there.

        Raises:
            UnsupportedProgram: it has left something that no tensor can take.
        """
        for place in [*self.outside.places.values(), *self.outside.others]:
            now, old = _now(place), place.tensor
            if now is old:
                continue
            if _kind(now) != _kind(old):
                told = f"one of the shape {list(now.shape)}" if _kind(now) else now
                raise UnsupportedProgram(
                    f"the function puts {told} where {place.name} has a tensor of the shape "
                    f"{list(old.shape)}. A program writes into the same memory at each call: keep "
                    "the shape and the type, or pass the tensor, and return what follows."
                )
            stand = self._stand(old)
            with torch.no_grad():
                stand.copy_(now)
        for holder, key, value in self.outside.numbers:
            _refuse_left("", {key: holder[key]}, {key: value})
        for name, holder, content in self.outside.holders:
            _refuse_left(name, holder, content)
        for name, held, content in self.outside.queues:
            if len(held) != len(content) or any(map(operator.is_not, held, content)):
                raise UnsupportedProgram(f"the function adds to {name} or takes from it{_ALONE}")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _kind(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else None


def _now(place: Place) -> Any:
    try:
        return place.get()
    except (KeyError, IndexError, ValueError):
        return None


def _refuse_left(name: str, holder: Any, content: Any) -> None:
    """Refuse tensors and counts that a function has left where others were."""
    before = dict(enumerate(content)) if isinstance(content, list) else content
    after = dict(enumerate(holder)) if isinstance(holder, list) else holder
    if isinstance(content, list) and len(holder) < len(content):
        raise UnsupportedProgram(f"the function takes an element from {name}{_ALONE}")
    for key, value in after.items():
        old = before.get(key)
        if value is old or isinstance(old, torch.Tensor):
            continue
        where = f"{name}[{key!r}]" if isinstance(holder, list) else f"{name}.{key}".lstrip(".")
        where = f"{name}[a tensor]" if _is_tensor(key) else where
        if any(isinstance(leaf, torch.Tensor) for leaf in _leaves(value)):
            raise UnsupportedProgram(
                f"the function keeps a tensor in {where}, which had none before it was called. A "
                "program has nothing there: return the tensor, and pass it with the next call, or "
                "make one of its shape before the first call, to write into."
            )
        if any(isinstance(leaf, Number) for leaf in _leaves(value)):
            raise UnsupportedProgram(
                f"the function keeps a value that it reads from a tensor in {where}. A program "
                "does not change objects of Python: return the number, and keep it after the call."
            )
        if type(value) in _PLAIN and type(old) in _PLAIN and value != old:
            kind = "value" if isinstance(value, bool | str) else "number"
            raise UnsupportedProgram(
                f"the function changes the {kind} {where} from {old!r} to {value!r}. A program "
                "does not change objects of Python: count outside of the function, or in a tensor "
                "of the same place: torch.tensor(0)."
            )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _is_users(value: Any) -> bool:
    kind = type(value)
    if isinstance(value, type | types.ModuleType | types.FunctionType | types.MethodType):
        return False
    package = str(kind.__module__).partition(".")[0]
    return package not in _FOREIGN and isinstance(getattr(value, "__dict__", None), dict)


class _Iterator(Iterator[Any]):
    """Stands for an iterator of the caller, which a program cannot ask."""

    def __init__(self, name: str, value: Any, refuse: Callable[[str, str], None]) -> None:
        self._name, self._value, self._refuse = name, value, refuse

    def __next__(self) -> Any:
        self._refuse(self._name, "Take it before the call, and pass it.")

    def __getattr__(self, name: str) -> Any:
        if name in _TAKE:
            self._refuse(self._name, f"Call {name}() before the call, and pass a tensor.")
        return getattr(self._value, name)


class _Cell(MutableMapping[Any, Any]):
    """A variable of an outer function."""

    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell

    def __getitem__(self, key: Any) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, key: Any, value: Any) -> None:
        self._cell.cell_contents = value

    def __delitem__(self, key: Any) -> None:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 1
