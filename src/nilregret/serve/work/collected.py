"""Several rewards of a decision, collected in a note until its wait is over, when one answer is told.

A reward is written with a note alone, so no state is made anew. The transaction that tells the answer is the first one
after the wait, in whichever process.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._utils.checks import many
from ...errors import TrialError
from ...storage.trial import MOST_METRICS, Measured
from ...study.play_rewards import Told
from ..wire.messages import Rewarding

COLLECTED = "rewards"  # kind of the notes
WHOLE = {"sum": "their sum", "first": "the first of them", "last": "the last of them"}


class Keyed(NamedTuple):
    """A reward of a decision.

    Attributes:
        key: name of the reward, unique among those of the decision.
        reward: in the units of the study.
        at: Unix seconds when the reward was seen, or came. None if that is now.
        metrics: further numbers by name.
        late: whether it came after the wait.
        counted: whether it is a part of the answer.
    """

    key: str
    reward: float
    at: float | None
    metrics: dict[str, float]
    late: bool = False
    counted: bool = True


class Collected(NamedTuple):
    """The rewards of a decision, in the order in which they came."""

    rewards: tuple[Keyed, ...] = ()

    @classmethod
    def of(cls, note: str | None) -> Collected:
        """Returns the rewards that a note holds."""
        return cls() if not note else cls(tuple(Keyed(*each) for each in json.loads(note)))

    def note(self) -> str:
        """Returns the note that holds the rewards."""
        return json.dumps(self.rewards)

    def find(self, key: str) -> Keyed | None:
        """Returns the reward of this key, or None."""
        return next((each for each in self.rewards if each.key == key), None)

    def with_reward(self, number: int, new: Keyed, *, revise: bool) -> Collected:
        """Returns the rewards with another one. A reward of the same key is replaced if `revise` is True.

        Raises:
            TrialError: the key has another reward, or there are too many.
        """
        known = self.find(new.key)
        if known is not None and not revise:
            raise TrialError(
                f"Of trial {number} the reward {new.key!r} was told already ({known.reward!r}), and now another one "
                f"comes ({new.reward!r}); nothing was recorded. Usually two rewards have one key.",
                topic="answered",
            )
        others = tuple(new if each.key == new.key else each for each in self.rewards)
        found = Collected(others if known is not None else (*others, new))
        if len(found._measured(found.rewards)) > MOST_METRICS:
            raise TrialError(
                f"Trial {number} has {many(len(self.rewards), 'reward')} with their metrics, and at most "
                f"{MOST_METRICS} numbers are kept with a trial; nothing was recorded.",
                topic="answered",
            )
        return found

    def told(self, number: int, rule: Rewarding, *, late: bool = False) -> Told:
        """Returns the answer to tell: the sum of the rewards, the first or the last, each a metric by its key.

        Args:
            number: of the trial.
            rule: of the study.
            late: whether rewards that do not count are among them.
        """
        rewards = [each for each in self.rewards if each.counted or late]
        values = [each.reward for each in rewards]
        total = math.fsum(values) if rule == "sum" else values[0 if rule == "first" else -1]
        return Told(number, total, None, measured=self._measured(rewards))

    @staticmethod
    def _measured(rewards: Sequence[Keyed]) -> Measured:
        more: dict[str, float] = {}
        for each in rewards:
            more |= each.metrics
        return tuple((more | {each.key: each.reward for each in rewards}).items())

    def listed(self) -> list[dict[str, Any]]:
        """Returns the rewards as entries of a reply."""
        names = ("key", "reward", "at", "late", "counted")
        return [{name: getattr(each, name) for name in names} for each in self.rewards]
