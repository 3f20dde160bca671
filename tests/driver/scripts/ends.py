"""How sessions end: the first argument says how; the second is a file for process numbers."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import distspmd
from distspmd.driver import served

warnings.simplefilter("ignore", distspmd.errors.ScheduleWarning)


@distspmd.program(schedule={"x": (2,)})
def grow(x, limit):
    while x[0] < limit[0]:
        x += 1


def tell(ranks):
    Path(sys.argv[2]).write_text(" ".join(str(pid) for pid, _ in ranks.processes.values()))


def soon(action):
    timer = threading.Timer(2.0, action)
    timer.daemon = True
    timer.start()


def run_for_ever():
    grow(np.zeros(4), np.full(1, 1e15))


def refused(call):
    try:
        call()
    except distspmd.errors.LaunchError as error:
        return str(error)
    raise AssertionError("no error")


def main():  # one session for each way to end
    how = sys.argv[1]
    ranks = distspmd.start(2)
    tell(ranks)
    x = np.zeros(4)
    grow(x, np.full(1, 3.0))
    assert x.tolist() == [3, 3, 3, 3]
    _, second = (pid for pid, _ in ranks.processes.values())
    if how == "exits":
        sys.exit(7)
    if how == "raises":
        raise KeyError("of the user")
    if how == "sleeps":
        subprocess.Popen(["sleep", "2"])  # a child that outlives the driver
        print("sleeping", flush=True)
        time.sleep(600)
    if how == "runs":
        print("running", flush=True)
        run_for_ever()
    if how == "a rank is killed":
        soon(lambda: os.kill(second, signal.SIGKILL))
        print(f"0: {refused(run_for_ever)}")
        print(f"1: {refused(run_for_ever)}")
    if how == "an idle rank is killed":
        os.kill(second, signal.SIGKILL)
        time.sleep(1.0)
        try:
            grow(x, np.full(1, 3.0))
        except distspmd.errors.LaunchError as error:
            print(f"0: {error}")
        distspmd.start(2)
        grow(x, np.full(1, 4.0))
        print(x.tolist())
    if how == "fails":
        ranks.together(served.close, 99)


if __name__ == "__main__":
    main()
