"""The commands, what they print, and the program that they are asked for."""

from __future__ import annotations

import argparse
import io
import os
import select
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distspmd
from distspmd import doctor
from distspmd.cli.options import (
    add_arguments,
    add_device,
    add_frontend,
    add_ranks,
    add_schedule,
    asked_of,
    parse_sizes,
)
from distspmd.cli.programs import Asked, load
from distspmd.errors import (
    DistSPMDError,
    LaunchError,
    ScheduleError,
    ScheduleWarning,
)
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.allocation import rank_of_launch
from distspmd.runtime.devices import kinds as devices
from distspmd.runtime.launch import driver_ranks as driven
from distspmd.runtime.launch.mpiexec import launch
from distspmd.saved import is_saved_program
from distspmd.schedule import Entries

if TYPE_CHECKING:
    from dace import SDFG

    from distspmd.checking.check import Checked
    from distspmd.lowering import Lowering
    from distspmd.scheduling.result import SearchResult
    from distspmd.symbolic_lowering import SymbolicLowering

_PROGRAM = "file.py:function, also a decorated one; see --arg for one without annotations"
_OR_SAVED = f"{_PROGRAM}; or a file that lower --save wrote"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. It ends quietly once nobody reads its output, as in Unix."""
    try:
        try:
            return _run_command(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_output_closed():
            raise
        return 128 + signal.SIGPIPE


def _is_output_closed() -> bool:
    """Whether nobody reads the output; then what the interpreter still writes goes nowhere."""
    output, asked = sys.stdout.fileno(), select.poll()
    asked.register(output, select.POLLOUT)
    if not any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True


def _run_command(argv: Sequence[str] | None) -> int:
    _write_any_text()
    parser = _parser()
    # A script has arguments of its own; argparse cannot have both these and options after a name.
    options, rest = parser.parse_known_args(argv)
    options.arguments = [item for item in rest if item != "--"]
    if rest and not getattr(options, "program", "").endswith(".py"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _tell(warnings.showwarning)
            status: int = options.command(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except DistSPMDError as error:
        print(f"distspmd: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return status


def _write_any_text() -> None:
    """Let names that the output's encoding lacks be written with backslashes, not be an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # that of a test or notebook takes any text
        sys.stdout.reconfigure(errors="backslashreplace")


def _tell(show: Callable[..., None]) -> Callable[..., None]:
    """Tell of what a schedule leaves idle in one line, and of other warnings as Python does."""

    def tell(message: Warning | str, category: type[Warning], *arguments: Any) -> None:
        if issubclass(category, ScheduleWarning):
            print(f"distspmd: {category.__name__}: {message}", file=sys.stderr)
        else:
            show(message, category, *arguments)

    return tell


