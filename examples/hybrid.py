"""Data and tensor parallel at once: two groups of ranks have parts of the batch, and in each group
two ranks have halves of the heads and hidden units.

It is the schedule of the tensor parallel layer with a second axis for the batch. The sums behind
the attention and the perceptron are among the ranks of a group, those of the gradients between the
groups.
"""

from dataclasses import replace

import tensor_parallel
from learning import main

GROUPS, RANKS = 2, 2


def schedule(sdfg):
    split = tensor_parallel.schedule(sdfg, RANKS)
    return {name: {**parts, "b": GROUPS} for name, parts in split.items()}


EXAMPLE = replace(tensor_parallel.EXAMPLE, schedule=schedule)

if __name__ == "__main__":
    main(__file__, EXAMPLE)
