"""Values of parameters and states on the ranks: initialised, loaded and saved part by part.

No rank needs room for more than its own part, besides a few megabytes and, where tensors are
computed as a whole, one of them. Files are those of safetensors and of ``torch.save``, and have
the names of ``module.state_dict()``. States of optimizers are in files of their own, under the name
of the parameter and of the state: ``layers.0.weight.exp_avg``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, listed
from distspmd.execution.program import Program
from distspmd.frontend.from_torch.first_values import Recipe
from distspmd.frontend.from_torch.held_values import (
    HALVES,
    Entry,
    Together,
    binding_of_tensors,
    entries_of,
    held_part,
    pieces,
    places_of,
    within,
)
from distspmd.frontend.from_torch.initialisers import How, recipes_of
from distspmd.frontend.from_torch.partitioned import Partitioned
from distspmd.frontend.from_torch.tensor_files import (
    Reader,
    Stored,
    begin_file,
    begins_of,
    find_tensors,
    index_text,
    mapped,
    metadata_of,
    storage_type,
)
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box

STATES = "optimizer"
"""With what the names of files begin that have states of optimizers."""


def initialize(program: Program | Partitioned, how: How = None, *, seed: int | None = None) -> None:
    """Give tensors on the device ``meta`` their first values; all ranks call it together.

    Each rank computes its part: what ``reset_parameters`` and ``_init_weights`` of the modules
    would write, with random numbers of our own, which are the same at any number of ranks. States
    of optimizers begin as their first step would make them.

    Args:
        program: compiled, or partitioned; then the values are made at its first call.
        how: on rank 0, what initialises the modules: a function without arguments, or what
            :func:`deferred` gave; by default the methods of the modules.
        seed: of the random numbers; torch's by default.

    Raises:
        UnsupportedProgram: on all ranks: nobody initialises a tensor, or not in a way that is
            covered.
    """
    if isinstance(program, Partitioned):
        program.when_made(lambda made: initialize(made, how, seed=seed))
        return

    def plan() -> tuple[list[tuple[Entry, Recipe]], int]:
        entries = [e for e in entries_of(program) if e.container and not e.has_memory]
        recipes = recipes_of(binding_of_tensors(program), [e.container for e in entries], how)
        return [(e, recipes[e.container]) for e in entries], _seed(seed)

    with Together(program, "initialize(...)") as together:
        chosen, drawn = together.planned(plan)
        program.on_each(_fill_parts, "initialize(...)", [], chosen, drawn)
        program.now_holds([entry.container for entry, _ in chosen])


def _calls(path: Path) -> int:
    """How often a program had been called that was saved."""
    found = metadata_of(path, STATES).get("calls", 0)
    if type(found) is not int or found < 0:
        raise ArgumentError(f"the index of states in {path} is damaged: {found!r} calls.")
    return found


def _seed(seed: int | None) -> int:
    return torch.initial_seed() if seed is None else seed


def _fill_parts(
    program: Program,
    text: str,
    sources: Sequence[tuple[Entry, Stored]],
    chosen: Sequence[tuple[Entry, Recipe]],
    seed: int,
) -> None:
    """Read and compute what this process has of tensors."""

    def fill() -> None:
        reader = Reader()
        for entry, stored in sources:
            _fill(program, entry, _reading(reader, stored, entry.dtype))
        _compute(program, chosen, seed)

    with Together(program, text) as together:
        together.do(fill)


def _compute(program: Program, chosen: Sequence[tuple[Entry, Recipe]], seed: int) -> None:
    for entry, recipe in chosen:

        def values(box: Box, extents: Sequence[int], recipe: Recipe = recipe) -> torch.Tensor:
            return recipe.values(places_of(box, extents), seed).reshape(intervals.shape(box))

        _fill(program, entry, values)
        recipe.forget()


def load(program: Program | Partitioned, path: str | Path, *, strict: bool = True) -> None:
    """Load parameters, buffers and states; all ranks call it together, each reads its part.

    Args:
        program: compiled, or partitioned; then they are loaded at its first call.
        path: of a folder, an index or a file, of safetensors or of ``torch.save``; on all ranks
            the same. In a folder states of optimizers are found, too, if :func:`save` put them
            there; else those without memory begin anew, as do buffers that no file has.
        strict: whether tensors of the files that the module does not have are refused.

    Raises:
        ArgumentError: on all ranks: a tensor is missing, unknown, of another shape, or a file is
            not there or damaged.
    """
    if isinstance(program, Partitioned):
        program.when_made(lambda made: load(made, path, strict=strict))
        return

    def plan() -> tuple[list[tuple[Entry, Stored]], list[tuple[Entry, Recipe]], int, int]:
        entries = entries_of(program)
        sources, rest = _sources(Path(path), entries, strict)
        recipes = recipes_of(binding_of_tensors(program), [e.container for e in rest], None)
        left = [(e, recipes[e.container]) for e in rest]
        calls = _calls(Path(path))
        return sources, left, _seed(None), calls

    with Together(program, f"load({str(path)!r})") as together:
        sources, left, seed, calls = together.planned(plan)
        program.on_each(_fill_parts, f"load({str(path)!r})", sources, left, seed)
        done = {entry.container for entry, _ in (*sources, *left)}
        program.now_holds(done & program.residents.layouts.keys())
        if together.agreement.rank == 0 and calls:
            binding_of_tensors(program).calls = calls


def _reading(
    reader: Reader, stored: Stored, dtype: torch.dtype
) -> Callable[[Box, Sequence[int]], torch.Tensor]:
    return lambda box, extents: reader.part(stored, extents, intervals.slices(box)).to(dtype)


def _sources(
    path: Path, entries: Sequence[Entry], strict: bool
) -> tuple[list[tuple[Entry, Stored]], list[Entry]]:
    """Where each tensor is, and those that files need not have and that have no memory.

    Raises:
        ArgumentError: one is missing, unknown, or of another shape.
    """
    found = find_tensors(path)
    has_states = (path / f"{STATES}.safetensors.index.json").is_file()
    states = find_tensors(path, STATES) if has_states else {}
    sources, rest, missing = [], [], []
    for entry in entries:
        table = states if entry.is_state else found
        name = next((n for n in (entry.name, *entry.others) if n in table), None)
        if name is None:
            if entry.is_passing or (entry.is_state and not has_states):
                rest += [entry] if entry.container and not entry.has_memory else []
            elif entry.container or entry.has_memory:
                missing.append(entry.name)
        elif table[name].shape != entry.shape:
            raise ArgumentError(
                f"{name!r} has the shape {list(entry.shape)}, but {list(table[name].shape)} in "
                f"{table[name].file}."
            )
        elif entry.container or entry.has_memory:
            sources.append((entry, table[name]))
    known = {name for entry in entries for name in (entry.name, *entry.others)}
    unknown = [name for name in (*found, *states) if name not in known]
    if missing:
        raise ArgumentError(f"{path} does not have {listed(missing)}; it has {listed([*found])}.")
    if unknown and strict:
        raise ArgumentError(
            f"{path} has {listed(unknown)}, which the module does not have. Write strict=False to "
            "load the others."
        )
    return sources, rest


def _fill(
    program: Program, entry: Entry, values: Callable[[Box, Sequence[int]], torch.Tensor]
) -> None:
    """Write what this rank has of a tensor."""
    found = held_part(program, entry)
    if found is None:
        return
    array, box, extents = found
    is_array = isinstance(array, np.ndarray)
    into = array if is_array else np.empty(intervals.shape(box), storage_type(entry.dtype))
    for piece in pieces(box):
        made = values(piece, extents).contiguous()
        made = made.view(torch.uint16) if made.dtype in HALVES else made
        into[within(piece, box)] = made.numpy()
    if isinstance(array, torch.Tensor):  # in the memory of a device, as what follows
        array.copy_(torch.from_numpy(into))
    elif not is_array:
        array.write(into)


# -- saving -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shard:
    """A file that one rank writes, with what is in it: tensors, and who holds which part."""

    owner: int
    name: str
    entries: tuple[tuple[Entry, tuple[tuple[int, Box], ...], tuple[int, ...]], ...]

    @property
    def tensors(self) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
        return {entry.name: (entry.dtype, entry.shape) for entry, _, _ in self.entries}


def save(program: Program | Partitioned, path: str | Path) -> None:
    """Save parameters, buffers and states as files of safetensors; all ranks call it together.

    Each rank writes one file of whole tensors, of which it gets the parts piece by piece, and one
    of states; indexes are written last. Any number of ranks can load them, and so can what else
    reads safetensors. A tensor that a module has twice is saved under its first name.

    Args:
        program: compiled, or partitioned and called before.
        path: of a folder, on all ranks the same; it is made.

    Raises:
        ArgumentError: on all ranks: nobody has values yet, or a file cannot be written.
    """
    if isinstance(program, Partitioned):
        if not program.programs:
            raise ArgumentError(
                f"{program.name} has not been called yet, so that no rank has values to save."
            )
        program.when_made(lambda made: save(made, path))
        return
    folder = Path(path)
    with Together(program, f"save({str(path)!r})") as together:
        program.refresh()
        shards: list[_Shard] = together.planned(lambda: _shards(program, folder))
        program.on_each(_write_parts, folder, shards)
        together.planned(lambda: _write_indexes(program, folder, shards))


def _write_parts(program: Program, folder: Path, shards: Sequence[_Shard]) -> None:
    """Write the files of this process, and send what it has of those of others."""
    mine = [s for s in shards if s.owner == program.place]

    def begin() -> None:
        for shard in mine:
            begin_file(_unfinished(folder, shard), shard.tensors)

    with Together(program, f"save({str(folder)!r})") as together:
        together.do(begin)
        problems = [p for s in shards if (p := _write(program, folder, s)) is not None]

        def finish() -> None:
            for problem in problems:
                raise problem
            for shard in mine:
                _unfinished(folder, shard).replace(folder / shard.name)

        together.do(finish)


def _unfinished(folder: Path, shard: _Shard) -> Path:
    return folder / f".{shard.name}.unfinished"


def _shards(program: Program, folder: Path) -> list[_Shard]:
    """What each rank writes; an index that was there is taken away: it may soon be false."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [e for e in entries_of(program) if not e.is_passing]
    left = [e.name for e in entries if not e.container and not e.has_memory]
    if left:
        warnings.warn(
            f"{listed(left)}: the program does not use these, and they have no memory, so that "
            "nobody has values to save.",
            stacklevel=2,
        )
    kept = [e for e in entries if e.container or e.has_memory]
    groups = {
        "model": [e for e in kept if not e.is_state],
        STATES: [e for e in kept if e.is_state],
    }
    found = []
    for stem, own in groups.items():
        (folder / f"{stem}.safetensors.index.json").unlink(missing_ok=True)
        found += _shared(program, stem, own)
    return found


