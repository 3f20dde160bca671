"""Large generated programs become several files, which contain each kind of operation only once.

DaCe writes a program as one function in one file. A compiler takes longer for one function of twice
the length than for two functions, works on one core, and cannot see that the layers of a model are
the same code on other arrays. Blocks of the function therefore become functions of their own, with
the arrays that they touch as parameters::

    { __state->a_tile[i] = x[i]; }   ->   distspmd_block_0(__state, __state->a_tile, x);

Blocks that differ in nothing else share one function. A block moves only if all that it names is a
parameter of the program, an array of its state, its own, or global to the file; everything else
stays in its place, in order.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from distspmd.plans.heuristics import HEURISTICS

FURTHER_FILE = "DISTSPMD_FURTHER_FILE"
"""A macro of all files but the first: around what a program may define only once."""

_HIDDEN = '__attribute__((visibility("hidden")))'
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[{}]""", re.DOTALL
)
_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)(?:__state->)?[A-Za-z_]\w*")
_DECLARED = re.compile(_NAME.pattern + r"(?=\s*[=;:,\[\](){])")
_WORDS = frozenset(
    """auto bool char const double else float for if int int16_t int32_t int64_t int8_t long return
    short signed sizeof uint16_t uint32_t uint64_t uint8_t unsigned void while""".split()  # noqa: SIM905
)
_CONTROL = re.compile(r"(?:for|while|if|else|do)\b")
_JUMP = re.compile(r"\b(?:goto|break|continue|case|co_return)\b")
_FIELD = re.compile(r"^\s*([\w:<>, ]+\*\s*(?:__restrict__\s+)?(\w+));$", re.MULTILINE)
_TAKEN = re.compile(r"&\s*__state->\w+(?!\w|\s*\[)|__state->\w+\s*=(?!=)")
"""The address of an array's pointer, or another pointer for it: not the array alone."""


def split_into_files(code: str, name: str, most: int, share: bool = True) -> list[str]:
    """The files of a generated program, at most so many; the first has the program's functions.

    Args:
        code: what DaCe generated.
        name: of the program.
        share: whether each file may have what stands before the program's function.
    """
    if len(code) < HEURISTICS.file_characters:
        return [code]
    found = _Function.find(code, name)
    if found is None:
        return [code]
    state = re.search(rf"^struct {name}_state_t \{{(.*?)^\}};", code, re.MULTILINE | re.DOTALL)
    fields = {own: declared for declared, own in _FIELD.findall(state[1] if state else "")}
    blocks = _Blocks(f"{name}_state_t", found.parameters, fields)
    body = blocks.moved(code[found.begin : found.end], frozenset())
    if not blocks.functions:
        return [code]
    before, after = code[: found.signature], code[found.end :]
    rest = code[found.signature : found.begin] + body + after
    files = _share_evenly(blocks.functions, most) if share else [blocks.functions]
    declared = "\n".join(f"{function.head};" for function in blocks.functions)
    first = [before, declared, *(f.text for f in files[0]), rest]
    further = [[f"#define {FURTHER_FILE}", before, *(f.text for f in own)] for own in files[1:]]
    return ["\n".join(pieces) for pieces in (first, *further)]


def repeatable(code: str) -> bool:
    """Whether several files of a program may have a code: if all that it defines is inline."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*", "", code, flags=re.DOTALL | re.MULTILINE)
    ends = [0, *(end for _, end in _groups(code)), len(code)]
    pieces = (code[begin:end].strip() for begin, end in itertools.pairwise(ends))
    return all(not piece or re.match(r"(?:inline|constexpr)\b", piece) for piece in pieces)


@dataclass(frozen=True)
class _Function:
    """Where the program's function stands in the code."""

    signature: int
    begin: int
    """Of its body, behind the brace."""
    end: int
    """Of its body, before the brace."""
    parameters: dict[str, str]
    """How each is declared, by its name."""

    @classmethod
    def find(cls, code: str, name: str) -> _Function | None:
        head = re.search(
            rf"^void __program_{name}_internal\(\w+\s*\*\s*__state\b(.*?)\)\s*(?=\{{)",
            code,
            re.MULTILINE | re.DOTALL,
        )
        if head is None:
            return None
        group = next(_groups(code, head.end()), None)
        if group is None:
            return None
        declared = [text.strip() for text in re.split(r",(?![^<]*>)", head[1]) if text.strip()]
        named = {re.findall(r"\w+", text)[-1]: text for text in declared}
        return cls(head.start(), group[0] + 1, group[1] - 1, named)


