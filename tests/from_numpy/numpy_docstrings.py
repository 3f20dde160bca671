"""The examples in the docstrings of NumPy's own functions as cases: each a function of its arrays.

An example is an expression that gives numbers. Its function consists of the statements of the
docstring from which these numbers come, and of the expression, which it returns. Arrays that are
written out become arguments. What NumPy gives for the function is what it gives for the example.

``python -m from_numpy.numpy_docstrings FILE`` writes the functions into a file, to be looked at;
``python -m from_numpy.sweep --collection docstrings`` runs them.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import copy
import doctest
import functools
import importlib.util
import io
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case
from from_numpy.outcomes import differences

Namespace = dict[str, Any]

_LEFT_OUT = """
    array2string array_repr array_str base_repr binary_repr can_cast common_type DataSource dump
    dumps empty empty_like errstate format_float_positional format_float_scientific
    from_dlpack frombuffer fromfile fromfunction frompyfunc fromregex fromstring genfromtxt
    get_include
    get_printoptions getbufsize geterr geterrcall info iscomplexobj issubdtype load loadtxt
    may_share_memory memmap mintypecode nested_iters poly1d printoptions promote_types
    result_type save savetxt savez savez_compressed set_printoptions setbufsize seterr
    seterrcall setflags shares_memory show_config show_runtime test tobytes tofile tostring
    typename vectorize
"""
"""Functions of files, texts, objects and settings, and those of arrays without content."""


def public_functions() -> Iterator[tuple[str, Any]]:
    """NumPy's public functions, and methods of arrays and of ufuncs, by name."""
    places: list[tuple[str, Any, Any]] = [
        ("np", np, np.__all__),
        ("np.linalg", np.linalg, np.linalg.__all__),
        ("np.fft", np.fft, np.fft.__all__),
        ("np.ndarray", np.ndarray, dir(np.ndarray)),
        ("np.ufunc", np.ufunc, ["accumulate", "at", "outer", "reduce", "reduceat"]),
    ]
    for place, owner, names in places:
        for name in sorted(names):
            found = getattr(owner, name)
            if name.startswith("_") or name in _LEFT_OUT.split() or isinstance(found, type):
                continue
            if callable(found) and found.__doc__:
                yield f"{place}.{name}", found


# --- what examples do ---


@dataclass(frozen=True)
class Statement:
    """A statement of a docstring: the names that it reads, and those whose values it changes."""

    node: ast.stmt
    reads: frozenset[str]
    changes: frozenset[str]


@dataclass(frozen=True)
class Example:
    """An expression of a docstring, with the statements from which its value comes."""

    before: tuple[ast.stmt, ...]
    expression: ast.expr
    value: Any


def examples_of(doc: str) -> Iterator[Example]:
    """The examples of a docstring whose values are numbers, or arrays of them."""
    names: Namespace = {"np": np}
    done: list[Statement] = []
    try:
        found = doctest.DocTestParser().get_examples(doc)
    except ValueError:
        return
    for each in found:
        try:
            nodes = ast.parse(each.source).body
        except SyntaxError:
            continue
        for node in nodes:
            before = {name: _copied(value) for name, value in names.items()}
            value = _performed(node, names)
            if value is _FAILED:
                names = before
                continue
            if isinstance(node, ast.Expr) and _is_numeric(value):
                yield Example(tuple(_needed(done, node)), node.value, _copied(value))
            changed = {name for name in names if not _same(before.get(name, _FAILED), names[name])}
            done.append(Statement(node, _reads(node), frozenset(changed)))


_FAILED = object()


def _performed(node: ast.stmt, names: Namespace) -> Any:
    """Run a statement; the value of an expression, None of others, or _FAILED."""
    if "plt" in _reads(node):
        return _FAILED
    try:
        with _quiet():
            if isinstance(node, ast.Expr):
                return eval(compile(ast.Expression(node.value), "<doc>", "eval"), names)
            exec(compile(ast.Module([node], []), "<doc>", "exec"), names)
    except Exception:
        return _FAILED
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate():
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        yield


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # modules, generators and files stay what they are
        return value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and one.tobytes() == other.tobytes()
    if type(one) is not type(other):
        return False
    try:
        return bool(one == other)
    except Exception:
        return False


