"""Tasklets of our own classes: DaCe's code generators and its viewer go by names of classes.

In JSON they are tasklets, which DaCe's viewers draw, with the path of their class beside them, as
library nodes have it. What is read becomes the class again.
"""

from __future__ import annotations

import pydoc
from typing import Any

from dace import dtypes
from dace.codegen.targets.cpu import CPUCodeGen
from dace.codegen.targets.cuda import CUDACodeGen
from dace.sdfg import nodes
from dace.serialize import set_properties_from_json

_CLASS = "classpath"
"""Key of the path of a class, at library nodes too."""

_plain_from_json = nodes.Tasklet.from_json


class OwnTasklet(nodes.Tasklet):
    """A tasklet with properties of its own; subclasses can be made from a label alone."""

    __jsontype__ = "Tasklet"

    def __init_subclass__(cls) -> None:
        for target in (CPUCodeGen, CUDACodeGen):
            setattr(target, f"_generate_{cls.__name__}", target._generate_Tasklet)

    def to_json(self, parent: Any) -> dict[str, Any]:
        """A tasklet that names its class."""
        found: dict[str, Any] = super().to_json(parent)
        return {**found, _CLASS: nodes.full_class_path(self)}

    @classmethod
    def from_json(cls, json_obj: dict[str, Any], context: Any = None) -> OwnTasklet:
        """The node of its JSON."""
        node = cls(json_obj.get("label", "tasklet"))
        set_properties_from_json(node, json_obj, context=context)
        return node


def _from_json(json_obj: dict[str, Any], context: Any = None) -> nodes.Tasklet:
    """A tasklet of the class that its JSON names."""
    path = str(json_obj.get(_CLASS, ""))
    kind = pydoc.locate(path) if path.startswith("distspmd.") else None
    if isinstance(kind, type) and issubclass(kind, OwnTasklet):
        return kind.from_json(json_obj, context)
    found: nodes.Tasklet = _plain_from_json(json_obj, context)
    return found


nodes.Tasklet.from_json = staticmethod(_from_json)  # type: ignore[method-assign]


LINES = "_lines"
"""The variable of code for the lines that it takes, side by side and wherever they lie."""


def takes_lines(node: nodes.Node) -> bool:
    """Whether a node is code that takes as many lines as there are."""
    return (
        isinstance(node, nodes.Tasklet)
        and node.language == dtypes.Language.CPP
        and f"({LINES}, " in node.code.as_string
    )
