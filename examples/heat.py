"""Heat spreads over a plate: a plain script, whose program runs on 4 ranks behind it."""

import numpy as np

import distspmd


@distspmd.program
def spread(u, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4


with distspmd.ranks(4):
    plate = np.zeros((2000, 2000))
    plate[0] = 100.0
    spread(plate, 50)
    print(f"mean {plate.mean():.3f}, at the edge {plate[1, 1000]:.1f}")
