"""Files of tensors: what is written is read by parts, and what is damaged is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distspmd.errors import ArgumentError
from distspmd.frontend.from_torch.checkpoints import _sources
from distspmd.frontend.from_torch.held_values import HALVES, Entry, pieces, places_of
from distspmd.frontend.from_torch.tensor_files import (
    CODES,
    Reader,
    begin_file,
    begins_of,
    find_tensors,
    index_text,
    mapped,
    metadata_of,
)

TENSORS = {
    f"{code}.{n}": torch.arange(n * 3).reshape(n, 3).to(dtype)
    for n, (code, dtype) in enumerate(CODES.items())
}


def write(file: Path) -> None:
    """A file of all types, one of which has no elements."""
    told = {name: (x.dtype, tuple(x.shape)) for name, x in TENSORS.items()}
    begin_file(file, told)
    for name, begin in begins_of(told).items():
        tensor = TENSORS[name]
        bits = tensor.view(torch.uint16) if tensor.dtype in HALVES else tensor
        mapped(file, tensor.dtype, begin, tensor.shape, "r+")[...] = bits.numpy()


def test_parts_of_all_types_are_read(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors")
    torch.save(TENSORS, tmp_path / "model.pt")
    for path in (tmp_path, tmp_path / "model.pt"):
        found, reader = find_tensors(path), Reader()
        for name, tensor in TENSORS.items():
            chosen = slice(1, 4), slice(0, 2)
            assert found[name].dtype == tensor.dtype
            assert reader.part(found[name], tensor.shape, chosen).equal(tensor[chosen])
            other = len(tensor), 1, 3  # as dimensions are split in a program
            part = reader.part(found[name], other, (slice(None), slice(None), slice(2, 3)))
            assert part.equal(tensor[:, None, 2:3])


def test_files_are_found_by_their_index(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(index_text({"I8.7": "a.safetensors"}, 0, {}))
    assert list(find_tensors(tmp_path)) == list(find_tensors(index)) == ["I8.7"]
    index.write_text(index_text({"I9": "a.safetensors"}, 0, {}))
    with pytest.raises(ArgumentError, match=r"says that 'I9' is in a\.safetensors; it is not"):
        find_tensors(tmp_path)
    index.write_text("{}")
    with pytest.raises(ArgumentError, match="no 'weight_map'"):
        find_tensors(tmp_path)


def damaged(file: Path, header: dict[str, object]) -> None:
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))


def test_what_is_damaged_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    good = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    damaged(file, {"x": good})
    assert find_tensors(file)["x"].shape == (2,)
    for wrong, said in (
        ({**good, "shape": [3]}, "at the bytes 0 to 8 of 8"),
        ({**good, "data_offsets": [4, 12]}, "at the bytes 4 to 12 of 8"),
        ({**good, "dtype": "F4"}, "elements of the type F4"),
        ({"dtype": "F32"}, "is described as"),
        ({**good, "shape": [-1, -2]}, "is described as"),
        ({**good, "shape": [2.0]}, "is described as"),
        ({**good, "shape": ["2"]}, "is described as"),
        ({**good, "shape": [True, 2]}, "is described as"),
        ({**good, "shape": 2}, "is described as"),
        ({**good, "data_offsets": [-4, 4]}, "is described as"),
        ({**good, "dtype": ["F32"]}, "is described as"),
        ([1], "is described as"),
    ):
        damaged(file, {"x": wrong})
        with pytest.raises(ArgumentError, match=said):
            find_tensors(file)
    file.write_bytes(b"12345")
    with pytest.raises(ArgumentError, match="5 bytes"):
        find_tensors(file)
    with pytest.raises(ArgumentError, match="none of"):
        find_tensors(tmp_path)
    torch.save({"step": 3}, tmp_path / "x.pt")
    with pytest.raises(ArgumentError, match="no dictionary of tensors"):
        find_tensors(tmp_path / "x.pt")
    (tmp_path / "y.pt").write_bytes(b"nothing")
    with pytest.raises(ArgumentError, match=r"cannot be read by torch\.load"):
        find_tensors(tmp_path / "y.pt")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("../secret.safetensors", "files in its own folder only"),
        ("a/../../secret.safetensors", "files in its own folder only"),
        ("/secret.safetensors", "files in its own folder only"),
        ("..\\secret.safetensors", "files in its own folder only"),
        ("", "files in its own folder only"),
        (".", "files in its own folder only"),
        (3, "is in the file 3"),
        (["a"], r"is in the file \['a'\]"),
        (None, "is in the file None"),
        ("lost.safetensors", "there is no file"),
    ],
)
def test_an_index_leads_into_its_own_folder_only(tmp_path: Path, file: Any, said: str) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    damaged(
        tmp_path / "secret.safetensors",
        {"x": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}},
    )
    index = inside / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": file}}))
    with pytest.raises(ArgumentError, match=said):
        find_tensors(inside)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no table of tensors"),
        ("{", "is damaged"),
        ('{"weight_map": []}', "no 'weight_map'"),
        ("[" * 200_000, "is damaged"),
        ('{"weight_map": {}, "metadata": []}', "its 'metadata' are"),
    ],
)
def test_damaged_indices_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ArgumentError, match=said):
        metadata_of(tmp_path, "model"), find_tensors(tmp_path)


def entry(name: str, *shape: int, others: tuple[str, ...] = ()) -> Entry:
    return Entry(name, name, others, shape, torch.float32, False, False, False)


def test_tensors_of_files_are_those_of_the_module(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"a": torch.ones(2, 3), "head": torch.ones(4), "more": torch.ones(1)}, path)
    tied = entry("words", 4, others=("head",))
    sources, rest = _sources(path, [entry("a", 2, 3), tied], strict=False)
    assert [stored.name for _, stored in sources] == ["a", "head"]
    assert not rest
    with pytest.raises(ArgumentError, match=r"has 'more', which the module does not have"):
        _sources(path, [entry("a", 2, 3), tied], strict=True)
    with pytest.raises(ArgumentError, match=r"'a' has the shape \[3, 2\], but \[2, 3\]"):
        _sources(path, [entry("a", 3, 2)], strict=False)
    with pytest.raises(ArgumentError, match="does not have 'b', 'c'; it has 'a', 'head', 'more'"):
        _sources(path, [entry("b", 1), entry("c", 1)], strict=False)


def test_pieces_make_up_a_box() -> None:
    array = np.arange(5 * 7 * 3).reshape(5, 7, 3)
    box = ((1, 5), (2, 7), (0, 3))
    for most in (1, 2, 7, 16, 100):
        found = list(pieces(box, most))
        places = np.concatenate([places_of(piece, array.shape) for piece in found])
        assert len(found) >= 60 / most
        assert all(len(places_of(piece, array.shape)) <= most for piece in found)
        assert sorted(places) == sorted(array[1:5, 2:7, 0:3].reshape(-1))
    assert list(pieces(((0, 0), (0, 3)))) == []
    assert list(pieces(())) == [()]
