"""Sorting, searching and permuting."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("sorting")


def numbers(rng, n):
    return (rng.integers(-50, 50, n),)


@program("textbook", numbers, 7, 13)
def bubble_sort(arr):
    n = len(arr)
    for i in range(n):
        swapped = False
        for j in range(0, n - i - 1):
            if arr[j] > arr[j + 1]:
                arr[j], arr[j + 1] = arr[j + 1], arr[j]
                swapped = True
        if not swapped:
            break
    return arr


@program("textbook", numbers, 7, 13)
def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key


@program("Python Data Science Handbook", numbers, 8, 12)
def selection_sort(x):
    for i in range(len(x)):
        swap = i + np.argmin(x[i:])
        (x[i], x[swap]) = (x[swap], x[i])
    return x


@program("textbook", lambda rng, n: (rng.integers(0, 9, n), 9), 11, 20)
def counting_sort(a, k):
    counts = np.zeros(k, dtype=np.intp)
    for x in a:
        counts[x] += 1
    positions = np.cumsum(counts) - counts
    out = np.empty_like(a)
    for x in a:
        out[positions[x]] = x
        positions[x] += 1
    return out, np.repeat(np.arange(k), counts)


@program("repository", lambda rng, n: (rng.integers(0, 256, n).astype(np.uint8),), 9, 17)
def radix_sort(a):
    for bit in range(8):
        ones = (a >> bit) & 1
        a = np.concatenate((a[ones == 0], a[ones == 1]))
    return a


@program("parallel algorithms course", numbers, 9, 14)
def odd_even_transposition(a):
    n = len(a)
    for phase in range(n):
        start = phase % 2
        left, right = a[start : n - 1 : 2], a[start + 1 : n : 2]
        lo = np.minimum(left, right)
        hi = np.maximum(left, right)
        left[:] = lo
        right[:] = hi
    return a


@program("parallel algorithms course", lambda rng, n: (rng.random(n),), 8, 16)
def bitonic_sort(x):
    n = x.size
    i = np.arange(n)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            partner = i ^ j
            ascending = (i & k) == 0
            lower = i < partner
            y = x[partner]
            x = np.where(lower == ascending, np.minimum(x, y), np.maximum(x, y))
            j //= 2
        k *= 2
    return x


@program(
    "textbook", lambda rng, n, m: (np.sort(rng.random(n)), np.sort(rng.random(m))), (7, 9), (5, 12)
)
def merge(a, b):
    out = np.empty(len(a) + len(b))
    i = j = 0
    for k in range(len(out)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


@program("textbook", lambda rng, n: (np.sort(rng.integers(0, 60, n)), 31), 13, 20)
def binary_search(a, x):
    low, high = 0, len(a) - 1
    while low <= high:
        mid = (low + high) // 2
        if a[mid] < x:
            low = mid + 1
        elif a[mid] > x:
            high = mid - 1
        else:
            return mid
    return -1


@program("textbook", lambda rng, n, k: (rng.integers(0, 60, n), k), (9, 4), (16, 11))
def quickselect(a, k):
    lo, hi = 0, len(a) - 1
    while lo < hi:
        pivot, store = a[hi], lo
        for i in range(lo, hi):
            if a[i] < pivot:
                a[i], a[store] = a[store], a[i]
                store += 1
        a[store], a[hi] = a[hi], a[store]
        if store == k:
            return a[k]
        elif store < k:
            lo = store + 1
        else:
            hi = store - 1
    return a[lo]


@program("stackoverflow", lambda rng, n, m: (rng.random((n, m)),), (7, 4), (5, 9))
def sort_by_column(a):
    by_second = a[a[:, 1].argsort()]
    descending = -np.sort(-a, axis=0)
    ranks = np.empty_like(a, dtype=int)
    np.put_along_axis(ranks, a.argsort(axis=1), np.arange(a.shape[1])[None, :], axis=1)
    lex = np.lexsort((a[:, 0], a[:, 1].round(1)))
    return by_second, descending, ranks, lex


@program("stackoverflow", lambda rng, n: (rng.permutation(n), rng.random(n)), 9, 14)
def invert_permutation(p, x):
    s = np.empty_like(p)
    s[p] = np.arange(p.size)
    return s, x[p][s], np.array_equal(p[s], np.arange(len(p)))


@program("stackoverflow", lambda rng, n, k: (rng.random(n), k), (11, 3), (17, 5))
def top_k(x, k):
    ind = np.argpartition(x, -k)[-k:]
    ind = ind[np.argsort(x[ind])][::-1]
    return ind, x[ind]


@program("stackoverflow", lambda rng, n: (rng.integers(0, 3, n),), 13, 20)
def run_length_encode(x):
    where = np.flatnonzero
    starts = np.r_[0, where(x[1:] != x[:-1]) + 1]
    lengths = np.diff(np.r_[starts, len(x)])
    return starts, lengths, x[starts], np.repeat(x[starts], lengths)


@program("textbook", numbers, 9, 15)
def shell_sort(a):
    gap = len(a) // 2
    while gap > 0:
        for i in range(gap, len(a)):
            tmp = a[i]
            j = i
            while j >= gap and a[j - gap] > tmp:
                a[j] = a[j - gap]
                j -= gap
            a[j] = tmp
        gap //= 2


@program("textbook", lambda rng, n: (rng.integers(0, 3, n),), 9, 14)
def dutch_flag(a):
    low = mid = 0
    high = a.size - 1
    while mid <= high:
        if a[mid] == 0:
            a[low], a[mid] = a[mid], a[low]
            low, mid = low + 1, mid + 1
        elif a[mid] == 1:
            mid += 1
        else:
            a[mid], a[high] = a[high], a[mid]
            high -= 1
    return a, low, high


@program("textbook", numbers, 9, 14)
def heap_sort(a):
    def sift_down(start, end):
        root = start
        while 2 * root + 1 <= end:
            child = 2 * root + 1
            if child + 1 <= end and a[child] < a[child + 1]:
                child += 1
            if a[root] >= a[child]:
                return
            a[[root, child]] = a[[child, root]]
            root = child

    for start in range((len(a) - 2) // 2, -1, -1):
        sift_down(start, len(a) - 1)
    for end in range(len(a) - 1, 0, -1):
        a[[end, 0]] = a[[0, end]]
        sift_down(0, end - 1)
    return a
