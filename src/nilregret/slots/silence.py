"""Pending trials where silence may mean no: their imputed value falls with time.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | `minimum` | value of a trial whose reward never comes, reward units | scalar |
| v | `answer` | average value of a reward that comes, reward units | scalar |
| mu | `means` | posterior mean of the value of a trial | (n,) |
| q | | probability that a reward ever comes: mu = s + q (v - s) | (n,) |
| F | `law` | P(delay <= age) of the rewards that come | |

With `Exposed` a pending trial counts by its exposure: as that much of a no as of the yeses would have come by now.

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

The delays of the yeses that came are truncated from the right. As in `pending` (Lynden-Bell 1971), of the trials that
reached a_j with a yes before it, the share B_j / Y_j came before a_{j-1}. So F_{j-1} = F_j B_j / Y_j, with F = 1 at W.
Whatever the share of yeses is, F stays the same. q follows from E Y_j = q F_j N_j.

A silent trial counts as w = (F (1 - q) - r) / (1 - q F - r) of an observation of the value of silence. Here r is the
share of trials told to be a no by this age. Then the yeses of an age, over yeses, noes and w for each silent trial, are
q in expectation. Without noes before W, w is F for rare yeses (Vernade, Cappe & Perchet 2017: a decision counts by its
exposure). If all trials are answered before W, w is 0, and silence teaches nothing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, number, settle, shown
from .._utils.copying import Copyable
from .._utils.dataclass import dataclass, replace
from ..errors import InvalidInput
from ..serialize import description
from ..storage.record import Trial
from ..theory.delays import Delay
from .base import Policy
from .pending import SELDOM, TYPICAL, Arrivals, ImputedValue, Pending, PendingInfo, Waits

LEAST, MOST = 0.02, 0.98  # limits of q, so that no point is given up or trusted forever
FEWEST = 5  # smallest number of rewards for a statement about silence
SURE = 0.99  # share of rewards that have come by the age at which a detector takes silence for a no
OLD = 0.995  # share of rewards that have come by the age at which a trial is old
EVENTUALLY = 0.95  # smallest share of old trials with a reward, if delays have nothing to do with rewards
EVIDENCE = math.log(100.0)  # nats of evidence against that share, from which on silence means no
ALIKE = 0.25  # share of v - s: rewards within it of v count as the same yes
FEW, BYCHANCE = 0.01, 2  # share of rewards that may differ by more, and a number on top of it


@dataclass(frozen=True, kw_only=True)
class _Silent(Pending):
    """Base class of the two parts.

    Attributes:
        minimum: s, the value of a trial whose reward never comes, reward units. None takes the smallest reward so far
            (the prior mean before the first). While all rewards are the same, a yes, None takes 0 if that is less.
        answer: v, the value of a reward, reward units. None takes the average of those that came.
        delay: known distribution of the delays of the rewards that come, a part of
            `nilregret.environments.delays`. None estimates it from the record.
    """

    minimum: float | None = 0.0
    answer: float | None = None
    delay: Delay | None = None

    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("minimum", "answer"):
            if getattr(self, name) is not None:
                value = number(name, getattr(self, name), low=-LARGEST_REWARD, high=LARGEST_REWARD)
                settle(self, **{name: value})
        if self.delay is not None and (not isinstance(self.delay, Delay) or self.delay.within(math.inf) != 1.0):
            raise InvalidInput(
                f"`delay` is {shown(self.delay)}: it must be the law of the delays, in questions, of the answers that "
                "do come, or be left out to have it learned from the record.",
                advice="Such a law is `nilregret.environments.delays.GeometricDelay(10.0)`.",
            )

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """Returns the value of silence."""
        return super().lowest(least, prior_mean) if self.minimum is None else self.minimum

    def turned(self) -> Self:
        """Returns the part with both values negated."""
        return replace(self, minimum=_turned(self.minimum), answer=_turned(self.answer))

    @abstractmethod
    def waits(self) -> Silence:
        """Returns a fresh memory of delays."""

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002
        """Returns the current expected value of the trial."""
        if known.waits is None:
            raise InvalidInput(f"`{type(self).__name__}` counts trials by what it remembers of the run (`waits`).")
        ages, means, charges = np.array([known.age()]), np.array([known.mean()]), np.array([known.charge()])
        return ImputedValue(known.waits.values(ages, means, charges, known.lowest)[0])


@final
@description(frozen=True, kw_only=True)
class Imputed(_Silent):
    """Imputation by the expected value so far, where silence means no: conversions, clicks, purchases.

    The reward of a trial comes with probability q, after a delay with the law F, and is then v. Otherwise the trial is
    worth s, and no reward ever comes. After silence for `a` trials its expected value is

        E[y | no reward by age a] = s + (v - s) q (1 - F(a)) / (1 - q F(a)),    q = (mu - s) / (v - s),

    with mu the posterior mean of the round before, which includes the imputed values (v = 1 and s = 0 for conversions).
    The value begins as the posterior mean and ends as s, once all rewards have come that will. No window is needed. F
    is estimated from the record. Before the first reward a trial counts as the posterior mean. Nothing is proved.

    Attributes:
        minimum, answer, delay: s, v and the law F.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.Imputed(minimum=0.0))
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    def waits(self) -> Silence:
        """Returns a fresh memory of delays, under which silence always means no."""
        return Silence(self, always=True)


