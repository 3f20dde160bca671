"""DaCe's parser of Python with functions of ours in it, for as long as a program is parsed.

Nothing outlasts the parsing: neither in DaCe's tables, nor in the programs of the user.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dace import SDFG, SDFGState
from dace.frontend.common.op_repository import Replacements
from dace.frontend.python import newast
from dace.frontend.python.cached_program import DaceProgramCache
from dace.frontend.python.newast import ProgramVisitor
from dace.frontend.python.parser import DaceProgram

Tables = Mapping[str, Mapping[Any, Callable[..., Any]]]
"""Functions of ours by the tables of DaCe that they stand in: ``_rep`` has functions by their full
names, ``_method_rep`` methods by class and name, ``_ufunc_rep`` methods of ufuncs."""

_lock = threading.RLock()


@contextmanager
def parsing(program: DaceProgram, tables: Tables, visitor: type[ProgramVisitor]) -> Iterator[None]:
    """Let DaCe parse with functions of ours and a visitor of ours, and be as before afterwards.

    Args:
        program: that is to be parsed.
        tables: what stands for functions: functions of the visitor, the SDFG, the state and the
            arguments of the call.
        visitor: what walks through a program.
    """
    with (
        _lock,
        _silent(),
        _replaced(tables),
        _attribute(newast, "ProgramVisitor", visitor),
        _all_gradients(),
        _untouched(program),
    ):
        yield


@contextmanager
def _silent() -> Iterator[None]:
    """DaCe prints and warns of what it does not know, which we refuse."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _replaced(tables: Tables) -> Iterator[None]:
    before: dict[str, dict[Any, Callable[..., Any]]] = {}
    for table, functions in tables.items():
        known = getattr(Replacements, table)
        before[table] = {key: known[key] for key in functions if key in known}
    _originals.append(before)
    try:
        for table, functions in tables.items():
            getattr(Replacements, table).update(functions)
        yield
    finally:
        _originals.pop()
        for table, functions in tables.items():
            known = getattr(Replacements, table)
            for key in functions:
                del known[key]
            known.update(before[table])


_originals: list[dict[str, dict[Any, Callable[..., Any]]]] = []
"""What DaCe had in the place of ours, while programs are parsed."""


def original(table: str, key: Any) -> Callable[..., Any]:
    """What DaCe has in its table where a function of ours stands now."""
    if key in _originals[-1][table]:
        return _originals[-1][table][key]
    kind, name = key  # of a subclass of the class that has it
    return _originals[-1][table]["View" if "View" in kind else "Array", name]


def astype(visitor: Any, sdfg: SDFG, state: SDFGState, array: str, dtype: Any) -> str:
    """Convert the elements of an array, in a state; the name of the result."""
    convert: Callable[..., Any] = Replacements._method_rep["Array", "astype"]
    return str(convert(visitor, sdfg, state, array, dtype))


def add_state(visitor: ProgramVisitor, label: str) -> SDFGState:
    """A new state behind what was parsed so far."""
    state: SDFGState = visitor._add_state(label)
    state.set_default_lineinfo(visitor.current_lineinfo)
    return state


@contextmanager
def _attribute(holder: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


@contextmanager
def _all_gradients() -> Iterator[None]:
    """``backward`` computes the gradients of all arrays that were marked by ``requires_grad_``.

    DaCe's own search for those that a value depends on (2.0.0b1) fails where a map reads nothing,
    and finds nothing behind slices: a gradient was left out without a word. Of an array that the
    value does not depend on the gradient is zero.
    """
    analysis = sys.modules.get("dace.autodiff.analysis")  # loaded if a program may use it
    if analysis is None:
        yield
        return
    with _attribute(analysis, "dependency_analysis", dependency_analysis):
        yield


def dependency_analysis(sdfg: SDFG) -> dict[str, set[str]]:
    """Of each container those that it may depend on, as far as parsing tells: all."""
    return {name: set(sdfg.arrays) for name in sdfg.arrays}


@contextmanager
def _untouched(program: DaceProgram) -> Iterator[None]:
    """The objects of all programs that are parsed, also of those that others call, are as before.

    DaCe keeps in them what it parsed, and what they close over.
    """
    before: dict[int, tuple[DaceProgram, dict[str, Any]]] = {}
    parse = DaceProgram._generate_pdp

    def keep(program: DaceProgram) -> None:
        if id(program) not in before:
            kept = {**vars(program), "global_vars": dict(program.global_vars)}
            before[id(program)] = program, kept
            program._cache = DaceProgramCache(program._eval_closure)
            for value in kept["global_vars"].values():
                if isinstance(value, DaceProgram):
                    keep(value)

    def parse_anew(program: DaceProgram, *args: Any, **kwargs: Any) -> Any:
        keep(program)
        return parse(program, *args, **kwargs)

    keep(program)
    try:
        with _attribute(DaceProgram, "_generate_pdp", parse_anew):
            yield
    finally:
        for kept_program, kept in before.values():
            vars(kept_program).clear()
            vars(kept_program).update(kept)
