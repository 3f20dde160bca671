"""Functions of Python's libraries that each rank asks the library itself for, while it runs.

What no other module covers of SciPy is asked for: of arrays, numbers and objects of SciPy, which
are questions of their own (:class:`distspmd.frontend.from_numpy.library.held.Held`). Functions of
the program are none of these.
"""

from __future__ import annotations

import collections
import functools
import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Load
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.real_or_complex import real_or_complex
from distspmd.frontend.from_numpy.arrays.shapes import size_of
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, axis
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.asked import ask
from distspmd.frontend.from_numpy.host.blocks import emit_call
from distspmd.frontend.from_numpy.host.otherwise import is_of_program
from distspmd.frontend.from_numpy.host.probes import (
    Form,
    Leaf,
    NoForm,
    OfManyParts,
    Operand,
    form_of,
)
from distspmd.frontend.from_numpy.host.scipy_signatures import terms_by_signature
from distspmd.frontend.from_numpy.kinds.variables import Undecided
from distspmd.frontend.from_numpy.library import (
    asked_integrals,
    asked_solvers,
    ranks_of_neighbours,
    sparse,
)
from distspmd.frontend.from_numpy.library import held as of_held
from distspmd.frontend.from_numpy.library.conversations import Asked
from distspmd.frontend.from_numpy.library.held import Held
from distspmd.frontend.from_numpy.library.sparse import Sparse
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.numpy.registry import OTHERWISE, function, is_of_scipy
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.calls import name_of
from distspmd.frontend.from_numpy.reader.ranges import SymbolicRange
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import add, floor_divide, multiply
from distspmd.runtime.host.library_calls import extra_fields, is_sparse, leaves, pickled

_TEXTS = (type(None), bool, int, float, str)
_MOST_PICKLED = 1000
"""Arrays that are known have their elements in the question, up to so many."""


