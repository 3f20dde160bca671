"""Data and tensor parallel at once: two groups of ranks have parts of the batch, and in each group
two ranks have halves of the heads and hidden units.

It is the product of both presets, on a mesh of two axes. The sums behind the attention and the
perceptron are among the ranks of a group, those of the gradients between the groups.
"""

from dataclasses import replace

import tensor_parallel
from learning import main

from distspmd import frontend

GROUPS, RANKS = 2, 2
EXAMPLE = replace(
    tensor_parallel.EXAMPLE, schedule=frontend.data_parallel(GROUPS) * frontend.megatron(RANKS)
)

if __name__ == "__main__":
    main(__file__, EXAMPLE)
