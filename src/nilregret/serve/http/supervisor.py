"""Worker processes that are kept running: one that ends or hangs is replaced, until the parent is told to stop.

uvicorn's supervisor (0.54) asks its processes one after the other, and waits for each answer. Measured with 30 s for
slow starts, from SIGTERM to the end:

| two processes | uvicorn | here |
|---|---|---|
| one hangs before the signal | 29 s | at once, a second signal kills it |
| they hang after the signal | never | a second signal kills them |
| they die at their start | 32 s | at once |
| the parent was killed instead | they live on and keep the port | they end within a second |
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from ctypes import c_double
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import final

from ..._utils.process_setting import handled

LOG = logging.getLogger("nilregret.serve")
SPAWN = get_context("spawn")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BEAT_SECONDS = 1.0  # between two signs of life of a process
PAUSE_SECONDS = 0.5  # before one that ended is replaced


def supervise(
    work: Callable[[], object], count: int, *, hung_seconds: float, ended: Callable[[int], object] = int
) -> None:
    """Runs a function in several processes until SIGINT or SIGTERM, and returns when all of them have ended.

    It waits for ends and signals at once, so that none of them delays another. A second signal kills the processes.

    Args:
        work: of each process. It can be pickled, and ends on SIGTERM.
        count: number of processes.
        hung_seconds: a process without a sign of life for this long is killed.
        ended: called with the number of each process that has ended.
    """
    told, tell = SPAWN.Pipe(duplex=False)
    with handled(lambda *_: tell.send_bytes(b"."), *SIGNALS):
        workers, signals = [_Worker(work) for _ in range(count)], 0
        while workers or not signals:
            wait([told, *(worker.process.sentinel for worker in workers)], BEAT_SECONDS)
            while told.poll():
                told.recv_bytes()
                signals += 1
                for worker in workers:
                    worker.process.terminate() if signals == 1 else worker.process.kill()
            running = [worker for worker in workers if worker.runs(hung_seconds)]
            for worker in [each for each in workers if each not in running]:
                ended(worker.process.pid or 0)
            fewer, workers = len(running) < len(workers), running
            if not signals and not told.poll(PAUSE_SECONDS if fewer else 0.0):
                workers += [_Worker(work) for _ in range(count - len(workers))]


@final
class _Worker:
    """A process that gives signs of life."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._heard = SPAWN.RawValue(c_double, time.monotonic())  # which processes of a machine have in common
        self.process = SPAWN.Process(target=_work, args=(work, self._heard))
        self.process.start()

    def runs(self, hung_seconds: float) -> bool:
        """Returns whether the process runs. It kills one that hangs."""
        if not self.process.is_alive():
            return False
        if time.monotonic() - self._heard.value > hung_seconds:
            LOG.error("Process %s of the service hangs, and is killed.", self.process.pid)
            self.process.kill()
        return True


def _work(work: Callable[[], object], heard: c_double) -> None:
    threading.Thread(target=_beat, args=(heard,), name="nilregret-beat", daemon=True).start()
    work()


def _beat(heard: c_double) -> None:
    """Gives signs of life, and ends this process when its parent is gone, which would otherwise keep the port."""
    parent = parent_process()
    while parent is not None and not wait([parent.sentinel], BEAT_SECONDS):
        heard.value = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
