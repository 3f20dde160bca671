"""Headers of kernels access what is theirs: their checks run under sanitizers of the compiler.

An allocation of the emulated device has poisoned bytes on both sides there, so that a kernel that
goes one element too far is an error, also where the page goes on.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from runtime.devices import test_pieces, test_reduce

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.devices.kinds import EMULATION
from distspmd.runtime.engine.compile_runtime import INCLUDE

CHECKS = Path(__file__).parent / "emulation"
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]

TOO_FAR = """
__global__ void one_too_far(std::int32_t *at, std::int64_t count) { at[count] = 0; }
void too_far() {
  std::int32_t *at = nullptr;
  std::int64_t count = 70;
  cudaMalloc(&at, count * sizeof(std::int32_t));
  void *arguments[] = {&at, &count};
  cudaLaunchKernel((void *)one_too_far, dim3(1), dim3(1), arguments, 0, nullptr);
  cudaDeviceSynchronize();
}
"""
"""The sanitizers are there: an error that the page would hide is seen."""


def parts() -> dict[str, str]:
    """The texts of the checks, with the headers as they are."""
    texts = {name: (CHECKS / f"{name}_checks.cpp").read_text() for name in ("transport", "row")}
    calls = "".join(
        f'check<distspmd::Transport>("tiles", {place});\n' for place in ("false", "true")
    )
    texts["transport"] = texts["transport"].replace("\nTRANSPORTS\n", "").replace("CHECKS\n", calls)
    texts["row"] = texts["row"].replace("\nVARIANTS\n", "")
    texts["row"] = texts["row"].replace("\nSPACES\n", "\nCHECK(distspmd)\n")
    texts["row"] = texts["row"].replace("CHECKS\n", 'distspmd_check("rows");\n')
    reduce = (CHECKS / "reduce_checks.cpp").read_text().replace("\nVARIANTS\n", "")
    kernel = test_reduce.TEMPLATE.replace("SPACE", "distspmd").replace("NUMBER", "0")
    reduce = reduce.replace("\nTEMPLATES\n", kernel)
    texts["reduce"] = reduce.replace("CHECKS\n", 'check("reductions", launch_0);\n')
    texts["pieces"] = test_pieces.checks_of([])
    return {name: text.replace("int main() {", "void run() {") for name, text in texts.items()}


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sanitized")
    texts = parts()
    included = {line for text in texts.values() for line in re.findall(r"#include <.*>", text)}
    headers = ("transport", "rows", "reduce", "messages")
    included |= {f"#include <distspmd/device/{name}.hpp>" for name in headers}
    bodies = [f"namespace {name}_checks {{\n{text}\n}}" for name, text in texts.items()]
    calls = "".join(f"  {name}_checks::run();\n" for name in texts)
    main = f"int main(int given, char **) {{\n  if (given > 1) too_far();\n{calls}}}\n"
    text = "\n".join([*sorted(included), *bodies, TOO_FAR, main])
    (folder / "checks.cpp").write_text(text)
    flags = [*SANITIZED, "-std=c++17", f"-I{EMULATION}", f"-I{INCLUDE}"]
    sources = [str(folder / "checks.cpp"), str(EMULATION / "emulated_device.cpp")]
    subprocess.run(
        [*find_compiler().command, *flags, *sources, "-o", str(folder / "checks")], check=True
    )
    return folder / "checks"


def run(checks: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    named = {f"DISTSPMD_EMULATED_{key.upper()}": value for key, value in settings.items()}
    return subprocess.run(
        [checks, *arguments],
        env={**os.environ, **named},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("threads", ["forwards", "backwards", "warps"])
def test_headers_of_kernels_are_right_under_sanitizers(checks: Path, threads: str) -> None:
    done = run(checks, guard="0", threads=threads)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done\n") == len(parts())
    assert done.stdout.count(": right") == 5
    assert "wrong" not in done.stdout


def test_an_element_too_far_is_an_error(checks: Path) -> None:
    done = run(checks, "too far", guard="0")
    assert done.returncode != 0
    assert "AddressSanitizer: use-after-poison" in done.stderr
    assert "one_too_far" in done.stderr