def _tell_progress(seconds: float, cost: float, bound: float) -> None:
    print(f"{seconds:6.1f} s: cost {cost:.3e} s, bound {bound:.3e} s", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="distspmd", description="Partition array programs over MPI ranks."
    )
    parser.add_argument("--version", action="version", version=f"distspmd {distspmd.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    spaces = commands.add_parser("spaces", help="print the iteration spaces of a program")
    spaces.add_argument("program", help=_PROGRAM)
    add_arguments(spaces)
    add_frontend(spaces)
    spaces.set_defaults(command=_spaces)

    lower = commands.add_parser("lower", help="lower a program and print what was decided")
    lower.add_argument("program", help=_PROGRAM)
    add_arguments(lower)
    add_schedule(lower)
    add_frontend(lower)
    told = "save the lowered program, for run, check, explain, predict and distspmd.load"
    lower.add_argument("--save", metavar="FILE.lowered", help=told)
    told = "save the lowered SDFG alone, to look at and to compile"
    lower.add_argument("-o", "--output", metavar="FILE.sdfg", help=told)
    add_ranks(lower)
    lower.add_argument("--html", metavar="FILE.html", help="save a page that shows the SDFG")
    lower.add_argument(
        "--stop-after",
        metavar="PASS",
        help="print the SDFG after that pass, instead of the record of the whole lowering",
    )
    lower.set_defaults(command=_lower)

    explain = commands.add_parser(
        "explain", help="lower a program and print what it will communicate, and why so"
    )
    explain.add_argument("program", help=_OR_SAVED)
    add_arguments(explain)
    add_schedule(explain)
    add_frontend(explain)
    add_ranks(explain)
    explain.add_argument("--html", metavar="FILE.html", help="save it as a page")
    explain.set_defaults(command=_explain)

    _add_search(commands)
    run = commands.add_parser(
        "run",
        help="run a program on ranks",
        description="Run file.py:function on random arguments, with a schedule that is searched "
        "for where none is given, and compare it with the program as it was; or run a script.",
    )
    run.add_argument("program", help=f"{_OR_SAVED}; or a script and its arguments")
    add_arguments(run)
    run.add_argument("-n", "--ranks", type=int, required=True, help="number of ranks")
    add_schedule(run)
    run.add_argument("--seed", type=int, default=0, help="of the random arguments (default 0)")
    run.add_argument("--repeat", type=int, default=3, help="runs to time (default 3)")
    run.add_argument(
        "--driver",
        action="store_true",
        help="run a script in one process, whose programs run on the ranks",
    )
    told = "seconds after which all ranks are ended, with where each of them stood"
    run.add_argument("--timeout", type=float, help=told)
    add_device(run)
    run.set_defaults(command=_run)

    check = commands.add_parser(
        "check",
        help="prove the plans of a lowered program, and compare it with the original on ranks",
    )
    check.add_argument("program", help=_OR_SAVED)
    add_arguments(check)
    check.add_argument("-n", "--ranks", type=int, required=True, help="number of ranks")
    add_schedule(check)
    check.add_argument("--seed", type=int, default=0, help="of the first inputs (default 0)")
    check.add_argument("--runs", type=int, default=2, help="inputs to compare on (default 2)")
    check.add_argument("--timeout", type=float, help="seconds after which all ranks are ended")
    add_device(check)
    check.set_defaults(command=_check)

    reshard = commands.add_parser(
        "reshard",
        help="plan a redistribution and print its steps, bytes, memory and layouts",
        description="Plan how an array gets from one layout to another, and print it. Layouts are "
        "tile{axes minor to major}extent for each dimension: '[3{x}12, 2{y}12]'.",
    )
    reshard.add_argument("source", help="layout of the array, such as '[3{x}12, 2{y}12]'")
    reshard.add_argument("target", help="layout that is wanted")
    reshard.add_argument("--mesh", required=True, metavar="x=4,y=6", help="axes, the first major")
    reshard.add_argument("--target-mesh", metavar="x=4,y=6", help="of the target, if another")
    reshard.add_argument("--dtype", default="float32", help="default float32")
    reshard.add_argument("--solver", help="a solver that shall plan it, such as exchange")
    reshard.add_argument("--max-memory", type=int, metavar="BYTES", help="of a rank at once")
    reshard.add_argument("--svg", metavar="FILE", help="draw the layouts into a file")
    reshard.set_defaults(command=_reshard)

    diagnosis = commands.add_parser("doctor", help="check the compiler, the MPI and the BLAS")
    diagnosis.add_argument(
        "--measure", action="store_true", help="measure messages and copies, and keep the figures"
    )
    diagnosis.add_argument("--device", metavar="KIND", help="measure between devices instead")
    diagnosis.set_defaults(
        command=lambda given: doctor.check_installation(
            ["--measure"] * given.measure + (["--device", given.device] if given.device else [])
        )
    )
    return parser


def _add_search(commands: Any) -> None:
    search = commands.add_parser("search", help="search for the best schedule, and print it")
    search.add_argument("program", help=_PROGRAM)
    add_arguments(search)
    search.add_argument("-n", "--ranks", type=int, required=True, help="number of ranks")
    search.add_argument("--memory", metavar="BYTES", help="of a rank at once, such as 80GB")
    search.add_argument("--seconds", type=float, default=60.0, help="of the search (default 60)")
    search.add_argument("-o", "--output", metavar="FILE.yaml", help="save the schedule")
    told = "save it as a page, with charts of cost and bound over time and of what spaces cost"
    search.add_argument("--html", metavar="FILE.html", help=told)
    add_schedule(search)
    add_frontend(search)
    search.set_defaults(command=_search)

    predict = commands.add_parser("predict", help="print how long a lowered program should take")
    predict.add_argument("program", help=_OR_SAVED)
    add_arguments(predict)
    add_ranks(predict)
    add_schedule(predict)
    add_frontend(predict)
    predict.set_defaults(command=_predict)


# --- programs ---


def _asked(options: argparse.Namespace) -> Asked:
    """The program that is asked for."""
    return load(options.program, options.arg, options.args)


def _schedule(options: argparse.Namespace, asked: Asked) -> Entries:
    """The schedule of the options, or else that of the program's decorator."""
    given = asked_of(options)
    return given or asked.schedule or {}


def _parsed(options: argparse.Namespace, asked: Asked) -> SDFG:
    """The program that is asked for, with the sizes that are."""
    return asked.parsed(getattr(options, "frontend", "numpy"), parse_sizes(options.size))


def _lowered(options: argparse.Namespace) -> Lowering | SymbolicLowering:
    """The program that is asked for, lowered; or the lowered one that was saved."""
    from distspmd.pipeline import lower_numbers
    from distspmd.scheduling.search import Options, lower_searched
    from distspmd.symbolic_lowering import symbols_of

    if (saved := _saved(options)) is not None:
        return saved
    asked = _asked(options)
    sdfg, schedule = _parsed(options, asked), _schedule(options, asked)
    if symbols_of(sdfg):
        return distspmd.lower(sdfg, schedule, ranks=options.ranks, arguments=asked.arguments)
    if options.ranks is None:
        return lower_numbers(sdfg, schedule, arguments=asked.arguments)
    return lower_searched(sdfg, schedule, Options(options.ranks), arguments=asked.arguments)


def _saved(options: argparse.Namespace) -> Lowering | SymbolicLowering | None:
    """The lowered program in a file that is asked for, for sizes that are; None of others.

    Raises:
        SavedError: it is none of this version.
        ScheduleError: another schedule is asked for.
    """
    if not (options.program.endswith(".lowered") or is_saved_program(options.program)):
        return None
    if options.schedule or options.mesh:
        raise ScheduleError(
            f"{options.program} is lowered already, with a schedule of its own. Leave out "
            "--schedule and --mesh, or lower the program again."
        )
    lowering, sizes = distspmd.load(options.program), parse_sizes(options.size)
    return lowering.at(**sizes) if hasattr(lowering, "at") and sizes else lowering


# --- commands ---


def _spaces(options: argparse.Namespace) -> int:
    from distspmd.pipeline import list_spaces

    print(list_spaces(_asked(options).parsed(options.frontend)), end="")
    return 0


def _reshard(options: argparse.Namespace) -> int:
    from distspmd.layouts.layout import Layout
    from distspmd.planning.on_paper import drawing, report
    from distspmd.planning.planner import plan

    mesh = Mesh.parse(options.mesh)
    source = Layout.parse(options.source, mesh)
    target = Layout.parse(options.target, Mesh.parse(options.target_mesh or options.mesh))
    found = plan(source, target, options.dtype, options.solver, options.max_memory)
    print(report(found))
    if options.svg:
        Path(options.svg).write_text(drawing(found))
    return 0


def _lower(options: argparse.Namespace) -> int:
    if options.stop_after:
        print(_stopped_after(options))
        return 0
    lowering = _lowered(options)
    print(lowering)
    print(f"It needs {lowering.ranks} rank{'s' * (lowering.ranks > 1)}.")
    if lowering.ranks == 1 and options.ranks is None and not options.schedule:
        print("Nothing asks for more: write -n 4 to search for a schedule, or -s SPACE=PARTS.")
    if options.save:
        lowering.save(options.save)
    if options.output:
        lowering.sdfg.save(options.output)
    if options.html:
        from distspmd.dace_compat.viewer import page

        title = lowering.sdfg.name
        Path(options.html).write_text(page(title, lowering._repr_html_()), encoding="utf-8")
    return 0


def _stopped_after(options: argparse.Namespace) -> str:
    """The SDFG after a pass, as a schedule tree."""
    from distspmd import pipeline

    asked = _asked(options)
    compilation = pipeline.begin_compilation(_parsed(options, asked), _schedule(options, asked))
    pipeline.run_passes(compilation, stop_after=options.stop_after)
    text: str = compilation.sdfg.as_schedule_tree().as_string()
    return text


def _explain(options: argparse.Namespace) -> int:
    from distspmd.explanation import explain

    explanation = explain(_lowered(options))
    print(explanation)
    if options.html:
        Path(options.html).write_text(f"<html><body>{explanation._repr_html_()}</body></html>")
    return 0


def _search(options: argparse.Namespace) -> int:
    print(found := _found(options, _asked(options), options.memory, options.seconds))
    if options.output:
        found.save(options.output)
    if options.html:
        Path(options.html).write_text(f"<html><body>{found._repr_html_()}</body></html>")
    return 0


def _found(
    options: argparse.Namespace, asked: Asked, memory: str | None = None, seconds: float = 60.0
) -> SearchResult:
    """What a search finds; it says how far it is on a terminal."""
    return distspmd.search(
        _parsed(options, asked),
        options.ranks,
        memory=memory,
        fixed=_schedule(options, asked),
        arguments=asked.arguments,
        seconds=seconds,
        progress=_tell_progress if sys.stderr.isatty() else None,
    )


def _predict(options: argparse.Namespace) -> int:
    print(distspmd.predict(_lowered(options)))
    return 0


def _run(options: argparse.Namespace) -> int:
    if options.device:  # scripts find it in their surroundings
        os.environ[devices.VARIABLE] = devices.device_kind(options.device).name
    if options.program.endswith(".py"):
        if options.driver:
            return _drive(options)
        argv = [options.program, *options.arguments]
        return launch(argv, ranks=options.ranks, timeout=options.timeout).returncode
    checked = _checked(options, runs=options.repeat, searched=True)
    if rank_of_launch() == 0:
        milliseconds = min(run.seconds for run in checked.runs) * 1e3
        print(checked.lowering)
        print(f"{options.ranks} ranks: {milliseconds:.2f} ms (best of {len(checked.runs)})")
        print(
            f"largest difference from {checked.oracle}, relative to the largest value: "
            f"{checked.largest:.1e}"
        )
    return 0


def _drive(options: argparse.Namespace) -> int:
    """Become the script, for which ranks start at its first call."""
    if options.timeout is not None:
        raise LaunchError("--timeout ends ranks that run a script; it is not for --driver.")
    if not Path(options.program).is_file():
        raise LaunchError(f"cannot run {options.program}: no such file.")
    sys.stdout.flush()
    command = [sys.executable, options.program, *options.arguments]
    os.execve(sys.executable, command, {**os.environ, driven.VARIABLE: str(options.ranks)})


def _check(options: argparse.Namespace) -> int:
    checked = _checked(options, runs=options.runs)
    if rank_of_launch() == 0:
        print(checked, end="")
    return 0


def _checked(options: argparse.Namespace, runs: int, searched: bool = False) -> Checked:
    from distspmd.checking.check import check

    if (saved := _saved(options)) is not None:
        own = {"seed": options.seed, "runs": runs, "timeout": options.timeout}
        return check(saved, ranks=options.ranks, device=options.device, **own)
    asked = _asked(options)
    schedule = _schedule(options, asked)
    if not schedule and searched:
        found = _found(options, asked)
        schedule = found.schedule
        if not rank_of_launch():
            print(found.sentence)
    return check(
        asked.function,
        schedule,
        options.ranks,
        examples=asked.examples,
        sizes=parse_sizes(options.size) or None,
        inputs=asked.inputs or None,
        arguments=asked.arguments,
        seed=options.seed,
        runs=runs,
        timeout=options.timeout,
        device=options.device,
    )
