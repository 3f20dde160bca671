"""Predicted scaling to thousands of ranks: ``python benchmarks/scaling.py [cases] [--most 4096]``.

For each case and number of ranks a schedule is searched for, and its predicted seconds are printed
beside the bound of the search. Nothing runs: the machine is an assumption, one rank a node of
`NODE`. The cases are the product of 8192^3 on 1 to 128 nodes, with arguments and results on rank 0
and with tiles on all ranks, and Jacobi, attention and a training step of a GPT with as much work
at any number of ranks (strong), and with as much for each rank (weak).

``--keep FILE`` keeps all figures as JSON, and goes on where a file ends; ``--svg FILE`` draws them.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dace import SDFG
from dace import float32 as f4

import distspmd
from distspmd.charts import Chart, Line, as_svg
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine

NODE = Machine(
    alpha=2e-6,
    beta=1e-10,
    copy=2e-11,
    product=1 / 4e11,
    operation=1e-11,
    stream=2e-11,
    launch=1e-6,
)
"""A node: 0.8 TFLOP/s of products in single precision, 50 GB/s of memory, 10 GB/s of network."""
STEPS = 100


def product(_: int) -> SDFG:
    def multiplied(a: f4[8192, 8192], b: f4[8192, 8192]):
        return a @ b

    return numpy_program(multiplied)


def jacobi(n: int) -> SDFG:
    def stepped(a: f4[n, n], b: f4[n, n]):  # type: ignore[valid-type]
        for _ in range(STEPS):
            b[1:-1, 1:-1] = 0.2 * (
                a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
            )
            a[1:-1, 1:-1] = 0.2 * (
                b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
            )

    return numpy_program(stepped)


def attention(batch: int) -> SDFG:
    """That of BERT-large, with its projections: 512 tokens, 16 heads of 64."""

    def attended(
        x: f4[batch, 512, 1024],  # type: ignore[valid-type]
        wq: f4[1024, 16, 64],
        wk: f4[1024, 16, 64],
        wv: f4[1024, 16, 64],
        wo: f4[16, 64, 1024],
    ):
        q = np.einsum("bse,ehp->bhsp", x, wq)
        k = np.einsum("bse,ehp->bhsp", x, wk)
        v = np.einsum("bse,ehp->bhsp", x, wv)
        e = np.exp(np.einsum("bhsp,bhtp->bhst", q, k))
        w = e / np.sum(e, axis=3, keepdims=True)
        values = np.einsum("bhst,bhtp->bhsp", w, v)
        return np.einsum("bhsp,hpe->bse", values, wo)

    return numpy_program(attended)


def gpt(batch: int) -> SDFG:
    """AdamW on two layers of width 1024 with 16 heads, 128 tokens a text, 8192 words."""
    import torch
    from training import GPT, step_of

    from distspmd import frontend

    model = GPT(8192, 1024, 16, 128, 2)
    x, y = torch.zeros((2, batch, 128), dtype=torch.int64)
    sdfg: SDFG = frontend.training_step(step_of(model, model), x, y.flatten())
    return sdfg


@dataclass(frozen=True)
class Case:
    """One curve.

    Attributes:
        program: of a size.
        size: for so many ranks.
        is_held: whether arguments and results are tiles on the ranks, else they are on rank 0.
        most: ranks.
        factor: from one number of ranks to the next.
    """

    program: Callable[[int], SDFG]
    size: Callable[[int], int]
    is_held: bool = True
    most: int = 4096
    factor: int = 4

    def ranks(self, most: int) -> list[int]:
        """All numbers of ranks."""
        last = math.log(min(self.most, most), self.factor)
        return [self.factor**power for power in range(int(last + 1e-9) + 1)]


CASES = {
    "product, rank 0": Case(product, lambda _: 8192, False, 128, 2),
    "product, tiles": Case(product, lambda _: 8192, True, 128, 2),
    "Jacobi, strong": Case(jacobi, lambda _: 16386),
    "Jacobi, weak": Case(jacobi, lambda p: 2048 * math.isqrt(p) + 2),
    "attention, strong": Case(attention, lambda _: 256),
    "attention, weak": Case(attention, lambda p: 4 * p),
    "GPT, strong": Case(gpt, lambda _: 1024),
    "GPT, weak": Case(gpt, lambda p: 8 * p),
}


def predicted(case: Case, ranks: int, seconds: float) -> dict[str, Any]:
    """The figures of a case on so many ranks."""
    sdfg = case.program(case.size(ranks))
    arrays = [name for name in sdfg.arglist() if name in sdfg.arrays]
    arguments = dict.fromkeys(arrays, "distributed") if case.is_held else None
    begin = sum(os.times()[:4])
    found = distspmd.search(sdfg, ranks, machine=NODE, arguments=arguments, seconds=seconds)
    return {
        "ranks": ranks,
        "seconds": found.cost,
        "bound": found.bound,
        "work": found.compute,
        "spaces": len(found.spaces),
        "search": sum(os.times()[:4]) - begin,
    }


# -- pictures --


def charts(kept: dict[str, list[dict[str, Any]]]) -> list[Chart]:
    """The curves of all cases that there are."""
    products = []
    for number, (name, label) in enumerate(
        (
            ("product, rank 0", "from rank 0 and back to it"),
            ("product, tiles", "tiles on all ranks"),
        )
    ):
        rows = kept.get(name, [])
        points = tuple((row["ranks"], row["seconds"]) for row in rows)
        products.append(Line(label, points, number))
        if rows and number:
            ideal = tuple((row["ranks"], rows[0]["seconds"] / row["ranks"]) for row in rows)
            products.append(Line("ideal", ideal, 3, is_dashed=True))
    strong, weak = [], []
    for number, name in enumerate(("Jacobi", "attention", "GPT")):
        rows = kept.get(f"{name}, strong", [])
        faster = tuple((row["ranks"], rows[0]["seconds"] / row["seconds"]) for row in rows)
        strong.append(Line(name, faster, number))
        rows = kept.get(f"{name}, weak", [])
        part = tuple((row["ranks"], rows[0]["seconds"] / row["seconds"]) for row in rows)
        weak.append(Line(name, part, number))
    ranks = [point[0] for line in strong for point in line.points]
    if ranks:
        ends = (min(ranks), max(ranks))
        strong.append(Line("ideal", tuple((p, p) for p in ends), 3, is_dashed=True))
    return [
        Chart("Product of 8192 x 8192 matrices", "nodes", "seconds", tuple(products), (2, 10)),
        Chart(
            "As much work at any number of ranks", "ranks", "times as fast", tuple(strong), (4, 4)
        ),
        Chart("As much work for each rank", "ranks", "efficiency", tuple(weak), (4, 0)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--most", type=int, default=4096, help="ranks (default 4096)")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of a search")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    kept: dict[str, list[dict[str, Any]]] = {}
    if options.keep and options.keep.exists():
        kept = json.loads(options.keep.read_text())
    print("| case | ranks | predicted s | of it work | bound | spaces | CPU s of search |")
    print("|---|---|---|---|---|---|---|")
    for name in options.cases or CASES:
        rows = kept.setdefault(name, [])
        for ranks in CASES[name].ranks(options.most):
            if any(row["ranks"] == ranks for row in rows):
                continue
            begin = time.monotonic()
            row = predicted(CASES[name], ranks, options.seconds)
            rows.append(row)
            print(
                f"| {name} | {ranks} | {row['seconds']:.3e} | {row['work']:.3e} | "
                f"{row['bound']:.3e} | {row['spaces']} | {row['search']:.1f} |"
                f" <!-- {time.monotonic() - begin:.0f} s -->",
                flush=True,
            )
            if options.keep:
                options.keep.write_text(json.dumps(kept, indent=1) + "\n")
    if options.svg:
        options.svg.write_text(as_svg(charts(kept), columns=3))


if __name__ == "__main__":
    main()
