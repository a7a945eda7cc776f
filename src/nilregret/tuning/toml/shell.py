"""Shell commands that end, with all processes that they started, when the caller stops waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

READ = 1 << 20  # The number of bytes that are read at the end of an output.
# This command ends its process group when its input ends. The input ends when the process at the other end of the pipe
# has ended for any reason. Signals of a terminal do not reach a process group of its own.
WATCH = "read -r _; kill -s KILL 0"


class Ended(NamedTuple):
    """The result of a command.

    Attributes:
        status: its exit status.
        output: the end of its output.
        errors: the end of its error output.
    """

    status: int
    output: str
    errors: str


def run(command: str, folder: Path, timeout: float | None) -> Ended:
    """Runs a command to its end. An interrupt of the wait, or a `kill -9` of this process, ends the process group.

    Output goes to files, because a pipe would stay open for processes that the command leaves running. These processes
    end with the command if they are in its process group.

    Args:
        command: the command, for a shell.
        folder: the working directory.
        timeout: seconds that the command may take, or None.

    Raises:
        subprocess.TimeoutExpired: the command took longer than the timeout.
        OSError: the command could not be started.
        ValueError: the command could not be encoded.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _group() as group:
            process = subprocess.Popen(
                command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                process_group=group,
            )  # fmt: skip
            try:
                status = process.wait(timeout)
            except BaseException:
                _end(group, process)
                process.wait()
                raise
        return Ended(status, _end_of(output), _end_of(errors))


@contextmanager
def _group() -> Iterator[int | None]:
    """Yields a process group that ends with this block or this process. None if there are no process groups."""
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
        _end(watch.pid, watch)  # This comes before `communicate`, after which the number may belong to another process.
        watch.communicate()


def _end(group: int | None, process: subprocess.Popen[bytes]) -> None:
    if group is None or not hasattr(os, "killpg"):
        process.kill()
        return
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS raises this for a group whose processes have ended.
        process.kill()


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - READ, 0))
    return file.read().decode("utf-8", "replace")
