"""Host functions: CPython runs them as they are, as a part of a compiled program.

A program that calls one asks for it (``distspmd/execution/listening.py``), and gets the result.
It is the function of this process, where this has it by its name, or has made one of the same code
that holds the same. Other processes, such as ranks behind a driver, get a copy (cloudpickle).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import io
import json
import re
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, overload

import cloudpickle
import numpy as np

from distspmd.errors import ArgumentError, ProgramValueError, describe
from distspmd.runtime.host.host_regions import Region, own_memory
from distspmd.runtime.host.library_calls import Session, write_answer

WHERE = ("one", "all")
"""Where a function may run that is not given by blocks."""
_MOST_BYTES = 1_000_000
"""Of a copy, which is part of the compiled program."""
_OPERANDS = re.compile(r"\(([^()]*)\)")
_LIVE: dict[str, HostFunction] = {}
"""Functions of this process by their keys."""


@dataclass(frozen=True)
class Signature:
    """The dimensions that a function needs as a whole, by names; those before them are blocks.

    Attributes:
        inputs: names for each array that it takes.
        outputs: names for each array that it returns.
        text: as NumPy writes it, ``"(n),(m)->(n)"``.
    """

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    text: str

    @classmethod
    def of(cls, text: str) -> Signature:
        """Read a signature.

        Raises:
            ArgumentError: it is none.
        """
        before, arrow, after = text.replace(" ", "").partition("->")
        sides = []
        for side in (before, after):
            found = tuple(
                tuple(name for name in part.split(",") if name) for part in _OPERANDS.findall(side)
            )
            rest = _OPERANDS.sub("", side).replace(",", "")
            names = [name for part in found for name in part]
            if rest or not all(name.isidentifier() for name in names) or (side and not found):
                arrow = ""
            sides.append(found)
        if not arrow or not sides[1]:
            raise ArgumentError(
                f"signature={text!r} cannot be read. Write the dimensions that the function needs "
                "as a whole, for each array, as NumPy does: '(n),(m)->(n)'; '()' is a number."
            )
        return cls(sides[0], sides[1], text)


class HostFunction:
    """A function of Python that compiled programs call; calling it is calling the function.

    Attributes:
        function: it.
        like: of the arguments, what the result is like; None where nobody has said it.
        signature: dimensions that it needs as a whole; None where these are all.
        where: "one" rank runs it, or "all".
        vjp: gives the gradients of its arguments; None where it has none.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        like: Callable[..., Any] | None,
        signature: Signature | None,
        where: str,
        vjp: Callable[..., Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.like, self.signature, self.where = function, like, signature, where
        self.vjp = None if vjp is None else HostFunction(vjp, None, None, where)
        module = str(getattr(function, "__module__", ""))
        self._copied = _copy_of(function) if _holds_something(function) else None
        self._key = f"{module}:{self.name}:{_digest(function, self._copied)}"
        _LIVE[self._key] = self

    @property
    def name(self) -> str:
        """What it is called in its module."""
        return str(getattr(self.function, "__qualname__", type(self.function).__name__))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives."""
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<host function {self.name}>"

    def __reduce__(self) -> Any:
        vjp = self.vjp and self.vjp.function
        return _made, (self.function, self.like, self.signature, self.where, vjp)

    def reference(self) -> dict[str, Any]:
        """How a program names it: by its module, or by its key and a copy for other processes."""
        module = getattr(self.function, "__module__", None)
        if module not in (None, "__main__") and _found(module, self.name) is self:
            return {"import": f"{module}:{self.name}"}
        if self._copied is None:
            self._copied = _copy_of(self.function)
        return {"host": [self._key, base64.b85encode(self._copied).decode()]}


def _made(*parts: Any) -> HostFunction:
    return HostFunction(*parts)


def _found(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        return None


def _holds_something(function: Any) -> bool:
    """Whether functions of one text may differ: by what is around them, or by their defaults."""
    parts = ("__closure__", "__defaults__", "__kwdefaults__")
    is_code = isinstance(function, FunctionType | Region)
    return not is_code or any(getattr(function, p) for p in parts)


class _Bounded(io.BytesIO):
    """Memory for a copy that is not too large."""

    def write(self, content: Any) -> int:
        """Take some more.

        Raises:
            OverflowError: it is too much.
        """
        if self.tell() + len(content) > _MOST_BYTES:
            raise OverflowError
        return super().write(content)


def _copy_of(function: Any) -> bytes:
    """A function for other processes; nothing where it holds what cannot go there, or is large."""
    memory = _Bounded()
    try:
        cloudpickle.dump(function, memory)
    except Exception:  # whatever an object of the user raises
        return b""
    return memory.getvalue()


def _digest(function: Any, copied: bytes | None) -> str:
    """What tells a function from others of its name: its code, and what it holds.

    No other process has the function if it holds what cannot be copied.
    """
    if copied == b"":
        return uuid.uuid4().hex
    content = copied or repr(_parts_of(function.__code__)).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _parts_of(constant: Any) -> Any:
    """Code and its constants in an order that is the same in all processes."""
    if isinstance(constant, CodeType):
        parts = [_parts_of(each) for each in constant.co_consts]
        return (constant.co_code, constant.co_names, constant.co_varnames, parts)
    if isinstance(constant, frozenset):
        return "set", sorted(repr(_parts_of(each)) for each in constant)
    return tuple(map(_parts_of, constant)) if isinstance(constant, tuple) else constant


@overload
def host(function: Callable[..., Any], /) -> HostFunction: ...
@overload
def host(
    *,
    like: Any = ...,
    signature: str | None = ...,
    where: str = ...,
    vjp: Callable[..., Any] | None = ...,
) -> Callable[[Callable[..., Any]], HostFunction]: ...
def host(
    function: Callable[..., Any] | None = None,
    /,
    *,
    like: Any = None,
    signature: str | None = None,
    where: str = "one",
    vjp: Callable[..., Any] | None = None,
) -> HostFunction | Callable[[Callable[..., Any]], HostFunction]:
    """Let CPython run a function of the program as it is.

    Its arrays are whole: one rank runs it, which gets what others have of them. With
    ``where="all"`` all ranks run it and have the result, which has to be the same on all. With a
    ``signature`` each rank runs it on its part: the dimensions that the signature names are whole,
    and those before them are a block of the array, as for universal functions of NumPy. Arrays that
    it gets cannot be written to.

    Args:
        function: to be run.
        like: what the result is like: a function of the arguments that returns an array of its
            shape and type, such an array, or a type; of a tuple, one for each. Shapes may depend on
            those of the arguments, and on no values. An annotation of the result does for numbers.
        signature: for instance ``"(n),(m)->(n)"``. The type of the result is ``like`` then, or that
            of the arguments.
        where: "one" or "all".
        vjp: the vector-Jacobian product, for programs that ask for gradients:
            ``vjp(gradient, *arguments)`` returns the gradient of each argument, None for one that
            has none. ``gradient`` is that of the result, and a tuple of them if it is a tuple.

    Raises:
        ArgumentError: one of these is something else.
    """
    if function is None:
        return functools.partial(_decorated, like, signature, where, vjp)
    return _decorated(like, signature, where, vjp, function)


def _decorated(
    like: Any, signature: str | None, where: str, vjp: Any, function: Any
) -> HostFunction:
    for each in (function, *(() if vjp is None else (vjp,))):
        if not callable(each):
            raise ArgumentError(f"distspmd.host of {describe(each)}, which cannot be called.")
    if where not in WHERE:
        raise ArgumentError(f"where={where!r} of a host function; it is 'one' or 'all'.")
    parsed = None if signature is None else _known(Signature.of(signature))
    if parsed is not None and where != "one":
        raise ArgumentError(
            f"a host function has signature={signature!r} and where={where!r}: with a signature "
            "each rank runs it on its part. Leave one of them out."
        )
    if like is None:
        like = _annotated(function)
    return HostFunction(function, _like_of(like), parsed, where, vjp)


def _known(signature: Signature) -> Signature:
    """A signature whose results have dimensions of the arguments.

    Raises:
        ArgumentError: a result has another one.
    """
    given = {name for core in signature.inputs for name in core}
    new = {name for core in signature.outputs for name in core} - given
    if new:
        raise ArgumentError(
            f"signature={signature.text!r} has the dimension {min(new)!r} in a result alone, and "
            "nothing says how long it is. Write like= instead, with a function of the arguments."
        )
    return signature


def _annotated(function: Any) -> Any:
    """What the annotation of a result says; None where it says nothing that is known here."""
    found = getattr(function, "__annotations__", {}).get("return", _NOTHING)
    if isinstance(found, str):
        found = _NAMES.get(found.removeprefix("np.").removeprefix("numpy."), _NOTHING)
    return () if found is None else found if _is_number(found) else None


_NOTHING = object()


def _is_number(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, bool | int | float | complex | np.generic)


def _like_of(like: Any) -> Callable[..., Any] | None:
    """A function of the arguments that returns something like the result."""
    if like is None or (callable(like) and not isinstance(like, type)):
        return like

    def example(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: example(value) for key, value in part.items()}
        if isinstance(part, tuple | list):
            return type(part)(map(example, part))
        if isinstance(part, np.dtype):
            return np.zeros((), part)[()]
        return part() if _is_number(part) else part

    found = example(like)
    return lambda *_, **__: found


_NAMES: Mapping[str, Any] = {
    **{kind.__name__: kind for kind in (bool, int, float, complex)},
    **{
        name: getattr(np, name)
        for name in ("float32", "float64", "complex64", "complex128", "int32", "int64", "bool_")
    },
    "None": None,
}


def gradients_of(
    vjp: Callable[..., Any],
    name: str,
    paths: Sequence[Sequence[Any]],
    gradient: Any,
    *arguments: Any,
    **named: Any,
) -> Any:
    """The gradients of some arguments of a host function.

    Args:
        vjp: of the function.
        name: of the function.
        paths: which are asked for: the place or name of an argument, and where in it they are.
        gradient: of the result.
        arguments, named: of the function.

    Raises:
        ProgramValueError: ``vjp`` does not return them.
    """
    found = vjp(gradient, *arguments, **named)
    order = [*range(len(arguments)), *named]
    if named:
        places = [*inspect.signature(vjp).parameters][1 + len(arguments) :]
        order[len(arguments) :] = sorted(named, key=places.index)
    parts = found if isinstance(found, tuple) else (found,)
    if len(parts) != len(order):
        raise ProgramValueError(
            f"the vjp of {name} returns {len(parts)} gradient(s) for {len(order)} arguments; "
            "it returns one for each, None where there is none."
        )
    values: dict[Any, Any] = {**dict(enumerate(arguments)), **named}
    wanted = []
    for key, *places in paths:
        part, value = parts[order.index(key)], values[key]
        for place in places:
            part, value = part[place], value[place]
        shape = np.shape(value)
        if part is None or np.shape(part) != shape:
            given = "None" if part is None else f"an array of the shape {np.shape(part)}"
            raise ProgramValueError(
                f"the vjp of {name} returns {given} as the gradient of argument {key}, which has "
                f"the shape {shape}."
            )
        wanted.append(np.asarray(part).astype(np.asarray(value).dtype, casting="same_kind"))
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def function_of(key: str, copied: str) -> Callable[..., Any]:
    """The function that a program names.

    Raises:
        ArgumentError: this process has neither it nor a copy.
    """
    if key in _LIVE:
        return _LIVE[key].function
    if not copied:
        raise ArgumentError(
            f"the host function {key.split(':')[1]} is of another process, and holds what "
            "cannot be copied, or more than a megabyte. Define it in a module, and pass arrays as "
            "arguments."
        )
    return _copy(copied)


@functools.lru_cache(maxsize=256)
def _copy(copied: str) -> Callable[..., Any]:
    found: Callable[..., Any] = cloudpickle.loads(base64.b85decode(copied))
    return found


HOST = b'{"host": '
"""How the text begins by which a program calls a host function."""


@dataclass(frozen=True)
class Operand:
    """An array that a host function gets or gives.

    Attributes:
        dtype: of its elements.
        ndim: how many dimensions it has; a number has one, of one element.
        is_number: whether it is one.
        is_python: whether it is a number of Python.
    """

    dtype: np.dtype[Any]
    ndim: int
    is_number: bool
    is_python: bool = False

    def given(self, array: Any) -> Any:
        """What the function gets of an array."""
        if self.is_number:
            return array[0].item() if self.is_python else array[0]
        array.flags.writeable = False
        return array


@dataclass(frozen=True)
class HostCall:
    """A call of a host function in a program, as often as it is made.

    Attributes:
        name: of the function.
        inputs: what it gets.
        outputs: what it gives.
        form: of what it returns, as :func:`distspmd.runtime.host.library_calls.form_of` has it.
        tree: of the call.
        function: if all that it gets are the inputs in their order.
        copies: whether it gets copies of them, which it may write to.
        lines: of the program, if it is no function.
        tells: whether the user is told of them.
    """

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    form: str
    tree: Any
    function: Callable[..., Any] | None
    copies: bool
    lines: str
    tells: bool

    def run(self, inputs: Sequence[Any], targets: Sequence[Any]) -> None:
        """Call the function, and write what it returns.

        Raises:
            Exception: what it raises, or that what it returns has another form.
        """
        given = [operand.given(array) for operand, array in zip(self.inputs, inputs, strict=True)]
        if self.copies:
            given = [np.array(each)[()] for each in given]
        if self.function is not None:
            value = self.function(*given)
        else:
            session = Session(())
            session.inputs = given
            before = [*map(sys.getrefcount, inputs)] if self.lines else []
            value = session.value(self.tree)
            if self.lines and [*map(sys.getrefcount, inputs)] != before:
                own_memory(inputs)  # something that stays has a part of an array of the program
        if self.form == _NOTHING_RETURNED and value is None:
            return
        wanted = [
            target.reshape(()) if operand.is_number else target
            for operand, target in zip(self.outputs, targets, strict=True)
        ]
        try:
            write_answer(value, self.form, wanted, {})
        except ValueError as problem:
            if self.lines:
                told = f"Python runs {self.lines}: {problem}. Annotate what they give, or write"
                raise ProgramValueError(f"{told} a function with @distspmd.host.") from None
            raise ProgramValueError(f"the host function {self.name}: {problem}.") from None


_NOTHING_RETURNED = "()"


@functools.lru_cache(maxsize=256)
def host_call(text: bytes) -> HostCall:
    """The call that a program makes by a text."""
    told = json.loads(text)
    called, given, named = told["host"].get("call", (None, (), {}))
    is_plain = (
        called is not None
        and not named
        and given == [{"value": n} for n in range(len(told["inputs"]))]
    )
    function = Session(()).value(called) if is_plain else None
    inputs, outputs = (
        tuple(Operand(np.dtype(name), *rest) for name, *rest in told[which])
        for which in ("inputs", "outputs")
    )
    return HostCall(
        told["name"],
        inputs,
        outputs,
        told["form"],
        told["host"],
        function,
        told["copies"],
        told.get("lines", ""),
        told.get("tells", False),
    )
