"""The JSON of an SDFG as DaCe's viewer is to draw it: with labels in words.

It is to be seen alone, and reads as no SDFG: spaces have their grids, tiles their layouts, tasklets
what they compute, and the handle of the plans, which every distributed memlet reads, is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import dace.serialize
from dace import SDFG

from distspmd.expressions.infix import infix
from distspmd.expressions.ir import count_additions, depth_of
from distspmd.expressions.text import parse_assignments
from distspmd.lowering import ATTRIBUTE, CONTEXT, Lowering, TiledSpace

COMMUNICATION = "communicates"
"""Key of nodes that communicate, which have a colour of their own."""

_Json = dict[str, Any]

_SYMBOL = re.compile(r"symbol\(\$(\w+)(?:, \w+=[\w.]+)*\)|\$(\w+)")
"""A symbol in DaCe's text form of symbols."""

_BOXES = re.compile(r"boxes(\[[^\]]*\])\{[^}]*\}")
"""A layout that has a box of its own for each rank."""

_MEMLETS = ("DistributedMemlet", "FetchedMemlet", "ExchangedRows")
_WIDEST = 64
"""Letters of a label; what is wider moves all else apart."""


def drawn(sdfg: SDFG) -> _Json:
    """What the viewer is to draw of an SDFG; one that is lowered brings its record."""
    found: _Json = _in_words(json.loads(dace.serialize.dumps(sdfg.to_json())))
    record = getattr(sdfg, ATTRIBUTE, None)
    _Words(record if isinstance(record, Lowering) else None).say(found)
    return found


