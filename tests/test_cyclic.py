import numpy as np
import pytest

import distspmd
from distspmd.cyclic import Fold, cyclic, fold_shape, folded
from distspmd.errors import LayoutError
from distspmd.layout import Layout
from distspmd.mesh import Mesh
from distspmd.simulator import simulate, tiles_of

MESH = Mesh(x=2, y=3)


@pytest.mark.parametrize("block", [1, 2, 4])
def test_blocks_are_dealt_in_turn(block):
    layout, fold = cyclic(Layout.parse("[12{x}24]", MESH), 0, block)
    array = np.arange(24)
    tiles = tiles_of(layout, array.reshape(fold_shape((24,), [fold])))
    for rank in MESH:
        x = MESH.coordinates(rank)["x"]
        wanted = [i for i in range(24) if i // block % 2 == x]
        assert tiles[rank].ravel().tolist() == wanted


@pytest.mark.parametrize("target", ["[24, 6]", "[12{x}24, 6]", "[8{y,x}48, 6]", "[24, 2{y}6]"])
def test_cyclic_to_blocks_and_back(target):
    extents = Layout.parse(target, MESH).extents
    source, fold = cyclic(Layout.parse(f"[{extents[0] // 2}{{x}}{extents[0]}, 6]", MESH), 0, 2)
    plain = folded(Layout.parse(target, MESH), fold)
    array = np.arange(np.prod(extents)).reshape(fold_shape(extents, [fold]))
    for one, other in ((source, plain), (plain, source)):
        plan = distspmd.plan(one, other, dtype=array.dtype)
        distspmd.verify(plan)
        found = simulate(plan, tiles_of(one, array))
        for tile, wanted in zip(found, tiles_of(other, array), strict=True):
            assert (tile == wanted).all()


def test_a_folded_layout_has_the_same_elements_on_each_rank():
    for text in ("[24]", "[12{x}24]", "[8{y}24]", "[4{x,y}24]", "[4{y,x}24]"):
        layout = Layout.parse(text, MESH)
        for parts, block in ((2, 2), (3, 4), (2, 4), (1, 8), (6, 2)):
            fold = Fold(0, parts, block)
            try:
                inside = folded(layout, fold)
            except LayoutError:
                continue
            array = np.arange(24)
            pairs = zip(
                tiles_of(layout, array),
                tiles_of(inside, array.reshape(fold_shape((24,), [fold]))),
                strict=True,
            )
            assert all(one.tolist() == other.ravel().tolist() for one, other in pairs)


def test_what_does_not_fold_is_refused():
    with pytest.raises(LayoutError, match="25 is no multiple of 2 parts of blocks of 2"):
        cyclic(Layout.parse("[13{x}25]", MESH), 0, 2)
    with pytest.raises(LayoutError, match="no boxes in the array folded"):
        folded(Layout.parse("[8{y}24]", MESH), Fold(0, 2, 6))
    with pytest.raises(LayoutError, match="cannot be folded"):
        cyclic(Layout.parse("[12{x}24~1]", MESH), 0, 2)
