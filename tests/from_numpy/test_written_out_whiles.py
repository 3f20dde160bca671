"""Loops with ``while`` whose iterations are read one by one; objects equal to themselves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


class Node:
    def __init__(self, value, children=()):
        self.value = value
        self.children = set(children)
        self.grad = 0.0

    def __mul__(self, other):
        return Node(self.value * other.value, (self, other))


def nodes_from_the_last(x):
    """Which node it is differs from iteration to iteration, so that no loop has all of them."""
    nodes = [Node(x[k]) for k in range(3)]
    k, total = len(nodes) - 1, 0.0
    while k >= 0:
        nodes[k].grad = nodes[k].value * 2 + (nodes[k + 1].grad if k < 2 else 0.0)
        total += nodes[k].grad
        k -= 1
    return total, [node.grad for node in nodes]


def graphs_of_nodes(x):
    a, b = Node(x[0]), Node(x[1])
    c = a * b * a
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for child in node.children:
                visit(child)
            order.append(node)

    visit(c)
    return len(order), c.value, a in order, Node(x[2]) in order, 3 in [a, 3], 4 not in [a, 3]


@pytest.mark.parametrize("function", [nodes_from_the_last, graphs_of_nodes])
def test_programs_mean_what_python_means(function: Any) -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x.copy()], ()))
    assert outcome.kind == "right", outcome.reason


def test_a_key_that_may_not_be_read_is_not_looked_for() -> None:
    """The program ended with an IndexError where the condition says that nothing is read."""

    def asked(x: Any) -> Any:
        nodes = [Node(x[k]) for k in range(3)]
        k = int(x[3])
        return nodes[k].value + (nodes[k + 1].value if k < 2 else 0.0)

    with pytest.raises(UnsupportedProgram, match="by a key that is not known before the run"):
        numpy_program(asked, np.array([0.3, 0.7, 1.2, 2.5]))
