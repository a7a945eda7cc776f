"""Worker processes that are kept running: one that ends or hangs is replaced, until the parent is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import final

from ..._utils.process_setting import handled

LOG = logging.getLogger("nilregret.serve")
SPAWN = get_context("spawn")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BEAT_SECONDS = 1.0  # between two signs of life of a process
PAUSE_SECONDS = 0.5  # before one that ended is replaced


def supervise(
    works: Sequence[Callable[[], object]], *, hung_seconds: float, ended: Callable[[int], object] = int
) -> None:
    """Runs functions, each in a process, until SIGINT or SIGTERM, and returns when all of them have ended.

    It waits for ends, signs of life and signals at once, so none of them delays another. A second signal kills the
    processes.

    Args:
        works: of the processes. They can be pickled, and end on SIGTERM.
        hung_seconds: a process without a sign of life for this long is killed.
        ended: called with the number of each process that has ended.
    """
    told, tell = SPAWN.Pipe(duplex=False)
    with handled(lambda *_: tell.send_bytes(b"."), *SIGNALS):
        workers, signals = [_Worker(work) for work in works], 0
        while workers or not signals:
            wait([told, *(each for worker in workers for each in worker.waitable)], BEAT_SECONDS)
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
                there = [worker.work for worker in workers]
                workers += [_Worker(work) for work in works if work not in there]


@final
class _Worker:
    """A process, and the pipe through which its signs of life come.

    Attributes:
        work: of the process.
        process: that works.
        waitable: what becomes ready when the process ends or gives a sign of life.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self._pipe, other = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_work, args=(work, other))
        self.process.start()
        other.close()  # Otherwise nothing would end the pipe together with the process.
        self.waitable = (self._pipe, self.process.sentinel)
        self._heard = time.monotonic()

    def runs(self, hung_seconds: float) -> bool:
        """Returns whether the process runs. It kills one that hangs."""
        with suppress(OSError, EOFError):
            while self._pipe.poll():
                self._pipe.recv_bytes()
                self._heard = time.monotonic()
        if time.monotonic() - self._heard > hung_seconds:
            LOG.error("Process %s of the service hangs, and is killed.", self.process.pid)
            self.process.kill()
        if not wait([self.process.sentinel], 0.0):
            return True
        self.process.join()
        self._pipe.close()
        return False


def _work(work: Callable[[], object], pipe: Connection) -> None:
    threading.Thread(target=_beat, args=(pipe,), name="nilregret-beat", daemon=True).start()
    work()


def _beat(pipe: Connection) -> None:
    """Gives signs of life, and ends this process when its parent is gone, which would otherwise keep the port."""
    with suppress(OSError):
        while not pipe.poll(BEAT_SECONDS):
            pipe.send_bytes(b".")
    os.kill(os.getpid(), signal.SIGTERM)
