"""Arrays whose lengths data decide: what masks choose, places, sets; the caller gets as many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

VALUES = np.array([5.0, 1, 4, 2, 8, 3, 9])


def chosen(x: Any) -> Any:
    y = x[x > 3]
    z = y[y < 9]
    return y, z, np.median(y), np.sort(y), y.argmax(), np.cumsum(z), y.shape, y.ndim, len(y)


def places(x: Any) -> Any:
    i = np.where(x > 3)[0]
    table = np.outer(x, x)
    return i, x[i], np.nonzero(table < 5), np.flatnonzero(x > 100), np.argwhere(table > 30)


def sets(x: Any) -> Any:
    u, c = np.unique(np.round(x / 3), return_counts=True)
    _, first, inverse = np.unique(x % 3, return_index=True, return_inverse=True)
    whole = x.astype(int)
    numbers = np.arange(9)
    of_two = np.setdiff1d(numbers, whole), np.intersect1d(numbers, whole), np.union1d(x, x + 1)
    return u, c, u[np.argmax(c)], first, inverse, of_two, np.setxor1d(numbers, whole)


def written(x: Any) -> Any:
    a, b, table = x.copy(), x.copy(), np.outer(x, x)
    a[a > 3] = np.arange(4.0)
    b[b < 5] = x[x < 5][::-1]
    table[np.where(table > 30)] = -1
    i = np.flatnonzero(x > 3)
    sums = np.zeros(12)
    np.add.at(sums, i, 2.0)
    sums[i + 1] += x[i]
    table[x > 4, i[0]] = 7
    return a, b, table, sums


def rows(x: Any) -> Any:
    table = x.reshape(7, 1) * np.arange(1, 4)
    m = x > 3
    columns = table[:, np.array([True, False, True])]
    return table[m], table[m][:, 1], columns, table[table > 10], table[m].mean(axis=0), table[m].T


def joined(x: Any) -> Any:
    a, b = x[x > 3], x[x <= 3]
    ends = np.r_[0, np.flatnonzero(x > 3) + 1]
    wide = np.column_stack((a, a * 2)), a.reshape(-1, 1), np.tile(a, 2), np.repeat(a, 2)
    return np.concatenate((a, b)), np.diff(a), np.append(b, 4.0), ends, wide, np.roll(a, 1)


def computed(x: Any) -> Any:
    y = x[x > 3]
    k = int(np.sum(x > 3))
    tables = np.outer(y, y), y[:, None] - y, np.zeros(k), np.linspace(0, 1, k)
    found = np.histogram(y, bins=3)[0], np.interp(2.5, y, y), np.isin(x, y), np.percentile(y, 30)
    return tables, found, y[1:] - y[:-1], np.linalg.norm(y), y.std(), y[np.argsort(y)]


def in_loops(x: Any) -> Any:
    s = 0.0
    for v in x[x > 3]:
        s = s * 0.5 + v
    for i in np.flatnonzero(x > 3):
        s += x[i] * i
    for i, j in np.argwhere(np.outer(x, x) > 20):
        s += i * 10 + j
    sizes = np.zeros(7)
    for i in range(1, 7):
        y = x[:i]
        sizes[i] = np.unique(y % 3).size + y[y > 3].sum() + np.flatnonzero(y > 2).sum()
    return s, sizes


def until_few(x: Any) -> Any:
    n = 0
    while len(x[x > n]) >= 3:
        n += 1
    return {"least": n, "of": [x[x > n], x[x > 50], x[x > 50].sum()]}


def changed(x: Any) -> Any:
    y, z = x[x > 3], x[x < 9]
    y[0] = 100
    for i in range(len(z)):
        z[i] += i
    return y, z, x


def of_one_way(x: Any) -> Any:
    """What has a length in one way of a branch only."""
    peaks = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            peaks.append(i)  # noqa: PERF401
    if not peaks:
        return np.array([]), 0.0
    return np.array(peaks), max(x[p] for p in peaks)


def of_powers(x: Any) -> Any:
    """Lengths that are powers, with the variable of a loop in the exponent."""
    sums = np.zeros(4)
    for i in range(1, 4):
        k = np.arange(1, 2**i, 2)
        sums[i] = sums[i - 1] / 2 + (k * x[i]).sum()
    return sums


def counted_and_repeated(x: Any) -> Any:
    k = x.astype(int)
    counts = np.bincount(k)
    table = np.repeat(np.outer(x, x)[:, :2], k % 3, axis=0)
    twice = np.repeat(x, k), np.bincount(k, weights=x), x[:4].repeat(k[:4])
    return counts, counts.argmax(), len(counts), table, *twice


def ranges_of_maps(x: Any) -> Any:
    """Parallel maps over ranges that data decide, in loops too."""
    y, k = np.zeros(7), x.astype(int)
    for i in distspmd.map[k[1] : k[0]]:
        y[i] += x[i]
    for start in range(1, 4):
        for i, j in distspmd.map[k[start] - 1 : 5, 0:2]:
            y[i + j] += start
    return y


def sized_by_values(x: Any) -> Any:
    """New arrays whose sizes are values."""
    k, some = x.astype(int), x[x > 3]
    n, m = k.max() + 1, int(k[1]) + 2
    counts = np.zeros((n, m))
    for i in range(7):
        counts[k[i], k[i] % m] += 1
    squares = np.full((m, m), 2.0)
    np.fill_diagonal(squares, x[:m])
    diagonals = np.diag(some), np.diag(some, 1), np.diag(np.sqrt(some), -2), np.diag(squares)
    none = np.arange(len(some) - 6), len(np.arange(k[4], m)), np.ones(k[1] - 1)
    ends = np.arange(k[0]), np.arange(m, n, 2), np.linspace(0, 1, k[4]), *none
    return counts, counts.sum(axis=0), np.eye(m)[k % m], squares, *diagonals, *ends


def carried_and_joined(x: Any) -> Any:
    """A new array in each iteration, and in each way of a branch, of a length that data decide."""
    y = x[x > 2]
    e = 0.0 * y
    for k in range(5):
        e = e * y + k
    z = y * 2 if y[0] > 4 else y + 1
    w = y.copy()
    while np.abs(w).max() > 1:
        w = w / 2
    return e, e.sum(), z, z.max(), w


def reduced_and_applied(x: Any) -> Any:
    """Reductions, differences and functions of each element."""
    y = x[x > 2]
    c, i, table = y + 1j * y, y.astype(int), np.outer(y, x)
    products = (
        np.prod(c),
        np.outer(c, c).prod(axis=0),
        np.bitwise_xor.reduce(np.outer(i, i), axis=1),
    )
    slopes = np.gradient(y), np.gradient(np.outer(y, y))[0], np.gradient(y, 0.5)
    each = np.vectorize(lambda v: v * 2 if v > 4 else v + 1)(y)
    rows = np.apply_along_axis(lambda r: r.sum() - r[0], 1, table)
    return products, np.bitwise_or.reduce(i), slopes, each, rows


PROGRAMS = [
    carried_and_joined,
    reduced_and_applied,
    sized_by_values,
    counted_and_repeated,
    ranges_of_maps,
    of_one_way,
    of_powers,
    chosen,
    places,
    sets,
    written,
    rows,
    joined,
    computed,
    in_loops,
    until_few,
    changed,
]


def between_places(x: Any) -> Any:
    some, others, table = x > 3, x <= 4, np.zeros((4, 4))
    others[3] = False
    i = np.flatnonzero(np.diff(x, prepend=0) > 0)
    rows, columns = (x % 4).astype(int), (x % 3).astype(int)
    table[rows[some], columns[some]] = x[:-2][some[:-2] | others[:-2]][: some.sum()]
    sums = np.add.reduceat(x, i), np.maximum.reduceat(np.outer(x, x), i[::-1], axis=1)
    counted = np.fromiter((v * v for v in x), dtype=float, count=3), np.fromiter(range(4), int)
    part = x[np.nonzero(x <= 4)[0]]
    above, made = np.flatnonzero(part > 2), np.zeros(len(part))
    made[above] = part[above] * 2
    made[above[:1]] += 1
    return table, sums, counted, np.fromiter((v for v in x if v > 3), float), made


def parts_beyond_the_end(x: Any) -> Any:
    """Parts with known ends of arrays that may be shorter."""
    few, none, kept = x[x > 7], x[x > 50], few_of(x[x > 3])
    ends = few[1:3], few[:4], few[-3:], few[::-1][1:5], few[5:], few[4:0:-1], few[0:9:2]
    return ends, len(few[:4]), none[:2], none[1:], none[-2:], few[1:] - few[:-1], kept


def of_two_lengths(x: Any) -> Any:
    """Arrays of which each way of a branch makes another length."""
    table = np.outer(x, x)
    if x[0] > 4:
        y, rows = x[:5] * 2, table[:, :4]
    else:
        y, rows = x + 1, table[:, 2:5]
    one = x[:1] if x[1] > 3 else x
    return y, y.sum(), len(y), np.sort(y)[::-1], rows.sum(axis=0), rows, one


def convolved_with_a_part(x: Any) -> Any:
    part, line = x[x > 3], np.linspace(0.0, 1.0, 9)
    same = np.convolve(line, part, mode="same"), np.convolve(part, line, mode="same")
    return *same, np.convolve(line, part, mode="valid"), np.correlate(line, part, "same")


def unpacked(x: Any) -> Any:
    """As many elements as variables, and the first ones as arguments."""
    one, other = x[x > 7]
    print(len(x[x > 3]), *x[x > 3][:3])
    return other - one, np.maximum(*x[x > 2][1:3])


def few_of(y: Any) -> Any:
    return y[:3] * 2, np.outer(y, y)[:2, 1:4]


def case_of(function: Callable[..., Any]) -> Case:
    return Case(function.__name__, function, "choices", "", lambda _: (VALUES.copy(),), ())


@pytest.mark.parametrize(
    "function",
    [
        *(chosen, written, counted_and_repeated, ranges_of_maps, between_places, sized_by_values),
        *(carried_and_joined, reduced_and_applied),
    ],
)
@pytest.mark.usefixtures("unoptimised")
def test_the_caller_gets_what_numpy_gives(function: Callable[..., Any]) -> None:
    found = run_here(case_of(function))
    assert found.kind == RIGHT, found


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", PROGRAMS)
def test_each_gives_what_numpy_gives(function: Callable[..., Any]) -> None:
    found = run_here(case_of(function))
    assert found.kind == RIGHT, found


@pytest.mark.parametrize(
    "function",
    [
        *(places, rows, of_one_way, ranges_of_maps, sized_by_values, parts_beyond_the_end),
        *(of_two_lengths, unpacked, carried_and_joined, reduced_and_applied),
        convolved_with_a_part,
    ],
)
def test_plans_of_three_ranks_are_proved(function: Callable[..., Any]) -> None:
    found = on_paper(case_of(function))
    assert found.kind == RIGHT, found


@pytest.mark.usefixtures("unoptimised")
def test_what_has_no_length_ends_the_program() -> None:
    def both(k: Any) -> Any:
        return np.bincount(k).sum() + np.repeat(k, k).sum()

    lowering = distspmd.lower(numpy_program(both, np.arange(3)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        assert program(k=np.array([0, 3, 1])) == 3 + 10
        with pytest.raises(ValueError, match="no negative elements"):
            program(k=np.array([0, -3, 1]))
        with pytest.raises(ValueError, match="minlength=k"):
            program(k=np.array([0, 1 << 30, 1]))
        with pytest.raises(ValueError, match="a length n that is known"):
            program(k=np.array([900, 900, 1]))


@pytest.mark.usefixtures("unoptimised")
def test_a_size_that_is_negative_or_too_large_ends_the_program() -> None:
    def ones(k: Any) -> Any:
        return np.ones((k[0], 2)).sum() + np.arange(k[1], k[2]).sum()

    lowering = distspmd.lower(numpy_program(ones, np.arange(3)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        assert program(k=np.array([7, 0, 0])) == 14
        with pytest.raises(ValueError, match=r"negative dimensions.*\n *return np.ones\(\(k\[0"):
            program(k=np.array([-1, 0, 0]))
        with pytest.raises(ValueError, match="more elements than are provided for; pass the len"):
            program(k=np.array([5000, 0, 0]))
        with pytest.raises(ValueError, match="more elements than are provided for; pass the len"):
            program(k=np.array([1, -800, 900]))


@pytest.mark.usefixtures("unoptimised")
def test_equations_are_of_a_part_whose_rows_have_other_room_than_its_columns() -> None:
    def solutions(h: Any, b: Any, k: Any) -> Any:
        part, right = h[: k[0], : k[1]], b[: k[2]]
        return np.linalg.solve(part, right), np.linalg.inv(part)

    h, b = np.add.outer(np.arange(9.0), np.ones(6)) + 9 * np.eye(9, 6), np.arange(8.0)
    k = np.array([4, 4, 4])
    lowering = distspmd.lower(numpy_program(solutions, h, b, k))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for one, other in zip(program(h=h, b=b, k=k), solutions(h, b, k), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        with pytest.raises(np.linalg.LinAlgError, match="must be square"):
            program(h=h, b=b, k=np.array([4, 3, 4]))
        with pytest.raises(ValueError, match="other numbers of rows"):
            program(h=h, b=b, k=np.array([4, 4, 3]))


@pytest.mark.usefixtures("unoptimised")
def test_another_number_of_elements_is_not_unpacked() -> None:
    def both(x: Any) -> Any:
        one, other = x[x > 3]
        return one - other

    lowering = distspmd.lower(numpy_program(both, np.arange(6.0)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        assert program(x=np.array([1.0, 7, 2, 3, 4, 0])) == 3
        for wrong in (np.arange(6.0) + 1, np.zeros(6)):
            with pytest.raises(ValueError, match="2 values are unpacked, and as many are not"):
                program(x=wrong)


def test_room_for_sizes_of_many_dimensions_is_not_taken() -> None:
    def cube(k: Any) -> Any:
        return np.zeros((k[0], k[1], k[2]))

    with pytest.raises(UnsupportedProgram, match="too large; pass them as Python ints"):
        numpy_program(cube, np.arange(3))


@pytest.mark.usefixtures("unoptimised")
def test_lengths_that_values_decide_are_compared() -> None:
    def program_of_masks(x: Any, m: Any, i: Any) -> Any:
        y = x[m] + x[np.flatnonzero(i)]
        z = x.copy()
        z[i > 1] = x[i == 1]
        return y, z, np.stack([x[i > 1], x[i == 1]]), x[i > 0].reshape(-1, 2)

    x, m, i = np.arange(5.0), np.array([1, 0, 1, 1, 0], bool), np.array([2, 1, 1, 2, 0])
    lowering = distspmd.lower(numpy_program(program_of_masks, x, m, i))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        with pytest.raises(ValueError, match=r"x\[np.flatnonzero\(i\)\](.|\n)*") as found:
            program(x=x, m=m, i=i)
        assert "lengths, which are 3 and 4" in str(found.value)
        m[1] = True
        results = program(x=x, m=m, i=i)
        for one, other in zip(results, program_of_masks(x, m, i), strict=True):
            np.testing.assert_array_equal(one, other)
        i[4] = m[4] = 1
        with pytest.raises(ValueError, match=r"which are 2 and 3\n *z\[i > 1\] = x"):
            program(x=x, m=m, i=i)


@pytest.mark.usefixtures("unoptimised")
def test_shapes_that_values_do_not_fill_end_the_program() -> None:
    def pairs(x: Any) -> Any:
        some = x[x > 0]
        return some.reshape(-1, 2), some.reshape(2, 3)

    x = np.array([1.0, 2, -1, 3, 4, -1, 5, 6])
    lowering = distspmd.lower(numpy_program(pairs, x))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for one, other in zip(program(x=x), pairs(x), strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(ValueError, match=r"cannot reshape an array into shape \(2,3\)"):
            program(x=np.abs(x))
        x[0] = -1
        with pytest.raises(ValueError, match="cannot reshape an array into shape"):
            program(x=x)


def test_what_is_joined_has_to_match() -> None:
    def joined_rows(x: Any) -> Any:
        return np.concatenate((np.outer(x, x[:3]), np.outer(x, x[:4])))

    with pytest.raises(UnsupportedProgram, match="must match: 3 and 4 elements in dimension 1"):
        numpy_program(joined_rows, VALUES)


def test_what_may_not_be_there_is_no_index() -> None:
    """Beyond the last element nothing is read: indices of what may not be there stay inside."""

    def shifted(x: Any) -> Any:
        i = np.flatnonzero(x > 100)
        j = np.flatnonzero(x > 8)
        return x[i + 1000].sum(), x[j - 5], np.sort(x[x > 100])[i]

    assert run_here(case_of(shifted)).kind == RIGHT


@pytest.mark.usefixtures("unoptimised")
def test_words_of_messages_are_no_symbols() -> None:
    def summed(x: Any) -> Any:
        s = 0.0
        for j in range(int(x[1]) + 2):
            place = int(x[j])
            s += x[place % 7]  # of which the program says where it is, as of an index j or place
        return s

    found = run_here(case_of(summed))
    assert found.kind == RIGHT, found
