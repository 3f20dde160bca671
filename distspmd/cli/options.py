"""Options of the command ``distspmd`` that say how a program is split: schedules, meshes, sizes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from distspmd.errors import ArgumentError, ScheduleError
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.devices import kinds as devices
from distspmd.schedule import Entries, Schedule, as_entries


def add_frontend(parser: argparse.ArgumentParser) -> None:
    """Let a command take which front end reads a function."""
    parser.add_argument(
        "--frontend",
        choices=("numpy", "dace"),
        default="numpy",
        help="what reads the function: what NumPy means (default), or DaCe's own parser",
    )


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """Let a command take a schedule, the mesh of its axes, and sizes."""
    parser.add_argument(
        "-s",
        "--schedule",
        action="append",
        default=[],
        metavar="SPACE=PARTS",
        help="parts of an iteration space, such as hidden=2,2,1 or hidden=__i0:2,__i1:2, or axes "
        "of the mesh, such as hidden=__i0:x,__i1:yz; may be repeated; or a YAML or JSON file with "
        "space: parts, or as Lowering.schedule.save writes it",
    )
    parser.add_argument(
        "--mesh",
        metavar="AXES",
        help="sizes of the axes that --schedule names, major first, such as x=4,y=2",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="N=NUMBER",
        help="number for a symbolic size; may be repeated",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command take arguments like those that the function is called with."""
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument without an annotation: its type and shape, x=float64[512,512], or a "
        "value, n=5; may be repeated",
    )
    parser.add_argument(
        "--args",
        metavar="FUNCTION",
        help="a function of the file that returns arguments like those of a call, by name or in a "
        "tuple",
    )


def add_ranks(parser: argparse.ArgumentParser) -> None:
    """Let a command search for a schedule."""
    told = "search for what the schedule leaves open, on so many ranks"
    parser.add_argument("-n", "--ranks", type=int, help=told)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Let a command take a kind of device."""
    parser.add_argument(
        "--device",
        metavar="KIND",
        help=f"device on which each rank works: {', '.join(devices.KINDS)} (default: the cores of "
        "the host)",
    )


def parse_schedule(given: Sequence[str]) -> Schedule:
    """The schedule from the options: ``space=parts`` each, or files.

    Raises:
        ScheduleError: neither of both.
    """
    schedule = Schedule()
    for item in given:
        space, equals, parts = item.rpartition("=")
        if equals:
            schedule[space] = _parse_parts(item, parts)
        elif _is_file(item):
            schedule.add(Schedule.load(item))
        else:
            raise ScheduleError(
                f"--schedule {item!r}: neither space=parts, such as hidden=2,2,1, nor a file."
            )
    return schedule


def _is_file(item: str) -> bool:
    try:
        return Path(item).is_file()
    except (OSError, ValueError):  # too long for a name, or with a zero in it
        return False


def parse_sizes(given: Sequence[str]) -> dict[str, int]:
    """Sizes from the options, ``N=100`` each.

    Raises:
        ArgumentError: something else.
    """
    pairs = [item.partition("=") for item in given]
    for item, (name, _, number) in zip(given, pairs, strict=True):
        if not name.isidentifier() or not number.isdecimal() or len(number) > 18:
            raise ArgumentError(f"--size {item!r} is no size. Write N=100.")
    return {name: int(number) for name, _, number in pairs}


def _parse_parts(item: str, parts: str) -> tuple[int, ...] | dict[str, int] | dict[str, str]:
    try:
        if ":" in parts:
            pairs = dict(pair.split(":") for pair in parts.split(","))
            named = {name.strip(): asked.strip() for name, asked in pairs.items()}
            if all(asked.isidentifier() for asked in named.values()):
                return named
            return {name: int(count) for name, count in named.items()}
        return tuple(int(count) for count in parts.strip("()").split(",") if count.strip())
    except ValueError:
        raise ScheduleError(
            f"--schedule {item!r}: {parts!r} is no list of numbers. Write space=2,2,1, or "
            "space=i:2,j:2 with names of parameters, or space=i:x,j:y with axes of the mesh."
        ) from None


def asked_of(options: argparse.Namespace) -> Entries:
    """The schedule from the options, with the mesh of its axes."""
    mesh = None if options.mesh is None else Mesh.parse(options.mesh)
    return as_entries(parse_schedule(options.schedule), mesh)
