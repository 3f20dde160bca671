"""Which arrays have two elements in one place, beside a count of all places; where arrays lie."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from distspmd.runtime.engine.arrays import address, overlaps_itself


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), min_size=1, max_size=3),
    st.sampled_from([np.int8, np.float64]),
)
def test_an_array_that_is_said_to_have_its_elements_apart_has(dims, dtype) -> None:
    shape = [n for n, _ in dims]
    item = np.dtype(dtype).itemsize
    memory = np.zeros(4096, dtype)
    tile = as_strided(memory, shape, [s * item for _, s in dims])
    places = as_strided(np.arange(4096), shape, [s * 8 for _, s in dims])
    if np.unique(places).size != places.size:
        assert overlaps_itself(tile)


def test_windows_columns_and_nothing_have_their_elements_apart() -> None:
    x = np.zeros((5, 7, 3))
    for tile in (x, x.T, x[:, ::2], x[1:3, 2:4, 1:2], x[:, ::3, ::2], x[:0], x[:, :0], x[::4, 3:4]):
        assert not overlaps_itself(tile)
    assert not overlaps_itself(np.zeros((3, 4, 0)))
    assert overlaps_itself(np.broadcast_to(np.zeros(3), (2, 3)))


def test_arrays_of_all_kinds_lie_where_numpy_says() -> None:
    x = np.zeros((5, 7))
    read_only = x[1:].copy()
    read_only.flags.writeable = False
    odd = np.zeros(17, np.uint8)[1:].view(np.float64)
    windows = [
        x,
        x[1:],
        x[:, 2:],
        x.T,
        x[::-2],
        read_only,
        odd,
        x[:0],
        np.zeros((3, 0, 2)),
        x[2, 3:4],
    ]
    types = "?", "f2", ">f4", "c16", "g", "M8[s]", "S3", "V3", "i4,f8"
    for array in [*windows, np.array(2.5), *(np.zeros(4, dtype)[1:] for dtype in types)]:
        assert address(array) == array.ctypes.data
