"""ZeRO-1: as data parallel, but each rank has, and updates, a part of the optimizer's state.

Splitting the updates is enough: gradients then come to the ranks as reduce-scatters, and what is
updated goes to all. Parameters whose rows are fewer than the ranks leave ranks idle.
"""

from data_parallel import RANKS, batch, build
from data_parallel import schedule as by_batch
from learning import Training, main

from distspmd import frontend


def schedule(sdfg):
    """The batch, and the first dimension of each update of a parameter."""
    updates = {name: {"__b": RANKS} for name in frontend.parameters(sdfg)}
    return {**by_batch(sdfg), **updates}


EXAMPLE = Training(build, batch, schedule, {"parameters": "replicated", "states": "distributed"})

if __name__ == "__main__":
    main(__file__, EXAMPLE)
