"""The pages say what is so: paths that they name exist, and what scripts write is up to date."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

import distspmd
from distspmd.pipeline import PIPELINE

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *(ROOT / "docs").rglob("*.md")]
)
FOLDERS = ("distspmd", "examples", "scripts", "tests", "docs", "benchmarks")
MADE_LATER = {"examples/NAME.py", "script.py"}
"""Names in examples of commands: files of the reader's own."""


@cache
def files() -> frozenset[str]:
    """Files of the repository, relative to its root; links are not followed."""
    found = {path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file()}
    found |= {path for path in ROOT.iterdir() if path.is_file()}
    return frozenset(
        path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts
    )


@cache
def endings() -> frozenset[str]:
    """All by which a page may name a file or a folder: the ends of its path."""
    folders = {parent.as_posix() + "/" for name in files() for parent in Path(name).parents}
    parts = [name.split("/") for name in files()]
    below = [[*folder.rstrip("/").split("/")] for folder in folders]
    whole = {"/".join(path[first:]) for path in parts for first in range(len(path))}
    return frozenset(
        whole | {"/".join(path[first:]) + "/" for path in below for first in range(len(path))}
    )


def alternatives(text: str) -> Iterator[str]:
    """The paths in `a/{b,c}.py`."""
    pieces = re.split(r"\{([^}]*)\}", text)
    for choice in product(*(piece.split(",") for piece in pieces[1::2])):
        yield "".join(a + b for a, b in zip(pieces[::2], (*choice, ""), strict=True))


def named_paths(page: Path) -> Iterator[str]:
    """What a page names like a file or a folder, outside of blocks of code."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for words in re.findall(r"`([^`\n]+)`", prose):
        for word in words.split():
            if re.fullmatch(
                r"[\w./{},-]+\.(py|hpp|md|txt|yaml|toml|sh|svg|png)|[\w.-]+(/[\w.-]+)*/", word
            ):
                yield from alternatives(word)


def missing(page: Path) -> list[str]:
    """What a page names and nothing in the repository is called, and links that lead nowhere."""
    named = [path for path in named_paths(page) if path not in MADE_LATER | endings()]
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    return named + [
        link for link in links if "://" not in link and not (page.parent / link).exists()
    ]


def test_the_files_that_pages_name_exist() -> None:
    found = {page.relative_to(ROOT).as_posix(): missing(page) for page in PAGES}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_file_that_is_gone_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`layouts/mesh.py`, `layouts/{mesh,gone}.py`, `gone/`; `a.b`, `3/4`, [a](b.md)")
    assert missing(page) == ["layouts/gone.py", "gone/", "b.md"]


def test_the_names_of_the_package_on_pages_exist() -> None:
    for page in PAGES:
        for name in set(re.findall(r"\bdistspmd(?:\.[A-Za-z_]\w*)+", page.read_text())):
            found: object = distspmd
            for part in name.split(".")[1:]:
                if isinstance(found, ModuleType) and not hasattr(found, part):
                    importlib.import_module(f"{found.__name__}.{part}")
                assert hasattr(found, part), f"{page.name} names {name}, which is not there"
                found = getattr(found, part)


@pytest.mark.parametrize(
    "script",
    ["draw_architecture.py", "write_api.py", "write_numpy_table.py", "write_torch_tables.py"],
)
def test_what_a_script_writes_is_up_to_date(script: str) -> None:
    command = [sys.executable, f"scripts/{script}", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"run: python scripts/{script}\n{done.stdout}{done.stderr}"


def test_each_record_of_a_decision_is_in_the_list_and_has_its_three_parts() -> None:
    records = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    listed = (ROOT / "docs/decisions/README.md").read_text()
    for record in records:
        title, text = record.read_text().split("\n", 1)
        number, _, words = title.removeprefix("# ").partition(". ")
        assert f"- [{int(number):04}]({record.name}): {words}\n" in listed
        for part in ("**Context.**", "**Decision.**", "**Consequences.**"):
            assert part in text, f"{record.name} lacks {part}"


def test_each_word_of_the_glossary_has_one_entry() -> None:
    words = re.findall(r"^\| \*\*([^*]+)\*\* \|", (ROOT / "docs/glossary.md").read_text(), re.M)
    single = [word for entry in words for word in entry.split(", ")]
    assert 40 <= len(single) == len(set(single))


def test_the_life_of_a_program_names_each_pass_in_its_order() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    life = text.partition("## The life of a program")[2].partition("\n## ")[0]
    column = "".join(row.split("|")[2] for row in life.splitlines() if row.startswith("| "))
    assert re.findall(r"`([\w-]+)`", column) == [each.name for each in PIPELINE]


def test_the_ten_questions_have_answers_that_name_files() -> None:
    text = (ROOT / "docs/architecture.md").read_text().partition("## Ten questions")[2]
    answers = re.findall(r"^ ?\d+\. \*[^*]+\?\*(.*?)(?=^ ?\d+\. |^## )", text, re.M | re.DOTALL)
    assert len(answers) == 10
    assert all(re.search(r"`[\w/.]+\.py`", answer) for answer in answers)
