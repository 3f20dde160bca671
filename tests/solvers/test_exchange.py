import itertools
from random import Random

import numpy as np
import pytest

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers.exchange import Exchange, shared_evenly


def largest(volumes, workers, found):
    return max(
        sum(v for v, w in zip(volumes, found, strict=True) if w == k) for k in range(workers)
    )


def test_sharing_is_near_the_best_of_all():
    draw = Random(0)
    ratios = []
    for _ in range(150):
        workers = draw.randint(2, 3)
        volumes = [draw.randint(1, 20) for _ in range(draw.randint(1, 7))]
        found = largest(volumes, workers, shared_evenly(volumes, workers))
        every = itertools.product(range(workers), repeat=len(volumes))
        ratios.append(found / min(largest(volumes, workers, each) for each in every))
    assert max(ratios) <= 7 / 6
    assert np.mean(ratios) <= 1.01


def sent(source, target, mesh):
    move = Redistribution(Layout.parse(source, mesh), Layout.parse(target, mesh), np.dtype("int8"))
    return Exchange().plan(move).steps[0].traffic.sent


def test_replicas_share_what_one_tile_sends():
    found = sent("[6{x}12]", "[12]", Mesh(x=2, y=4))
    assert found.tolist() == [6] * 8


def test_uneven_requests_are_shared_largest_first():
    mesh = Mesh(x=6)
    source = Layout.parse("boxes[12]{0: 0:12; 1: 0:12}", mesh)
    target = Layout.parse("boxes[12]{2: 0:5; 3: 0:4; 4: 0:3; 5: 0:2}", mesh)
    plan = Exchange().plan(Redistribution(source, target, np.dtype("int8")))
    assert plan.steps[0].sent() == {0: 7, 1: 7}


@pytest.mark.parametrize(("operands", "calls"), [(1, 3), (2, 7)])
def test_the_number_of_calls_is_bounded_before_planning(operands, calls):
    mesh = Mesh(x=4, y=operands)
    partial = " + partial(sum){y}" if operands > 1 else ""
    source, target = Layout.parse(f"[1{{x}}4]{partial}", mesh), Layout.parse("[4]", mesh)
    move = Redistribution(source, target, np.dtype("int8"))
    assert Exchange().calls(move) == calls
