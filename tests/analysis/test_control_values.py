import copy

import dace

from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import spaces_of
from distspmd.passes.normalize.pipeline import normalize


@dace.program
def scaled_if_positive(a: dace.float64[8], y: dace.float64[8]):
    if a[3] > 0:
        for value_for_control_flow in dace.map[0:8]:
            y[value_for_control_flow] = 2 * a[value_for_control_flow]


def test_what_reads_a_value_for_control_flow_is_known_by_a_property_whatever_the_labels_are():
    sdfg = scaled_if_positive.to_sdfg()
    normalize(sdfg)
    for twin in (sdfg, copy.deepcopy(sdfg)):
        for space in spaces_of(twin):
            space.node.map.label = "value_for_control_flow"
        found = [(is_control_value(space.node), len(space.ranges)) for space in spaces_of(twin)]
        assert sorted(found) == [(False, 1), (True, 1)]
