"""Lessons: the events of a study as the state of its policy learns from them.

Most events teach what they say. A stopped trial teaches what the pruning rule says of its curve (`study.pruning`). An
answer of a slate teaches what the model of places says (`slots.slates`): at its share, later, or nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, final

from ..policy.policy import Policy
from ..slots.slates import NOTHING, Looked, Place, SlateModel
from ..storage.record import Event
from ..storage.trial import Abandoned, Trial
from .pruning import Curves, pruning_of

FIRST, GROWTH = 16, 1.25  # Numbers of trials at which places and arms are looked at anew: 16, 20, 25, ...
MOST = 50_000  # Trials that are looked at: the last ones before.
BARELY = 1e-9  # Share below which an answer teaches nothing.


@final
class Lessons:
    """The events of a study as its state learns from them.

    Args:
        policy: of the study.
        goal: of the study, of the first of several objectives.

    Attributes:
        curves: the curves of trials as the pruning rule sees them.
        slates: the model of places, or None.
    """

    def __init__(self, policy: Any, goal: str) -> None:
        self.curves = Curves(pruning_of(policy), goal)
        self.slates: SlateModel | None = policy.slate if isinstance(policy, Policy) else None
        self._noise = policy.noise if isinstance(policy, Policy) else 0.0
        self._looked: dict[int, Looked] = {}  # By the number of trials before.

    def of(self, events: Sequence[Event], trials: Sequence[Trial]) -> Sequence[Event]:
        """Returns the events that the state learns from.

        Args:
            events: in order, in the units told.
            trials: all trials. Of these, what was known at each event is used.
        """
        if self.slates is None and not any(event.kind == "stopped" for event in events):
            return events
        found = list[Event]()
        for event in events:
            if event.kind == "stopped":
                found.append(self.curves.taught(event, trials))
            elif self.slates is None or event.trial.slate is None or event.kind not in ("told", "abandoned"):
                found.append(event)
            else:
                found += self._of_slate(self.slates, event, trials)
        return found

    def forget(self) -> None:
        """Forgets what was looked at, since the record before may differ from now on."""
        self._looked.clear()

    def _of_slate(self, model: SlateModel, event: Event, trials: Sequence[Trial]) -> Iterable[Event]:
        """Yields what the places of a slate teach after an answer, and did not teach before it."""
        slate = places_of(trials, event.trial)
        looked = self._looked_at(model, slate[0].number, trials) if model.learns else NOTHING
        before, after = (self._known(model, slate, looked, order) for order in (event.order - 1, event.order))
        kinds = [kind for kind, _, _ in before] + ["pending"] * (len(after) - len(before))  # One may have been added.
        for was, now in zip(kinds, after, strict=True):
            if now[0] != was and was in ("pending", "abandoned"):
                yield self._taught(event.order, *now)

    def _known(
        self, model: SlateModel, slate: Sequence[Trial], looked: Looked, order: int
    ) -> list[tuple[str, Trial, float]]:
        """Returns what the state knows of each place after an event, the trial, and the share of its answer."""
        known = [trial.as_corrected().as_of(order) for trial in slate if trial.asked_order <= order]
        places = [Place(trial.arm or 0, trial.reward, trial.state != "pending") for trial in known]
        found = []
        for trial, share in zip(known, model.shares(places, looked), strict=True):
            kind: str = trial.state
            if share is not None and share <= BARELY:
                kind = "unseen"
            elif kind == "observed" and share is None:
                kind = "pending"
            found.append((kind, trial, 1.0 if share is None else share))
        return found

    def _taught(self, order: int, kind: str, trial: Trial, share: float) -> Event:
        if kind == "unseen":
            left = Abandoned(order, trial.told_at or trial.asked_at, "its place was not seen")
            return Event(order, "abandoned", trial.asked()._replace(state="abandoned", abandoned=left))
        if share < 1.0 and trial.reward is not None:
            trial = trial._replace(std=(self._noise if trial.std is None else trial.std) / math.sqrt(share))
        return Event(order, "abandoned" if kind == "abandoned" else "told", trial)

    def _looked_at(self, model: SlateModel, number: int, trials: Sequence[Trial]) -> Looked:
        """Returns what is known of places and arms for a slate whose first trial has this number."""
        count = last_look(number)
        if count is None:
            return NOTHING
        if count not in self._looked:
            order = trials[count].asked_order - 1
            last = (trial for trial in trials[max(count - MOST, 0) : count] if trial.place is not None)
            earlier = (trial.as_corrected().as_of(order) for trial in last)
            self._looked[count] = model.look(
                (trial.place or 0, trial.arm or 0, bool(trial.reward)) for trial in earlier if trial.reward is not None
            )
        return self._looked[count]


def places_of(trials: Sequence[Trial], trial: Trial) -> Sequence[Trial]:
    """Returns the trials of a slate, in order of place.

    Args:
        trials: all of the study.
        trial: one of the slate.
    """
    first = trial.number if trial.slate is None else trial.slate
    end = trial.number + 1
    while end < len(trials) and trials[end].slate == first:
        end += 1
    return trials[first:end]


def last_look(number: int) -> int | None:
    """Returns the last number of trials, at most this one, at which places and arms were looked at, or None."""
    while LOOKS[-1] <= number:
        LOOKS.append(math.ceil(LOOKS[-1] * GROWTH))
    place = bisect_right(LOOKS, number)
    return LOOKS[place - 1] if place else None


LOOKS = [FIRST]
