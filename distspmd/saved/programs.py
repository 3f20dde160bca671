"""Lowered programs as bytes and as files: the record of the lowering, and the SDFGs.

The record is read at once, and an SDFG when somebody needs it: ranks that only load a program need
no DaCe, and what is in a file runs when it is compiled, not when it is looked at.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distspmd.errors import SavedError, describe
from distspmd.execution.binding import bind, bound, saved_of
from distspmd.lowering import RECORD, Graphs, Lowering, lowering_of
from distspmd.saved.envelope import FIRST_LINE, unwrap, wrap
from distspmd.saved.values import CannotSave, Reader, Writer

if TYPE_CHECKING:
    from dace import SDFG

    from distspmd.symbolic_lowering import SymbolicLowering

_SAID = ("_distspmd_call_form", "_distspmd_meanings")
"""Names under which an SDFG carries what front ends say of it."""
_OF_RECORDS = ("record", "arrays")


@dataclass
class SavedGraphs:
    """The SDFGs of a lowering as they were saved; they are read when somebody asks for them.

    Attributes:
        lowering: of which they are.
        texts: each, packed, by what it is.
        binding: of the lowered one, as it was saved.
    """

    lowering: Lowering
    texts: Mapping[str, bytes]
    binding: Any

    @cached_property
    def sdfg(self) -> SDFG:
        """The lowered program."""
        from distspmd.dace_compat.carried import carry

        found = _graph(self.texts["lowered"])
        carry(found, self.lowering)
        if self.binding is not None:
            bind(found, self.binding)
        return found

    @cached_property
    def original(self) -> SDFG | None:
        """The program as it was."""
        return _graph(self.texts["original"]) if "original" in self.texts else None

    def bind_to(self, binding: Any) -> None:
        """Let the program work on live objects."""
        self.binding = binding
        if "sdfg" in vars(self):
            bind(self.sdfg, binding)


def to_bytes(lowered: Any) -> bytes:
    """A lowered program as bytes, which :func:`from_bytes` reads in any process.

    Args:
        lowered: what :func:`distspmd.lower` returned, or its SDFG.

    Raises:
        SavedError: it is not lowered, or has something that is code of somebody else.
    """
    found = lowering_of(lowered)
    if found is None:
        raise SavedError(
            f"{describe(lowered)} is not lowered. Save what distspmd.lower(...) returned."
        )
    if not isinstance(found, Lowering):
        return _wrapped((_without_sdfg(found), {}), {"original": _text(found.sdfg)})
    graphs = found.graphs
    if graphs is None:
        raise SavedError(
            "this record has travelled without its SDFG. Save what distspmd.lower(...) returned."
        )
    if isinstance(graphs, SavedGraphs):
        own = {name: text for name, text in graphs.texts.items() if name not in _OF_RECORDS}
        return _wrapped((found, saved_of(graphs.binding)), own)
    texts = {"lowered": _text(graphs.sdfg)}
    if graphs.original is not None:
        texts["original"] = _text(graphs.original)
    return _wrapped((found, saved_of(bound(graphs.sdfg))), texts)


def from_bytes(content: bytes) -> Lowering | SymbolicLowering:
    """The lowered program of :func:`to_bytes`.

    Raises:
        SavedError: it is none, of another version, damaged, or has objects of a class whose module
            is not imported.
    """
    parts = unwrap(content)
    lowering, binding = _read(parts)
    if not isinstance(lowering, Lowering):
        symbolic: SymbolicLowering = replace(lowering, sdfg=_graph(parts["original"]))
        return symbolic
    graphs = SavedGraphs(lowering, parts, binding)
    graphs.lowering = replace(lowering, graphs=graphs)
    return graphs.lowering


def save(lowered: Any, path: str | os.PathLike[str]) -> None:
    """Write a lowered program into a file, which :func:`load` reads in any process.

    Raises:
        SavedError: the file cannot be written, and as of :func:`to_bytes`.
    """
    content, file = to_bytes(lowered), Path(path)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(file)  # others see all of it, or what was there
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise SavedError(f"{file} cannot be written: {problem.strerror}.") from None


def load(path: str | os.PathLike[str]) -> Lowering | SymbolicLowering:
    """The lowered program of a file that ``lowering.save(path)`` wrote.

    It prints, explains and predicts as it did; :func:`distspmd.compile` compiles it, and
    :func:`distspmd.check` compares it with the program as it was. Reading it runs nothing that is
    in the file, and compiling it does: it is a program.

    Raises:
        SavedError: the file cannot be read, and as of :func:`from_bytes`.
    """
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as problem:
        told = getattr(problem, "strerror", None) or problem
        raise SavedError(f"{describe(path)} cannot be read: {told}.") from None
    try:
        return from_bytes(content)
    except SavedError as problem:
        raise SavedError(f"{path}: {problem}.") from None


def is_saved_program(path: str) -> bool:
    """Whether a file is one that :func:`save` wrote, of whatever version."""
    try:
        with open(path, "rb") as file:
            return file.read(len(FIRST_LINE)) == FIRST_LINE
    except (OSError, ValueError):
        return False


# --- records in SDFGs ---


def record_text(lowered: Lowering) -> str:
    """The record alone as a text, which an SDFG carries where it is saved by itself."""
    record = (lowered, saved_of(carried_binding(lowered)))
    return base64.b64encode(_wrapped(record, {})).decode()


def carried_record(sdfg: SDFG) -> Lowering | None:
    """The lowering of an SDFG that was read from its own file; the SDFG carries it from now on.

    Raises:
        SavedError: it was lowered by another version, or the record in it is damaged.
    """
    from distspmd.dace_compat.carried import carry

    block = sdfg.global_code.get(RECORD)
    if block is None:
        return None
    try:
        parts = unwrap(base64.b64decode(str(block.as_string), validate=True))
        lowering, binding = _read(parts)
    except (SavedError, binascii.Error) as problem:
        raise SavedError(f"the record of the lowering in the SDFG {sdfg.name!r}: {problem}.") from (
            None
        )
    del sdfg.global_code[RECORD]
    if binding is not None:
        bind(sdfg, binding)
    found: Lowering = replace(lowering, graphs=Graphs(sdfg))
    carry(sdfg, found)
    return found


# --- bindings ---


def carried_binding(lowered: Any) -> Any:
    """What a lowered program is bound to, or what was saved of that; None if to nothing."""
    graphs = getattr(lowering_of(lowered), "graphs", None)
    return graphs.binding if isinstance(graphs, SavedGraphs) else graphs and bound(graphs.sdfg)


def bind_lowering(lowered: Any, binding: Any) -> None:
    """Bind a lowered program to live objects."""
    graphs = lowering_of(lowered).graphs
    if isinstance(graphs, SavedGraphs):
        graphs.bind_to(binding)
    else:
        bind(graphs.sdfg, binding)


# --- parts ---


def _wrapped(record: Any, texts: Mapping[str, bytes]) -> bytes:
    writer = Writer()
    try:
        text = writer.text(record)
    except CannotSave as problem:
        raise SavedError(
            f"it cannot be saved: {problem} in it is neither numbers and texts nor of distspmd, "
            "and who reads it would run code of somebody else."
        ) from None
    packed = zlib.compress(text.encode())
    return wrap(dict(zip(_OF_RECORDS, (packed, bytes(writer.arrays)), strict=True)) | {**texts})


def _read(parts: Mapping[str, bytes]) -> tuple[Any, Any]:
    """The record of some parts, and what goes with it."""
    try:
        record, rest = Reader(parts["arrays"]).value(zlib.decompress(parts["record"]))
        return record, rest
    except SavedError:
        raise
    except Exception as problem:  # its checksum is right: somebody made it so
        raise SavedError(
            f"it is no record of this version: {type(problem).__name__}: {problem}"
        ) from None


def _without_sdfg(lowering: SymbolicLowering) -> SymbolicLowering:
    search = lowering.search and replace(lowering.search, progress=None)
    return replace(lowering, sdfg=None, search=search)  # type: ignore[arg-type]  # it has its own


def _text(sdfg: SDFG) -> bytes:
    """An SDFG with what front ends said of it, packed."""
    from distspmd.dace_compat.saved_graphs import graph_text

    writer = Writer()
    try:
        told = writer.text(_said(sdfg))
    except CannotSave as problem:
        raise SavedError(f"it cannot be saved: {problem} is code of somebody else.") from None
    arrays = base64.b64encode(writer.arrays).decode()
    whole = {"sdfg": graph_text(sdfg), "said": told, "arrays": arrays}
    return zlib.compress(json.dumps(whole).encode())


def _graph(text: bytes) -> SDFG:
    """The SDFG of such a text."""
    from distspmd.dace_compat.saved_graphs import read_graph
    from distspmd.pipeline import PIPELINE

    assert PIPELINE  # all of whose nodes are known to DaCe then
    whole = json.loads(zlib.decompress(text))
    found = read_graph(whole["sdfg"])
    said = Reader(base64.b64decode(whole["arrays"])).value(whole["said"])
    _say(found, said)
    return found


def _said(sdfg: SDFG) -> dict[str, Any]:
    return {name: getattr(sdfg, name) for name in _SAID if hasattr(sdfg, name)}


def _say(sdfg: SDFG, said: Mapping[str, Any]) -> None:
    for name, value in said.items():
        setattr(sdfg, name, value)
