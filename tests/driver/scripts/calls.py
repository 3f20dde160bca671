"""A session of calls: what comes back, what is printed once, and what is refused and survived."""

import logging
import multiprocessing
import sys
import threading

import numpy as np

import distspmd

RANKS = int(sys.argv[1])


@distspmd.program(schedule={"__return": (RANKS, 1)})
def scaled(x, y):
    print("scaled", x[0, 0])
    return x * 2.0 + y


@distspmd.program(schedule={"x": (RANKS,)})
def add_one(x):
    x += 1


@distspmd.program(schedule={"a": (RANKS,)})
def checked(x):
    if x[0] < 0:
        raise ValueError("x begins below zero")
    a = x * 2.0
    return a.sum(), a


def refused(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def in_child(queue):
    try:
        add_one(np.zeros(3))
    except distspmd.errors.ArgumentError as error:
        queue.put(str(error))


def values():
    rng = np.random.default_rng(0)
    x, y = rng.random((7, 5)), rng.random((7, 5))
    z = scaled(x, y)
    assert type(z) is np.ndarray
    assert np.array_equal(z, x * 2.0 + y)
    again = scaled(z, z)  # it lies where the ranks see it
    assert np.array_equal(again, z * 2.0 + z)
    assert np.array_equal(z, x * 2.0 + y), "a later call wrote into an earlier result"
    kept = [scaled(x + n, y) for n in range(4)]
    assert all(np.array_equal(k, (x + n) * 2.0 + y) for n, k in enumerate(kept))
    for array in (np.zeros(10), again[0], np.zeros(0)):
        before = array.copy()
        add_one(array)
        assert np.array_equal(array, before + 1), array
    total, doubled = checked(np.arange(5.0))
    assert (float(total), doubled.tolist()) == (20.0, [0, 2, 4, 6, 8])


def refusals(ranks):
    said = refused(ValueError, lambda: checked(np.array([-1.0, 2.0])))
    assert "x begins below zero" in said
    assert "rank" not in said, said
    program = distspmd.compile(scaled.lower(np.zeros((4, 2)), np.zeros((4, 2))), ranks)
    said = refused(
        distspmd.errors.ArgumentError, lambda: program(x=np.zeros((4, 2)), y=np.zeros(3))
    )
    assert "the argument 'y' must be float64[4, 2]" in said
    assert np.array_equal(program(x=np.ones((4, 2)), y=np.ones((4, 2))), np.full((4, 2), 3.0))
    assert sum(counted.received_bytes for _, counted in program.statistics()) > 0 or RANKS == 1
    program.close()
    program.close()
    assert "is closed" in refused(distspmd.errors.ArgumentError, lambda: program(x=1, y=1))
    assert "have been started already" in refused(
        distspmd.errors.ArgumentError, lambda: distspmd.start(2)
    )
    too_many = distspmd.program(schedule={"__return": (RANKS + 1, 1)})(scaled.function)
    said = refused(
        distspmd.errors.ScheduleError, lambda: too_many(np.ones((9, 9)), np.ones((9, 9)))
    )
    assert f"Start at least {RANKS + 1} ranks" in said
    assert np.array_equal(scaled(np.ones((2, 2)), np.ones((2, 2))), np.full((2, 2), 3.0))


def processes_and_threads():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    assert "was forked from the one that started the ranks" in queue.get(timeout=60)
    child.join()
    found = {}

    def work(number):
        found[number] = scaled(np.full((3, 3), float(number)), np.ones((3, 3)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    made = []
    logger = logging.getLogger("distspmd")
    logger.addFilter(lambda record: made.append(record.getMessage()) is None)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logger.filters.clear()
    assert len(made) == 1, made
    assert all((found[n] == 2.0 * n + 1).all() for n in range(4))


def main():
    with distspmd.ranks(RANKS) as ranks:
        values()
        refusals(ranks)
        processes_and_threads()
    said = refused(distspmd.errors.LaunchError, lambda: ranks.processes)
    assert "the session has ended" in said
    with distspmd.ranks(1):  # other ranks, for which programs are made anew
        again = distspmd.program(schedule={})(scaled.function)
        assert np.array_equal(again(np.ones((2, 2)), np.ones((2, 2))), np.full((2, 2), 3.0))
    print("all calls are right")


if __name__ == "__main__":
    main()
