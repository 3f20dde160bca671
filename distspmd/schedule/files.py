"""Schedules in files: as YAML, with the line of each entry for messages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distspmd.errors import LayoutError, MeshError, ScheduleError
from distspmd.layouts.dealing import Cyclic
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import HOLDINGS, Axes, OnMesh, Schedule, axes_of, dealt_of

VERSION = 2
"""Of the format of files; those of version 1 say nothing of arguments."""

ROOT = "root"
"""What files call the mesh of rank 0 alone."""


def written(schedule: Schedule) -> str:
    """A schedule as YAML."""
    import yaml

    meshes: dict[Mesh, str] = {}
    spaces: dict[str, Any] = {}
    for name, asked in schedule.items():
        name = str(name)  # of a preset too
        if not isinstance(asked, OnMesh):
            spaces[name] = dict(asked) if isinstance(asked, Mapping) else list(asked)
            continue
        if not asked.mesh.axes:
            spaces[name] = {"mesh": ROOT}
            continue
        mesh = meshes.setdefault(asked.mesh, f"mesh{len(meshes) + 1}")
        split = {each: _axes_written(asked.mesh, a, name) for each, a in asked.split.items()}
        spaces[name] = {"mesh": mesh, **({"split": split} if split else {})}

    def as_written(layout: Layout) -> dict[str, str]:
        if not layout.mesh.axes:
            return {"mesh": ROOT, "layout": str(layout)}
        mesh = meshes.setdefault(layout.mesh, f"mesh{len(meshes) + 1}")
        return {"mesh": mesh, "layout": str(layout)}

    homes = {name: as_written(home) for name, home in schedule.homes.items()}
    arguments = {
        name: as_written(kind) if isinstance(kind, Layout) else kind
        for name, kind in schedule.arguments.items()
    }
    content = {
        "version": VERSION,
        "meshes": {name: dict(mesh.axes) for mesh, name in meshes.items()},
        "spaces": spaces,
        **({"homes": homes} if homes else {}),
        **({"arguments": arguments} if arguments else {}),
        **({"held": dict(schedule.held)} if schedule.held else {}),
    }
    text: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None)
    return text


def _axes_written(mesh: Mesh, axes: Axes, name: str) -> list[str]:
    axes, dealt = dealt_of(axes)
    return [*axes_of(mesh, axes, name), *([str(dealt)] if dealt else [])]


def read(path: Path) -> Schedule:
    """The schedule in a file.

    Raises:
        ScheduleError: there is none, or it is not understood; with the line.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        content, node = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError, OSError) as error:
        raise ScheduleError(f"the schedule {path} is neither YAML nor JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(node, yaml.MappingNode):
        raise ScheduleError(
            f"the schedule {path} is no mapping. Write lines such as hidden: [2, 2, 1]."
        )
    if "version" not in content:
        return Schedule(content, _places(path, node))
    entries = {key.value: value for key, value in node.value}
    known = ("version", "meshes", "spaces", "homes", *(_HOLDING if content["version"] != 1 else ()))
    unknown = [key for key in content if key not in known]
    versions = range(1, VERSION + 1)
    if content["version"] not in versions or unknown or not isinstance(content.get("spaces"), dict):
        raise ScheduleError(
            f"{path}:{node.start_mark.line + 1}: a schedule of version {content['version']!r} with "
            f"{', '.join(map(repr, content))}. Write version: {VERSION}, meshes and spaces; homes, "
            "arguments and held may follow."
        )
    places = _places(path, entries["spaces"])
    given = _section(path, content, entries, "meshes")
    meshes = {name: _mesh(sizes, place) for name, (place, sizes) in given.items()}
    spaces = {
        name: _entry(places[name], asked, meshes) for name, asked in content["spaces"].items()
    }
    homes = {}
    for name, (where, asked) in _section(path, content, entries, "homes").items():
        homes[name], places[f"home of {name}"] = _layout(where, asked, meshes), where
    held: dict[str, dict[str, Any]] = {key: {} for key in _HOLDING}
    for key in _HOLDING:
        for name, (where, kind) in _section(path, content, entries, key).items():
            places[f"{key} {name}"] = where
            if key == "arguments" and isinstance(kind, dict):
                held[key][name] = _layout(where, kind, meshes)
            else:
                held[key][name] = _kind(where, key, name, kind)
    return Schedule(spaces, places, homes, **held)


_SECTIONS = {
    "meshes": "mesh1: {x: 4, y: 2}",
    "homes": "w: {mesh: mesh1, layout: '[4{x}8]'}",
    "arguments": "w: distributed",
    "held": "parameters: distributed",
}
"""What a line of each section looks like; the last two came with version 2."""
_HOLDING = ("arguments", "held")


def _section(
    path: Path, content: Mapping[str, Any], entries: Mapping[str, Any], key: str
) -> dict[str, tuple[str, Any]]:
    """The places and values of what a section names."""
    given = content.get(key)
    if not given:
        return {}
    if not isinstance(given, dict):
        line = entries[key].start_mark.line + 1
        raise ScheduleError(f"{path}:{line}: {key} is no mapping. Write {_SECTIONS[key]}.")
    places = _places(path, entries[key])
    return {str(name): (places[str(name)], value) for name, value in given.items()}


def _kind(place: str, key: str, name: str, kind: Any) -> str:
    if key == "held" and name not in ("parameters", "states"):
        raise ScheduleError(f"{place}: {name!r} is held; write 'parameters' or 'states'.")
    if kind not in HOLDINGS:
        kinds = ", ".join(map(repr, HOLDINGS))
        raise ScheduleError(f"{place}: {name!r} is to be held {kind!r}; write one of {kinds}.")
    return str(kind)


def _places(path: Path, node: Any) -> dict[str, str]:
    """File and line of each key of a mapping."""
    return {key.value: f"{path}:{key.start_mark.line + 1}" for key, _ in node.value}


def _mesh(sizes: Any, place: str) -> Mesh:
    try:
        return Mesh.of(sizes)
    except MeshError as error:
        raise ScheduleError(f"{place}: {error}") from None


def _entry(place: str, asked: Any, meshes: Mapping[str, Mesh]) -> Any:
    if not isinstance(asked, dict) or "mesh" not in asked:
        return asked
    unknown = [key for key in asked if key not in ("mesh", "split")]
    if unknown:
        raise ScheduleError(f"{place}: {unknown[0]!r} is neither 'mesh' nor 'split'.")
    mesh, split = _known_mesh(place, asked["mesh"], meshes), asked.get("split") or {}
    if not isinstance(split, dict):
        raise ScheduleError(f"{place}: split is no mapping. Write split: {{i: x, j: [y, z]}}.")
    try:
        axes = {
            name: tuple(map(Cyclic.parse, a)) if isinstance(a, list) else a
            for name, a in split.items()
        }
    except ScheduleError as error:
        raise ScheduleError(f"{place}: {error}") from None
    return OnMesh(mesh, axes)


def _known_mesh(place: str, name: Any, meshes: Mapping[str, Mesh]) -> Mesh:
    if name not in meshes and name != ROOT:
        raise ScheduleError(
            f"{place}: there is no mesh {name!r}; there are {', '.join(meshes) or 'none'}, and "
            f"{ROOT!r}, rank 0 alone."
        )
    return meshes.get(name, Mesh())


def _layout(place: str, asked: Any, meshes: Mapping[str, Mesh]) -> Layout:
    if not isinstance(asked, dict) or {*asked} != {"mesh", "layout"}:
        raise ScheduleError(
            f"{place}: {asked!r} is no layout. Write {{mesh: mesh1, layout: '[4{{x}}8]'}}."
        )
    try:
        return Layout.parse(asked["layout"], _known_mesh(place, asked["mesh"], meshes))
    except LayoutError as error:
        raise ScheduleError(f"{place}: {error}") from None
