"""No garbage collection while a long record is read.

All that is made then stays. To look through it again and again would take a third of the time: a record of 50,000
trials is some 300,000 objects.
"""

from __future__ import annotations

import gc
import threading
from typing import final


@final
class NoCollection:
    """A context without garbage collection; what refers to nothing else in a circle is still freed at once.

    The switch belongs to the process. So the first to come sets it and the last to leave puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was:
                gc.enable()


no_collection = NoCollection()
