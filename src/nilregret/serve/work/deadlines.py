"""Deadlines of rewards, and the meaning of a missing reward. Each choice is a rule of the library, on record.

| `on_deadline` | at the deadline | a reward that comes later |
|---|---|---|
| "abandon" | the trial is abandoned (its lease ends) and no longer counts as pending | is recorded and counts |
| "fail" | the trial is recorded as failed, which says nothing about the reward | see `late` |
| "reward" | the default reward is recorded | see `late` |
| "censor" | the trial counts as the least reward, as it did before (`Censored.within`) | see `late` |
| "silence" | nothing is recorded: by then a pending trial counts as the default reward | is recorded and counts |

Under "reward" and "silence" an open trial counts by its exposure, where the posterior can (`Exposed`). This is as much
of the default reward as of the answers would have come. Elsewhere it counts as nothing under "reward". Under "silence",
which then takes no deadline, its imputed reward falls with its age (`Imputed`).

The event at a deadline is on record, so a replay sees it at its place. The next command of the study writes it, in
whichever process that runs. Queries write nothing.

A rule with `reward` collects several rewards of a decision until its deadline (`collected`). Its trials have no lease.
At the deadline the rewards are told as one answer, or the rule is applied to a trial without any.
"""

from __future__ import annotations

import heapq
import json
from datetime import timedelta
from typing import Any, Literal, final

from ..._utils.checks import number, shown
from ..._utils.dataclass import dataclass
from ..._utils.numerals import exact
from ...errors import InvalidInput
from ...policy.policy import Policy
from ...slots.pending import Censored
from ...slots.silence import Imputed, by_exposure, whole_beside
from ...storage.record import Trial, held_from
from ...storage.trial import Other
from ...study.definition import RULE
from ...study.direction import AnyPolicy, Goal
from ...study.inputs import Inputs
from ...study.leases import LONGEST_LEASE
from ...study.play_rewards import Told
from ...study.transaction import Going, Transaction
from ..wire.messages import Rewarding
from .collected import COLLECTED, Collected

OnDeadline = Literal["abandon", "fail", "reward", "censor", "silence"]
Late = Literal["drop", "count"]
FACT = RULE  # the entry of a study's facts that holds the rule
DEFAULTED = "default"  # kind of the notes about trials to which the rule has been applied
AT_ONCE = 500  # trials whose notes one query reads


