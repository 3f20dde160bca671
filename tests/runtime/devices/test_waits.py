"""Each wait for a device is needed: without it, streams that are lazy give a wrong result.

A wait is taken out of a copy of the package, and a program that uses the copy has to be wrong. What
waits in the device's headers, and what lets one stream wait for another, is found in their text: a
new wait without a mutation here fails a test.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Launch
from runtime.devices.test_pieces import WAITS as OF_MESSAGES

from distspmd.runtime.devices.transports import VARIABLE

PROGRAM = Path(__file__).parents[2] / "ranks" / "waits.py"
HEADERS = "runtime/engine/include/distspmd/device"


@dataclass(frozen=True)
class Mutation:
    """A wait, and what stands in its place when it is taken out.

    Attributes:
        name: for the test.
        file: in the package.
        wait: its text, once in the file.
        instead: what the mutated package has.
        part: of the program that must be wrong.
        ranks: of the program.
        transport: that tiles take, where there are several.
    """

    name: str
    file: str
    wait: str
    instead: str
    part: str = "arrays"
    ranks: int = 1
    transport: str = ""


TRANSPORT = f"{HEADERS}/transport.hpp"
MOVES = (
    Mutation(
        "before pulls",
        TRANSPORT,
        "self->wait(nullptr);  // for what the program does with the tiles",
        "",
        "moved",
        2,
        "pulls",
    ),
    *(
        Mutation(
            f"before messages {name or 'of one rank'}",
            TRANSPORT,
            "self->wait(nullptr);  // likewise",
            "",
            "moved",
            ranks,
            name,
        )
        for name, ranks in (("", 1), ("staged", 2), ("nccl", 2))
    ),
    Mutation("for the mirror", TRANSPORT, "    wait(stream_);\n    go(", "    go(", "mirrored", 2),
)
"""Waits without which tiles are wrong that users move. Mirrors have two more, without which this
program is still right, presumably since others hide them; test_transport.py takes out each."""

MUTATIONS = (
    Mutation(
        "copy",
        f"{HEADERS}/device.hpp",
        "return int(cudaMemcpy(to, from, std::size_t(bytes), cudaMemcpyDefault));",
        "return int(cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDefault));",
    ),
    Mutation(
        "window",
        f"{HEADERS}/device.hpp",
        "  cudaMemcpy2D(target,",
        "  cudaMemcpy2DAsync(target,",
        "program",
    ),
    Mutation(
        "device",
        f"{HEADERS}/device.hpp",
        "const cudaError_t error = cudaDeviceSynchronize();",
        "const cudaError_t error = cudaSuccess;",
        "program",
    ),
    Mutation(
        "memory of others",
        f"{HEADERS}/device.hpp",
        "cudaDeviceSynchronize();  // for streams of others",
        "// for streams of others",
    ),
    Mutation(
        "order",
        f"{HEADERS}/device.hpp",
        "error = cudaStreamWaitEvent(static_cast<cudaStream_t>(after), event, 0);",
        "(void)after;",
    ),
    Mutation(
        "stream",
        f"{HEADERS}/device.hpp",
        "return int(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));",
        "return stream == nullptr;",
    ),
    Mutation(
        "array",
        "runtime/devices/arrays.py",
        "        array._device.order(LEGACY, array.stream)",
        "        pass",
    ),
    Mutation(
        "dlpack",
        "runtime/devices/arrays.py",
        "self._device.order(stream or LEGACY, self.stream)",
        "pass",
        "tiles",
    ),
    Mutation(
        "interface",
        "runtime/devices/views.py",
        "checked(device, device.order(LEGACY, stream), stream)",
        "pass",
        "tiles",
    ),
    Mutation(
        "argument",
        "runtime/devices/views.py",
        "checked(device, device.order(LEGACY, handle), handle)",
        "pass",
        "program",
    ),
    Mutation(
        "call",
        "execution/device_executable.py",
        "        super().run(host)\n        error = self._error()",
        '        super().run(host)\n        error = ""',
        "program",
    ),
    *MOVES,
)

WAITS = re.compile(r"\bcuda(?:Memcpy\w*(?<!Async)|Memset|\w*Synchronize|StreamWaitEvent)\(")
ORDERS = re.compile(r"\.order\(")


@pytest.fixture(scope="module")
def copied(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, in one place: what is compiled of its other headers is kept."""
    copy = tmp_path_factory.mktemp("mutated") / "distspmd"
    shutil.copytree(root / "distspmd", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def mutated(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The copy, which programs import."""
    monkeypatch.setenv("PYTHONPATH", str(copied.parent))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("DISTSPMD_EMULATED_STREAMS", "lazy")
    return copied


@contextmanager
def without(package: Path, mutation: Mutation) -> Iterator[None]:
    """Take a wait out, for a moment."""
    file = package / mutation.file
    text = file.read_text()
    assert text.count(mutation.wait) == 1, f"{mutation.file} has other text than {mutation.wait}"
    file.write_text(text.replace(mutation.wait, mutation.instead))
    try:
        yield
    finally:
        file.write_text(text)


@contextmanager
def owner_late(package: Path, transport: str) -> Iterator[None]:
    """The first rank begins to pull later than the second one, which pulls its tile before.

    Then alone is it certain that nothing else waits for its program: tiles that users move are lent
    for a call, so each call uploads their addresses, which waits.
    """
    if transport != "pulls":
        yield
        return
    begins = "    if (!plan.steps.empty()) find_bases(all, in, out);"
    late = "    for (volatile long n = rank_ * 60000000L; n < 60000000L; n = n + 1) {}"
    pulls = Mutation("late", f"{HEADERS}/pulls.hpp", begins, f"{late}\n{begins}")
    with without(package, pulls):
        yield


def test_there_is_a_mutation_for_each_wait(root: Path) -> None:
    package = root / "distspmd"
    files = [(file, WAITS) for file in (package / HEADERS).glob("*.hpp")]
    files += [(file, ORDERS) for file in package.rglob("*.py")]
    for file, waits in files:
        text = file.read_text()
        if file.name == "transport.hpp":  # test_transport.py mutates the calls of its wait
            text = text.replace("check(cudaStreamSynchronize(stream), ", "")
            text = text.replace("check(cudaMemcpy(part.table, part.boxes.words", "")  # before all
        if file.name == "box_moves.hpp":
            text = text.replace("cudaMemcpy(table, rows.data()", "")  # before all
        if file.name == "device.hpp":
            text = text.replace("  cudaStreamSynchronize(nullptr);\n#endif", "")  # emulated alone
        if file.name == "messages.hpp":  # test_pieces.py takes out the others
            text = text.replace("keep(cudaMemcpy(bases_", "")  # without it kernels follow anything
            for wait, instead in OF_MESSAGES.values():
                text = text.replace(wait, instead)
        if file.name == "pulls.hpp":  # test_pulls.py takes out the others
            text = re.sub(r"keep\(cuda(StreamSynchronize\(stream_|Memcpy\(bases_)", "", text)
        own = [one for one in MUTATIONS if str(file).endswith(one.file)]
        for one in own:
            text = text.replace(one.wait, "")
        left = [text[: found.start()].count("\n") + 1 for found in waits.finditer(text)]
        assert not left, f"{file} waits near {left} and no mutation takes that out"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "ranks", "transport"),
    dict.fromkeys((one.part, one.ranks, one.transport) for one in MUTATIONS),
)
def test_with_all_waits_the_programs_are_right(
    mutated: Path,
    monkeypatch: pytest.MonkeyPatch,
    launch: Launch,
    part: str,
    ranks: int,
    transport: str,
) -> None:
    monkeypatch.setenv(VARIABLE, transport)
    with owner_late(mutated, transport):
        done = launch(PROGRAM, part, ranks=ranks)
    assert "wrong" not in done.stdout
    assert done.stdout.endswith("done\n")


@pytest.mark.parametrize(
    "mutation",
    [m if m.name == "order" else pytest.param(m, marks=pytest.mark.slow) for m in MUTATIONS],
    ids=lambda mutation: mutation.name,
)
def test_without_a_wait_something_is_wrong(
    mutated: Path, monkeypatch: pytest.MonkeyPatch, launch: Launch, mutation: Mutation
) -> None:
    monkeypatch.setenv(VARIABLE, mutation.transport)
    with owner_late(mutated, mutation.transport), without(mutated, mutation):
        done = launch(PROGRAM, mutation.part, ranks=mutation.ranks, check=False)
    assert ": wrong" in done.stdout or done.returncode < 0, done.stdout + done.stderr
