"""Classes that a program defines within functions: classes of Python, whose methods it reads.

The body of a class is read where it stands; what it binds are attributes of the class. Its methods
are functions of the program, which see the variables of the function around.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.decorators import decorated
from distspmd.frontend.from_numpy.reader.registry import statement


@statement(ast.ClassDef)
def _define(run: Context, node: ast.ClassDef) -> None:
    tracer = run.tracer
    bases = [run.value(base) for base in node.bases]
    keywords = {each.arg: run.value(each.value) for each in node.keywords if each.arg}
    around: dict[str, Any] = {}
    content = _content(run, node, around)
    try:
        made = types.new_class(node.name, tuple(bases), keywords, lambda own: own.update(content))
    except TypeError as problem:
        tracer.refuse(f"class {node.name}: TypeError: {problem}")
    around["__class__"] = made
    tracer.node = node
    run.variables[node.name] = decorated(run, node.decorator_list, made)


def _content(run: Context, node: ast.ClassDef, around: dict[str, Any]) -> dict[str, Any]:
    """What the body of a class binds.

    Args:
        run: the reading.
        node: the class.
        around: what its methods see beside the variables of the function around.
    """
    frame = run.tracer.frames[-1]
    before = dict(run.variables)
    frame.comprehensions.append(around)
    try:
        with run.variables_of(dict(before)):
            run.block(node.body)
            after = dict(run.variables)
    finally:
        frame.comprehensions.pop()
    own = {name: v for name, v in after.items() if name not in before or before[name] is not v}
    annotated = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    module = next(f.outside.get("__name__") for f in (frame, frame.around or frame))
    return {
        "__module__": module or "__program__",
        "__qualname__": f"<locals>.{node.name}",
        "__doc__": ast.get_docstring(node),
        "__annotations__": {
            part.target.id: ast.unparse(part.annotation)
            for part in annotated
            if isinstance(part.target, ast.Name)
        },
        **own,
    }
