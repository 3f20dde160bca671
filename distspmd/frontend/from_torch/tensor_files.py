"""Files of tensors, read and written by parts: those of safetensors, and those of ``torch.save``.

A file of safetensors is the length of a header (8 bytes), the header (JSON: type, shape, and first
and last byte of each tensor), and the tensors one behind the other. The files of a checkpoint have
an index, which says which tensor is in which file. See the format's description:
https://huggingface.co/docs/safetensors. Files are mapped, so that only what is touched is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from distspmd.errors import ArgumentError

CODES: Mapping[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
}
"""Types of elements by the names that the format has for them."""
_CODE_OF = {dtype: code for code, dtype in CODES.items()}
_LENGTH = 8
_LONGEST_HEADER = 100_000_000
"""The format's own limit."""


@dataclass(frozen=True)
class Stored:
    """A tensor in a file.

    Attributes:
        file: which has it.
        name: in the file.
        dtype: of its elements.
        shape: of the whole tensor.
        begin: its first byte in a file of safetensors; None in a file of ``torch.save``.
    """

    file: Path
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int | None


def storage_type(dtype: torch.dtype) -> np.dtype[Any]:
    """NumPy's type of the same bytes."""
    if dtype in (torch.bfloat16, torch.float16):
        return np.dtype(np.uint16)
    return np.dtype(str(dtype).removeprefix("torch."))


def find_tensors(path: str | Path, stem: str = "model") -> dict[str, Stored]:
    """The tensors of a checkpoint, by their names.

    Args:
        path: a folder, an index, or one file.
        stem: with what names of files begin in a folder; that of ``torch.save`` is
            ``pytorch_model.bin`` or ``model.pt``.

    Raises:
        ArgumentError: there is none, or it is damaged.
    """
    path = Path(path)
    if path.is_dir():
        path = _in_folder(path, stem)
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}. Every rank must see the files.")
    if path.suffix != ".json":
        return _tensors_of(path)
    mapped = _json(path, path.read_bytes()).get("weight_map")
    if not isinstance(mapped, dict):
        raise ArgumentError(f"{path} is no index: it has no 'weight_map'.")
    names = dict.fromkeys(_name_of_file(path, *each) for each in mapped.items())
    files = {name: _tensors_of(path.parent / name) for name in names}
    lost = [name for name, file in mapped.items() if name not in files[file]]
    if lost:
        raise ArgumentError(f"{path} says that {lost[0]!r} is in {mapped[lost[0]]}; it is not.")
    return {name: files[file][name] for name, file in mapped.items()}


