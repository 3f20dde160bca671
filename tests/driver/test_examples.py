"""The script and the notebook with which the README begins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from conftest import UNOPTIMISED

CELLS = """
import ast, json, linecache, sys
shared = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
    if cell["cell_type"] == "code":
        name, text = f"<cell {number}>", "".join(cell["source"])
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        tree = ast.parse(text)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), shared)
        value = eval(compile(ast.Expression(last.value), name, "eval"), shared) if last else None
        if hasattr(value, "_repr_html_"):
            print(value._repr_html_())
"""
"""Runs the cells of a notebook in one process, and prints what it would show."""


def printed(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **UNOPTIMISED},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def spread(plate: np.ndarray, steps: int) -> None:
    for _ in range(steps):
        plate[1:-1, 1:-1] = (
            plate[2:, 1:-1] + plate[:-2, 1:-1] + plate[1:-1, 2:] + plate[1:-1, :-2]
        ) / 4


def told(extent: int) -> str:
    plate = np.zeros((extent, extent))
    plate[0] = 100.0
    spread(plate, 50)
    return f"mean {plate.mean():.3f}, at the edge {plate[1, extent // 2]:.1f}\n"


def test_the_script_of_the_readme_runs_and_prints_once(root: Path, tmp_path: Path) -> None:
    script = (root / "examples" / "heat.py").read_text()
    page = (root / "README.md").read_text()
    shown = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert shown[1].split() == script.split('"""')[2].split(), "the page shows another script"
    assert len(shown[1].strip().splitlines()) <= 15
    assert printed(str(root / "examples" / "heat.py"), cwd=tmp_path) == told(2000)
    assert told(2000) in page


def test_the_notebook_shows_results_once_and_draws_a_layout(root: Path, tmp_path: Path) -> None:
    notebook = root / "examples" / "heat.ipynb"
    out = printed("-c", CELLS, str(notebook), cwd=tmp_path)
    assert out.startswith(told(400))
    assert out.count("<svg") == 1
    assert out.count("mean") == 1
    assert out.splitlines()[-1] == "[200{__i0}400, 200{__i1}400] 101.0 [101. 101. 101.]"
    kept = json.loads(notebook.read_text())["cells"]
    assert told(400) in str(kept).encode().decode("unicode_escape"), "outputs are not kept"
