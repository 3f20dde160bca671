"""A script that starts no ranks itself."""

import sys

import numpy as np

import distspmd


@distspmd.program(schedule={"__return": (2,)})
def add_one(x):
    return x + 1


y = add_one(np.full(3, float(sys.argv[1])))
print(f"one process, {distspmd.driver.Ranks.started().Get_size()} ranks: {y.tolist()}")
sys.exit(3)