@final
@dataclass(frozen=True)
class Rule:
    """The deadline rule of a study.

    Attributes:
        deadline: seconds from the decision. None means no deadline.
        on_deadline: see the table above.
        default_reward: the recorded reward of "reward", or the imputed reward of "censor" and "silence". Of several
            objectives, a value for each.
        late: for "fail", "reward" and "censor". With "drop" a late reward is kept in a note and does not count. With
            "count" a late reward corrects what was recorded at the deadline.
        reward: what several rewards of a decision are told as at its deadline: their sum, the first or the last. None
            if a decision has one reward.
    """

    deadline: float | None = None
    on_deadline: OnDeadline = "abandon"
    default_reward: float | list[float] | None = None
    late: Late = "drop"
    reward: Rewarding | None = None

    def __post_init__(self) -> None:
        if self.deadline is not None:
            number("deadline", self.deadline, low=0.0, open_low=True, high=LONGEST_LEASE,
                   why="It is how long a reward is waited for, in seconds.")  # fmt: skip
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
        if self.reward is not None and (self.deadline is None or self.on_deadline in ("censor", "silence")):
            lacks = "`deadline` is missing" if self.deadline is None else f"`on_deadline` is {self.on_deadline!r}"
            raise InvalidInput(
                f"`reward` is {self.reward!r}, which is told when the wait for the rewards of a decision is over, and "
                f"{lacks}. Give a `deadline` in seconds, with 'abandon', 'fail' or 'reward' as `on_deadline`."
            )

    @classmethod
    def of(cls, about: dict[str, Any]) -> Rule:
        """Returns the rule in the facts of a study."""
        found = about.get(FACT)  # other programs may have written an entry of this name
        if isinstance(found, dict) and found.keys() | {"reward"} == cls.__dataclass_fields__.keys():
            return cls(**found)
        return cls()

    @property
    def fact(self) -> dict[str, Any]:
        """The rule as an entry for the facts of a study. Empty for the default rule."""
        if self == Rule():
            return {}
        said = {"deadline": self.deadline, "on_deadline": self.on_deadline}
        more = {} if self.reward is None else {"reward": self.reward}
        return {FACT: said | {"default_reward": self.default_reward, "late": self.late} | more}

    def policy(self, policy: AnyPolicy, goal: Goal) -> AnyPolicy:
        """Returns the policy with this rule for pending trials.

        Raises:
            InvalidInput: the rule does not fit the policy.
        """
        self._check_default(policy, goal)
        self._check_several(policy)
        if policy.objective_count > 1:
            return policy
        exposed = self._exposed(policy)
        if exposed is not None:
            return exposed
        if self.on_deadline not in ("censor", "silence"):
            return policy
        if not isinstance(policy, Policy):
            raise InvalidInput(
                f"`on_deadline` {self.on_deadline!r} needs a policy that learns; this one follows a script."
            )
        if self.on_deadline == "silence":
            if self.deadline is not None:
                beside = whole_beside(policy)
                raise InvalidInput(
                    "`deadline` is given, and with `on_deadline` 'silence' this policy learns how long answers take "
                    "from those that come: leave it out. Rates on arms (`reward`), and `auto` for arms under contexts, "
                    "take one" + (f", but not beside {beside}, which this study has." if beside else ".")
                )
            return policy.using(pending=Imputed(minimum=self._imputed or 0.0))
        window = timedelta(seconds=self.deadline or 0.0)
        late = "accept" if self.late == "count" else "drop"
        return policy.using(pending=Censored.within(window, minimum=self._imputed, late=late))

    def _check_default(self, policy: AnyPolicy, goal: Goal) -> None:
        """Raises `InvalidInput` if the default reward cannot be told, or if the rule is of one reward only."""
        count, default = policy.objective_count, self.default_reward
        each = f"{count} objectives ({', '.join(policy.objective_names)})"
        if count > 1 and self.on_deadline in ("censor", "silence"):
            raise InvalidInput(
                f"`on_deadline` {self.on_deadline!r} counts open trials as one reward, and this study has {each}: take "
                "'abandon', 'fail', or 'reward' with a value for each as `default_reward`."
            )
        if default is None:
            return
        if isinstance(default, list) != (count > 1) or (isinstance(default, list) and len(default) != count):
            wanted = "a number" if count == 1 else f"a list with a number for each of {each}"
            raise InvalidInput(f"`default_reward` is {shown(default)}: it must be {wanted}.")
        if count > 1 and policy.constraint_count:
            raise InvalidInput(
                "`default_reward` has no constraint values, which belong to the values of several objectives: take "
                "'fail' or 'abandon' as `on_deadline`."
            )
        inputs = Inputs(policy, goal)
        _ = inputs.reward(default) if count == 1 else inputs.answer(0, default)

    def _check_several(self, policy: AnyPolicy) -> None:
        """Raises `InvalidInput` if several rewards of a decision cannot be collected for the policy."""
        beside = {
            "several objectives": policy.objective_count > 1, "constraints": policy.constraint_count > 0,
            "`switching`": getattr(policy, "switching", None) is not None,
        }  # fmt: skip
        found = next((name for name, there in beside.items() if there), None)
        if self.reward is not None and found is not None:
            raise InvalidInput(
                f"`reward` is {self.reward!r}, which collects single numbers, and this study has {found}. Leave one of "
                "the two out."
            )

    def told(self, trial: int) -> Told:
        """Returns the default reward as the answer to a trial."""
        default = self.default_reward
        first, *others = default if isinstance(default, list) else [default]
        return Told(trial, first, None, others=tuple(Other(value) for value in others if value is not None))

    def _exposed(self, policy: AnyPolicy) -> AnyPolicy | None:
        """Returns the policy with open trials that count by their exposure, or None where they do not.

        A policy that says itself what open trials count as keeps that under "reward".
        """
        if self.on_deadline not in ("reward", "silence") or not isinstance(policy, Policy):
            return None
        if self.on_deadline == "reward" and (policy.pending.hallucinates or not policy.pending.as_answered):
            return None
        wait = None if self.deadline is None else timedelta(seconds=self.deadline)
        return by_exposure(policy, wait, minimum=self._imputed or 0.0)

    @property
    def _imputed(self) -> float | None:
        """The default reward of one objective."""
        return None if isinstance(self.default_reward, list) else self.default_reward


