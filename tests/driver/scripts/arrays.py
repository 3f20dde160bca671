"""Arrays that stay on the ranks of a session, redistributions, and checks."""

import dace
import numpy as np

import distspmd
from distspmd.layouts import Layout, Mesh

RANKS = 3
COLUMNS = Layout.parse("[10, 3{a}7]", Mesh.of({"a": RANKS}))
BOXES = Layout.parse("boxes[10, 7]{0: 0:3, 0:7; 2: 3:10, 0:7}", Mesh.of({"a": RANKS}))


@distspmd.program(schedule={"__return": (RANKS, 1)}, arguments={"__return": "distributed"})
def scaled(x):
    return x * 2.0


@distspmd.program(schedule={"__return": (RANKS, 1)}, arguments={"x": "distributed"})
def shifted(x):
    return x + 1.0


@distspmd.program(schedule={"__return": (1, RANKS)}, arguments={"x": "distributed"})
def by_columns(x):
    return x + 1.0


@distspmd.program(schedule={"__return": (RANKS, 1)})
def of_whole(x):
    return x - 1.0


@distspmd.program(schedule={"x": (RANKS, 1)}, arguments={"x": "distributed"})
def grown(x):
    x *= 3.0


@distspmd.program(schedule={"__return": (RANKS, 1)}, arguments={"x": "replicated"})
def of_copies(x):
    return x - 1.0


@distspmd.program(schedule={"__return": (RANKS, 1)}, arguments={"x": COLUMNS, "__return": BOXES})
def of_columns(x):
    return x * 4.0


def of_rows(x: dace.float64[8, 4]):
    return x * 2.0


def refused(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def handles():
    x = np.random.default_rng(0).random((10, 7))
    handle = scaled(x)
    whole = x * 2.0
    assert type(handle) is distspmd.driver.Handle
    assert (handle.shape, handle.dtype, handle.ndim, len(handle)) == ((10, 7), np.float64, 2, 10)
    assert str(handle.layout) == "[4{__i0}10, 7]", str(handle.layout)
    assert np.array_equal(handle.numpy(), whole)
    assert np.array_equal(np.asarray(handle), whole)
    indices = (
        (slice(2, 9), slice(None)),
        (slice(None, None, -2), 3),
        (5, slice(1, 6, 2)),
        (Ellipsis, -1),
        slice(4, 4),
        (np.array([1, 8]), 2),
        (-1, -1),
    )
    for index in indices:
        assert np.array_equal(handle[index], whole[index]), index
    assert "out of bounds" in refused(IndexError, lambda: handle[10])
    assert (
        "write it in a program"
        in refused(distspmd.errors.ArgumentError, lambda: write(handle)).lower()
    )
    assert "<svg" in handle._repr_html_()
    assert np.array_equal(shifted(handle), whole + 1.0)  # it stays where it lies
    assert np.array_equal(of_whole(handle), whole - 1.0)  # it goes to one rank
    assert np.array_equal(by_columns(handle), whole + 1.0)  # it moves from rank to rank
    grown(handle)
    assert np.array_equal(handle.numpy(), whole * 3.0)
    plain = whole.copy()
    grown(plain)
    assert np.array_equal(plain, whole * 3.0)
    assert np.array_equal(of_copies(x), x - 1.0)
    assert np.array_equal(of_copies(handle), whole * 3.0 - 1.0)
    assert np.array_equal(handle + 1.0, whole * 3.0 + 1.0)
    assert np.array_equal(2.0 - handle, 2.0 - whole * 3.0)
    assert np.allclose(np.sqrt(handle).numpy(), np.sqrt(whole * 3.0))
    assert np.isclose(handle.sum(), (whole * 3.0).sum())
    handle += 1.0
    assert np.array_equal(handle, whole * 3.0 + 1.0)
    assert np.isclose(of_whole(handle).mean(), np.mean(handle) - 1.0)
    said = refused(distspmd.errors.ArgumentError, lambda: np.linalg.svd(handle))
    assert "np.asarray" in said, said


def given_layouts():
    x = np.random.default_rng(1).random((10, 7))
    found = of_columns(x)
    assert found.layout == BOXES
    assert np.array_equal(found[2:5, 1:], x[2:5, 1:] * 4.0)
    again = of_columns(found)
    assert again.layout == BOXES
    assert np.array_equal(again.numpy(), x * 16.0)


def write(handle):
    handle[0, 0] = 1.0


def moved(ranks):
    mesh = Mesh.of({"a": RANKS})
    rows, columns = (Layout.parse(t, mesh) for t in ("[4{a}10, 6]", "[10, 2{a}6]"))
    x = np.arange(60.0).reshape(10, 6)
    root = Layout.root((10, 6))
    there = distspmd.redistribute(ranks, x, root, rows)
    assert there.layout == rows
    over = distspmd.redistribute(ranks, there, rows, columns)
    assert over.layout == columns
    assert np.array_equal(there.numpy(), x)
    back = distspmd.redistribute(ranks, over, columns, root)
    assert type(back) is np.ndarray
    assert np.array_equal(back, x)
    out = np.zeros((10, 6))
    assert distspmd.redistribute(ranks, over, columns, root, out=out) is out
    assert np.array_equal(out, x)
    said = refused(
        distspmd.errors.ArgumentError, lambda: distspmd.redistribute(ranks, x, rows, columns)
    )
    assert "the array lies in this process" in said, said
    said = refused(
        distspmd.errors.ArgumentError, lambda: distspmd.redistribute(ranks, over, rows, columns)
    )
    assert "lies on the ranks as" in said, said


def main():
    with distspmd.ranks(RANKS) as ranks:
        moved(ranks)
        handles()
        given_layouts()
        checked = distspmd.check(of_rows, {"__return": (RANKS, 1)}, RANKS)
        assert checked.largest == 0.0
        assert len(checked.runs) == 2
    print("arrays are right")


if __name__ == "__main__":
    main()
