import pytest

from distspmd.layouts.enumerate import count, layouts
from distspmd.layouts.mesh import Mesh


@pytest.mark.parametrize("axes", range(4))
@pytest.mark.parametrize("dimensions", range(1, 4))
@pytest.mark.parametrize("several", [False, True])
def test_as_many_layouts_are_enumerated_as_the_formula_counts(axes, dimensions, several):
    mesh = Mesh(**dict.fromkeys("xyz"[:axes], 2))
    found = [str(layout) for layout in layouts((8,) * dimensions, mesh, several)]
    assert len(found) == len(set(found)) == count(axes, dimensions, several)


def test_the_formula_for_two_axes_and_a_matrix():
    assert count(2, 2) == 1 + 4 + 2
    assert count(2, 2, several=True) == 1 + 4 + 6
