"""The fits of one output: which fits are due, and which are on record.

`Balance` (regret balancing) says which lengthscale decides the next round, and which lengthscales are refuted.

| symbol | name | meaning |
|---|---|---|
| S_j | `_played`, `_totals` | rounds that candidate j decided: all, and sums over those that were answered |
| R_j(n) | `_regret` | order of candidate j's regret bound after n rounds of its own |
| B_j | `_norm_of` | N (theta_0 / theta_j)^{d/2}: bound on the norm under a shorter lengthscale |
| beta_s sigma_s | `spread` | half the width of the bounds of f at x_s when x_s was asked for |
| xi_t | | 2 R^2 ln(m pi^2 t^2 / (3 delta)), m candidates |

Ziomek, Adachi & Osborne 2024, Algorithm 1. Candidate j suits f if ||f||_j <= B_j. Then all shorter candidates suit f as
well (their Lemma 2.1), and f* <= f(x_s) + 2 beta_s sigma_s in the rounds of candidate j.

With probability 1 - delta / 2 every average of noise over n rounds of one candidate is at most sqrt(xi_t / n) on the
side that counts. This holds for m candidates and n = 1, 2, ..., because m sum_n 3 delta / (m pi^2 n^2) = delta / 2.
Hence

    mean_j y + sqrt(xi_t / |S_j|) + 2 / |S_j| sum beta_s sigma_s >= f* >= mean_i y - sqrt(xi_t / |S_i|) for all i.

A candidate for which this fails is refuted. In the paper's line 12 the first root has the other sign, and the proof
does not go through. The code published with the paper has the sign used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable
from .._utils.dataclass import dataclass
from ..domains.domain import Domain, Space
from ..gp import Averaged
from ..gp.fitting import Standardization
from ..slots.refit import Refit, Refitted, RegretBalancing
from ..storage.record import Event, Trial
from ..storage.trial import Fit
from .engines import row_of
from .policy import Policy
from .training_data import TrainingData

FitsOnRecord = tuple[Fit, ...]  # fits that came into force with a decision


@final
@dataclass(frozen=True)
class FitJob:
    """A fit that is due, with a copy of the data that it sees.

    A call makes the fit, in any thread or process.

    Attributes:
        channel: 0 for the reward, j for constraint j.
        number: 1, 2, ... since the memory was last cut.
        restarts: number of restarts of the memory before it.
        multipliers: those by which rewards are charged, as bytes.
        answers: rewards and noise of the trials that the fit sees, by number. The reward of an imputed one is None.
        domain: whose sides are the unit of its lengthscales.
        fitted: makes the fit.
    """

    channel: int
    number: int
    restarts: int
    multipliers: bytes
    answers: dict[int, tuple[float | None, float | None]]
    domain: Domain
    fitted: Callable[[], Refitted]

    def __call__(self) -> Fit:
        """Makes the fit."""
        return Fit(self.channel, self.number, self.fitted().plain())


class LateFits:
    """Fits that are made apart from decisions. Each comes into force with the first decision after it is ready.

    All states of a study in a process share it: a state that is rebuilt finds the same fits.

    Attributes:
        ready: the last fit that was made for each output, with its job, by channel.
    """

    def __init__(self) -> None:
        self.ready: dict[int, tuple[FitJob, Fit]] = {}


@final
class Fits(Copyable):
    """The fits of one output in a run, for a policy that learns its kernel.

    A fit is made once, for a decision, and goes on record with it. A replay reads the fit from the record.

    Args:
        policy: the policy of the output.
        refit: the schedule of fits.
        seed: the seed of the run.
        index: 0 for the reward, j for constraint j.
        late: fits that are made apart from decisions. None if a decision makes the fit that is due.

    Attributes:
        made: fits by the numbers of the trials that they saw and the multipliers then. Copies share them.
        count: number of the last fit that was due since the last restart.
    """

    def __init__(self, policy: Policy, refit: Refit, *, seed: int, index: int, late: LateFits | None = None) -> None:
        self._policy, self._refit, self._seed, self._index, self._late = policy, refit, seed, index, late
        self.made: dict[tuple[tuple[int, ...], bytes], Refitted] = {}
        self.count = self._restarts = 0
        self._forgotten = 0  # answers that the memory forgot since the last restart
        self._held_from = 0  # number before which the memory forgot all trials
        self._wanted = 0  # number of outcomes before which no fit is due, so that rounds need not count answers
        self._last = 0  # earlier fits are neither made nor read, because the same replay brings a later one
        self._recorded = 0  # fits up to this number are on record, so the replay does not make them
        self._new: Fit | None = None  # in force, and not on record

    def plan_replay(self, events: list[Event], data: TrainingData, waiting: list[Trial] | None) -> None:
        """Finds the last fit of a replay. Earlier fits are skipped, since each fit starts anew.

        Args:
            events: the events of the replay.
            data: the training data before the replay.
            waiting: outcomes that the data have not learned. None if answers to come are not counted.
        """
        policy = self._policy
        asked = [i for i, event in enumerate(events) if event.kind == "asked"]
        known = policy.plain or (policy.foreseeable and self._refit.outputs != "own")
        if len(events) < 2 or not asked or not known:  # the answers that will count, or that fits will see, are unknown
            return
        given = (fit for i in reversed(asked) for fit in events[i].trial.fits or () if fit.channel == self._index)
        self._last = self._recorded = next((fit.number for fit in given), 0)
        if waiting is not None and events[asked[-1]].trial.fits is None:  # they are not on record
            told = [e for e in events[: asked[-1]] if e.kind == "told" and e.trial.reward is not None]
            waited = [trial for trial in waiting if trial.reward is not None]
            answers = sum(map(data.pending.is_answer, data.posterior.entries))
            self._last = max(self._last, self._refit.fits(answers + len(waited) + len(told)))

    def end_replay(self) -> None:
        """Ends what `plan_replay` began."""
        self._last = self._recorded = 0

    @property
    def unrecorded(self) -> FitsOnRecord:
        """Fits in force for the next decision that are not on record."""
        return () if self._new is None else (self._new,)

    def restart(self) -> None:
        """Forgets all answers."""
        self.count = self._forgotten = self._wanted = 0
        self._restarts += 1
        self._new = None

    def forget_before(self, first: int, data: TrainingData) -> None:
        """Counts the answers before number `first`, which the data are about to forget."""
        self._held_from = first
        self._forgotten += sum(number < first and self._sees(number, data) for number in data.posterior.entries)

    def update(self, data: TrainingData, known: FitsOnRecord | None) -> bool:
        """Makes the fit that is due, or reads the known ones. Returns whether the posterior was rebuilt."""
        before = data.posterior.begun
        if known is not None:
            self._read(data, known)
        elif self._late is None:
            self._make(data)
        else:
            self._take(data, self._late)
        return data.posterior.begun != before

    def _read(self, data: TrainingData, fits: FitsOnRecord) -> None:
        new, self._new = self._new, None
        for fit in fits:
            if fit.channel == self._index and fit != new:  # this very state may have made the fit
                self.count, self._wanted = fit.number, 0
                if fit.number >= self._last:
                    data.rebuild(*Refitted.of(fit.values))

    def _make(self, data: TrainingData) -> None:
        due = self._due(data)
        if due is None:
            return
        self.count = due
        if due < self._last or due <= self._recorded or not (trials := self._first(due, data)):
            return
        key = tuple(trial.number for trial in trials), data.multipliers.tobytes()
        if self._refit.outputs == "own" or key not in self.made:
            self.made[key] = self._job(due, trials, data).fitted()
        self._enforce(Fit(self._index, self.count, self.made[key].plain()), data)

    def _enforce(self, fit: Fit, data: TrainingData) -> None:
        self._new = fit
        data.rebuild(*Refitted.of(fit.values))  # from plain values, as every reader of the record does

    def _take(self, data: TrainingData, late: LateFits) -> None:
        """Lets a fit come into force that is ready, unless its data or its space have changed since."""
        if self._due(data) is None or self._index not in late.ready:
            return
        job, fit = late.ready[self._index]
        changed = isinstance(job.domain, Space) and job.domain != self._policy.domain
        if job.number <= self.count or job.restarts != self._restarts or changed:
            return
        entries = data.posterior.entries
        held = {number: answer for number, answer in job.answers.items() if number >= self._held_from}
        same = all(
            number in entries and (answer[0] is None or answer == _answer(entries[number].trial))
            for number, answer in held.items()
        )
        if held and same and job.multipliers == data.multipliers.tobytes():
            self.count = fit.number
            self._enforce(fit, data)

    def may_be_due(self, data: TrainingData, more: int) -> bool:
        """Returns whether a fit may be due after `more` outcomes that the data have not learned."""
        return data.outcomes.count + more >= self._wanted

    def job(self, data: TrainingData) -> FitJob | None:
        """Returns the fit that is due and not in force, or None."""
        due = self._due(data)
        trials = [] if due is None else self._first(due, data)
        return self._job(due, trials, data) if due is not None and trials else None

    def _due(self, data: TrainingData) -> int | None:
        """Returns the number of the last fit that is due, or None if it is in force."""
        if data.outcomes.count < self._wanted:
            return None
        refit, pending = self._refit, data.pending
        all_count = refit.outputs != "own" and not (pending.open or pending.dropped)
        answers = self._forgotten + len(data.posterior.entries if all_count else self._seen(data))
        due = max(refit.fits(answers), self.count)
        if due == self.count:
            more = 0 if refit.outputs == "own" else refit.seen_by(due + 1) - answers
            self._wanted = data.outcomes.count + more
            return None
        return due

    def _first(self, number: int, data: TrainingData) -> list[Trial]:
        """Returns the trials that the fit of this number sees, which may be none."""
        return self._seen(data)[: max(self._refit.seen_by(number) - self._forgotten, 0)]

    def _job(self, number: int, trials: list[Trial], data: TrainingData) -> FitJob:
        policy = self._policy
        fitted = partial(
            self._refit,
            policy.kernel,
            np.array([row_of(trial) for trial in trials]),
            np.array([data.value(trial) for trial in trials]),
            policy.sides,
            noise=math.sqrt(policy.regularization),
            seed=self._seed,
            prior_mean=policy.prior_mean,
            **({} if all(trial.std is None for trial in trials) else {"stds": _stds(trials)}),
        )
        answers = {trial.number: _answer(trial) for trial in trials}
        multipliers = data.multipliers.tobytes()
        return FitJob(self._index, number, self._restarts, multipliers, answers, policy.domain, fitted)

    def _seen(self, data: TrainingData) -> list[Trial]:
        """Returns the trials that a fit may see."""
        entries = data.posterior.entries
        if self._refit.outputs == "own":
            everything = {number: entry.trial for number, entry in entries.items()} | data.pending.open
            return [everything[number] for number in sorted(everything)]
        return [entry.trial for number, entry in entries.items() if self._sees(number, data)]

    def _sees(self, number: int, data: TrainingData) -> bool:
        return self._refit.outputs == "own" or data.pending.is_answer(number)


def _answer(trial: Trial) -> tuple[float | None, float | None]:
    return trial.reward, trial.std


def _stds(trials: list[Trial]) -> Array:
    """Returns the noise of each trial as told, `(n,)`, nan where it is unknown."""
    return np.array([math.nan if trial.std is None else trial.std for trial in trials])


class _Round(NamedTuple):
    """A round that a candidate decided.

    Attributes:
        candidate: the index of the candidate.
        spread: beta_s sigma_s, reward units.
        value: y_s less the prior mean, or nan before the answer.
    """

    candidate: int
    spread: float
    value: float = math.nan


class _Total(NamedTuple):
    """Sums over the answered rounds of a candidate."""

    rounds: int
    values: float
    spreads: float


@final
class Balance(Copyable):
    """The balance between candidate lengthscales in a run.

    Attributes:
        leader: the candidate that decides the next round.
        eliminated: candidates that decide no more rounds.
    """

    OWNED = ("_open", "_answered", "_played", "_totals")

    def __init__(self, policy: Policy, refit: RegretBalancing) -> None:
        self._policy, self._refit, self._columns = policy, refit, len(policy.sides)
        self.restart()

    def restart(self) -> None:
        """Forgets all rounds."""
        self._t = 0
        self._open: dict[int, _Round] = {}  # rounds without an answer
        self._answered: dict[int, _Round] = {}
        self.eliminated: tuple[int, ...] = ()
        self._factors = self._refit.factors
        self._count()

    def _count(self) -> None:
        self._played = [0] * len(self._factors)
        self._totals = [_Total(0, 0.0, 0.0)] * len(self._factors)
        for each in (*self._open.values(), *self._answered.values()):
            self._played[each.candidate] += 1
        for each in self._answered.values():
            self._add(each)
        self._choose()

    def _add(self, each: _Round) -> None:
        n, values, spreads = self._totals[each.candidate]
        self._totals[each.candidate] = _Total(n + 1, values + each.value, spreads + each.spread)

    def _choose(self) -> None:
        """Chooses the smallest regret bound after one more round (line 3). Of equal bounds the longest leads."""
        self.leader = min(self._left(), key=lambda j: (self._regret(j, self._played[j] + 1), j))

    def _left(self) -> list[int]:
        return [j for j in range(len(self._factors)) if j not in self.eliminated]

    def _regret(self, j: int, n: int) -> float:
        """Returns Theorem 2.3's bound up to a constant.

        The bound is sqrt(n) (B_j sqrt(gamma_n) + gamma_n), with gamma_n ~ theta_j^-d (Prop. 2.2).
        """
        from ..theory.rates import information_gain_rate

        d = self._columns
        gamma = information_gain_rate(self._policy.kernel, d, n, source="vakili") * self._factors[j] ** -d
        return math.sqrt(n) * (self._norm_of(j) * math.sqrt(gamma) + gamma)

    def _norm_of(self, j: int) -> float:
        """Returns B_j = N (theta_0 / theta_j)^{d/2} (section 2, before Lemma 2.1)."""
        return float(self._refit.norm_bound * self._factors[j] ** (-0.5 * self._columns))

    def norm(self) -> float:
        """Returns the norm bound of the leader."""
        return self._norm_of(self.leader)

    def record(self, trial: Trial, spread: Callable[[], float | None], data: TrainingData) -> None:
        """Records a round that the leader decided, or that was forced.

        Args:
            trial: the trial that was asked for.
            spread: returns half the width of the bounds at the trial, or None if the round was forced.
            data: the training data of the reward.
        """
        self._t += 1
        half = spread()
        if half is not None:
            self._open[trial.number] = _Round(self.leader, half)
            self._played[self.leader] += 1
            self._choose()
        self._steer(data)

    def update(self, data: TrainingData) -> None:
        """Takes in answers, eliminates candidates, and adds shorter ones."""
        if self._take_answers(data):
            self._eliminate()
        added = self._refit.added_by(self._t, self._columns)
        new = len(self._refit.factors) + added - len(self._factors)
        if new > 0:  # lines 14-17
            self._factors = self._refit.all_factors(self._columns, added)
            self._played += [0] * new
            self._totals += [_Total(0, 0.0, 0.0)] * new
        posterior = data.posterior
        if posterior.added != added:
            posterior.added = added
            units = posterior.units
            data.rebuild(posterior.in_use, posterior.ridge, Standardization(units.center, units.unit), units.warp)
        self._choose()
        self._steer(data)

    def _steer(self, data: TrainingData) -> None:
        averaged = data.posterior.belief.observed
        if isinstance(averaged, Averaged):
            averaged.leader = self.leader

    def _take_answers(self, data: TrainingData) -> bool:
        """Returns whether answers have come. Each counts as its target at that time."""
        entries = data.posterior.entries
        come = [number for number in self._open if number in entries and data.pending.is_answer(number)]
        for number in come:
            value = data.value(entries[number].trial) - self._policy.prior_mean
            each = self._answered[number] = self._open.pop(number)._replace(value=value)
            self._add(each)
        return bool(come)

    def _eliminate(self) -> None:
        """Eliminates refuted candidates for good (lines 9-13, with the sign of the text above)."""
        left, totals = self._left(), self._totals
        if any(not totals[j].rounds for j in left):  # line 9
            return
        odds = len(self._factors) * math.pi**2 * max(self._t, 1) ** 2 / (3.0 * self._refit.delta)
        xi = 2.0 * self._refit.noise**2 * math.log(odds)  # Theorem 4.1, with d ln g(t) = m
        root = {j: math.sqrt(xi / totals[j].rounds) for j in left}
        best = max(totals[j].values / totals[j].rounds - root[j] for j in left)
        gone = [j for j in left if (totals[j].values + 2.0 * totals[j].spreads) / totals[j].rounds + root[j] < best]
        self.eliminated = tuple(sorted({*self.eliminated, *gone}))

    def forget_before(self, first: int) -> None:
        """Forgets rounds before number `first`. Eliminated candidates stay so."""
        if any(number < first for number in (*self._open, *self._answered)):
            self._open = {number: each for number, each in self._open.items() if number >= first}
            self._answered = {number: each for number, each in self._answered.items() if number >= first}
            self._count()
