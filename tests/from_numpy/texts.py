"""Programs with texts of which the run decides: by branches, in loops, by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case

FORMAT, WIDE = "{:.1f}", "{:>10}"
ONE, TWO = "%.2f", "%s and %s"
NAMES = ["alpha", "beta", "gamma"]


def chosen(x: Any) -> Any:
    """Texts of branches, with values and without, formatted and in lists."""
    print("bar", "tension" if x[0] > 0 else "compression", f"{'p' if x[1] > 0.5 else 'q':>5}|")
    state = "low"
    if x[2] > 0.7:
        state = "high"
    elif x[2] > 0.1:
        state = f"middle {x[2]:.2f}"
    print("state", state, [f"{v:.2f}" for v in x], f"{state:>20}|")
    print(f"{f'{100 * x[0]:.1f}%':>8}", f"{x[0]:.3f}".rjust(12), "yes" if x[1] > 0.5 else x[1])
    return x + 1


def carried(x: Any) -> Any:
    """Texts that loops carry: alone, in a dictionary, in an object."""
    status, n = "running", 0
    while n < 10:
        n += 1
        if x[n % 3] > 0.8:
            status = "converged"
            break
        if x[n % 3] > 0.5:
            status = "slow"
    if status == "converged":
        print("ok", status)
    else:
        print("not", status.upper(), n)
    best = {"name": "none", "value": 0.0}
    for i in range(5):
        if x[i % 3] > best["value"]:
            best["value"] = x[i % 3]
            best["name"] = "first" if i % 3 == 0 else "other"
    print(best["name"], best["value"])
    return status, n


def indexed(x: Any) -> Any:
    """Texts and letters at indices of the run; dictionaries by them."""
    k = np.argmax(x)
    print(NAMES[k], f"{NAMES[k]:<8}|", "abc"[k], " .:#"[int(x[0] * 4)], "*" * int(10 * x[1]))
    best, most = None, -1.0
    for name, value in zip(NAMES, x, strict=True):
        if value > most:
            most = value
            best = name
    print("best", best)
    letters = []
    for i in range(3):
        letters.append("abc"[int(x[i] * 3)])  # noqa: PERF401
    same = "abc"[int(x[0] * 3)] == "abc"[int(x[1] * 3)]
    print("".join(letters), {"alpha": 1, "beta": 2, "gamma": 3}[NAMES[k]], same)
    print(NAMES[k] in ("alpha", "beta"), NAMES[k].startswith("a"), NAMES[k].replace("a", "o"))
    print(TWO % (NAMES[k], f"{x[0]:.1f}"), WIDE.format("yes" if x[0] > 0.5 else "no"))
    return NAMES[k]


def kept(x: Any) -> Any:
    """A text has the values of when it is made, whatever is written later."""
    one, two, three = f"{x[0]:.3f}", ONE % x[1], FORMAT.format(x[2])
    whole = str(x)
    x[:] = 5
    print(one, two, three, whole, x[0])


def with_none(x: Any) -> None:
    """What may be None is printed."""
    found, place = None, None
    for i in range(3):
        if x[i] > 0.7:
            found = x[i]
            place = "here"
    print("found", found, f"{found} {place}")


def grown(x: Any) -> Any:
    """Texts that a loop of unknown length builds letter by letter, and what is read of them."""
    a, b, i, count = "", "z", 0, 0
    while i < len(x) and x[i] > 0.1:
        if x[i] > 0.5:
            a = "ACGT"[int(x[i] * 4)] + a
            b += "-"
        else:
            a = a + "one"
        count += len(a)
        i += 1
    print(a, b, len(a), count, a[::-1][1:3], a[:2])
    print(a == a[::-1], a != b, "A" in a, a[0] if len(a) > 0 else "none", f"{a:>12}|")
    return a, a[::-1], b + "|" + a, count


def signs(x: Any) -> Any:
    """Texts of loops of many iterations, one of them inside of another."""
    found = ""
    for i in range(40):
        found += "+" if x[i % 3] > 0.1 * (i % 10) else "-"
    more = found
    for j in range(int(x[0] * 5)):
        last = more
        more = more + found[j]
    if x[0] > 0.2:
        print(last)
    return found, found.replace("+", ""), found.count("-"), more


def cut(x: Any) -> Any:
    """Parts of texts with ends of the run, lists of letters, and texts that are joined."""
    text = "hello world, hello rnn"
    codes = {letter: n for n, letter in enumerate(sorted(set(text)))}
    p = int(x[0] * 20)
    part = text[p : p + 5]
    back = list(part)
    back.reverse()
    print(part.replace("l", "r"), part.replace("l", ""), part.upper(), back, "".join(back))
    words = [("one", "three", "")[int(3 * v)] for v in x if v > 0.3]
    print(" ".join(words), "".join(words), "--".join(part), "".join(reversed(part)))
    return part, [codes[letter] for letter in part], sum(letter == "l" for letter in part)


def listed(x: Any) -> Any:
    """Texts in lists whose content the run decides: alone, in tuples, sorted, and looked for."""
    out, names, last = [], ["zero"], "none"
    for t, value in enumerate(x):
        if value > 0.5 and last != "buy":
            out.append((t, "buy", value))
            last = "buy"
            names.append("abc"[t % 3])
        elif value < 0.5:
            out.append((t, "sell", value))
            last = "sell"
            names.insert(0, "a long name")
    print(out, len(out), names, sorted(names), names.count("a"), "b" in names)
    for (_, one, first), (_, other, second) in zip(out[::2], out[1::2], strict=False):
        print(one, other == one, second - first)
    taken = names.pop()
    names.append(taken.upper())
    names[0] = "first"
    return out, names, taken, max(names), names.index("first")


def returned(x: Any) -> Any:
    """Texts with values are returned: formatted, chosen, and in dictionaries."""
    text = f"value {x[1]:.2f} of {x}"
    return {"a": text, "b": text.upper() if x[0] > 0.5 else "none", "c": TWO % (x[0], 1)}


def arrays(x: Any) -> Any:
    """Arrays with lengths that the run decides, and large ones."""
    print(x[x > 0.5], len(x[x > 0.5]))
    print(np.arange(1200.0).reshape(40, 30) * x[0])
    return x


def _case(function: Any, seed: int) -> Case:
    return Case(
        f"{function.__name__}-{seed}",
        function,
        "texts",
        "own",
        lambda _: (np.random.default_rng(seed).random(3),),
        (),
    )


PROGRAMS = (carried, indexed, kept, with_none, arrays)
HOSTED = (chosen, grown, signs, cut, returned, listed)
"""Of which Python makes the texts."""
CASES = [_case(function, 1) for function in PROGRAMS]
OTHERS = [_case(function, seed) for function in PROGRAMS for seed in (2, 3)]
