"""What is known at run time only and concerns all ranks: assertions, errors, and what is printed.

A check is a branch by a condition that every rank reads; in it the program ends, on all ranks, with
the error that the function of Python raises. Messages are texts with values in them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd import errors
from distspmd.frontend.from_numpy.choosing import as_arrays
from distspmd.frontend.from_numpy.clocks import Seconds
from distspmd.frontend.from_numpy.syntax.conditions import condition_text
from distspmd.frontend.from_numpy.syntax.jumps import error_of
from distspmd.frontend.from_numpy.syntax.variables import Undecided
from distspmd.frontend.from_numpy.transcript import Refusal, error_class, told
from distspmd.frontend.from_numpy.values import Tensor, View
from distspmd.frontend.tensor_ir.statements import Block, Branch, Container, Tell

FAILED = "__failed"
"""The variable that says whether the statement which is read has failed."""

MOST_PRINTED = 1000
"""So many elements of an array are printed; of more NumPy leaves out the middle."""


@dataclass(frozen=True, eq=False)
class Part:
    """A value in a text, as an f-string formats it."""

    value: Any
    conversion: str = ""
    spec: str = ""


@dataclass(frozen=True, eq=False)
class Formatted:
    """A text by ``%`` or ``format`` with values in it."""

    text: str
    way: str
    values: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...] = ()


class Text(str):
    """A text with values that are known at run time only; as a string it has their names."""

    parts: tuple[Any, ...]

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Text:
        """A text of strings and parts."""
        found = cls("".join(p if isinstance(p, str) else "{...}" for p in parts))
        found.parts = tuple(q for p in parts for q in (p.parts if isinstance(p, Text) else (p,)))
        return found

    def __add__(self, other: Any) -> Text:
        return Text.of([self, other]) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Text:
        return Text.of([other, self]) if isinstance(other, str) else NotImplemented


def _not_known(*_: Any, **__: Any) -> NoReturn:
    raise Refusal(
        "a text with values of the run is printed, joined, or the message of an error: what it "
        "says is not known before the run"
    )


_ASKING = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "len", "getitem", "iter", "contains", "mod")
for _name in (*(n for n in dir(str) if not n.startswith("__")), *(f"__{n}__" for n in _ASKING)):
    setattr(Text, _name, _not_known)


def has_data(value: Any) -> bool:
    """Whether a value, or one in it, is known at run time only."""
    if isinstance(value, list | tuple):
        return any(map(has_data, value))
    if isinstance(value, dict):
        return any(map(has_data, value.values()))
    return isinstance(value, Tensor | sympy.Basic | Text | Seconds)


def described(value: Any, conversion: str = "", spec: str = "") -> list[Any]:
    """The parts of a value: lists and tuples are written as Python writes them."""
    if isinstance(value, Text):
        return list(value.parts) if not conversion and not spec else _not_known()
    if isinstance(value, Tensor | sympy.Basic | Seconds):
        return [Part(value, conversion, spec)]
    if isinstance(value, list | tuple) and has_data(value):
        found: list[Any] = ["[" if isinstance(value, list) else "("]
        for place, each in enumerate(value):
            found += [", "] if place else []
            found += described(each, "r")
        single = isinstance(value, tuple) and len(value) == 1
        return [*found, "]" if isinstance(value, list) else ",)" if single else ")"]
    if conversion:
        value = f"{value!r}" if conversion == "r" else str(value)
    return [format(value, spec)]


def by_percent(text: str, values: Any) -> Text:
    """``text % values``."""
    own = values if isinstance(values, tuple) else (values,)
    _check_plain(own)
    return Text.of([Formatted(text, "%", tuple(own))])


def by_format(text: str, values: Sequence[Any], named: Mapping[str, Any]) -> str:
    """``text.format(*values, **named)``."""
    if not has_data((list(values), dict(named))):
        return text.format(*values, **named)
    _check_plain((*values, *named.values()))
    return Text.of([Formatted(text, "format", tuple(values), tuple(named.items()))])


def _check_plain(values: Sequence[Any]) -> None:
    """Refuse texts with values in other texts, which are no f-strings."""
    if any(isinstance(value, Text) for value in values):
        raise Refusal("a text with values of the run within '%' or format; write an f-string")


def by_join(separator: str, texts: Sequence[Any]) -> Any:
    """``separator.join(texts)``."""
    parts = [part for text in texts for part in (separator, text)][1:]
    return Text.of(parts) if any(isinstance(t, Text) for t in texts) else separator.join(texts)


def joined(parts: Sequence[Any]) -> str:
    """Parts as a string, or as a :class:`Text` where there are values."""
    if all(isinstance(part, str) and not isinstance(part, Text) for part in parts):
        return "".join(parts)
    return Text.of(parts)


# -- checks ---------------------------------------------------------------------------------------


def end_if(run: Any, condition: Any, kind: str, message: Any, *, can_go_on: bool = False) -> None:
    """End the program with an error where a condition holds, or the body of a ``try``.

    Args:
        run: the interpreter.
        condition: a truth value that is known at run time only.
        kind: the name of the error.
        message: a string, a :class:`Text`, or what makes one, which is called in the branch.
        can_go_on: whether the statement does no harm where the condition holds, as long as nothing
            reads its result. Where it may, a ``try`` around that takes the error is refused.
    """
    tracer = run.tracer
    _outside_of_maps(run, f"a check ({kind})")
    if can_go_on and tracer.frames[-1].flag_of(error_class(kind)) is not None:
        _catch_if(run, condition, kind, message)
        return
    tracer.check_uncaught(kind)
    text = condition_text(run, condition)
    then = Block()
    with tracer.within(then):
        end(run, kind, message() if callable(message) else message)
    tracer.add(Branch(text, then, Block()))


def _catch_if(run: Any, condition: Any, kind: str, message: Any) -> None:
    """Set the flag of the handler that takes an error, where a condition holds."""
    tracer = run.tracer
    frame = tracer.frames[-1]
    statement = frame.statement
    is_own = isinstance(statement, ast.Assign | ast.AnnAssign | ast.Assert) or (
        isinstance(statement, ast.Expr) and statement.value is tracer.node
    )
    if not is_own:
        tracer.check_uncaught(kind)
    run.variables[FAILED] = condition
    before = tracer.node
    flag = frame.flag_of(error_class(kind))
    _set_message(run, flag, message)
    found = ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(True))
    made = ast.If(ast.Name(FAILED, ast.Load()), [found], [])
    run.statement(ast.fix_missing_locations(ast.copy_location(made, before)))
    run.variables.pop(FAILED, None)
    tracer.node, frame.statement = before, statement


def catch(run: Any, error: type[BaseException], message: Any) -> bool:
    """Set the flag of the handler that takes an error, if there is one in the function."""
    flag = run.tracer.frames[-1].flag_of(error)
    if flag is not None:
        _set_message(run, flag, message)
        run.variables[flag] = True
    return flag is not None


def _set_message(run: Any, flag: str, message: Any) -> None:
    """What ``except ... as`` gives; of several errors that one handler takes it is not known."""
    name = error_of(flag)
    text = message() if callable(message) else message
    told_before = run.variables.get(name)
    if told_before is not None and told_before is not text:
        text = Undecided("the error of a handler that takes several")
    run.variables[name] = text


def end(run: Any, kind: str, message: Any, base: str = "") -> None:
    """End the program with an error; ``base`` is the name of one that is known, if it is not."""
    before, _, after = run.tracer.message("\0").partition("\0")
    head = {"kind": "raise", "type": kind, "base": base or kind}
    head["place"] = before.removesuffix(": ")
    _tell(run, head, [*described(message), after])


def add_assertion(run: Any, node: ast.Assert, found: Any) -> None:
    """An assertion on what is known at run time only."""

    def message() -> Any:
        return ast.unparse(node.test) if node.msg is None else run.value(node.msg)

    tracer = run.tracer
    if isinstance(found, sympy.Basic):
        false: Any = sympy.Not(found if found.is_Boolean else sympy.Ne(found, 0))
    else:
        false = run.call(np.logical_not, [found], {})
    tracer.node = node
    end_if(run, false, "AssertionError", message, can_go_on=True)


def add_raise(run: Any, node: ast.Raise) -> None:
    """A ``raise``: in a ``try`` that takes it, or in a branch that depends on the run."""
    tracer = run.tracer
    _outside_of_maps(run, "raise")
    if node.exc is None:
        tracer.refuse("a bare raise")
    kind = run.value(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        tracer.refuse(f"raise of {kind!r}, which is no class of errors")
    given = [run.value(a) for a in node.exc.args] if isinstance(node.exc, ast.Call) else []
    tracer.node = node
    message = given[0] if len(given) == 1 else Text.of(described(tuple(given))) if given else ""
    if not isinstance(message, str):
        message = Text.of(described(message))
    _raise(run, kind, message, f"the program raises here: {ast.unparse(node)}")


def add_exit(run: Any, code: Any) -> None:
    """``sys.exit(code)``: the error ``SystemExit``, not the end of who reads the program."""
    _outside_of_maps(run, "sys.exit")
    message = code if isinstance(code, str) else Text.of(["" if code is None else f"code {code}"])
    _raise(run, SystemExit, message, "the program ends here")


def _raise(run: Any, kind: type[BaseException], message: Any, always: str) -> None:
    """Raise an error in a branch; ``always`` refuses a program that raises it in each run."""
    tracer = run.tracer
    if catch(run, kind, message):
        return
    tracer.check_uncaught(kind.__name__)
    if not tracer.inner:
        tracer.refuse(always)
    tracer.ended = True
    end(run, kind.__name__, message, known_error(kind))


def add_print(run: Any, values: Sequence[Any], options: dict[str, Any]) -> None:
    """``print`` with values that are known at run time only, or in a place that may not run."""
    import sys

    _outside_of_maps(run, "print")
    separator = options.pop("sep", None)
    last = options.pop("end", None)
    file, flush = options.pop("file", None), options.pop("flush", False)
    if options:
        run.tracer.refuse(f"print has no argument {next(iter(options))!r}")
    if file not in (None, sys.stdout, sys.stderr):
        run.tracer.refuse("print into a file; print to the standard output, or return the values")
    parts: list[Any] = []
    for place, value in enumerate(values):
        parts += [" " if separator is None else separator] if place else []
        parts += described(value)
    parts.append("\n" if last is None else last)
    head = {"kind": "print", "flush": bool(flush)}
    if file is sys.stderr:
        head["file"] = "stderr"
    _tell(run, head, parts)


def add_reading(run: Any, number: int, name: str) -> None:
    """Let each rank note what a clock says, under a number."""
    _outside_of_maps(run, f"time.{name}()")
    _tell(run, {"kind": "clock", "number": number, "name": name}, [])


def _outside_of_maps(run: Any, what: str) -> None:
    tracer = run.tracer
    if tracer.parallel or tracer.straight is not None:
        tracer.refuse(f"{what} in a parallel map, whose iterations have no order; put it after")


# -- messages -------------------------------------------------------------------------------------


def _tell(run: Any, head: dict[str, Any], parts: Sequence[Any]) -> None:
    containers: list[Container] = []
    written: list[Any] = []
    for part in parts:
        if isinstance(part, Part):
            written.append(_value(run, part, containers))
        elif isinstance(part, Formatted):

            def own(value: Any) -> Any:
                if not isinstance(value, Tensor | sympy.Basic | Seconds):
                    return value if isinstance(value, str | int | float) else str(value)
                return _value(run, Part(value), containers)

            found = {"format": part.text, "way": part.way, "values": [*map(own, part.values)]}
            written.append({**found, "named": {k: own(v) for k, v in part.named}})
        elif part:
            if written and isinstance(written[-1], str):
                written[-1] += part
            else:
                written.append(part)
    if not containers:  # a node without values would be left out
        whole = run.tracer.stored_anew(run.tracer.tensor(0), "told")
        containers.append(whole.container)
    message = json.dumps({**head, "parts": written})
    run.tracer.add(Tell(message, tuple(containers)))


def _value(run: Any, part: Part, containers: list[Container]) -> dict[str, Any]:
    tracer = run.tracer
    if isinstance(part.value, Seconds):
        return {**part.value.described(), "conversion": part.conversion, "spec": part.spec}
    tensor = tracer.tensor(as_arrays(tracer, part.value))
    if tensor.run_type is not None:
        tracer.refuse(
            "the text of a number of which the run decides the type; write int(...) or float(...)"
        )
    count = 1
    for n in tensor.shape:
        if not isinstance(n, int):
            tracer.refuse(f"{told(tensor)} is printed, whose extent is a symbol; print elements")
        count *= n
    if count > MOST_PRINTED:
        tracer.refuse(
            f"{told(tensor)} is printed, which has more than {MOST_PRINTED} elements; print a part "
            "of it, or return it"
        )
    stored = tensor if isinstance(tensor, View) and tensor.is_whole else None
    if stored is None:
        stored = tracer.stored_anew(tensor, "told")
    containers.append(stored.container)
    found: dict[str, Any] = {"value": len(containers) - 1, "dtype": tensor.dtype.str}
    found |= {"ndim": tensor.ndim, "weak": tensor.weak is not None}
    if part.conversion:
        found["conversion"] = part.conversion
    if part.spec:
        found["spec"] = part.spec
    return found


def known_error(kind: type[BaseException]) -> str:
    """The name of the nearest error of Python that has an error of ours."""
    names = [each.__name__ for each in kind.__mro__ if hasattr(errors, f"Program{each.__name__}")]
    return names[0] if names else "Error"
