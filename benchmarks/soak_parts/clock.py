"""Runs a command of `nilregret` by a clock that goes faster: `python clock.py BEGAN SPEED LOG ARGUMENT ...`.

`time.time` is replaced before the package is imported. Deadlines, leases, tokens and times on record are then those of
the fast clock. Timeouts of connections and threads keep to the monotonic clock, which is the real one.
"""

import os
import runpy
import sys
import time


def hastened(began, speed, real=time.time):
    """Returns a clock of Unix seconds that agrees with the real one at `began`, and is faster from then on."""
    return lambda: began + (real() - began) * speed


if __name__ == "__main__":
    began, speed, log, *arguments = sys.argv[1:]
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), 2)
    time.time = hastened(float(began), float(speed))
    sys.argv = ["nilregret", *arguments]
    runpy.run_module("nilregret", run_name="__main__", alter_sys=False)
