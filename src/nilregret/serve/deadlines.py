"""How long a reward is waited for, and what its absence means: each choice is a rule of the library, on record.

| `on_deadline` | at the deadline | a reward that comes later |
|---|---|---|
| "abandon" | the trial is given up (a lease): it says nothing of its point any more | is taken and counts |
| "fail" | it is told to have failed: no reward will come, and it says nothing of the value | see `late` |
| "reward" | it is told the default reward | see `late` |
| "censor" | it goes on counting as the least reward (`Censored.within`), as it did all the time before | see `late` |
| "silence" | there is none: it sinks to what silence is worth as it grows old (`Imputed`) | is taken and counts |

What happens at a deadline is an event on record, written by the next call that writes to the study, whichever process
it comes to; so a replay sees it where it was. Looking writes nothing.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, final

from .._utils.checks import number, shown
from .._utils.errors import InvalidInput
from ..policy.policy import Policy
from ..slots.pending import Censored
from ..slots.silence import Imputed
from ..storage.record import Trial
from ..study.answers import Told
from ..study.direction import AnyPolicy, Goal
from ..study.inputs import Inputs
from ..study.study import LONGEST_LEASE
from ..study.transaction import Going, Transaction

OnDeadline = Literal["abandon", "fail", "reward", "censor", "silence"]
Late = Literal["drop", "count"]
FACT = "service"  # under which a study's facts keep the rule
DEFAULTED = "default"  # notes: what stands in for a reward has been told of this trial


@final
@dataclass(frozen=True)
class Rule:
    """What was put with a study.

    Attributes:
        deadline: seconds from the decision; None: for ever.
        on_deadline: see the table above.
        default_reward: with "reward" what is told, with "censor" and "silence" what counts meanwhile.
        late: of a reward after the deadline under "fail", "reward" and "censor": "drop", it is kept beside the record
            and does not count; or "count", it corrects what was told, as if it had been told then.
    """

    deadline: float | None = None
    on_deadline: OnDeadline = "abandon"
    default_reward: float | None = None
    late: Late = "drop"

    def __post_init__(self) -> None:
        if self.deadline is not None:
            number("deadline", self.deadline, low=0.0, open_low=True, high=LONGEST_LEASE,
                   why="It is how long a reward is waited for, in seconds.")  # fmt: skip
        if self.on_deadline == "silence" and self.deadline is not None:
            raise InvalidInput(
                "`deadline` is given, and with `on_deadline` 'silence' there is none: how long answers take is learned "
                "from those that come. Leave it out."
            )
        if self.on_deadline in ("fail", "reward", "censor") and self.deadline is None:
            raise InvalidInput(
                f"`deadline` is missing: with `on_deadline` {self.on_deadline!r} say after how many seconds that is."
            )
        if self.on_deadline == "reward" and self.default_reward is None:
            raise InvalidInput("`default_reward` is missing: it is what is told at the deadline.")
        if self.on_deadline in ("abandon", "fail") and self.default_reward is not None:
            raise InvalidInput(
                f"`default_reward` is {shown(self.default_reward)}, and with `on_deadline` {self.on_deadline!r} none "
                "is told. Set `on_deadline` to 'reward', or leave it out."
            )

    @classmethod
    def of(cls, about: dict[str, Any]) -> Rule:
        """As the facts of a study have it."""
        kept = about.get(FACT)  # which other programs may have made of their own, and for something else
        return cls(**kept) if isinstance(kept, dict) and kept.keys() == cls.__dataclass_fields__.keys() else cls()

    @property
    def fact(self) -> dict[str, Any]:
        """As the facts of a study have it; nothing where nothing was said."""
        if self == Rule():
            return {}
        said = {"deadline": self.deadline, "on_deadline": self.on_deadline}
        return {FACT: said | {"default_reward": self.default_reward, "late": self.late}}

    def policy(self, policy: AnyPolicy, goal: Goal) -> AnyPolicy:
        """The policy under this rule.

        Raises:
            InvalidInput: it cannot be that of this policy.
        """
        if self.default_reward is not None:
            Inputs(policy, goal).reward(self.default_reward)
        if self.on_deadline not in ("censor", "silence"):
            return policy
        if not isinstance(policy, Policy):
            raise InvalidInput(
                f"`on_deadline` {self.on_deadline!r} needs a policy that learns; this one follows a script."
            )
        if self.on_deadline == "silence":
            return policy.using(pending=Imputed(minimum=self.default_reward or 0.0))
        window = timedelta(seconds=self.deadline or 0.0)
        late = "accept" if self.late == "count" else "drop"
        return policy.using(pending=Censored.within(window, minimum=self.default_reward, late=late))


@final
class Waiting:
    """A rule at work on one study, in one process."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.acts = rule.on_deadline in ("fail", "reward")  # whether something is told at a deadline
        self._known = 0  # trials looked at
        self._ends: list[tuple[float, int]] = []  # (when, trial) of those that wait, a heap
        self._sure = True  # whether what the last sweep told is on record

    def lease(self, wanted: float | None) -> float | None:
        """Seconds after which a trial is given up.

        Args:
            wanted: by who asks, instead of the study's.
        """
        rule = self.rule
        if wanted is not None:
            if rule.on_deadline in ("censor", "silence"):
                raise InvalidInput(
                    f"`deadline` cannot be given with a decision here: the study's rule is {rule.on_deadline!r}, which "
                    "is the same for all its decisions."
                )
            why = "It is how long a reward is waited for, in seconds."
            return number("deadline", wanted, low=0.0, open_low=True, high=LONGEST_LEASE, why=why)
        return None if rule.on_deadline in ("censor", "silence") else rule.deadline

    def expires_at(self, trial: Trial) -> float | None:
        """Unix seconds at which a reward begins to be late; None: never."""
        if trial.lease_until is not None:
            return trial.lease_until
        if self.rule.on_deadline == "censor" and self.rule.deadline is not None:
            return trial.asked_at + self.rule.deadline
        return None

    def late(self, trial: Trial) -> bool:
        """Whether it was answered, or told what stands for an answer, after the deadline."""
        expires = self.expires_at(trial)
        # A correction is as late as what it corrects.
        at = trial.corrected[0].time if trial.corrected else trial.told_at
        return trial.late or (expires is not None and at is not None and at > expires)

    def sweep(self, turn: Transaction) -> Going | None:
        """Tell what the rule says of trials whose lease is over: they have just been given up."""
        if not self.acts:
            return None
        trials = turn.trials
        if not self._sure:
            self._known, self._ends = 0, []
        self._sure = False
        for number_ in range(self._known, len(trials)):
            trial = trials[number_]
            if trial.lease_until is not None and trial.open:
                heapq.heappush(self._ends, (trial.lease_until, number_))
        self._known = len(trials)
        now = turn.now
        begun = False
        while self._ends and self._ends[0][0] <= now:
            if begun and turn.expired:
                return Going(self.sweep)
            self._end(turn, trials[self._ends[0][1]])
            heapq.heappop(self._ends)
            begun = True
        return None

    def confirm(self) -> None:
        """What the last sweep told is on record."""
        self._sure = True

    def _end(self, turn: Transaction, trial: Trial) -> None:
        if not trial.open or trial.lease_until is None:
            return
        if self.rule.on_deadline == "fail":
            turn.fail(trial.number, f"no reward came within {trial.lease_until - trial.asked_at:g} s")
        else:
            turn.tell(Told(trial.number, self.rule.default_reward, None))
        turn.write_note(f"{DEFAULTED}:{trial.number}", json.dumps(self.rule.default_reward))
