"""Regions in a program that is read: what they get and give, and of which types that is."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import annotation_types
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import NeedsObject, ReadProgramAgain, Refusal
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host import work
from distspmd.frontend.from_numpy.host.blocks import emit_call, letters_of_whole
from distspmd.frontend.from_numpy.host.names import bound_in
from distspmd.frontend.from_numpy.host.places import is_object
from distspmd.frontend.from_numpy.host.probes import Form, Leaf
from distspmd.frontend.from_numpy.host.regions import (
    ENDED,
    FOUND_IN,
    MISSING,
    RETURNED,
    TESTED,
    Hosted,
    Region,
    RegionCall,
    function_of,
)
from distspmd.frontend.from_numpy.kinds.absence import may_be_absent
from distspmd.frontend.from_numpy.kinds.variables import UNBOUND, OfPython, Undecided
from distspmd.frontend.from_numpy.numpy.asking import Question
from distspmd.frontend.from_numpy.reader.registry import expression
from distspmd.frontend.tensor_ir.whole_numbers import symbol
from distspmd.runtime.host import host_regions
from distspmd.runtime.host.host_functions import HostFunction
from distspmd.runtime.host.host_regions import items, rebuilt_of
from distspmd.runtime.host.library_calls import form_of, leaves, pickled

_NUMBERS = (bool, int, float, complex, np.generic)
_KNOWN = (type(None), bool, int, float, str)


@dataclass
class Result:
    """Of what type a result of a region is.

    Attributes:
        value: something like it.
        shape: its extents, if it is an array.
        is_object: whether it is an object of Python.
        parts: what it consists of, by their keys or places, if it is taken apart: the program
            gets arrays and numbers of what is returned, and the objects beside them stay here.
    """

    value: Any
    shape: tuple[Any, ...] | None = None
    is_object: bool = False
    parts: dict[Any, Result] | None = None

    @classmethod
    def like(cls, value: object, *, is_returned: bool = False) -> Result:
        """The type of a value that a run has shown."""
        if isinstance(value, np.ndarray) and type(value) is np.ndarray and leaves(value):
            return cls(np.zeros((1,) * value.ndim, value.dtype), value.shape)
        if isinstance(value, _NUMBERS) or (is_returned and value is None):
            return cls(value)
        if is_returned and (type(value) is tuple or _has_arrays(value)):
            parts = {k: cls.like(v, is_returned=True) for k, v in items(value).items()}
            own = {k: part.value for k, part in parts.items() if not part.is_object}
            return cls(rebuilt_of(type(value), own), parts=parts)
        if type(value) is tuple and _is_plain(value):
            return cls(value)
        return cls(None, is_object=True)

    def leaves(self) -> list[tuple[Any, Any]]:
        """Arrays and numbers like those that it consists of, and their extents."""
        if self.parts is not None:
            return [leaf for part in self.parts.values() for leaf in part.leaves()]
        shape = self.shape
        return [(v, np.shape(v) if shape is None else shape) for v in leaves(self.value)]

    def taken_apart(self, name: str) -> Any:
        """How a region gives it: objects by a name under which they are kept, else the form."""
        if self.is_object:
            return name
        if self.parts is None:
            return _plan(self)
        apart = [[k, part.taken_apart(f"{name}.{k}")] for k, part in self.parts.items()]
        return ["parts", type(self.value).__name__, apart]


def _has_arrays(value: object) -> bool:
    """Whether a list or dictionary with texts as keys has arrays in it."""
    if type(value) is dict and not all(isinstance(key, str) for key in value):
        return False
    return type(value) in (list, dict) and any(
        isinstance(v, np.ndarray) or (type(v) in (tuple, list, dict) and _has_arrays([*_values(v)]))
        for v in _values(value)
    )


def _values(value: Any) -> Sequence[Any]:
    return tuple(value.values()) if type(value) is dict else value


def _is_plain(value: Any) -> bool:
    """Whether something consists of numbers and arrays, all with names or places."""
    if isinstance(value, np.ndarray):
        return bool(leaves(value))
    if type(value) in (tuple, list):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    return isinstance(value, _NUMBERS)


class RegionRefusal(Refusal):
    """Python does not run what it would have to."""


class TooMuchWork(RegionRefusal):
    """Statements have array work that ranks could share, so that Python does not run them."""


class NeedsTrial(ReadProgramAgain):
    """The type of a result of a region is not known."""

    def __init__(self, file: str, region: Region, name: str, message: str) -> None:
        super().__init__(message)
        self.file, self.region, self.name, self.message = file, region, name, message


def _is_of_reader(value: object) -> bool:
    """Whether a value stands for one of the program, such as a generator, and Python has none."""
    return type(value).__module__.startswith(f"{__name__.rpartition('.host.')[0]}.")


# -- the call -------------------------------------------------------------------------------------


@expression(RegionCall)
def _call_region(run: Context, node: RegionCall) -> Any:
    """What a region gives.

    Raises:
        Refusal: it stands in a parallel map, or has array work that ranks could share.
        NeedsTrial, NeedsObject: the program is read again.
    """
    tracer, region = run.tracer, node.region
    first, last = region.lines
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    if tracer.map.parallel or tracer.map.own:
        tracer.refuse(f"Python would run {lines} in a parallel map: write range for the map")
    _check_work(run, region, lines)
    return _RegionQuestion(run, node, lines).call()


def _check_work(run: Context, region: Region, lines: str) -> None:
    shapes = {n: tuple(v.shape) for n, v in run.variables.items() if isinstance(v, Tensor)}
    kinds = work.Kinds({n: s for n, s in shapes.items() if s})
    known = work.Outside.of(run.tracer.frames[-1].variables)
    operations = work.array_operations(region.statements, kinds, known)
    if work.is_too_much(operations):
        told = run.tracer.message(
            f"Python would run {lines} on rank 0, with {operations:,.0f} elements of array work "
            "that all ranks could share. Write the array work in statements of its own, before or "
            "after what is for Python, or mark a function with @distspmd.host"
        )
        raise TooMuchWork(told)


class _RegionQuestion(Question):
    """A call of a region that is being made, and the tensors that it takes."""

    def __init__(self, run: Context, node: RegionCall, lines: str) -> None:
        super().__init__(run)
        self.region, self.inputs, self.lines = node.region, node.inputs, lines
        self.frame = run.tracer.frames[-1]
        self.changed: list[tuple[int, View]] = []

    def call(self) -> Any:
        run, region = self.run, self.region
        named = zip(region.inputs, self.inputs, strict=True)
        given = [self._input(n, name, read) for n, (name, read) in enumerate(named)]
        results = [self._type_of(name) for name in region.results]
        kept = [
            result.taken_apart(self._name_of(name))
            for name, result in zip(region.results, results, strict=True)
        ]
        typed = [result for result in results if not result.is_object]
        places = [place for place, _ in self.changed]
        every = [
            *(r.value for r in typed),
            *(np.zeros((1,) * v.ndim, v.dtype) for _, v in self.changed),
        ]
        form = Form(tuple(every), form_of(tuple(every)), tuple(self._leaves(typed)))
        host = HostFunction(self._function(), None, None, "one")
        told = [region.inputs, region.results, sorted(region.elsewhere)]
        tree = {"call": [host.reference(), [kept, places, told, *given], {}]}
        answers = emit_call(
            run,
            "_".join([region.name, self.lines.replace(" ", "_").replace("-", "_to_")]),
            tree,
            form,
            self.data,
            [letters_of_whole(t.ndim) for t in self.data],
            [letters_of_whole(len(leaf.shape)) for leaf in form.leaves],
            into=[*([None] * (len(form.leaves) - len(places))), *(v for _, v in self.changed)],
            lines=self.lines,
            tells=run.hosting.choice == "tell",
        )
        for (_, view), new in zip(self.changed, answers[len(answers) - len(places) :], strict=True):
            if not view.is_whole:
                run.write_part(view, Ellipsis, new)
        weak = [leaf.weak for leaf in form.leaves]
        found = iter([replace(t, weak=w) if w else t for t, w in zip(answers, weak, strict=False)])
        values = [
            self._given(result, name, self._name_of(name), found, tree)
            for name, result in zip(region.results, results, strict=True)
        ]
        return values[0] if region.returns else tuple(values)

    def _given(self, result: Result, name: str, kept: str, found: object, tree: object) -> Any:
        """What a variable is after the region, or a part of what is returned."""
        if result.is_object:
            return OfPython(self._reason(name), kept)
        if result.parts is None:
            return self._rebuilt(result.value, found, tree)
        parts = {
            key: self._given(part, name, f"{kept}.{key}", found, tree)
            for key, part in result.parts.items()
        }
        return rebuilt_of(type(result.value), parts)

    def _refuse(self, what: str) -> NoReturn:
        raise RegionRefusal(self.run.tracer.message(what))

    # -- inputs ---------------------------------------------------------------------------------

    def _input(self, place: int, name: str, read: ast.expr) -> Any:
        run, region = self.run, self.region
        value = run.variables.get(name)
        if isinstance(value, OfPython):
            return {"kept": value.name}
        if isinstance(read, ast.Name) and self._has_no_value(name):  # others are in a cell
            return {"import": f"{host_regions.__name__}:MISSING"}
        if isinstance(value, Undecided) and not may_be_absent(value):
            self._lack(name)
        if name in run.variables and is_object(value) and name in region.objects:
            self._check_own(name)
        value = run.whatever(ast.fix_missing_locations(ast.copy_location(read, run.tracer.node)))
        if isinstance(value, View) and value.ndim and name in region.arrays:
            self.changed.append((place, value))
            self.data.append(value)
            return {"changed": {"value": len(self.data) - 1}}
        return self._tree(name, value)

    def _has_no_value(self, name: str) -> bool:
        """Whether a variable that the region binds itself is not bound before."""
        is_bound = self.run.variables.get(name, UNBOUND) is not UNBOUND
        return not is_bound and name in bound_in(self.region.statements)

    def _check_own(self, name: str) -> None:
        """An object that a region changes is the function's own, and Python's from its beginning.

        Raises:
            NeedsObject: it is not Python's yet.
            Refusal: it is the caller's.
        """
        self._become_object(name)
        self._refuse(
            f"{self.lines} change {name!r}, which the program has got from outside: the change "
            "would be lost. Return it, or make it in the function"
        )

    def _become_object(self, name: str) -> None:
        frame, hosted = self.frame, self.run.hosting.files[self.region.file]
        if (frame.line, name) not in hosted.opaque:
            raise NeedsObject(frame.file, frame.line, name)

    def _tree(self, name: str, value: Any) -> Any:
        if isinstance(value, Tensor | sympy.Basic):
            self.data.append(self.run.tracer.tensor(value))
            return {"value": len(self.data) - 1}
        if type(value) in _KNOWN:
            return value
        if type(value) in (list, tuple):
            return {type(value).__name__: [self._tree(name, v) for v in value]}
        if type(value) is dict and all(type(k) in _KNOWN for k in value):
            return {"dict": [[k, self._tree(name, v)] for k, v in value.items()]}
        if _is_of_reader(value) or has_data(value):
            self._lack(name)
        if name in self.region.objects and name not in self._parameters():
            self._become_object(name)  # what is changed in a copy would be lost
        try:
            return {"fresh": pickled(value)}
        except Exception:  # whatever an object of the user raises
            self._lack(name)

    def _lack(self, name: str) -> NoReturn:
        """Have Python bind a variable that it cannot get from the program.

        Raises:
            NeedsObject: it does not yet.
            Refusal: it cannot bind it.
        """
        self._become_object(name)
        self._refuse(f"Python runs {self.lines} and needs {name!r} there, which it cannot get")

    def _parameters(self) -> tuple[str, ...]:
        code = self.region.function.__code__
        return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    # -- results --------------------------------------------------------------------------------

    def _name_of(self, name: str) -> str:
        """By what an object is kept: one for each variable of each function that is read."""
        names: dict[str, str] = self.frame.objects
        kept: str = names.setdefault(name, f"{self.run.tracer.unique('object')}.{name}")
        return kept

    def _reason(self, name: str) -> str:
        return f"{name!r} is an object of Python, made in {self.lines}, which no array code reads"

    def _type_of(self, name: str) -> Result:
        region, frame = self.region, self.frame
        if name == ENDED:
            return Result(0)
        hosted: Hosted = self.run.hosting.files[region.file]
        if (frame.line, name) in hosted.opaque:
            return Result(None, is_object=True)
        found = self._annotated(name) or hosted.shown.get((region.key, name))
        found = found or _told(region, name)
        is_read = name.startswith(TESTED) and (frame.line, name) not in hosted.passed
        if found is None and self.run.hosting.call is None and not is_read:
            found = Result(None, is_object=True)  # which is right whatever it is
        if found is None:
            what = "what is returned" if name == RETURNED else region.parts.get(name, name)
            raise NeedsTrial(region.file, region, name, self._untold(name, what))
        if found.is_object:
            if name == RETURNED:
                return found
            raise NeedsObject(region.file, frame.line, name)
        return found

    def _untold(self, name: str, what: str) -> str:
        how = (
            "the function, '-> float' or '-> \"float64[N]\"'"
            if name == RETURNED
            else "a variable that gets it"
            if name in self.region.parts
            else f"it where it is bound, '{name}: float = ...' or '{name}: \"float64[N]\" = ...'"
        )
        told: str = self.run.tracer.message(
            f"Python runs {self.lines}, and the type of {what} is not known: annotate {how}; "
            "or call the function by @distspmd.program, which looks at the first call; or mark a "
            "function with @distspmd.host(like=...)"
        )
        return told

    def _annotated(self, name: str) -> Result | None:
        node = self.region.annotations.get(name)
        if node is None:
            return None
        text = node.value if isinstance(node, ast.Constant) else ast.unparse(node)
        return self._by_text(text) if isinstance(text, str) else Result(None)

    def _by_text(self, text: str) -> Result | None:
        kind = getattr(np, text.rpartition(".")[2], None) or _PYTHON.get(text)
        kind = _PYTHON.get(text, kind)
        if isinstance(kind, type) and issubclass(kind, _NUMBERS):
            return Result(kind())
        if text == "None":
            return Result(None)
        described = annotation_types.described_by_text(text)
        if described is not None:
            known = self.run.sizes
            shape = [
                sympy.sympify(n).xreplace(
                    {s: known.get(s.name, symbol(s.name)) for s in sympy.sympify(n).free_symbols}
                )
                for n in described.shape
            ]
            own = tuple(int(n) if n.is_Integer else n for n in map(sympy.sympify, shape))
            dtype = np.dtype(described.dtype.type)
            return Result(np.zeros((1,) * len(own), dtype), own)
        is_kind = text.partition("[")[0] in ("dict", "set", "list", "object", "str", "deque")
        return Result(None, is_object=True) if is_kind else None

    def _leaves(self, typed: Sequence[Result]) -> list[Leaf]:
        found = []
        for result in typed:
            for leaf, shape in result.leaves():
                array = np.asarray(leaf)
                kind = type(leaf) if type(leaf) in (bool, int, float, complex) else None
                found.append(Leaf(shape, INT64 if kind is int else array.dtype, kind))
        return [*found, *(Leaf(v.shape, v.dtype, None) for _, v in self.changed)]

    def _function(self) -> host_regions.Region:
        """The statements as a function of Python, with the globals of the one that they are in."""
        region, function = self.region, self.region.function
        made = function_of(region, "__region")  # its statements may call the function itself
        around = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
        free = {FOUND_IN: host_regions.found_in, MISSING: host_regions.MISSING}
        for each, cell in around.items():
            with contextlib.suppress(ValueError):  # it has no value yet
                free[each] = cell.cell_contents
        arguments = ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, [])
        body: list[ast.stmt] = [made, ast.Return(ast.Name(made.name, ast.Load()))]
        maker = ast.FunctionDef("__made", arguments, body, [], None, None)
        ast.fix_missing_locations(ast.copy_location(maker, made))
        space: dict[str, Any] = {}
        code = compile(ast.Module([maker], []), region.file, "exec")
        exec(code, function.__globals__, space)
        found = space["__made"](*free.values())
        found.__code__ = found.__code__.replace(co_name=region.name)
        found.__name__, found.__module__ = region.name, function.__module__
        return host_regions.Region(found, self.lines)


_PYTHON: dict[str, Any] = {kind.__name__: kind for kind in (bool, int, float, complex)}
_CALLS: dict[str, Any] = {"len": 0, "int": 0, "float": 0.0, "bool": False, "isinstance": False}


def _told(region: Region, name: str) -> Result | None:
    """The type of a number that the text of all statements tells which bind it."""
    every: list[ast.expr | None] = []
    for part in (p for s in region.statements for p in ast.walk(s)):
        if isinstance(part, ast.Assign) and any(
            isinstance(n, ast.Name) and n.id == name for t in part.targets for n in ast.walk(t)
        ):
            is_plain = all(isinstance(t, ast.Name) for t in part.targets)
            every.append(part.value if is_plain else None)
        elif isinstance(part, ast.Return) and name == RETURNED:
            every.append(part.value)
        elif name != RETURNED and _binds_otherwise(part, name):
            every.append(None)
    values = [_value_told(each) for each in every]
    if not values or any(v is None for v in values) or len({type(v) for v in values}) > 1:
        return None
    return Result(values[0])


def _binds_otherwise(node: ast.AST, name: str) -> bool:
    targets = {
        ast.AugAssign: "target",
        ast.AnnAssign: "target",
        ast.For: "target",
        ast.NamedExpr: "target",
    }
    target = getattr(node, targets.get(type(node), ""), None) if type(node) in targets else None
    if isinstance(node, ast.withitem):
        target = node.optional_vars
    return target is not None and any(
        isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)
    )


def _value_told(node: ast.expr | None) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _CALLS.get(node.func.id)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn | ast.Is):
        return False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return False
    is_number = isinstance(node, ast.Constant) and type(node.value) in (bool, int, float)
    return node.value if is_number and isinstance(node, ast.Constant) else None


def _plan(result: Result) -> list[Any]:
    """The form of a result, for a region that jumps before it has one."""
    value = result.value
    if isinstance(value, tuple | list):
        return ["tuple", [_plan(Result(part, None)) for part in value]]
    if isinstance(value, np.ndarray):
        shape = value.shape if result.shape is None else result.shape
        return ["array", value.dtype.str, [n if isinstance(n, int) else 0 for n in shape]]
    dtype = np.asarray(value).dtype if isinstance(value, _NUMBERS) else np.dtype(float)
    return ["numpy" if isinstance(value, np.generic) else "python", dtype.str, []]
