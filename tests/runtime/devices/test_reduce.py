"""Reductions by many threads of a device are right in each shape, and not without a barrier."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.devices.kinds import EMULATION
from distspmd.runtime.engine.compile_runtime import INCLUDE

BARRIER = re.compile(r"(?:if \(deep > 1\) )?__syncthreads\(\);[^\n]*")

TEMPLATE = """
__global__ void kernel_NUMBER(const Number *in, Number *out, Number *parts, Number elements,
                              Number terms, SPACE::ReductionShape shape, bool first) {
  SPACE::reduce_elements(
      elements, first ? terms : shape.chunks, first ? shape : SPACE::ReductionShape{1, 1},
      Number(0),
      [&](Number e, Number begin, Number end, Number step, Number &part) {
        for (Number t = begin; t < end; t += step)
          part += first ? in[e * terms + t] : parts[e * shape.chunks + t];
      },
      [](Number &a, Number b) { a += b; },
      [&](Number e, Number chunk, Number part) {
        if (first && shape.chunks > 1) {
          parts[e * shape.chunks + chunk] = part;
        } else {
          out[e] = part;
        }
      });
}
void launch_NUMBER(unsigned blocks, Number elements, Number terms, Number wide, Number chunks,
                   const Number *in, Number *out, Number *parts) {
  SPACE::ReductionShape shape{wide, chunks};
  for (bool first : {true, false}) {
    if (!first && chunks == 1) return;
    void *arguments[] = {(void *)&in,    (void *)&out,   (void *)&parts, (void *)&elements,
                         (void *)&terms, (void *)&shape, (void *)&first};
    cudaLaunchKernel((void *)kernel_NUMBER, dim3(blocks), dim3(256), arguments, 0, nullptr);
  }
}
"""


def variants(header: str) -> list[str]:
    """The text of the header in a namespace of its own: as it is, and without each barrier."""
    body = header.replace("#pragma once", "").replace("namespace distspmd {", "namespace NAME {")
    found = [body]
    found += [body[: one.start()] + body[one.end() :] for one in BARRIER.finditer(body)]
    names = ["distspmd", *(f"variant_{n}" for n in range(1, len(found)))]
    return [text.replace("NAME", name) for text, name in zip(found, names, strict=True)]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reduce")
    headers = variants((INCLUDE / "distspmd" / "device" / "reduce.hpp").read_text())
    spaces = ["distspmd", *(f"variant_{n}" for n in range(1, len(headers)))]
    kernels = [
        TEMPLATE.replace("SPACE", space).replace("NUMBER", str(n)) for n, space in enumerate(spaces)
    ]
    calls = "".join(f'check("{n}", launch_{n});\n' for n in range(len(spaces)))
    text = (Path(__file__).parent / "emulation" / "reduce_checks.cpp").read_text()
    text = text.replace("\nVARIANTS\n", "\n".join(headers)).replace("CHECKS\n", calls)
    (folder / "checks.cpp").write_text(text.replace("\nTEMPLATES\n", "\n".join(kernels)))
    command = [*find_compiler().command, "-std=c++17", "-O1", f"-I{EMULATION}"]
    sources = [str(folder / "checks.cpp"), str(EMULATION / "emulated_device.cpp")]
    subprocess.run([*command, *sources, "-o", str(folder / "checks")], check=True)
    return folder / "checks"


def lines(checks: Path, threads: str) -> list[str]:
    """What a run says in which threads go on in an order after a barrier."""
    around = {**os.environ, "DISTSPMD_EMULATED_THREADS": threads}
    done = subprocess.run([checks], env=around, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_reductions_are_right_in_each_shape_and_each_barrier_is_needed(checks: Path) -> None:
    found = [lines(checks, threads) for threads in ("forwards", "backwards")]
    for run in found:
        assert run[0] == "0: right of 16"
        assert run[-1] == "done"
    without = list(zip(*(run[1:-1] for run in found), strict=True))
    assert len(without) == 2, "there are two barriers"
    assert all(any(": wrong of" in line for line in pair) for pair in without)