def _name_of_file(index: Path, tensor: str, name: Any) -> str:
    """The name of a file in an index, which may lead nowhere else than into its folder.

    The files may be links, as in caches of models.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"{index} is damaged: {tensor!r} is in the file {name!r}.")
    parts = name.replace("\\", "/").split("/")
    if name != Path(name).as_posix() or name.startswith("/") or {"..", ".", ""} & {*parts}:
        raise ArgumentError(
            f"{index} says that {tensor!r} is in {name!r}; an index may name files in its own "
            "folder only, or in folders of that."
        )
    return name


def _in_folder(folder: Path, stem: str) -> Path:
    names = [f"{stem}.safetensors.index.json", f"{stem}.safetensors"]
    if stem == "model":
        names += ["pytorch_model.bin.index.json", "pytorch_model.bin", "model.pt"]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ArgumentError(f"the folder {folder} has none of {', '.join(names)}.")


def metadata_of(path: str | Path, stem: str) -> dict[str, Any]:
    """What the index of a checkpoint in a folder says beside its tensors."""
    index = Path(path) / f"{stem}.safetensors.index.json"
    found = _json(index, index.read_bytes()).get("metadata", {}) if index.is_file() else {}
    if not isinstance(found, dict):
        raise ArgumentError(f"{index} is damaged: its 'metadata' are {found!r}, no table.")
    return found


def _json(path: Path, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ArgumentError(f"{path} is damaged: {problem}.") from None
    if not isinstance(found, dict):
        raise ArgumentError(f"{path} is damaged: it has no table of tensors.")
    return found


def _tensors_of(path: Path) -> dict[str, Stored]:
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}. Every rank must see the files.")
    if path.suffix != ".safetensors":
        tensors = _state_dict(path)
        return {n: Stored(path, n, t.dtype, tuple(t.shape), None) for n, t in tensors.items()}
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if size < _LENGTH or length > min(_LONGEST_HEADER, size - _LENGTH):
            raise ArgumentError(f"{path} is damaged, or no file of safetensors: {size} bytes.")
        header = _json(path, file.read(length))
    found = {}
    for name, told in header.items():
        if name != "__metadata__":
            found[name] = _stored(path, name, told, size - _LENGTH - length, _LENGTH + length)
    return found


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _stored(path: Path, name: str, told: Any, room: int, start: int) -> Stored:
    try:
        dtype = CODES.get(told["dtype"])
        shape = tuple(map(_count, told["shape"]))
        begin, end = map(_count, told["data_offsets"])
    except (KeyError, TypeError, ValueError):
        raise ArgumentError(f"{path} is damaged: {name!r} is described as {told}.") from None
    if dtype is None:
        raise ArgumentError(
            f"{name!r} in {path} has elements of the type {told['dtype']}; {', '.join(CODES)} can "
            "be read."
        )
    if not 0 <= begin <= end <= room or end - begin != math.prod(shape) * dtype.itemsize:
        raise ArgumentError(
            f"{path} is damaged: {name!r} of the shape {list(shape)} is at the bytes {begin} to "
            f"{end} of {room}."
        )
    return Stored(path, name, dtype, shape, start + begin)


def _state_dict(path: Path) -> dict[str, torch.Tensor]:
    try:
        found = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except Exception as problem:  # it has many ways to say that a file is no file of its own
        text = str(problem).split("\n")[0]
        raise ArgumentError(f"{path} cannot be read by torch.load: {text}") from None
    if not isinstance(found, dict) or not all(isinstance(x, torch.Tensor) for x in found.values()):
        raise ArgumentError(
            f"{path} holds no dictionary of tensors. Save module.state_dict() alone in a file."
        )
    return found


@dataclass
class Reader:
    """Reads parts of tensors; files of ``torch.save`` stay mapped as long as it lives."""

    _loaded: dict[Path, dict[str, torch.Tensor]] = field(default_factory=dict)

    def part(
        self, stored: Stored, extents: Sequence[int], slices: tuple[slice, ...]
    ) -> torch.Tensor:
        """A part of a tensor, in memory of its own.

        Args:
            stored: the tensor.
            extents: of the same memory, with which it is seen.
            slices: of these.
        """
        if stored.begin is None:
            if stored.file not in self._loaded:
                self._loaded[stored.file] = _state_dict(stored.file)
            whole = self._loaded[stored.file][stored.name]
            return whole.detach().reshape(tuple(extents))[slices].contiguous().clone()
        seen = mapped(stored.file, stored.dtype, stored.begin, extents, "r")
        part = np.array(seen[slices], order="C")
        return torch.from_numpy(part).view(stored.dtype)


def mapped(
    file: Path, dtype: torch.dtype, begin: int, extents: Sequence[int], mode: Any
) -> NDArray[Any]:
    """A tensor in a file as an array; nothing is read before it is touched."""
    kind = storage_type(dtype)
    if math.prod(extents) == 0:
        return np.empty(tuple(extents), kind)
    return np.memmap(file, kind, mode, begin, tuple(extents))


# -- writing ------------------------------------------------------------------------------------


def header_of(tensors: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]) -> tuple[bytes, int]:
    """What a file of tensors begins with, and the length of the whole file.

    Raises:
        ArgumentError: elements of a type that the format does not have.
    """
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        if dtype not in _CODE_OF:
            raise ArgumentError(
                f"{name!r} has elements of {dtype}, which files of safetensors do not have."
            )
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        table[name] = {
            "dtype": _CODE_OF[dtype],
            "shape": list(shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    return len(text).to_bytes(_LENGTH, "little") + text, _LENGTH + len(text) + end


def begins_of(tensors: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]) -> dict[str, int]:
    """The first byte of each tensor in a file."""
    header, size = header_of(tensors)
    found, begin = {}, len(header)
    for name, (dtype, shape) in tensors.items():
        found[name] = begin
        begin += math.prod(shape) * dtype.itemsize
    assert begin == size
    return found


def begin_file(file: Path, tensors: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]) -> None:
    """Write a file with room for all its tensors.

    Raises:
        OSError: it cannot be written.
    """
    header, size = header_of(tensors)
    with file.open("wb") as stream:
        stream.write(header)
        stream.truncate(size)


def index_text(files: Mapping[str, str], nbytes: int, metadata: Mapping[str, Any]) -> str:
    """The index of a checkpoint: the file of each tensor."""
    told = {"metadata": {"total_size": nbytes, **metadata}, "weight_map": dict(files)}
    return json.dumps(told, indent=2, sort_keys=True) + "\n"
