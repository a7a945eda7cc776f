"""When a server process keeps the state of a study for the next process that opens it.

Making the image of a state and writing it costs time that decisions could have. So one is made when the decisions since
the last one have taken long enough that this is a small share of them, and the record has grown by some factor: the
cost, which grows with the record, is then a share of all the work whatever its length.
"""

from __future__ import annotations

from typing import final

from ..study.cached import GROWN, SHARE, WORTH
from ..study.study import Study


@final
class Keeping:
    """Of one study, in one server process.

    Args:
        study: open.
    """

    def __init__(self, study: Study) -> None:
        self._kept = study._kept
        self._worked = 0.0  # seconds of processor time since the last one was kept
        self._cost = 0.0  # seconds that it took
        self._at = self._kept.record.order - self._kept.replayed  # events in it
        self._under_way = False
        self._never = False
        self.kept, self.missed = 0, 0  # how often a state was kept, and how often one could not be

    def worked(self, seconds: float) -> bool:
        """Decisions have taken so long; whether a state is to be kept now."""
        self._worked += seconds
        if self._under_way or self._never or self._worked < max(WORTH, self._cost / SHARE):
            return False
        self._under_way = self._kept.record.order >= GROWN * self._at
        return self._under_way

    def keep(self) -> None:
        """Keep it; it is done by another thread than those of the decisions, which it holds up while it copies."""
        try:
            self._worked, self._at = 0.0, self._kept.record.order
            outcome = self._kept.keep_state()
            self._never = outcome is None or outcome.hopeless
            if outcome is not None:
                self._cost = outcome.seconds
                self.kept, self.missed = self.kept + outcome.kept, self.missed + (not outcome.kept)
        finally:
            self._under_way = False

    def leave(self) -> None:
        """The study is closed here: keep it where the next one would have much to make up for."""
        if self._worked >= WORTH and not self._never:
            self.keep()