def _shared(program: Program, stem: str, entries: Sequence[Entry]) -> list[_Shard]:
    """Tensors shared among files of about the same length, one for each rank at most."""
    ranks: int = program.comm.Get_size()
    here = [e for e in entries if program.place < 0 and _is_live(program, e)]
    files: dict[int, list[Entry]] = {program.place: here} if here else {}
    entries = [e for e in entries if e not in here]
    sizes = [math.prod(e.shape) * e.dtype.itemsize for e in entries]
    total, before = max(1, sum(sizes)), 0
    for entry, size in zip(entries, sizes, strict=True):
        files.setdefault(min(ranks - 1, before * ranks // total), []).append(entry)
        before += size
    shards = []
    for number, (owner, own) in enumerate(files.items(), start=1):
        name = f"{stem}-{number:05}-of-{len(files):05}.safetensors"
        shards.append(_Shard(owner, name, tuple((e, *_holders(program, e)) for e in own)))
    return shards


def _is_live(program: Program, entry: Entry) -> bool:
    """Whether the live memory has the values of a tensor."""
    held = program.residents
    return entry.container not in held.layouts or held.is_live(entry.container)


def _holders(program: Program, entry: Entry) -> tuple[tuple[tuple[int, Box], ...], tuple[int, ...]]:
    """Which rank gives which part of a tensor, and the extents with which they see it."""
    layout = program.residents.layouts.get(entry.container)
    if layout is None or (program.place < 0 and _is_live(program, entry)):
        return ((min(0, program.place), intervals.whole(entry.shape)),), entry.shape
    first: dict[Box, int] = {}
    for rank, box in enumerate(layout.boxes):
        if not intervals.is_empty(box):
            first.setdefault(box, rank)
    return tuple((rank, box) for box, rank in first.items()), layout.extents


def _write(program: Program, folder: Path, shard: _Shard) -> Exception | None:
    """Send what this rank has of the tensors in a file to who writes it, or write it.

    A file that cannot be written is no reason to leave others waiting; what is wrong is returned.
    """
    rank, comm = program.place, program.comm
    begins = begins_of(shard.tensors)
    problem: Exception | None = None
    for entry, holders, extents in shard.entries:
        kind = storage_type(entry.dtype)
        for holder, box in holders:
            if rank not in (holder, shard.owner):
                continue
            part = _array_of(program, entry, box) if rank == holder else None
            for piece in pieces(box):
                if part is not None:
                    sent = np.ascontiguousarray(part[within(piece, box)])
                    sent = sent.reshape(intervals.shape(piece))  # of a number, too
                else:
                    sent = np.empty(intervals.shape(piece), kind)
                if holder != shard.owner:
                    flat = sent.reshape(-1).view(np.uint8)
                    comm.Recv(flat, holder) if rank == shard.owner else comm.Send(flat, shard.owner)
                if rank == shard.owner and problem is None:
                    try:
                        file, begin = _unfinished(folder, shard), begins[entry.name]
                        mapped(file, entry.dtype, begin, extents, "r+")[intervals.slices(piece)] = (
                            sent
                        )
                    except (OSError, ValueError) as error:
                        problem = error
    return problem


def _array_of(program: Program, entry: Entry, box: Box) -> NDArray[Any]:
    """What this rank has of a tensor, as an array of the host in the box that it gives."""
    found = held_part(program, entry)
    assert found is not None
    array: Any = found[0]
    if isinstance(array, torch.Tensor):
        array = array.cpu()
    if not isinstance(array, np.ndarray):
        array = array.numpy()
    plain: NDArray[Any] = array.reshape(intervals.shape(box))
    return plain


def _write_indexes(program: Program, folder: Path, shards: Sequence[_Shard]) -> None:
    """Say which tensor is in which file; without it nothing is loaded."""
    for stem in ("model", STATES):
        own = [shard for shard in shards if shard.name.startswith(f"{stem}-")]
        files = {name: shard.name for shard in own for name in shard.tensors}
        nbytes = sum(math.prod(s) * d.itemsize for x in own for d, s in x.tensors.values())
        metadata = {"calls": binding_of_tensors(program).calls} if stem == STATES else {}
        text = index_text(files, nbytes, metadata)
        index = folder / f"{stem}.safetensors.index.json"
        unfinished = folder / f".{index.name}.unfinished"
        unfinished.write_text(text)
        unfinished.replace(index)
