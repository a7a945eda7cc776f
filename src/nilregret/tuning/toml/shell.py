"""Running a shell command so that it, and what it started, is gone when nobody waits for it any more."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

READ = 1 << 20  # bytes at the end of an output that are read
# Ends its process group, and itself with it, when its input ends: when the process that holds the other end of the
# pipe is gone, for whatever reason. Signals do not reach it first: a group of its own has no terminal.
WATCH = "read -r _; kill -s KILL 0"


class Ended(NamedTuple):
    """What became of a command.

    Attributes:
        status: its exit status.
        said: the end of its output.
        complained: the end of its error output.
    """

    status: int
    said: str
    complained: str


def run(command: str, folder: Path, timeout: float | None) -> Ended:
    """Run a command to its end. Whatever ends the wait ends its process group, and so does a `kill -9` of this process.

    Output goes to files: the end of a pipe would wait for everything that the command left running. What it did leave
    running, in its process group, is ended with it.

    Raises:
        subprocess.TimeoutExpired: it took longer than the timeout (seconds).
        OSError: it could not be started.
        ValueError: likewise, for a command that cannot be encoded.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        with _group() as group:
            process = subprocess.Popen(
                command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=complained,
                process_group=group,
            )  # fmt: skip
            try:
                status = process.wait(timeout)
            except BaseException:
                _end(group, process)
                process.wait()
                raise
        return Ended(status, _end_of(said), _end_of(complained))


@contextmanager
def _group() -> Iterator[int | None]:
    """A process group that ends with this block or this process; None where there are no process groups."""
    if not hasattr(os, "killpg"):
        yield None
        return
    watch = subprocess.Popen(
        ["/bin/sh", "-c", WATCH], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        process_group=0,
    )  # fmt: skip
    try:
        yield watch.pid
    finally:
        _end(watch.pid, watch)  # before `wait`: while the watch is not collected its number belongs to nobody else
        watch.communicate()


def _end(group: int | None, process: subprocess.Popen[bytes]) -> None:
    if group is None or not hasattr(os, "killpg"):
        process.kill()
        return
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says so of a group in which all have ended
        process.kill()


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - READ, 0))
    return file.read().decode("utf-8", "replace")