def _in_words(part: Any) -> Any:
    """Part of the JSON, with symbols by their names."""
    if isinstance(part, dict):
        return {key: _in_words(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_in_words(value) for value in part]
    if isinstance(part, str) and "$" in part:
        return _SYMBOL.sub(lambda found: found[1] or found[2], part)
    return part


class _Words:
    """Changes JSON in place."""

    def __init__(self, record: Lowering | None) -> None:
        self.spaces = {space.name: space for space in record.spaces} if record else {}
        self.places = record.places if record else {}
        self.tiles = record.tiles if record else {}
        labels = [space.label for space in self.spaces.values()]
        self.labels = {s.label: s for s in self.spaces.values() if labels.count(s.label) == 1}

    def say(self, graph: _Json) -> None:
        """Change an SDFG, or a region of one, with all that it contains."""
        for block in graph.get("nodes", ()):
            if block["type"] == "SDFGState":
                self._state(block)
            else:
                self.say(block)
        for _, branch in graph.get("branches", ()):
            self.say(branch)
        if graph["type"] == "SDFG":
            graph["attributes"].pop("global_code", None)
            arrays = graph["attributes"]["_arrays"]
            arrays.update({self.tile(name): arrays.pop(name) for name in list(arrays)})

    def _state(self, state: _Json) -> None:
        _leave_out(state, CONTEXT)
        for node in state["nodes"]:
            _SAYINGS.get(node["type"], lambda *_: None)(self, state, node)
        for edge in state["edges"]:
            memlet = edge["attributes"]["data"]["attributes"]
            if memlet.get("data"):
                memlet["data"] = self.tile(memlet["data"])

    def tile(self, container: str) -> str:
        """A container with the layout of its tiles."""
        return (
            f"{container} {_short(self.tiles[container])}" if container in self.tiles else container
        )

    def _space(self, node: _Json) -> TiledSpace | None:
        """The iteration space that a node is."""
        own = node["attributes"]
        if node["scope_entry"] not in (None, str(node["id"])):
            return None
        name = self.places.get(own.get("guid", ""))
        return self.spaces.get(name) if name else self.labels.get(own.get("label", ""))

    def access(self, _: _Json, node: _Json) -> None:
        """An access node: the container, with the layout of its tiles."""
        node["label"] = node["attributes"]["data"] = self.tile(node["attributes"]["data"])

    def entry(self, state: _Json, node: _Json) -> None:
        """A map: parameters, ranges and the grid.

        A viewer without our script writes ``[parameter=range, ..]``, so all ranges are made one.
        """
        own, space = node["attributes"], self._space(node)
        if space is not None:
            told = ", ".join(f"{name}={reach}" for name, reach in space.iterates)
            first, then = space.name, f"{told} on {space.where}" if told else f"on {space.where}"
            node["label"] = f"{first}: {then}"
        else:
            first = ", ".join(own["params"])
            then = ", ".join(map(_range, own["range"]["ranges"]))
            node["label"] = f"{first} = {then}"
        own["params"] = [first]
        own["range"]["ranges"] = [{"start": then, "end": then, "step": "1", "tile": "1"}]
        for other in state["nodes"]:
            if other["type"] == "MapExit" and other["scope_entry"] == str(node["id"]):
                other["label"] = node["label"]

    def library(self, _: _Json, node: _Json) -> None:
        """A library node: what it does, and its grid; what communicates is marked."""
        space = self._space(node)
        if str(node.get("classpath", "")).rpartition(".")[2] in _MEMLETS:
            node[COMMUNICATION] = True
            node["label"] = _short(node["label"])
        elif space is not None:
            _, colon, what = node["label"].partition(": ")
            node["label"] = f"{space.name}{colon}{what} on {space.where}"

    def tasklet(self, state: _Json, node: _Json) -> None:
        """A tasklet: what it computes, of elements of containers, where that is known."""
        own = node["attributes"]
        try:
            assignments = parse_assignments(own.get("expressions", ""))
        except ValueError:
            return
        if not assignments:
            return
        if max(depth_of(e) for _, e in assignments) > 30 or (
            sum(count_additions(e) for _, e in assignments) > 2000
        ):
            return
        names = {
            **{e["dst_connector"]: self._element(e) for e in _edges(state, "dst", node)},
            **{e["src_connector"]: self._element(e) for e in _edges(state, "src", node)},
        }
        lines = [
            f"{names.get(name, name)} = {infix(value, lambda part: names.get(part, part))}"
            for name, value in assignments
        ]
        own["code"] = {"string_data": "\n".join(lines), "language": "Python"}
        label = "; ".join(
            infix(value, lambda part: names.get(part, part)) for _, value in assignments
        )
        node["label"] = label if len(label) <= _WIDEST else label[: _WIDEST - 1] + "…"

    def _element(self, edge: _Json) -> str:
        """What an edge reads or writes, as in a program."""
        memlet = edge["attributes"]["data"]["attributes"]
        name = memlet.get("data") or ""
        subset = memlet.get("subset") or {"ranges": []}
        index = ", ".join(map(_range, subset["ranges"]))
        name = name.removesuffix("_tile") if name in self.tiles else name
        return name if index in ("", "0") else f"{name}[{index}]"


_SAYINGS = {
    "AccessNode": _Words.access,
    "MapEntry": _Words.entry,
    "LibraryNode": _Words.library,
    "Tasklet": _Words.tasklet,
    "NestedSDFG": lambda words, _, node: words.say(node["attributes"]["sdfg"]),
}
"""What is said of a node, by its type."""


def _short(layout: str) -> str:
    """A text of layouts, in which boxes are not listed."""
    return _BOXES.sub(r"boxes of \1", layout)


def _edges(state: _Json, end: str, node: _Json) -> Iterator[_Json]:
    """The edges of a state that begin (``src``) or end (``dst``) at a node."""
    return (e for e in state["edges"] if e[end] == str(node["id"]) and e[f"{end}_connector"])


def _range(reach: _Json) -> str:
    """A range as NumPy writes it."""
    begin, end, step = (str(reach[name]) for name in ("start", "end", "step"))
    if begin == end:
        return begin
    past = re.sub(r"\A-1 \+ ", "", end) if end.startswith("-1 + ") else _next(end)
    return f"{begin}:{past}" + (f":{step}" if step != "1" else "")


def _next(end: str) -> str:
    if re.fullmatch(r"-?\d+", end):
        return str(int(end) + 1)
    return end.removesuffix(" - 1") if end.endswith(" - 1") else f"{end} + 1"


def _leave_out(state: _Json, container: str) -> None:
    """Remove all accesses to a container from a state, with the connectors that they lead to."""
    gone = {
        str(node["id"])
        for node in state["nodes"]
        if node["type"] == "AccessNode" and node["attributes"]["data"] == container
    }
    if not gone:
        return
    for edge in state["edges"]:
        if edge["src"] in gone:
            node = state["nodes"][int(edge["dst"])]
            node["attributes"]["in_connectors"].pop(edge["dst_connector"], None)
    state["edges"] = [e for e in state["edges"] if not {e["src"], e["dst"]} & gone]
    state["nodes"] = [node for node in state["nodes"] if str(node["id"]) not in gone]
    numbers = {str(node["id"]): n for n, node in enumerate(state["nodes"])}
    for node in state["nodes"]:
        node["id"] = numbers[str(node["id"])]
        for key in ("scope_entry", "scope_exit"):
            if node[key] is not None:
                node[key] = str(numbers[node[key]])
    for edge in state["edges"]:
        edge["src"], edge["dst"] = (str(numbers[edge[end]]) for end in ("src", "dst"))
    state["scope_dict"] = {
        str(numbers.get(key, key)): [numbers[str(n)] for n in inside if str(n) in numbers]
        for key, inside in state["scope_dict"].items()
    }