@dataclass(frozen=True)
class _Block:
    """A function that was a block."""

    head: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.head} {self.body}\n"


@dataclass
class _Blocks:
    """The blocks of a program's function that moved."""

    state: str
    """The type of the program's state."""
    parameters: dict[str, str]
    fields: dict[str, str]
    """How each array of the state is declared, by its name."""
    functions: list[_Block] = field(default_factory=list)
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    """Names of the functions, by parameters and body."""

    def moved(self, text: str, outer: frozenset[str], looped: bool = False) -> str:
        """A piece of code with calls for the blocks in it.

        ``outer`` are the names that stand around the piece and may be declared there; ``looped`` is
        a piece of a loop.
        """
        groups = [*_groups(text)]
        ends = [0, *(end for _, end in groups)]
        begins = [*(begin for begin, _ in groups), len(text)]
        loose = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
        declared = {name for piece in loose for name in _DECLARED.findall(piece)}
        around = outer | (declared - self.parameters.keys() - _WORDS)
        written = loose[:1]
        for (begin, end), before, after in zip(groups, loose, loose[1:], strict=False):
            written += [self._group(text[begin:end], _header(before), around, looped), after]
        return "".join(written)

    def _group(self, text: str, header: str, around: frozenset[str], looped: bool) -> str:
        if header:
            if not _CONTROL.match(header):
                return text
            looped |= header.startswith(("for", "while", "do"))
            return f"{{{self.moved(text[1:-1], around, looped)}}}"
        if len(text) > HEURISTICS.block_characters:
            within = self.moved(text[1:-1], around, looped)
            if within != text[1:-1]:
                return f"{{{within}}}"
        if looped and not re.search(r"\bfor\b", text):
            return text  # a call in each turn would cost more than what it does
        return self._call(text, around) or text

    def _call(self, text: str, around: frozenset[str]) -> str | None:
        """The call of the function that a block becomes."""
        named = dict.fromkeys(_NAME.findall(text))
        if around & named.keys() or _JUMP.search(text) or _TAKEN.search(text):
            return None
        given = {n: self._declared(n) for n in named}
        if any(
            declared and "*" not in declared and _set(name, text)
            for name, declared in given.items()
        ):
            return None
        passed = {n: f"_distspmd_{i}" for i, n in enumerate(n for n, d in given.items() if d)}
        body = _NAME.sub(lambda match: passed.get(match[0], match[0]), text)
        declared = [re.sub(r"\w+$", own, given[name] or "") for name, own in passed.items()]
        parameters = ", ".join([f"{self.state} *__state", *declared])
        known = self.known.get((parameters, body))
        if known is None:
            known = self.known[parameters, body] = f"distspmd_block_{len(self.functions)}"
            self.functions.append(_Block(f"{_HIDDEN} void {known}({parameters})", body))
        return f"{known}({', '.join(['__state', *passed])});"

    def _declared(self, name: str) -> str | None:
        """How a parameter or an array of the state is declared."""
        if name.startswith("__state->"):
            return self.fields.get(name.removeprefix("__state->"))
        return self.parameters.get(name)


def _groups(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """The outermost pairs of braces: where each begins, and ends."""
    depth = begin = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] == "{":
            begin = begin if depth else token.start()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                yield begin, token.end()


def _header(before: str) -> str:
    """What a brace belongs to, of the code before it: the line of a loop or a branch."""
    lines = [line.strip() for line in before.splitlines()]
    lines = [line for line in lines if line and not line.startswith("//")]
    return "" if not lines or lines[-1].endswith((";", ":", "}")) else lines[-1]


def _set(name: str, text: str) -> bool:
    """Whether code gives a variable another value."""
    return bool(re.search(rf"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:[^\w\s]?=(?!=)|\+\+|--)", text))


def _share_evenly(functions: Sequence[_Block], most: int) -> list[list[_Block]]:
    """Functions shared among files of about the same length."""
    length = sum(len(function.text) for function in functions)
    wanted = length // HEURISTICS.file_characters + 1
    files: list[list[_Block]] = [[] for _ in range(max(1, min(most, wanted)))]
    sizes = [0] * len(files)
    for function in sorted(functions, key=lambda f: -len(f.text)):
        least = sizes.index(min(sizes))
        files[least].append(function)
        sizes[least] += len(function.text)
    return files
