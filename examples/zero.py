"""ZeRO-1: as data parallel, but each rank has, and updates, a part of the optimizer's states.

Splitting the updates is enough: gradients then come to the ranks as reduce-scatters, and what is
updated goes to all. Parameters with fewer rows than there are ranks leave ranks idle.
"""

import data_parallel
from learning import Training, main

from distspmd import frontend

RANKS = data_parallel.RANKS
EXAMPLE = Training(data_parallel.build, data_parallel.batch, frontend.zero(1, RANKS))

if __name__ == "__main__":
    main(__file__, EXAMPLE)
