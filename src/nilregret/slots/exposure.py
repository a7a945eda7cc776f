"""Pending trials that count by their exposure: as that much of a no as of the yeses would have come by now.

| symbol | name | meaning | shape |
|---|---|---|---|
| W | `wait` | age at which silence is a no | scalar |
| a_j | `_ages` | borders of the groups of ages: W / 2^k, or 2^k without a wait | (G,) |
| N_j | `_reached` | trials that reached the age a_j, whatever their answer | (G,) |
| Y_j, B_j | `_yes`, `_before` | those of them with a yes before a_j, and before a_{j-1} | (G,) |
| R_j | `_no` | those of them that were told to be a no before a_j | (G,) |
| F_j | | P(the yes comes before a_j) of the yeses that come within W | (G,) |
| q | | P(a yes comes within W) | scalar |
| w | | share of a no that silence counts | scalar |

The delays of the yeses that came are truncated from the right. As in `delay_law` (Lynden-Bell 1971), of the trials that
reached a_j with a yes before it, the share B_j / Y_j came before a_{j-1}. So F_{j-1} = F_j B_j / Y_j, with F = 1 at W.
Whatever the share of yeses is, F stays the same. q follows from E Y_j = q F_j N_j.

A silent trial counts as w = (F (1 - q) - r) / (1 - q F - r) of an observation of the value of silence. Here r is the
share of trials told to be a no by this age. Then the yeses of an age, over yeses, noes and w for each silent trial, are
q in expectation. Without noes before W, w is F for rare yeses (Vernade, Cappe & Perchet 2017: a decision counts by its
exposure). If all trials are answered before W, w is 0, and silence teaches nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, number, settle
from .._utils.copying import Copyable
from .._utils.serialize import described
from ..errors import InvalidInput
from ..storage.record import Trial
from .base import Policy
from .delay_law import SELDOM, TYPICAL, Waits
from .pending import Pending, PendingInfo
from .silence import SURE

GROUPS = 12  # groups of ages below W
LONGEST = 16  # groups without W, which end after 2^15 questions
PRIOR = 2.0  # weight of the prior law of delays in each group, as a number of yeses
STEP = 0.125  # smallest change of the share of a trial, so that its age costs some eight updates in all
NEARLY = 1.0 - 1e-9  # share of the wait after which, but for rounding, it is over

# In place of the group in which a yes came: a no, one at the end of the wait, and what says nothing of delays.
NO, END, APART = -1, -2, -3


def weighs(policy: Policy) -> bool:
    """Returns whether the posterior of a policy can count a trial as a share of an observation."""
    alone = policy.constraints is None and policy.switching is None and policy.memory.drift() is None
    by_models = policy.models is not None and policy.objective.is_reward
    return bool(alone and (by_models or policy.objective.learned(policy) is not None))


@final
@described
@dataclass(frozen=True, kw_only=True)
class Exposed(Pending):
    """An unanswered trial counts by its exposure, where a yes comes sooner or later and silence means no.

    The trial counts as a share of an observation of `minimum`. The share is that of the yeses that would have come by
    its age, 0 at first and 1 once the wait is over. A yes takes its place. The law of delays is learned from the yeses,
    in groups of ages that double. A decision costs the same with any number of open trials. Noes may be told at the end
    of the wait, or never. If noes come as early as yeses, silence counts less, and it counts nothing if all trials
    are answered before the wait is over. Nothing is proved.

    For clicks, counts and bounded rewards on arms (`reward=`), and for `ArmModels`, whose posteriors learn shares of
    observations.

    Attributes:
        wait: age at which silence is a no, in questions, or seconds with `in_time`. None learns it from the answers.
        in_time: True if the wait is a duration. Ages are then those of the clock on record.
        minimum: value of silence, reward units. An answer of this value is a no.

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Arms(range(3)), reward="bernoulli")
    >>> policy = policy.using(pending=nr.slots.Exposed(wait=100))
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    wait: float | None = None
    in_time: bool = False  # type: ignore[misc]   # a class variable of other parts
    minimum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is how many questions (or how long) a yes is waited for."
        if self.wait is not None:
            settle(self, wait=number("wait", self.wait, low=0.0, open_low=True, why=why))
        minimum = number("minimum", self.minimum, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        settle(self, minimum=minimum, in_time=flag("in_time", self.in_time))
        if self.in_time and self.wait is None:
            raise InvalidInput("`in_time` is True and `wait` is missing: say after how many seconds silence is a no.")

    @classmethod
    def within(cls, wait: float | timedelta | None, *, minimum: float = 0.0, failed: str = "aside") -> Exposed:
        """Returns a part with a wait in questions, or a `timedelta`."""
        in_time = isinstance(wait, timedelta)
        length = wait.total_seconds() if isinstance(wait, timedelta) else wait
        return cls(wait=length, in_time=in_time, minimum=minimum, failed=failed)  # type: ignore[arg-type]  # checked

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the posterior cannot count a share of an observation."""
        if not weighs(policy):
            raise InvalidInput(
                "`Exposed` counts an unanswered trial as a share of an observation. Posteriors of rates on arms "
                "(`reward`) and `ArmModels` can do that, without constraints, drift or runs of plays.",
                advice="Elsewhere take `nr.slots.Imputed(minimum=0)`.",
            )

    def lowest(self, least: float | None, prior_mean: float) -> float:  # noqa: ARG002
        """Returns the value of silence."""
        return self.minimum

    def turned(self) -> Exposed:
        """Returns the part with the value of silence negated."""
        return replace(self, minimum=0.0 - self.minimum)

    def waits(self) -> Exposure:
        """Returns a fresh memory of delays."""
        return Exposure(self)

    def count_as(self, trial: Trial, known: PendingInfo) -> None:
        """Returns None: the trial counts as a share of an observation (`Waits.shares`)."""


def by_exposure(policy: Policy, wait: float | timedelta | None, *, minimum: float) -> Policy | None:
    """Returns the policy with open trials that count by their exposure, or None if its posterior cannot.

    Models that drift cannot, since they forget no share of an observation. A policy that they lead keeps them.
    """
    if not weighs(policy) or (policy.models is not None and policy.models[0].keep < 1.0):
        return None
    return policy.using(pending=Exposed.within(wait, minimum=minimum, failed=policy.pending.failed))


@final
class Exposure(Copyable, Waits):
    """The trials whose wait is not over, by groups of ages, and how long yeses took.

    Time is that of the last question on record, so a replay repeats each step.
    """

    OWNED = ("_group", "_places", "_came", "_moved", "_reached", "_yes", "_before", "_no")
    OWNED_EACH = ("_queues",)

    def __init__(self, part: Exposed) -> None:
        self._part = part
        if part.wait is None:
            self._ages: list[float] = [2.0**k for k in range(LONGEST)]
            within = -np.expm1(-np.array(self._ages) / TYPICAL)
            self._prior = np.append(0.0, within[:-1] / within[1:])  # of F_{j-1} / F_j
        else:
            self._ages = [part.wait / 2.0 ** (GROUPS - 1 - k) for k in range(GROUPS)]
            self._prior = np.append(0.0, np.full(GROUPS - 1, 0.5))
        count = len(self._ages)
        # Trials in each group of ages, in the order of asking, with the time at which they were asked.
        self._queues: list[deque[tuple[float, int]]] = [deque() for _ in self._ages]
        self._group: dict[int, int] = {}  # of each of these trials
        self._places: dict[int, int] = {}  # number of trials up to each of them
        self._came: dict[int, int] = {}  # group in which the yes of one of them came, NO or APART
        self._moved: dict[int, int] = {}  # groups of silent trials that grew older since the last call of `shares`
        self._reached, self._yes, self._before, self._no = ([0] * count for _ in range(4))
        self._asked = 0
        self._due = 0  # number of trials at which the next law is due
        self._within, self._share = np.zeros(count + 1), [0.0] * (count + 1)

    def ask(self, trial: Trial) -> None:
        """Records that a trial was asked, and lets the others grow older."""
        self._asked += 1
        now = trial.asked_at if self._part.in_time else float(self._asked)
        for j, (queue, age) in enumerate(zip(self._queues, self._ages, strict=True)):
            while queue and now - queue[0][0] >= age:
                self._reach(j, queue.popleft())
        self._queues[0].append((now, trial.number))
        self._group[trial.number], self._places[trial.number] = 0, self._asked

    def _reach(self, j: int, who: tuple[float, int]) -> None:
        """Counts a trial that has reached the age a_j."""
        name, came = who[1], self._came.get(who[1])
        if name not in self._group:
            return  # It was forgotten.
        if came is None:
            self._moved[name] = j + 1
        if came != APART:
            self._reached[j] += 1
            if came == NO:
                self._no[j] += 1
            elif came is not None and came >= 0:
                self._yes[j] += 1
                self._before[j] += came < j
        if j + 1 < len(self._ages):
            self._group[name] = j + 1
            self._queues[j + 1].append(who)
        else:
            self._drop(name)

    def _drop(self, name: int) -> None:
        del self._group[name], self._places[name]
        self._came.pop(name, None)

    def hear(self, trial: Trial) -> None:
        """Records an outcome. A failure tells nothing about delays."""
        group, said = self._group.get(trial.number), trial.reward
        self._moved.pop(trial.number, None)
        if group is not None and self._came.get(trial.number, APART) == APART:  # also one that had been given up
            kind = self._kind_of_no(trial) if said == self._part.minimum else group
            self._came[trial.number] = APART if said is None else kind

    def _kind_of_no(self, trial: Trial) -> int:
        """Returns END for a no that comes as the wait ends, and NO for an earlier one."""
        if self._part.wait is None:
            return NO
        if self._part.in_time and trial.told_at is not None:
            return END if trial.told_at - trial.asked_at >= NEARLY * self._part.wait else NO
        return END if self._asked - self._places[trial.number] >= self._part.wait - 1.0 else NO

    def forget(self, first: int) -> None:
        """Drops the trials before this one."""
        for name in [name for name in self._group if name < first]:
            self._drop(name)
            self._moved.pop(name, None)

    def shares(self, known: Mapping[int, float]) -> list[tuple[int, float]]:
        """Returns the silent trials whose share of an observation changes now, each with its share.

        Args:
            known: the shares so far, by number.
        """
        if not self._moved:
            return []
        if self._asked >= self._due:
            self._due = self._asked + max(1, self._asked // SELDOM)
            self._learn()
        moved, self._moved = self._moved, {}
        changes = ((name, self._share[group], known.get(name, 0.0)) for name, group in moved.items())
        return [(name, w) for name, w, old in changes if abs(w - old) >= STEP or w == 1.0 != old]

    def _learn(self) -> None:
        """Estimates F at all borders, q and r, and the shares of silence in each group."""
        reached, yes, no = (np.array(each, dtype=float) for each in (self._reached, self._yes, self._no))
        ratios = (np.array(self._before) + PRIOR * self._prior) / (yes + PRIOR)
        within = np.append(np.cumprod(ratios[:0:-1])[::-1], 1.0)
        q = (yes.sum() + 1.0) / (reached @ within + 2.0)
        self._within = np.append(0.0, within)
        noes = no / np.maximum(reached, 1.0)
        middle, early = (0.5 * (each[:-1] + each[1:]) for each in (within, noes))  # of the groups from a_0 on
        shares = (middle * (1.0 - q) - early) / np.maximum(1.0 - q * middle - early, 1e-9)
        self._share = [0.0, *np.clip(shares, 0.0, 1.0 - STEP).tolist(), 1.0]

    def moving(self) -> list[int]:
        """Returns no trial, since trials count by their shares."""
        return []

    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:  # noqa: ARG002
        """Returns None for each trial."""
        return [None] * len(ages)

    def ages(self, numbers: list[int]) -> IndexArray:
        """Returns the groups of ages of these trials, `(n,)`."""
        return np.array([self._group[number] for number in numbers], dtype=np.intp)

    def over(self, name: int, age: int) -> bool:  # noqa: ARG002
        """Returns whether nearly all yeses of the age of a trial have come."""
        group = self._group.get(name)
        return group is None or self._within[group] >= SURE
