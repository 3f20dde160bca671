"""What is known at run time only and concerns all ranks: assertions, errors, and what is printed.

A check is a branch by a condition that every rank reads; in it the program ends, on all ranks, with
the error that the function of Python raises. Messages are texts with values in them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from distspmd import errors
from distspmd.frontend.from_numpy.arrays.transcript import error_class
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Undecided
from distspmd.frontend.from_numpy.reader.conditions import condition_text
from distspmd.frontend.from_numpy.reader.jumps import error_of
from distspmd.frontend.from_numpy.reader.texts import Text, described, message_parts
from distspmd.frontend.tensor_ir.statements import Block, Branch, Container, Tell

FAILED = "__failed"
"""The variable that says whether the statement which is read has failed."""


# -- checks ---------------------------------------------------------------------------------------


def end_if(
    run: Context, condition: object, kind: str, message: object, *, can_go_on: bool = False
) -> None:
    """End the program with an error where a condition holds, or the body of a ``try``.

    Args:
        run: the interpreter.
        condition: a truth value that is known at run time only.
        kind: the name of the error.
        message: a string, a :class:`Text`, a list of its parts, or what makes one, which is
            called in the branch.
        can_go_on: whether the statement does no harm where the condition holds, as long as nothing
            reads its result. Where it may, a ``try`` around that takes the error is refused.
    """
    tracer = run.tracer
    if isinstance(message, list):
        message = Text.of([part for each in message for part in described(each)])
    outside_of_maps(run, f"a check ({kind})")
    if can_go_on and tracer.frames[-1].flag_of(error_class(kind)) is not None:
        _catch_if(run, condition, kind, message)
        return
    is_taken = tracer.check_uncaught(kind)
    text = condition_text(run, condition)
    then = Block()
    with tracer.within(then):
        told = message() if callable(message) else message
        end(run, kind, Text.of([*described(told), errors.NOT_TAKEN]) if is_taken else told)
    tracer.add(Branch(text, then, Block()))


def _catch_if(run: Context, condition: object, kind: str, message: object) -> None:
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
    before, block = tracer.node, frame.block
    flag = frame.flag_of(error_class(kind))
    assert flag is not None
    _set_message(run, flag, message)
    found = ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(True))
    made = ast.If(ast.Name(FAILED, ast.Load()), [found], [])
    run.statement(ast.fix_missing_locations(ast.copy_location(made, before)))
    run.variables.pop(FAILED, None)
    tracer.node, frame.statement, frame.block = before, statement, block


def catch(run: Context, error: type[BaseException], message: object) -> bool:
    """Set the flag of the handler that takes an error, if there is one in the function."""
    flag = run.tracer.frames[-1].flag_of(error)
    if flag is not None:
        _set_message(run, flag, message)
        run.variables[flag] = True
    return flag is not None


def _set_message(run: Context, flag: str, message: object) -> None:
    """What ``except ... as`` gives; of several errors that one handler takes it is not known."""
    name = error_of(flag)
    text = message() if callable(message) else message
    told_before = run.variables.get(name)
    if told_before is not None and told_before is not text:
        text = Undecided("the error of a handler that takes several")
    run.variables[name] = text


def end(run: Context, kind: str, message: object, base: str = "") -> None:
    """End the program with an error; ``base`` is the name of one that is known, if it is not."""
    before, _, after = run.tracer.message("\0").partition("\0")
    head = {"kind": "raise", "type": kind, "base": base or kind}
    head["place"] = before.removesuffix(": ")
    _tell(run, head, [*described(message), after])


def add_assertion(run: Context, node: ast.Assert, found: object) -> None:
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


def add_raise(run: Context, node: ast.Raise) -> None:
    """A ``raise``: in a ``try`` that takes it, or in a branch that depends on the run."""
    tracer = run.tracer
    outside_of_maps(run, "raise")
    if node.exc is None:
        tracer.refuse("a bare raise")
    kind = run.value(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        tracer.fail(TypeError("exceptions must derive from BaseException"))
    given = [run.value(a) for a in node.exc.args] if isinstance(node.exc, ast.Call) else []
    tracer.node = node
    message = given[0] if len(given) == 1 else Text.of(described(tuple(given))) if given else ""
    if not isinstance(message, str):
        message = Text.of(described(message))
    _raise(run, kind, message, f"the program raises here: {ast.unparse(node)}")


def add_exit(run: Context, code: object) -> None:
    """``sys.exit(code)``: the error ``SystemExit``, not the end of who reads the program."""
    outside_of_maps(run, "sys.exit")
    message = code if isinstance(code, str) else Text.of(["" if code is None else f"code {code}"])
    _raise(run, SystemExit, message, "the program ends here")


def _raise(run: Context, kind: type[BaseException], message: object, always: str) -> None:
    """Raise an error in a branch; ``always`` refuses a program that raises it in each run."""
    tracer = run.tracer
    if catch(run, kind, message):
        return
    tracer.check_uncaught(kind.__name__, is_said=True)
    if not tracer.inner:
        tracer.refuse(always)
    tracer.ended = True
    end(run, kind.__name__, message, known_error(kind))


def add_print(run: Context, values: Sequence[Any], options: dict[str, Any]) -> None:
    """``print`` with values that are known at run time only, or in a place that may not run."""
    import sys

    outside_of_maps(run, "print")
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


def outside_of_maps(run: Context, what: str) -> None:
    """Refuse what has an order in a parallel map."""
    tracer = run.tracer
    if tracer.map.parallel or tracer.map.straight is not None:
        tracer.refuse(f"{what} in a parallel map, whose iterations have no order; put it after")


# -- messages -------------------------------------------------------------------------------------


def _tell(run: Context, head: dict[str, Any], parts: Sequence[Any]) -> None:
    containers: list[Container] = []
    written = message_parts(run.tracer, parts, containers)
    if not containers:  # a node without values would be left out
        whole = run.tracer.stored_anew(run.tracer.tensor(0), "told")
        containers.append(whole.container)
    message = json.dumps({**head, "parts": written})
    run.tracer.add(Tell(message, tuple(containers)))


def known_error(kind: type[BaseException]) -> str:
    """The name of the nearest error of Python that has an error of ours."""
    names = [each.__name__ for each in kind.__mro__ if hasattr(errors, f"Program{each.__name__}")]
    return names[0] if names else "Error"
