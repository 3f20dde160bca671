"""Writes `docs/api.md`: signature and docstring of each public name of the package.

    python scripts/write_api.py [--check]

Public is what `__all__` of the modules in `NAMESPACES` lists. With `--check` nothing is written,
and the exit status says whether the page would change.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/api.md"
NAMESPACES = tuple(
    f"distspmd{name and f'.{name}'}"
    for name in (
        *("", "layouts", "schedule", "frontend", "errors", "plans", "lowering"),
        *("symbolic_lowering", "api", "execution", "scheduling", "runtime", "driver", "analysis"),
    )
)

HEAD = """\
# API reference

Everything that `__all__` of the packages below lists, from signatures and docstrings;
`python scripts/write_api.py` writes this page. Names that are not here are internal and may change.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for name in NAMESPACES for line in namespace(name))]) + "\n"


def namespace(name: str) -> Iterator[str]:
    """A module: its docstring, then what it lists."""
    module = importlib.import_module(name)
    yield f"## `{name}`\n"
    yield prose(inspect.getdoc(module)) + "\n"
    for member in sorted(module.__all__, key=str.casefold):
        yield from entry(f"{name}.{member}", getattr(module, member))


def entry(name: str, member: Any) -> Iterator[str]:
    """A function, a class with its public methods, or a value."""
    if inspect.ismodule(member):
        yield f"### `{name}`\n"
        yield prose(inspect.getdoc(member)) + "\n"
    elif inspect.isclass(member):
        yield f"### class `{name}`{bases(member)}\n"
        if shows_signature(member):
            yield code(name.rpartition(".")[2], member)
        yield prose(inspect.getdoc(member)) + "\n"
        if issubclass(member, enum.Enum):
            yield "Members: " + ", ".join(f"`{each.name}`" for each in member) + ".\n"
        yield from methods(member)
    elif callable(member):
        yield f"### `{name}`\n"
        yield code(name.rpartition(".")[2], member)
        yield prose(inspect.getdoc(member)) + "\n"
    else:
        yield f"### `{name}`\n"
        if type(member).__module__.startswith("distspmd."):
            yield prose(inspect.getdoc(type(member))) + "\n"


def methods(cls: type) -> Iterator[str]:
    """Public methods and properties that a class defines itself, and what it says of them."""
    lines = []
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_") or not (inspect.isfunction(function) or is_property(function)):
            continue
        text = prose(" ".join((inspect.getdoc(function) or "").split("\n\n")[0].split()))
        inside = "" if is_property(function) else signature(function)
        shown = re.sub(r"^\((self|cls)(, )?", "(", inside)
        lines.append(f"- `{name}{shown}`: {text}")
    if lines:
        yield "\n".join(lines) + "\n"


def is_property(member: Any) -> bool:
    """Whether a member of a class is read like an attribute."""
    return isinstance(member, property) or type(member).__name__ == "cached_property"


def bases(cls: type) -> str:
    """What a public class derives from, where that says something to its user."""
    named = [base.__name__ for base in cls.__bases__ if base is not object]
    return f" ({', '.join(named)})" if named else ""


def shows_signature(cls: type) -> bool:
    """Whether a class is made by calling it: errors, enumerations and protocols are not."""
    return not issubclass(cls, (BaseException, enum.Enum)) and not getattr(cls, "_is_protocol", 0)


def code(name: str, member: Any) -> str:
    """A signature as a block, one parameter a line where it is long."""
    text = f"{name}{signature(member)}"
    if len(text) > 90:
        inside, _, result = text[len(name) + 1 :].rpartition(")")
        lines = "".join(f"    {parameter},\n" for parameter in parameters(inside))
        text = f"{name}(\n{lines}){result}"
    return f"```python\n{text}\n```\n"


def parameters(text: str) -> list[str]:
    """The parameters of a signature, cut at commas outside of brackets."""
    depth, found = 0, [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [parameter.strip() for parameter in found]


def signature(member: Any) -> str:
    """The signature as it is written; a default that is an object of this process is `...`."""
    found = inspect.signature(member)
    shown = [
        each if each.default is each.empty or is_plain(each.default) else each.replace(default=...)
        for each in found.parameters.values()
    ]
    text = str(found.replace(parameters=shown)).replace("'", "").replace("Ellipsis", "...")
    return re.sub(r"<class ([\w.]+)>", r"\1", text)


def is_plain(default: Any) -> bool:
    """Whether a default reads the same in every process."""
    if isinstance(default, tuple):
        return all(map(is_plain, default))
    return default is None or isinstance(default, (bool, int, float, str, type))


def prose(text: str | None) -> str:
    """A docstring as Markdown: sections of arguments and errors become lists."""
    lines, section = [], ""
    for line in re.sub(r":\w+:(?=`)", "", text or "").splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Attributes):", line):
            section = line
            lines += [f"*{line[:-1]}*", ""]
        elif not section:
            lines.append(line.replace("``", "`"))
        elif line.strip():
            indent = len(line) - len(line.lstrip())
            words = line.strip().replace("``", "`")
            starts = re.match(r"(\*{0,2}\w+)(, \*{0,2}\w+)*: ", words) if indent == 4 else None
            if section != "Returns:" and starts:
                names, _, rest = words.partition(": ")
                lines.append(f"- `{names}`: {rest}")
            else:
                lines.append(f"  {words}" if section != "Returns:" else words)
        else:
            lines.append("")
            section = "" if not line else section
    return "\n".join(lines).strip()


def main() -> int:
    """Write the page, or with `--check` say whether it is as it should be."""
    parser = argparse.ArgumentParser(description="Write the reference of the API.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    text = page()
    stale = not PAGE.exists() or PAGE.read_text() != text
    if stale:
        print(PAGE.relative_to(ROOT), "would change" if check else "written")
        if not check:
            PAGE.write_text(text)
    return int(stale and check)


if __name__ == "__main__":
    sys.exit(main())
