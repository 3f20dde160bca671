"""Layouts of the same elements in dimensions that are split in other ways."""

from __future__ import annotations

import numpy as np
import pytest

from distspmd.layouts.common_dimensions import in_common_dimensions
from distspmd.layouts.intervals import slices
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh

MESH = Mesh(x=3, y=2)


@pytest.mark.parametrize(
    ("first", "second", "extents"),
    [
        ("[4{x}12, 5]", "[1{x}3, 4, 5]", (3, 4, 5)),
        ("[4{x}12, 3{y}5]", "[3, 4, 2{x}5]", (3, 4, 5)),
        ("[2{x,y}12]", "[3, 2{y}4]", (3, 4)),  # parts of rows
        ("[1{x}3, 20]", "[12, 3{y}5]", (3, 4, 5)),
        ("[2, 6{y}12]", "[12{y}24]", (2, 12)),
        ("[1, 12]", "[4{x}12]", (12,)),
        ("[1, 1]", "[1{x}1]", (1,)),
    ],
)
def test_ranks_have_the_same_elements(first: str, second: str, extents: tuple[int, ...]) -> None:
    before = Layout.parse(first, MESH), Layout.parse(second, MESH)
    after = in_common_dimensions(*before)
    assert after is not None
    for old, new in zip(before, after, strict=True):
        assert new.extents == extents
        numbers = np.arange(np.prod(extents))
        for rank in range(MESH.size):
            assert np.array_equal(
                numbers.reshape(old.extents)[slices(old.box(rank))].ravel(),
                numbers.reshape(extents)[slices(new.box(rank))].ravel(),
            )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[6{y}12]", "[1{x}3, 4]"),  # a part of one row and a half
        ("[4, 6]", "[6, 4]"),  # neither is split further by the other
        ("[12]", "[13]"),
        ("[0, 4]", "[0]"),
    ],
)
def test_no_common_dimensions(first: str, second: str) -> None:
    assert in_common_dimensions(Layout.parse(first, MESH), Layout.parse(second, MESH)) is None