def _is_numeric(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return bool(value) and all(map(_is_numeric, value))
    if isinstance(value, np.ndarray):
        return type(value) is np.ndarray and value.dtype.kind in "biufc"
    return isinstance(value, bool | int | float | complex | np.number | np.bool)


def _reads(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _needed(done: list[Statement], node: ast.stmt) -> list[ast.stmt]:
    """The statements from which the values come that a statement reads."""
    wanted, found = set(_reads(node)), []
    for each in reversed(done):
        if each.changes & wanted:
            found.append(each.node)
            wanted -= _defined(each.node)
            wanted |= each.reads - _defined(each.node)
    return found[::-1]


def _defined(node: ast.stmt) -> set[str]:
    """Names whose values do not depend on what they were before a statement."""
    if not isinstance(node, ast.Assign):
        return set()
    targets = {each.id for each in node.targets if isinstance(each, ast.Name)}
    return targets - {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}


# --- functions ---


_HOW = (
    *("apply_over_axes", "einsum", "empty", "full", "moveaxis", "ones", "piecewise"),
    *("tensordot", "transpose", "zeros"),
)
"""Functions whose lists are lengths, axes, subscripts or functions: how, not what, is computed."""


class _Arguments(ast.NodeTransformer):
    """Names instead of arrays that are written out: of ``np.array([...])``, and of lists."""

    def __init__(self, lists: bool) -> None:
        self.values: dict[str, np.ndarray] = {}
        self._lists = lists

    def visit_Call(self, node: ast.Call) -> ast.AST:
        made = ast.unparse(node.func) in ("np.array", "np.asarray") and node.args
        if made and _is_literal(node.args[0]) and not _reads(node) - {"np"}:
            with contextlib.suppress(Exception):
                return self._argument(eval(ast.unparse(node), {"np": np}), node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _HOW:
            for each in (*node.args, *(keyword.value for keyword in node.keywords)):
                if not _is_literal(each):
                    self.visit(each)
            return node
        self.generic_visit(node)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        if self._lists and _is_literal(node):
            with contextlib.suppress(Exception):
                return self._argument(np.array(ast.literal_eval(node)), node)
        self.generic_visit(node)
        return node

    def _argument(self, value: Any, node: ast.AST) -> ast.AST:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc" or not value.ndim:
            return node
        name = f"array_{len(self.values)}"
        self.values[name] = value
        return ast.Name(name, ast.Load())


def _is_literal(node: ast.AST) -> bool:
    try:
        ast.literal_eval(node)
    except Exception:
        return False
    return True


@dataclass(frozen=True)
class Function:
    """The text of a function, and arrays for its parameters."""

    name: str
    text: str
    arguments: Mapping[str, np.ndarray]


def function_of(name: str, example: Example) -> Function | None:
    """An example as a function, if NumPy gives the same for it, each time.

    Lists become arrays only where this changes nothing: shapes and axes are no arrays.
    """
    for lists in (True, False):
        change = _Arguments(lists)
        body = [change.visit(copy.deepcopy(each)) for each in example.before]
        body.append(ast.Return(change.visit(copy.deepcopy(example.expression))))
        head = f"def {name}({', '.join(change.values)}):"
        text = "\n".join([head, *("    " + line for each in body for line in _lines(each))]) + "\n"
        if _gives(name, text, change.values, example.value):
            return Function(name, text, change.values)
    return None


def _lines(node: ast.AST) -> list[str]:
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()


def _gives(name: str, text: str, values: Mapping[str, np.ndarray], wanted: Any) -> bool:
    """Whether a function gives what the example did, twice."""
    names: Namespace = {"np": np}
    try:
        with _quiet():
            exec(text, names)
            found = [names[name](*(each.copy() for each in values.values())) for _ in range(2)]
    except Exception:
        return False
    return not any(True for one in found for _ in differences(one, wanted))


# --- cases ---


@functools.cache
def functions() -> Mapping[str, tuple[Function, ...]]:
    """The functions of examples, by the name of NumPy's function; the same text comes once."""
    found, texts = {}, set()
    for name, of_numpy in public_functions():
        made = []
        for number, example in enumerate(examples_of(of_numpy.__doc__)):
            each = function_of(f"{name.removeprefix('np.').replace('.', '_')}_{number}", example)
            content = each and (each.text.partition(":\n")[2], repr(each.arguments))
            if each and content not in texts:
                texts.add(content)
                made.append(each)
        if made:
            found[name] = tuple(made)
    return found


@functools.cache
def cases() -> Mapping[str, Case]:
    """The cases, by name; their functions stand in a file, as those of users do."""
    folder = Path(tempfile.mkdtemp(prefix="numpy-docstrings-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "numpy_examples.py"
    file.write_text(text())
    described = importlib.util.spec_from_file_location("numpy_examples", file)
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules["numpy_examples"] = module
    described.loader.exec_module(module)
    return {
        f"{name}-{each.name.rpartition('_')[2]}": Case(
            f"{name}-{each.name.rpartition('_')[2]}",
            getattr(module, each.name),
            name,
            "NumPy",
            _maker(each),
            (),
        )
        for name, made in functions().items()
        for each in made
    }


def _maker(function: Function) -> Callable[..., tuple[Any, ...]]:
    return lambda _: tuple(value.copy() for value in function.arguments.values())


def text() -> str:
    """All functions, as a module."""
    parts = ['"""Examples of NumPy\'s docstrings."""\n\nimport numpy as np\n']
    parts += [each.text for made in functions().values() for each in made]
    return "\n\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text())
    print(f"{len(cases())} examples of {len(functions())} functions")