@final
class Deadlines:
    """The deadlines of one study in one process.

    Attributes:
        rule: of the study.
        active: whether the rule records something at a deadline.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.active = rule.on_deadline in ("fail", "reward") or rule.reward is not None
        self._known = 0  # trials that the last sweep has read
        self._ends: list[tuple[float, int]] = []  # heap of (deadline, trial) of open trials
        self._confirmed = True  # whether the last sweep is on record

    def lease(self, wanted: float | None) -> float | None:
        """Returns the seconds after which a trial is abandoned.

        Args:
            wanted: seconds from the request, instead of those of the study.
        """
        rule = self.rule
        same = rule.on_deadline if rule.reward is None else f"reward: {rule.reward}"
        if wanted is not None:
            if self._leaseless:
                raise InvalidInput(
                    f"`deadline` cannot be given with a decision here: the study's rule is {same!r}, which is the same "
                    "for all its decisions."
                )
            why = "It is how long a reward is waited for, in seconds."
            return number("deadline", wanted, low=0.0, open_low=True, high=LONGEST_LEASE, why=why)
        return None if self._leaseless else rule.deadline

    @property
    def _leaseless(self) -> bool:
        """True if trials have no lease, since the end of their wait is no abandonment."""
        return self.rule.on_deadline in ("censor", "silence") or self.rule.reward is not None

    def expires_at(self, trial: Trial) -> float | None:
        """Returns the deadline of a trial in Unix seconds, or None."""
        if trial.lease_until is not None:
            return trial.lease_until
        if self._leaseless and self.rule.deadline is not None:
            return trial.asked_at + self.rule.deadline
        return None

    def late(self, trial: Trial) -> bool:
        """Returns whether the trial got its reward, failure or default reward after the deadline."""
        if self.rule.reward is not None and trial.measured and not trial.late:
            return False  # Its rewards came before the deadline, and were told then.
        expires = self.expires_at(trial)
        # A correction counts as late if the answer that it corrects was late.
        at = trial.corrected[0].time if trial.corrected else trial.told_at
        return trial.late or (expires is not None and at is not None and at > expires)

    def sweep(self, transaction: Transaction) -> Going | None:
        """Applies the rule to trials whose deadline has passed. The study has just abandoned those with a lease."""
        if not self.active:
            return None
        trials = transaction.trials
        if not self._confirmed:
            self._known, self._ends = 0, []
        self._confirmed = False
        for trial in held_from(trials, self._known):
            if self._waits(trial):
                heapq.heappush(self._ends, (self.expires_at(trial) or 0.0, trial.number))
        self._known = len(trials)
        now = transaction.now
        if self.rule.reward is not None and self._ends and self._ends[0][0] <= now:
            transaction.fetch_notes([f"{COLLECTED}:{name}" for end, name in self._ends[:AT_ONCE] if end <= now])
        begun = False
        while self._ends and self._ends[0][0] <= now:
            if begun and transaction.expired:
                return Going(self.sweep)
            self._apply(transaction, trials[self._ends[0][1]])
            heapq.heappop(self._ends)
            begun = True
        return None

    def _waits(self, trial: Trial) -> bool:
        """Returns whether the rule may record something at the deadline of a trial."""
        if self.rule.reward is not None:
            return trial.state == "pending"
        return trial.lease_until is not None and trial.open

    def confirm(self) -> None:
        """Notes that the transaction of the last sweep was committed."""
        self._confirmed = True

    def _apply(self, transaction: Transaction, trial: Trial) -> None:
        if not self._waits(trial):
            return
        number_, rule = trial.number, self.rule
        if rule.reward is not None:
            came = Collected.of(transaction.read_note(f"{COLLECTED}:{number_}"))
            if came.rewards:
                transaction.tell(came.told(number_, rule.reward))
                return
        silent = f"no reward came within {exact((self.expires_at(trial) or 0.0) - trial.asked_at)} s"
        if rule.on_deadline == "abandon":
            transaction.abandon(number_, silent)
            return
        if rule.on_deadline == "fail":
            transaction.fail(number_, silent)
        else:
            transaction.tell(rule.told(number_))
        transaction.write_note(f"{DEFAULTED}:{number_}", json.dumps(rule.default_reward))