@function(OTHERWISE)
def _ask_for(run: Context, called: object, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a function of a library gives of arrays of the run.

    Raises:
        Refusal: it takes a function of the program, or the form of its answers is not known.
    """
    if not is_of_scipy(called):
        run.tracer.refuse(f"the function {name_of(called)} is not covered")
    package = str(getattr(called, "__module__", None)).split(".")[1:2]
    solver = SOLVERS.get((*package, getattr(called, "__name__", "")))
    if solver is not None and any(map(is_of_program, (*given, *named.values()))):
        return run.call(solver, list(given), dict(named))
    question = Question(run)
    callee = _path_of(called) or question.tree(called)
    parts = [callee, [question.tree(v) for v in given]]
    return question.ask({"call": [*parts, {k: question.tree(v) for k, v in named.items()}]})


class _IsList(Exception):
    """An answer is a list, as long as the run decides."""


class Question:
    """A question that is being made, and the tensors that it names."""

    def __init__(self, run: Context) -> None:
        self.run = run
        self.data: list[Tensor] = []

    # -- arguments ------------------------------------------------------------------------------

    def tree(self, value: object) -> Any:
        """What stands for a value."""
        run = self.run
        if isinstance(value, Held):
            shift = len(self.data)
            self.data += value.data
            return _shifted(value.question, shift)
        if isinstance(value, Sparse):
            whole = run.call(Sparse.toarray, [value], {})
            return {"call": [{"import": "scipy.sparse:csr_array"}, [self.tree(whole)], {}]}
        if isinstance(value, Asked):
            return {"function": value.number}
        if is_of_program(value):
            run.tracer.refuse("a function of the program is given to one that is not covered")
        if isinstance(value, SymbolicRange):
            value = run.call(np.arange, [value.first, value.end, value.step], {})
        value = lists.as_array(run, value)
        if isinstance(value, Tensor | sympy.Basic):
            self.data.append(run.tracer.tensor(value))
            return {"value": len(self.data) - 1}
        if isinstance(value, np.ndarray) and value.size > _MOST_PICKLED:
            self.data.append(run.tracer.tensor(value))
            return {"value": len(self.data) - 1}
        return self._of_parts(value)

    def _of_parts(self, value: Any) -> Any:
        if type(value) in _TEXTS:
            return value
        if type(value) in (list, tuple) and has_data(value) and _is_line(value):
            return self.tree(self.run.tracer.tensor(value))
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.tree(v) for v in value]}
        if isinstance(value, slice):
            return {"slice": [self.tree(v) for v in (value.start, value.stop, value.step)]}
        if isinstance(value, dict) and all(isinstance(k, str) for k in value):
            return {"dict": [[k, self.tree(v)] for k, v in value.items()]}
        if objects.is_own(value) or has_data(value):
            self.run.tracer.refuse(f"{type(value).__name__} is given to a function of a library")
        try:
            return pickled(value)
        except Exception as problem:
            self.run.tracer.refuse(f"a function of a library is given {value!r}: {problem}")

    # -- the answer -----------------------------------------------------------------------------

    def ask(self, tree: object) -> Any:
        """What the library answers; an object that is neither number nor array is held."""
        tracer = self.run.tracer
        try:
            form = self._form(tree)
        except _IsList:
            return self.run.call(list, [self.ask({"array": tree})], {})
        if not form.leaves and isinstance(form.example, list | tuple | Mapping):
            tracer.refuse(f"{_name_of(tree)}, which gives neither numbers nor arrays")
        every = self._answered(tree, form) if form.leaves else []
        found = iter([self._opened(tree, each) for each in every])
        return self._rebuilt(form.example, found, tree)

    def _opened(self, tree: object, found: Tensor) -> Tensor:
        """An answer: of a function that SciPy lets the values decide, real or complex."""
        if _name_of(tree) not in REAL_OR_COMPLEX or found.dtype.kind != "c":
            return found
        if any(t.dtype.kind == "c" for t in self.data):
            return found
        run, tracer = self.run, self.run.tracer
        apart = run.call(np.any, [run.call(np.not_equal, [apply_imag(found), 0], {})], {})
        is_complex = tracer.stored_anew(tracer.tensor(apart), "is_complex")
        return real_or_complex(tracer, found, is_complex)

    def _form(self, tree: Any) -> Form:
        tracer = self.run.tracer
        operands = []
        for tensor in self.data:
            known = _known(tracer, tensor)
            operands.append(Operand(tensor.shape, tensor.dtype, tensor.weak, known))

        def most(number: int, example: Any) -> Any:
            rule = MOST.get(_name_of(tree))
            return None if rule is None or not example.ndim else rule(operands, tree)

        try:
            return form_of(tree, operands, most)
        except NoForm as problem:
            if isinstance(problem, OfManyParts) and "array" not in tree:
                raise _IsList from problem
            raise Refusal(
                tracer.message(
                    f"{_name_of(tree)} is asked of the library while the program runs, and what "
                    f"it gives has to be known before: {problem}. Compute it before the program, "
                    "and pass the result"
                )
            ) from problem

    def _answered(self, tree: object, form: Form) -> list[Tensor]:
        if not any(f.attempts for f in self.run.tracer.frames):
            kind_of = lambda made: type(_probed(self, made))  # noqa: E731
            terms = terms_by_signature(self.run, tree, self.data, form, kind_of)
            if terms is not None:
                name = _name_of(tree)
                return emit_call(
                    self.run, name, tree, form, self.data, *terms, copies=True, stays=False
                )
        outputs = [
            (leaf.shape if leaf.most is None else (leaf.most, *leaf.shape[1:]), leaf.dtype)
            for leaf in form.leaves
        ]
        shorter = [n for n, leaf in enumerate(form.leaves) if leaf.most is not None]
        lengths = {number: len(outputs) + n for n, number in enumerate(shorter)}
        question = {"ask": tree, "form": form.text, "lengths": lengths}
        outputs += [((), INT64) for _ in shorter]
        found = ask(self.run, _name_of(tree), question, self.data, outputs)
        for tensor, example in zip(found, leaves(form.example), strict=False):
            if isinstance(tensor, View):
                tensor.container.example = np.asarray(example)
        return [self._result(found, n, leaf, lengths) for n, leaf in enumerate(form.leaves)]

    def _result(self, found: Sequence[Any], number: int, leaf: Leaf, lengths: Any) -> Tensor:
        run, tensor = self.run, found[number]
        if leaf.most is not None:
            count = run.call(int, [found[lengths[number]]], {})
            tensor = run.part_of(tensor, slice(None, count))
        known: Tensor = tensor
        return replace(known, weak=leaf.weak) if leaf.weak is not None else known

    def _rebuilt(self, example: object, found: Any, tree: object) -> Any:
        """What an answer is in the program: with arrays and numbers where the example has some."""
        if isinstance(example, np.ndarray) and example.dtype.kind in "biufc":
            return next(found)
        if isinstance(example, bool | int | float | complex | np.generic):
            return next(found)
        if isinstance(example, Mapping):
            return self._as_record(example, found, tree)
        if isinstance(example, tuple | list):
            parts = [
                self._rebuilt(part, found, {"item": [tree, n]}) for n, part in enumerate(example)
            ]
            return self._as_tuple(example, parts, found, tree)
        if example is None:
            return None
        if is_sparse(example):
            return self.run.call(sparse.matrix, [next(found), None, None, False, "csr"], {})
        if isinstance(example, str | np.ndarray | set | frozenset):
            return Undecided(f"a {type(example).__name__} that {_name_of(tree)} gives")
        return self.run.call(Held, [tree, [self._kept(t) for t in self.data]], {})

    def _as_record(self, example: Any, found: Any, tree: Any) -> Any:
        parts = {k: self._rebuilt(v, found, {"item": [tree, k]}) for k, v in example.items()}
        if type(example) is dict:
            return parts
        return _recorded(self.run, list(parts), list(parts.values()))

    def _as_tuple(self, example: Any, parts: list[Any], found: object, tree: object) -> Any:
        if type(example) in (tuple, list):
            return type(example)(parts)
        extra = {
            name: self._rebuilt(getattr(example, name), found, {"get": [tree, name]})
            for name in extra_fields(example)
        }
        fields = getattr(example, "_fields", None)
        if not fields:
            return tuple(parts)
        return _tuple_class(type(example).__name__, tuple(fields), tuple(extra))(*parts, **extra)

    def _kept(self, tensor: Tensor) -> Tensor:
        """A tensor that nobody changes afterwards."""
        tracer = self.run.tracer
        view = tracer.stored_anew(tensor, "held")
        if (known := _known(tracer, tensor)) is not None:
            view.container.example = known
        found: Tensor = view
        return found


def _known(tracer: Tracer, tensor: Tensor) -> Any:
    """The elements of a table that nothing has changed, or what those of an answer are like."""
    element = tensor.element(tuple(axis(d) for d in range(tensor.ndim)))
    if not isinstance(element, Load) or not all(isinstance(n, int) for n in tensor.shape):
        return None
    found = tracer.known.tables.get(element.array, element.array.example)
    fits = found is not None and found.size == math.prod(tensor.shape)
    return found.reshape(tensor.shape) if fits and _covers(tensor, element) else None


def _covers(tensor: Tensor, element: Load) -> bool:
    """Whether a tensor has all elements of a container in order."""
    return tuple(element.index) == tuple(axis(d) for d in range(tensor.ndim)) or (
        not tensor.ndim and tuple(element.index) in ((), (0,))
    )


@functools.cache
def _tuple_class(name: str, fields: tuple[str, ...], extra: tuple[str, ...]) -> Any:
    made: Any = collections.namedtuple
    base: Any = made(name, fields)
    if not extra:
        return base

    def make(kind: object, *given: object, **more: object) -> Any:
        found = base.__new__(kind, *given)
        found.__dict__.update(more)
        return found

    return type(name, (base,), {"__new__": make})


def _is_line(values: Sequence[Any]) -> bool:
    return all(
        isinstance(v, bool | int | float | sympy.Basic | np.generic) or _is_number(v)
        for v in values
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Tensor) and not value.ndim


def _path_of(called: object) -> Any:
    """The question for a function, by where it is; None for one that is found otherwise."""
    module = str(getattr(called, "__module__", "") or "")
    name = str(getattr(called, "__qualname__", "") or getattr(called, "__name__", ""))
    if isinstance(called, np.ufunc):
        module = "scipy.special"
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return {"import": f"{module}:{name}"} if found is called else None


def _shifted(tree: object, by: int) -> Any:
    """A question whose arrays have other numbers."""
    if isinstance(tree, dict):
        if isinstance(tree.get("value"), int):
            return {"value": tree["value"] + by}
        return {key: _shifted(part, by) for key, part in tree.items()}
    return [_shifted(part, by) for part in tree] if isinstance(tree, list) else tree


def _name_of(tree: object) -> str:
    """What a question is called: the function, or the class and what is asked of it."""
    if not isinstance(tree, dict):
        return "answer"
    ((kind, given),) = tree.items()
    if kind == "import":
        return str(given.rpartition(":")[2])
    if kind in ("call", "item"):
        return _name_of(given[0])
    if kind == "array":
        return _name_of(given)
    if kind == "get":
        return f"{_name_of(given[0])}.{given[1]}"
    return "object" if kind == "pickle" else str(kind)


# -- objects --------------------------------------------------------------------------------------


@function(of_held.recorded)
def _recorded(run: Context, names: Sequence[str], values: Sequence[Any]) -> Any:
    made = objects.new_object(run, of_held.Record)
    vars(made).update(zip(names, values, strict=True))
    return made


@function(of_held.attribute_of)
def _attribute_of(run: Context, held: Held, name: str) -> Any:
    question = Question(run)
    tree = {"get": [question.tree(held), name]}
    example = _probed(question, tree)
    if name.startswith("__") or example is _NOTHING:
        run.tracer.refuse(f"{_name_of(tree)}, which the library has not")
    if callable(example):
        return run.call(Held, [tree, held.data], {})
    return question.ask(tree)


_NOTHING = object()


def _probed(question: Question, tree: object) -> Any:
    try:
        return question._form(tree).example
    except Refusal:
        return _NOTHING


@function(sparse.stored_part)
def _stored_part(run: Context, matrix: Sparse, name: str) -> Any:
    """What SciPy stores of a matrix that was made of an array, or of entries."""
    if name not in ("nnz", "data", "indices", "indptr", "row", "col") or not matrix.is_given:
        run.tracer.refuse(
            f"{name!r} of a sparse matrix that is no csr, csc or coo matrix of an array or of "
            "entries; make one, by scipy.sparse.csr_matrix(a.toarray())"
        )
    question = Question(run)
    kind = f"scipy.sparse:{matrix.format}_{'array' if matrix.is_array else 'matrix'}"
    if matrix.whole is not None:
        given = question.tree(matrix.whole)
    else:
        parts = (matrix.entries, (matrix.lines, matrix.columns))
        given = {"tuple": [question.tree(parts[0]), {"tuple": [*map(question.tree, parts[1])]}]}
    made = {"call": [{"import": kind}, [given], {"shape": question.tree(tuple(matrix.shape))}]}
    return question.ask({"get": [made, name]})


@function(of_held.result_of)
def _result_of(run: Context, held: Held, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    question = Question(run)
    parts = [question.tree(held), [question.tree(v) for v in given]]
    return question.ask({"call": [*parts, {k: question.tree(v) for k, v in named.items()}]})


@function(of_held.operated)
def _operated(run: Context, name: str, *operands: object) -> Any:
    question = Question(run)
    return question.ask({"operator": [name, *(question.tree(v) for v in operands)]})


# -- solvers that ask for functions of the program -------------------------------------------------

SOLVERS: dict[tuple[str, ...], Any] = {
    **{("optimize", each.__name__): each for each in asked_solvers.OPTIMIZERS},
    **{("integrate", each.__name__): each for each in asked_integrals.INTEGRATORS},
    ("ndimage", "generic_filter"): ranks_of_neighbours.generic_filter,
}
"""What takes functions of the program, by package and name."""

REAL_OR_COMPLEX = frozenset(["sqrtm", "logm", "fractional_matrix_power", "signm"])
"""What gives real numbers of real ones where it can."""

# -- lengths that the run decides -----------------------------------------------------------------


def _size(operands: Sequence[Operand], tree: object) -> Length:
    found: Length = size_of(operands[0].shape)
    return found


def _of_hull(more: int) -> Any:
    def most(operands: Sequence[Operand], tree: object) -> Any:
        n, d = operands[0].shape
        return multiply(2, functools.reduce(multiply, [n] * max(1, (int(d) + more) // 2)))

    return most


def _of_spline(operands: Sequence[Operand], tree: Any) -> Length | None:
    """Knots are as many as places and some, or fewer where a spline is smoothed."""
    _, given, named = tree["call"]
    is_smoothed = named.get("s") or "w" in named or len(given) > 2
    return add(_size(operands, tree), 12) if is_smoothed else None


def _pairs(operands: Sequence[Operand], tree: object) -> Length:
    n = operands[0].shape[0]
    return floor_divide(multiply(n, n), 2)


MOST: dict[str, Any] = {
    "find_peaks": _size,
    "find_peaks_cwt": _size,
    **dict.fromkeys(("argrelextrema", "argrelmax", "argrelmin"), _size),
    "splrep": _of_spline,
    **{f"{kind}KDTree.query_pairs": _pairs for kind in ("", "c")},
    **{f"UnivariateSpline.{name}": _size for name in ("get_knots", "get_coeffs")},
    "ConvexHull.vertices": lambda operands, tree: operands[0].shape[0],
    **{f"ConvexHull.{name}": _of_hull(0) for name in ("simplices", "equations", "neighbors")},
    **{f"Delaunay.{name}": _of_hull(1) for name in ("simplices", "neighbors")},
    "Delaunay.convex_hull": _of_hull(0),
    **{
        f"{kind}_{what}.{name}": _size
        for kind in ("csr", "csc", "coo")
        for what in ("matrix", "array")
        for name in ("data", "indices", "row", "col")
    },
}
"""How long the arrays of an answer are at most of which the run decides the length."""
