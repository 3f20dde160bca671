"""Profiles of hypothesis, and how tests start ranks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from distspmd.runtime.compilers import toolchain
from distspmd.runtime.launch.mpiexec import Completed
from distspmd.runtime.launch.mpiexec import launch as launch_ranks

hypothesis.settings.register_profile("dev", max_examples=30, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=40, derandomize=True, deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")

os.environ.setdefault("DISTSPMD_CALIBRATE", "0")
"""Tests do not tell each other how fast this machine is; those of first calls ask for it."""
os.environ.setdefault("DISTSPMD_KEEP_STARTS", "0")
"""Nor what they have read and lowered, which is what most of them test."""
Launch = Callable[..., Completed]


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return Path(__file__).resolve().parent.parent


LONGEST = """
    lowering/test_programs lowering/test_on_paper autodiff/test_gradients
    runtime/watch/test_agreement
    from_numpy/test_functions from_numpy/test_programs training/test_training kernels/test_kernels
    torture/test_torture placement/test_argument_layouts runtime/redistribution/test_redistribute
    from_numpy/test_linalg runtime/launch/slurm/test_slurm training/test_steps test_communication
    training/test_partitioned from_numpy/test_corpus from_onnx/test_models test_examples
    codegen/test_compile_program analysis/test_inspectors test_api plans/rewrites/test_rank_order
    plans/test_machine lowering/test_on_device execution/test_devices from_numpy/test_messages
"""
"""The files that take longest. Processes that share the suite begin with them and end together."""


TEST_DEVICE, TEST_RANKS = "DISTSPMD_TEST_DEVICE", "DISTSPMD_TEST_RANKS"
"""Environment variables of ``scripts/gpu``: on which kind of device tests that are marked ``gpu``
run (emulated where left out), and on how many ranks alone (any)."""


def is_on(item: pytest.Item, ranks: int) -> bool:
    """Whether a test on devices runs on a number of ranks, as its parameters or its mark say."""
    mark = item.get_closest_marker("gpu")
    given = getattr(getattr(item, "callspec", None), "params", {})
    found = given.get("ranks", getattr(given.get("placed"), "ranks", None))
    return mark is not None and bool(mark.kwargs.get("ranks", found) == ranks)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ranks = os.environ.get(TEST_RANKS)
    if ranks:
        others = [item for item in items if not is_on(item, int(ranks))]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    places = {Path(__file__).parent / f"{name}.py": n for n, name in enumerate(LONGEST.split())}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def selected(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter in all tests of the session that have it and ask for a fixture.

    Args:
        request: of the fixture. Other tests may give the parameter's name to something else.
        parameter: by name.
    """
    name = request.fixturename
    tests = [i for i in request.session.items if name in getattr(i, "fixturenames", ())]
    calls = [getattr(test, "callspec", None) for test in tests]
    return [call.params[parameter] for call in calls if call and parameter in call.params]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden texts instead of comparing"
    )


@pytest.fixture
def golden(root: Path, request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the one that is kept in `tests/golden` under a name."""

    def check(name: str, text: str) -> None:
        file = root / "tests" / "golden" / f"{name}.txt"
        text = text.rstrip() + "\n"
        if request.config.getoption("--update-golden"):
            file.write_text(text)
        assert text == file.read_text(), f"{file.name} differs; pytest --update-golden writes it"

    return check


UNOPTIMISED = {"DACE_compiler_build_type": "None"}
"""Environment in which programs are compiled without optimisation: half of the compiler's time.

The build type "Debug" takes longer than "Release" does, for it writes debugging information.
"""


@pytest.fixture
def unoptimised() -> Iterator[None]:
    """Programs that this process compiles are not optimised."""
    from dace import config

    with config.set_temporary("compiler", "build_type", value="None"):
        yield


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Run a program, a file or text, on a number of ranks, in a folder of the test's own.

    What the ranks compile is not optimised. The result has the output. The test fails if a rank
    does, unless `check=False`. The timeout is for ranks that never end; no test asks how long they
    take.
    """

    def run(
        program: Path | str, *arguments: str, ranks: int, timeout: float = 600, check: bool = True
    ) -> Completed:
        file = program if isinstance(program, Path) else tmp_path / "program.py"
        if isinstance(program, str):
            file.write_text(program)
        done = launch_ranks(
            [file, *arguments],
            ranks=ranks,
            timeout=timeout,
            capture=True,
            env=UNOPTIMISED,
            cwd=tmp_path,
        )
        return done.check() if check else done

    return run


def call_on_ranks(module: str, call: str, ranks: int) -> None:
    """Call a function of a module of tests on ranks; the test fails if a rank does.

    Args:
        module: as it is imported from the folder of tests.
        call: the function with its arguments, in which ``comm`` is the communicator of all ranks.
        ranks: number of ranks.
    """
    code = f"from mpi4py.MPI import COMM_WORLD as comm\nimport {module} as module\nmodule.{call}\n"
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    found = {**UNOPTIMISED, "PYTHONPATH": path}
    launch_ranks(["-c", code], ranks=ranks, timeout=900, capture=True, env=found).check()


@pytest.fixture(autouse=True, scope="session")
def every_lowering_is_watched() -> Iterator[None]:
    """Lowering leaves valid SDFGs, and leaves the one that it was given as it was."""
    from watching import validate_halves

    from distspmd import pipeline

    lower = pipeline.lower_numbers

    def watched(sdfg: Any, *arguments: Any, **named: Any) -> Any:
        before = _hash(sdfg)
        try:
            return lower(sdfg, *arguments, **named)
        finally:
            assert _hash(sdfg) == before, "lower changed the SDFG"

    patch = pytest.MonkeyPatch()
    patch.setattr(pipeline, "lower_numbers", watched)
    patch.setattr(pipeline, "observe", validate_halves)
    yield
    patch.undo()


def _hash(sdfg: Any) -> str:
    described = sdfg.to_json() if hasattr(sdfg, "to_json") else repr(sdfg)
    return hashlib.sha256(json.dumps(described, default=str).encode()).hexdigest()


@pytest.fixture
def no_mpi_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not parsed a program: DaCe's parser loads mpi4py's MPI."""
    monkeypatch.setattr(toolchain, "loaded_mpi", lambda: None)
