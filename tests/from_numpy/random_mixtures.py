"""Random programs that mix array work with dictionaries, sets, texts and functions of their own."""

from __future__ import annotations

import random

HEAD = """\
import numpy as np

def program(x):
    d = {}
    a = 1
    b = 2
    y = x * 1.0
"""
END = "    return x.sum(), y * 1.0, a, b\n"
_NUMBERS = ("a", "b", "a + 1", "b * 2", "len(d)", "float(x[0])", "a - b", "3")
_ARRAYS = ("x * 2.0", "x + a", "y - x", "np.sqrt(np.abs(x))", "y * b + 1.0", "x[::-1] * 1.0")
_KINDS = (
    *("number", "added", "entry", "read", "popped", "array", "element", "text", "set"),
    *("function", "returns", "jumps", "if", "for", "while"),
)


def source(seed: int) -> str:
    """The source of a module with a function ``program`` of an array of five elements."""
    return HEAD + "".join(f"{line}\n" for line in _Maker(random.Random(seed)).body(1, 4, 7)) + END


class _Maker:
    def __init__(self, numbers: random.Random) -> None:
        self.pick = numbers.choice
        self.numbers = numbers

    def body(self, depth: int, least: int, most: int, in_loop: bool = False) -> list[str]:
        found = []
        for _ in range(self.numbers.randint(least, most)):
            found += self._statement(depth, in_loop)
        return found

    def _statement(self, depth: int, in_loop: bool) -> list[str]:
        kind, place = self.pick(_KINDS), "    " * depth
        value, name, array = self.pick(_NUMBERS), self.pick("ab"), self.pick("xy")
        simple = {
            "number": [f"{name} = {value}"],
            "added": [f"{name} += {self.pick(('1', '2', 'len(d)', '0.5'))}"],
            "entry": [f"d[int({value}) % 5] = {self.pick(_NUMBERS)}"],
            "read": [f"{name} = d.get(int({value}) % 5, {self.pick('01a')})"],
            "popped": [f"{name} = d.pop(int({value}) % 5, 7)"],
            "array": [f"{array} = {self.pick(_ARRAYS)}"],
            "element": [f"{array}[int(abs({value})) % 4] = {self.pick(_NUMBERS)}"],
            "text": [f"s = str(int({value}))", f"{name} = len(s)"],
            "set": ["seen = {int(v) for v in d}", f"{name} = len(seen)"],
            "function": [
                "def g(v):",
                f"    return d.get(int(v) % 3, 0) + {self.pick('1ab')}",
                f"{name} = g({value})",
            ],
            "returns": [f"if {value} > {self.pick(('4', '9', '20'))}:", f"    {END.strip()}"],
        }
        if in_loop:
            jump = self.pick(("break", "continue"))
            simple["jumps"] = [f"if {value} > {self.pick('25')}:", f"    {jump}"]
        if kind in simple:
            return [place + line for line in simple[kind]]
        if depth > 2 or kind == "jumps":
            return [f"{place}a = a + 1"]
        return self._block(kind, depth, in_loop)

    def _block(self, kind: str, depth: int, in_loop: bool) -> list[str]:
        place = "    " * depth
        inside = self.body(depth + 1, 1, 3, in_loop or kind != "if")
        if kind == "for":
            return [f"{place}for i{depth} in range({self.pick(('2', '3', 'len(x)'))}):", *inside]
        if kind == "while":
            count = f"w{depth}"
            head = [f"{count} = 0", f"while {count} < 3:", f"    {count} += 1"]
            return [*(place + line for line in head), *inside]
        test = f"{place}if {self.pick(_NUMBERS)} > {self.pick('124')}:"
        if self.numbers.random() < 0.5:
            return [test, *inside]
        return [test, *inside, f"{place}else:", *self.body(depth + 1, 1, 3, in_loop)]