@final
@description(frozen=True, kw_only=True)
class LateOrNever(_Silent):
    """`Hallucinated` until it is evident that some rewards never come and that these are the bad ones, then `Imputed`.

    If delays have nothing to do with rewards, the reward of every old trial has come. A trial is old once 99.5% of the
    rewards that come would have come, by the estimated law of delays. Silence means no if both of these hold:

    - Of n old trials at some time too few, k, had a reward. The likelihood of k under a uniform probability of a reward
      was at least 100 times that under 0.95. If the probability is 0.95 or more at all points, this ever happens with
      probability at most about 0.01 (Ville's inequality, approximate since the law is estimated). Delays of two kinds,
      of which the longer has not been seen yet, look like silence. If these old rewards come after all, so that they
      are not too few any more, the test is repeated.
    - All rewards are the same yes. Except for two, and one in a hundred, they lie within a quarter of v - s of v. If
      rewards differ, they order the points by themselves, and missing ones may merely be lost. Use `Imputed` if silence
      means no there.

    Nothing is decided before five rewards have come. The decision is a function of the record alone. Nothing is proved.

    Attributes:
        minimum, answer, delay: as in `Imputed`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.LateOrNever())
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    hallucinates: ClassVar[bool] = True

    def waits(self) -> Silence:
        """Returns a fresh memory of delays, which tests whether silence means no."""
        return Silence(self, always=False)


@final
class Silence(Copyable, Waits):
    """Statistics of the rewards that came in one run.

    Attributes:
        evident: True if silence is known to mean no.
    """

    OWNED = ("_arrivals",)

    def __init__(self, part: _Silent, *, always: bool) -> None:
        self._part, self._always = part, always
        self._arrivals = Arrivals(part.delay)
        self._sum = 0.0  # sum of the rewards
        self._least, self._most = math.inf, -math.inf
        self._reach: float = 0  # age from which on trials were final at the last call of `moving`
        self._last = 0  # number of trials at that call
        # An age, and the number of first trials of which too few have a reward.
        self._tested: tuple[int, int] | None = None
        self.evident = always

    def ask(self, trial: Trial) -> None:
        """Records that a trial was asked."""
        self._arrivals.add(trial)

    def hear(self, trial: Trial) -> None:
        """Records a reward or a failure."""
        before = len(self._arrivals.rewards)
        self._arrivals.record(trial)
        for reward in self._arrivals.rewards[before:]:
            self._sum += reward
            if self._part.minimum is None and not self._least <= reward <= self._most:
                self._reach = math.inf  # The values of all trials change.
            self._least, self._most = min(self._least, reward), max(self._most, reward)

    def forget(self, first: int) -> None:
        """Drops the trials before this one."""
        self._arrivals.drop_before(first)

    def moving(self) -> list[int]:
        """Returns the pending trials that are not final, and those that were not final at the last call."""
        arrivals = self._arrivals
        if arrivals.refresh() and not self._always and (evident := self._is_evident()) is not self.evident:
            self.evident, self._reach = evident, math.inf
        reach = max(self._reach, arrivals.law.final_age) + arrivals.asked - self._last
        self._last, self._reach = arrivals.asked, arrivals.law.final_age if self.evident else 0
        found = []
        for trial, place in reversed(arrivals.open.items()):
            if arrivals.asked - 1 - place > reach:
                break
            found.append(trial)
        return found[::-1]

    @property
    def settled(self) -> float:
        """Age by which 99% of the rewards that come have come, after which a detector takes silence for a no."""
        part, arrivals = self._part, self._arrivals
        fewest = FEWEST if part.delay is None else int(part.minimum is None)
        return arrivals.law.reaches(SURE) if len(arrivals.rewards) >= fewest else math.inf

    def ages(self, numbers: list[int]) -> IndexArray:
        """Returns how many trials were asked after each of these pending trials, `(n,)`."""
        return self._arrivals.asked - 1 - np.array([self._arrivals.open[number] for number in numbers], dtype=np.intp)

    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:
        """Returns E[y | no reward by this age] of each pending trial."""
        if not self.evident:
            return [None] * len(ages)
        count = len(self._arrivals.rewards)
        if self._part.answer is None and not count:
            return means.tolist()  # type: ignore[no-any-return]  # an array of floats
        low = self.worth(lowest) - charges
        rise = (self._sum / count if self._part.answer is None else self._part.answer) - self.worth(lowest)
        if rise == 0.0:
            return low.tolist()  # type: ignore[no-any-return]
        q = np.clip((means - low) / rise, LEAST, MOST)
        later = self._arrivals.law.later(ages)
        silent = low + rise * q * later / (1.0 - q * (1.0 - later))
        return np.where(ages >= self._arrivals.law.final_age, low, silent).tolist()  # type: ignore[no-any-return]

    def worth(self, lowest: float) -> float:
        """Returns the value of silence.

        The value is at most 0 if all rewards are the same yes and no minimum is given.
        """
        return min(lowest, 0.0) if self._part.minimum is None and self._least == self._most else lowest

    def answer(self) -> float | None:
        """Returns the given value of a reward, or the average of those that came."""
        if not self.evident or self._part.answer is not None:
            return self._part.answer if self.evident else None
        count = len(self._arrivals.rewards)
        return self._sum / count if count else None

    def _is_evident(self) -> bool:
        """Returns True if too few old trials had a reward at some time, and all rewards are the same yes."""
        arrivals = self._arrivals
        count = len(arrivals.rewards)
        if count < FEWEST:
            return False
        if self._tested is None or not _too_few(*arrivals.by_age(*self._tested)):  # these rewards may still come
            age = arrivals.law.reaches(OLD)
            self._tested = (age, arrivals.asked) if _too_few(*arrivals.by_age(age, arrivals.asked)) else None
        low = self.worth(self._least if self._part.minimum is None else self._part.minimum)
        yes = self._sum / count if self._part.answer is None else self._part.answer
        others = sum(abs(reward - yes) > ALIKE * abs(yes - low) for reward in arrivals.rewards)
        return self._tested is not None and others <= BYCHANCE + FEW * count


def _turned(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


def _too_few(n: int, k: int) -> bool:
    """Returns True if k rewards of n trials are too few for `EVENTUALLY`, by a ratio of likelihoods."""
    mixture = math.lgamma(k + 1) + math.lgamma(n - k + 1) - math.lgamma(n + 2)  # log B(k + 1, n - k + 1)
    evidence = mixture - k * math.log(EVENTUALLY) - (n - k) * math.log1p(-EVENTUALLY)
    return k < EVENTUALLY * n and evidence >= EVIDENCE


GROUPS = 12  # groups of ages below W
LONGEST = 16  # groups without W, which end after 2^15 questions
PRIOR = 2.0  # weight of the prior law of delays in each group, as a number of yeses
STEP = 0.125  # smallest change of the share of a trial, so that its age costs some eight updates in all
NEARLY = 1.0 - 1e-9  # share of the wait after which, but for rounding, it is over

# In place of the group in which a yes came: a no, one at the end of the wait, and what says nothing of delays.
NO, END, APART = -1, -2, -3


def weighs(policy: Policy) -> bool:
    """Returns whether the posterior of a policy can count a trial as a share of an observation."""
    by_models = policy.models is not None and policy.objective.is_reward
    return not whole_beside(policy) and (by_models or policy.objective.learned(policy) is not None)


def whole_beside(policy: Policy) -> str:
    """Returns in words the part of a policy beside which trials count as whole observations, or an empty text."""
    parts = {
        "constraints": policy.constraints is not None, "`switching`": policy.switching is not None,
        "a memory of a drift": policy.memory.drift() is not None,
    }  # fmt: skip
    return next((name for name, there in parts.items() if there), "")


@final
@description(frozen=True, kw_only=True)
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
