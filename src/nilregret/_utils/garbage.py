"""A pause of garbage collection while a long record is read.

All objects that are made then stay. A record of 50,000 trials is some 300,000 objects, and repeated collections would
take a third of the time.
"""

from __future__ import annotations

import gc
from typing import final

from .process_setting import ProcessSetting


@final
class NoCollection(ProcessSetting):
    """A context without garbage collection. Objects outside of reference cycles are still freed at once."""

    _was = False

    def _change(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def _restore(self) -> None:
        if self._was:
            gc.enable()


no_collection = NoCollection()
