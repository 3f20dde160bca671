"""What becomes of a program that a transformation of DaCe's has changed: at DaCe, and here."""

from __future__ import annotations

import copy
import traceback
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from dace import SDFG, config
from dace.sdfg import nodes
from from_numpy.harness import Lowered, lower
from lowering.on_paper import problems

from distspmd.errors import DistSPMDError
from transformed.programs import PROGRAMS, arguments_of, wanted_of
from transformed.transformations import changed, transformations

RIGHT, REFUSED, WRONG, FOREIGN = "right", "refused", "wrong", "foreign"
"""Kinds of outcomes here. Foreign is an error that is not ours."""
UNMATCHED, BROKEN, ON_DEVICE, NOT_RUN = "no match", "broken", "on a device", "not run"
"""At DaCe: nothing to change; an error or a wrong number; what needs a GPU; what nobody asked."""


@dataclass(frozen=True)
class Outcome:
    """One transformation on one program.

    Attributes:
        name: ``"MapTiling/stencil"``.
        dace: what DaCe's own program does: right, broken, on a device, or there is no match.
        ours: what becomes of it here; empty where there is no program.
        said: by whoever did not get it right.
    """

    name: str
    dace: str
    ours: str = ""
    said: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def outcome(name: str, plain: bool = True, crashed: bool = False, ranks: int = 3) -> Outcome:
    """Apply, run with DaCe alone, and lower on paper.

    Args:
        name: of the transformation and the program.
        plain: whether DaCe's program is run.
        crashed: whether it ended the process before.
        ranks: over which all spaces are split.
    """
    transformation, program = name.rsplit("/", 1)
    try:
        sdfg = changed(transformations()[transformation], PROGRAMS[program])
    except Exception as error:
        return Outcome(name, BROKEN, said=f"DaCe: {_text(error)}")
    if sdfg is None:
        return Outcome(name, UNMATCHED)
    if is_on_device(sdfg):
        of_dace, said = ON_DEVICE, ""
    elif crashed:
        of_dace, said = BROKEN, "DaCe: its program ends the process"
    else:
        of_dace, said = _run_plain(sdfg, program) if plain else (NOT_RUN, "")
    ours, told = _on_paper(sdfg, ranks)
    return Outcome(name, of_dace, ours, "; ".join(filter(None, (said, told))))


def is_on_device(sdfg: SDFG) -> bool:
    """Whether parts of a program are for a GPU."""
    kinds = [c.storage for _, _, c in sdfg.arrays_recursive()]
    kinds += [
        n.map.schedule for n, _ in sdfg.all_nodes_recursive() if isinstance(n, nodes.MapEntry)
    ]
    kinds += [n.schedule for n, _ in sdfg.all_nodes_recursive() if hasattr(n, "schedule")]
    return any(kind.name.startswith("GPU") for kind in kinds)


def _run_plain(sdfg: SDFG, program: str) -> tuple[str, str]:
    given = arguments_of(program)
    try:
        with config.set_temporary("compiler", "build_type", value="None"):
            result = copy.deepcopy(sdfg)(**given)
    except Exception as error:
        return BROKEN, f"DaCe: {_text(error)}"
    wanted, after = wanted_of(program)
    pairs = [(given[name], after[name]) for name in after]
    if wanted is not None:
        pairs.append((result, wanted))
    wrong = sum(not np.allclose(found, value, 1e-12, 1e-13) for found, value in pairs)
    return (BROKEN, f"DaCe: {wrong} arrays differ from NumPy's") if wrong else (RIGHT, "")


def _on_paper(sdfg: SDFG, ranks: int) -> tuple[str, str]:
    try:
        lowered = lowered_of(sdfg, ranks)
        lowered.sdfg.validate()
        found = "; ".join(problems(lowered.lowering))
    except DistSPMDError as error:
        return REFUSED, f"{type(error).__name__}: {error}"
    except Exception as error:
        return FOREIGN, _text(error)
    return (WRONG, found) if found else (RIGHT, "")


def lowered_of(sdfg: SDFG, ranks: int) -> Lowered:
    """The program with all spaces split; what is refused of the schedule follows its neighbours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lower(sdfg, ranks)


def _text(error: BaseException) -> str:
    at = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({at[0].filename.rsplit('/', 1)[-1]}:{at[0].lineno})" if at else ""
    return f"{type(error).__name__}: {str(error)[:300]}{where}"


def counts_of(found: list[Outcome]) -> dict[str, dict[str, Any]]:
    """Of each transformation how many programs have which outcome."""
    table: dict[str, dict[str, Any]] = {}
    for each in found:
        row = table.setdefault(each.name.rsplit("/", 1)[0], {})
        kind = each.ours or each.dace
        key = f"{kind}, {each.dace} at DaCe" if each.ours and each.dace == BROKEN else kind
        row[key] = row.get(key, 0) + 1
    return table
