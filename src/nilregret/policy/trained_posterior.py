"""The posterior of one output, with the trials that it has learned.

`AnswerNoise` is that of answers whose standard deviation is told: their weights in a posterior, and who may have them.

| symbol | name | meaning | unit |
|---|---|---|---|
| s | `trial.std` | standard deviation of the noise of one answer, as told | reward |
| R | `Policy.noise` | noise of the answers without one | reward |
| w | `weight` | R^2 / s^2 | 1 |

An answer of weight w counts as w answers with the common noise, at every lambda: its noise variance is lambda / w. If
lambda is R^2, that is s^2. With fits, lambda is the fitted noise variance in the units of the posterior, and R^2 is
lambda. So s = R changes nothing.

A warp changes the noise by its slope (`gp.warping.warped_std`).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, cast, final

import numpy as np

from .._utils.checks import Array, IndexArray, shown
from .._utils.copying import independent
from .._utils.randomness import Rng
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..gp import Bank, Belief, RepeatedPlays
from ..gp.binomial_counts import OwnRates, RatePrior
from ..gp.fitting import Standardization
from ..gp.mixture import Ensemble
from ..gp.tidal import rates_of
from ..gp.warping import AnyWarp, warped_std
from ..kernels import Kernel
from ..kernels.factorization import LEAST_REGULARIZATION
from ..slots.memory import Prediction
from ..slots.pending import Answers, Waits
from ..storage.trial import Trial
from .engines import REWARDS, Engine, Prior, Units, row_of
from .policy import Policy

LEAST, MOST = 1e-9, 1e6  # weights: a sum of both keeps either to some digits
AT_ONCE = 8  # means of warped rewards that are computed together
ROUNDING = 1e-6  # deviations of the reward: a bound that is lower by less may be rounded
EXACT = 10.0 * LEAST_REGULARIZATION  # share of the prior variance that the noise variance of an exact answer has


def refuse_std(policy: object, stds: Iterable[float | None]) -> None:
    """Raises `InvalidInput` if a policy cannot weigh answers by their noise, or not by these standard deviations."""
    why = why_one_noise(policy)
    if why:
        raise InvalidInput(
            f"`std` is given, and this policy cannot use it: {why}.",
            advice="Leave `std` out, or take `nr.auto`, `nr.gp_ucb` or `nr.expected_improvement`.",
            topic="std",
        )
    known, largest = cast(Policy, policy), max((std for std in stds if std is not None), default=0.0)
    if known.valid_for != "none" and largest * math.sqrt(LEAST) > known.noise:
        raise InvalidInput(
            f"`std` is {shown(largest)}, more than {1.0 / math.sqrt(LEAST):,.0f} times the noise of the policy, "
            f"{shown(known.noise)}. Its bounds are proved for answers that weigh noise^2 / std^2, and so small a "
            "weight is lost in rounding. Usually `noise` is 0 or tiny, as for exact answers.",
            advice="Give `noise` as that of a usual answer, or leave out answers that tell nothing.",
            topic="std",
        )


def why_one_noise(policy: object) -> str:
    """Returns the reason why a policy cannot weigh answers by their noise, or nothing."""
    if not isinstance(policy, Policy):
        return "its script sees rewards alone"
    if policy.models is not None:
        return "it compares linear models of arms, which take all answers to be equally noisy"
    if policy.objective.learned(policy) is not None:
        return "it learns from clicks or counts, whose noise follows from what they are"
    if not policy.objective.is_reward:
        return "it learns from rewards less the charges of constraints, whose noise is not known"
    if policy.refit is not None and policy.refit.balances:
        return "its test of lengthscales is for one noise of all answers"
    if not policy.memory.weighs:
        return "its test for changes is for one noise of all answers"
    if not policy.confidence.weighs:
        return policy.confidence.why_one_noise
    return ""


@final
class AnswerNoise:
    """The noise of answers in the units of one posterior.

    Args:
        policy: the policy of the output.
        ridge: lambda of the posterior.
        units: the units of the posterior.
        size: returns the largest prior variance of f, squared units of the posterior.
        noisy: answers with a noise of their own that the posterior begins with, by which imputed values are weighed.
    """

    def __init__(
        self, policy: Policy, ridge: float, units: Units, size: Callable[[], float], noisy: Sequence[Trial] = ()
    ) -> None:
        fitted = policy.fitting is not None or policy.noise == 0.0
        self._common = ridge if fitted else (policy.noise / units.unit) ** 2
        self._ridge, self.units, self._size = ridge, units, size
        self._imputed = self._weight_of_imputed(noisy)

    @cached_property
    def _most(self) -> float:
        """The weight of an exact answer. A larger one would be lost in rounding."""
        return min(MOST, self._ridge / (EXACT * self._size()))

    def variance(self, reward: float, std: float) -> float:
        """Returns the noise variance of an answer, squared units of the posterior."""
        return float(warped_std(self.units.warp, np.array(reward), np.array(std)) / self.units.unit) ** 2

    def weight(self, trial: Trial) -> float:
        """Returns the weight of a trial with a reward and a known noise."""
        variance = self.variance(cast(float, trial.reward), cast(float, trial.std))
        return self._most if variance * self._most <= self._common else max(self._common / variance, LEAST)

    def _weight_of_imputed(self, noisy: Sequence[Trial]) -> float:
        """Returns the weight of values that no answer told, at most 1 (`Pending.failed`)."""
        if not noisy:
            return 1.0
        told = [self.variance(cast(float, trial.reward), cast(float, trial.std)) for trial in noisy]
        between = math.sqrt(float(np.median(told)) * self._size())  # Exact answers make it 0.
        return 1.0 if between <= self._common else max(self._common / between, LEAST)

    def is_lighter(self, trial: Trial) -> bool:
        """Returns whether a trial stands for an imputed value whose weight is less than 1."""
        return trial.reward is None and self._imputed < 1.0

    def entry(self, engine: Engine[Any], trial: Trial) -> Any:
        """Returns the entry of a trial in a belief, with its weight."""
        entry = engine.entry(trial)
        if trial.std is None and not self.is_lighter(trial):
            return entry
        weight = self._imputed if trial.std is None else self.weight(trial)
        return entry._replace(weight=weight) if type(entry) is RepeatedPlays else RepeatedPlays(entry, weight=weight)


LEAST_NOISE = 1e-4  # share of lambda: smaller noise variances count as this share where kernels are compared


class Entry(NamedTuple):
    """A trial that counts.

    Attributes:
        trial: the trial.
        target: its value in the posterior's units. None if the trial only lowers the variance.
    """

    trial: Trial
    target: float | None


def noise_told(policy: Policy, regularization: float) -> float | None:
    """Returns the variance of the given noise, by which kernels are compared.

    Returns None if lambda is that variance, or if the noise is fitted.
    """
    told = max(policy.noise**2, LEAST_NOISE * regularization)
    return None if policy.fitting is not None or math.isclose(told, regularization) else told


@final
class TrainedPosterior:
    """The posterior of one output and the trials that it has learned.

    The belief can be made afresh from the entries at any time. Restarts and fits do so.

    Args:
        policy: the policy of the output.
        engine: the engine of the policy.

    Attributes:
        kernel: the kernel of the policy, of the epoch, or of the learned size.
        in_use: the kernel of the belief, which a fit may have replaced.
        ridge: lambda of the belief.
        units: the units of the belief.
        noise: the noise of answers with a standard deviation of their own.
        known: prior knowledge of rewards beyond their size, or None.
        models: the linear models that take the place of the kernel, or None.
        bank: the kernels that are compared, or None.
        shares: shares of an observation that unanswered trials count as, by number, where they count so.
        added: number of kernels that were added to the bank in this run.
        begun: number of beliefs so far.
    """

    def __init__(self, policy: Policy, engine: Engine[Any]) -> None:
        self.policy, self.engine = policy, engine
        self._drift, self._learning = policy.memory.drift(), policy.refit
        rates = policy.objective.learned(policy)
        self.known = None if rates is None else RatePrior(rates, policy.prior_mean)
        self.models = policy.models
        self._of_rewards = policy.objective.is_reward
        self.kernel = policy.kernel
        self.added = self.begun = 0
        self._entries: dict[int, Entry] = {}
        self.shares: dict[int, float] = {}
        self._unmade: Any = []  # trials, or their numbers, whose entries nobody has looked at
        self._trial_of: Callable[[int], Trial] | None = None
        self._batches: list[tuple[list[Any], list[float | None]]] = []  # cells and targets to learn

    def reset(self, kernel: Kernel, regularization: float, scale: Standardization, warp: AnyWarp | None) -> None:
        """Replaces the belief by an empty one. The entries stay."""
        self.in_use, self.ridge = kernel, regularization
        units = Units(scale.mean, scale.std, warp)
        self.units = REWARDS if units == REWARDS else units
        size = partial(self.engine.largest_variance, kernel)
        self.noise = AnswerNoise(self.policy, regularization, self.units, size, self._noisy_trials())
        noise = noise_told(self.policy, regularization)
        columns, learning = len(self.policy.sides), self._learning
        self.bank = None if learning is None else learning.bank(kernel, columns, self.added, noise)
        self._batches = []
        self.begun += 1
        self._belief = self.empty(apart=self.policy.pending.hallucinates, bank=self.bank)

    def _noisy_trials(self) -> list[Trial]:
        """Returns the trials with a noise of their own, if imputed values depend on them."""
        if self.policy.pending.failed != "weighed":
            return []
        return [trial for trial in self.trials if trial.std is not None]

    def add_arms(self, policy: Policy) -> bool:
        """Takes over a policy with linear models on more arms (see `State.add_arms`)."""
        self.policy = policy
        return bool(self._belief.add_arms(policy.domain))  # type: ignore[attr-defined]  # at points

    def empty(self, *, apart: bool = False, bank: Bank | Ensemble | None = None) -> Belief[Any]:
        """Returns an empty belief under the kernel in use (see `Engine.fresh` and `Prior`)."""
        noise = noise_told(self.policy, self.ridge)
        prior = Prior(self.in_use, self.ridge, self._drift, self.known, bank, noise, self.models)
        belief: Belief[Any] = self.engine.fresh(prior, apart=apart)
        belief.advance(self.engine.now)
        return belief

    @property
    def belief(self) -> Belief[Any]:
        """The belief after all entries.

        It learns when it is read. A replay reads it seldom, so it learns many trials at once.
        """
        if self._batches:
            batches, self._batches = self._batches, []
            if self._belief.joins and len(batches) > 1:
                batches = [([cell for cells, _ in batches for cell in cells], [y for _, ys in batches for y in ys])]
            for cells, targets in batches:
                self._belief.put_all(cells, targets)
        return self._belief

    @property
    def entries(self) -> dict[int, Entry]:
        """Trials that count by number, in the order in which they were learned."""
        if self._unmade:
            unmade, self._unmade = self._unmade, self._unmade[:0]
            for trial in unmade if self._trial_of is None else map(self._trial_of, unmade):
                self._entries[trial.number] = Entry(trial, self.units.scaled(cast(float, trial.reward)))
        return self._entries

    @entries.setter
    def entries(self, entries: dict[int, Entry]) -> None:
        self._entries, self._unmade = entries, self._unmade[:0]

    @property
    def trials(self) -> Iterator[Trial]:
        """The trials of all entries."""
        return (entry.trial for entry in self.entries.values())

    def is_imputed(self, number: int) -> bool:
        """Returns whether a trial that has no outcome yet has an entry. Entries of rewards stay unmade."""
        return number in self._entries

    @property
    def noise_share(self) -> float:
        """Deviation of the noise as a share of the prior deviation of f."""
        return math.sqrt(self.ridge / self.engine.largest_variance(self.in_use))

    def advance(self) -> None:
        """Moves the belief to the engine's round, if functions drift."""
        self.belief.advance(self.engine.now)

    # -- learning ------------------------------------------------------------------------------------------------

    def _entry(self, trial: Trial) -> Any:
        """Returns the entry of a trial in the belief, with the weight of a noise that is told."""
        share = self.shares.get(trial.number) if self.shares else None
        return self.noise.entry(self.engine, trial) if share is None else self._part_of(trial, share)

    def _part_of(self, trial: Trial, share: float) -> RepeatedPlays:
        return RepeatedPlays(self.engine.entry(trial), weight=share)

    def learn(self, entries: list[Entry]) -> None:
        """Adds entries to the belief."""
        entry_of = self._entry
        self._batches.append(([entry_of(trial) for trial, _ in entries], [target for _, target in entries]))
        if self._of_rewards and all(trial.reward is not None for trial, _ in entries):
            trials = (trial for trial, _ in entries)
            self._unmade.extend(trials if self._trial_of is None else (trial.number for trial in trials))
            return
        for entry in entries:
            self.entries[entry.trial.number] = entry

    def learn_one(self, trial: Trial, target: float) -> None:
        """Adds one answered trial to the belief, in fewer steps.

        If its target is its reward, the entry is made when somebody looks at it.
        """
        # One call less in every round.
        entry = self.engine.entry(trial) if trial.std is None else self._entry(trial)
        self._batches.append(([entry], [target]))
        if self._of_rewards:
            self._unmade.append(trial if self._trial_of is None else trial.number)
        else:
            self._entries[trial.number] = Entry(trial, target)

    def read_trials(self, trial_of: Callable[[int], Trial]) -> None:
        """Sets the function that returns trials by number, so that only their numbers are held."""
        known = self._unmade if self._trial_of is not None else (trial.number for trial in self._unmade)
        self._unmade, self._trial_of = array("q", known), trial_of

    @property
    def learned(self) -> list[int]:
        """Numbers of the trials of all entries, in the order in which they were learned. No entry is made."""
        numbers = self._unmade if self._trial_of is not None else (trial.number for trial in self._unmade)
        return [*self._entries, *numbers]

    def take(self, numbers: Iterable[int], trial_of: Callable[[int], Trial]) -> None:
        """Takes over entries of rewards, by number, which a belief has learned that is as this one will be."""
        self._entries, self._unmade, self._trial_of = {}, array("q", numbers), trial_of

    def learn_cell(self, entry: Trial | int, cell: Any, reward: float) -> None:
        """Adds the reward of a play to the belief. Its entry is made when somebody looks at it.

        Args:
            entry: the trial, or its number after `read_trials`, when only that is held.
            cell: see `Belief.put`.
            reward: of the play.
        """
        center, unit, _ = self.units
        belief = self.belief if self._batches else self._belief  # A call less in every round.
        belief.observed.append(cell, (reward - center) / unit)
        self._unmade.append(entry if self._trial_of is None or isinstance(entry, int) else entry.number)

    def relearn(self, targets: dict[int, float | None]) -> None:
        """Teaches an empty belief all entries.

        Args:
            targets: the new target of each entry, by number.
        """
        self.entries = {number: Entry(trial, targets[number]) for number, (trial, _) in self.entries.items()}
        cells = {number: self._entry(trial) for number, (trial, _) in self.entries.items()}
        values = {number: target for number in cells if (target := targets[number]) is not None}
        # Questions in their order, then answers in the order of their arrival.
        asked, answered = [cells[number] for number in sorted(cells)], [cells[number] for number in values]
        self.belief.begin_with(asked, answered, list(values.values()))

    def weigh_all(self, open_: Mapping[int, Trial], waits: Waits, reward: float) -> None:
        """Makes the unanswered trials that have grown older count as shares of this reward."""
        for number, share in waits.shares(self.shares):
            self._weigh(open_[number], self.units.scaled(reward), share)

    def _weigh(self, trial: Trial, target: float, share: float) -> None:
        gained = share - self.shares.get(trial.number, 0.0)
        if gained > 0.0:
            self._batches.append(([self._part_of(trial, gained)], [target]))
        else:
            self.belief.drop(self._part_of(trial, -gained), target)
        self.shares[trial.number] = share
        self.entries[trial.number] = Entry(trial, target)

    def revise(self, trial: Trial, target: float | None) -> None:
        """Replaces the entry of a trial that was answered, or played fewer times than asked for."""
        before, old = self.entries[trial.number]
        if trial.number in self.shares:
            self._complete(trial, old, target)
            return
        lighter = self.noise.is_lighter
        reweighed = before.std != trial.std or lighter(before) != lighter(trial)
        if (before.repeats > 1 and before.times != trial.times) or reweighed:
            self.belief.drop(self._entry(before), old)
            self.belief.put_all([self._entry(trial)], [target])
        else:
            self.belief.revise(self._entry(trial), old, target)
        self.entries[trial.number] = Entry(trial, target)

    def _complete(self, trial: Trial, old: float | None, target: float | None) -> None:
        """Replaces a share of an observation by a whole one."""
        share = self.shares.pop(trial.number)
        self.entries[trial.number] = Entry(trial, target)
        if old != target:
            self.belief.drop(self._part_of(trial, share), old)
            self.belief.put_all([self._entry(trial)], [target])
        elif share < 1.0:
            self._batches.append(([self._part_of(trial, 1.0 - share)], [target]))

    def revise_all(self, changes: list[tuple[Trial, float | None]]) -> None:
        """Replaces the targets of several entries, as one change of the belief."""
        if changes:
            entries, entry_of = self.entries, self._entry
            old = [entries[trial.number].target for trial, _ in changes]
            new = [target for _, target in changes]
            self.belief.revise_all([entry_of(trial) for trial, _ in changes], old, new)
            for trial, target in changes:
                entries[trial.number] = Entry(trial, target)

    def drop(self, number: int) -> Trial | None:
        """Removes an entry. Returns its trial, or None if there is no such entry."""
        entry = self.entries.pop(number, None)
        if entry is None:
            return None
        self.belief.drop(self._entry(entry.trial), entry.target)
        self.shares.pop(number, None)
        return entry.trial

    # -- predictions ---------------------------------------------------------------------------------------------

    def means(self, trials: list[Trial]) -> Array:
        """Returns posterior means at trials, `(n,)`, in reward units: of warped rewards these are medians."""
        return self.units.back(self.engine.means(self.belief, trials))

    def reward_means(self, trials: list[Trial]) -> Array:
        """Returns posterior means of the reward itself at trials, `(n,)`."""
        units, engine = self.units, self.engine
        means = engine.means(self.belief, trials)
        if units.warp is None:
            return units.back(means)
        # Trials at one point share their number to the last digit.
        _, one, each = np.unique([engine.cell_now(t) for t in trials], axis=0, return_index=True, return_inverse=True)
        stds = engine.deviations(self.belief, [trials[i] for i in one])
        return units.warp.moments(*units.rewards(means[one], stds))[0][each.reshape(-1)]

    def best_of(self, trials: list[Trial], added: Array) -> int:
        """Returns the place of the first trial with the largest `reward_means` plus `added`, `(n,)`.

        The trials are in different cells. Means of warped rewards are computed only where they may be the largest.
        """
        units, engine, belief = self.units, self.engine, self.belief
        means = engine.means(belief, trials)
        if units.warp is None:
            return int((units.back(means) + added).argmax())
        means, stds = units.rewards(means, engine.most_deviations(belief, trials))
        most = units.warp.most(means, stds) + added
        found, order = np.full(len(trials), -math.inf), np.argsort(-most, kind="stable")
        for first in range(0, len(order), AT_ONCE):
            some = order[first : first + AT_ONCE]
            if most[some[0]] + ROUNDING * units.unit < found.max():
                break
            stds = units.unit * engine.deviations(belief, [trials[i] for i in some])
            found[some] = units.warp.moments(means[some], stds)[0] + added[some]
        return int(found.argmax())

    def draw(self, trials: list[Trial], rng: Rng, size: int) -> Array:
        """Returns joint draws of f at the points of trials, `(size, n)`, in reward units.

        Only what was observed counts, and no imputed value of a failed or pending trial. Where silence is an
        observation (`Pending.waits`), pending trials count by it, since the answered ones alone would all be yeses.
        """
        silent = "pending" if self.policy.pending.waits() is not None else None
        known = [
            entry for entry in self.entries.values()
            if entry.trial.reward is not None or (entry.trial.state == silent and entry.target is not None)
        ]  # fmt: skip
        belief = self.belief
        if len(known) < len(self.entries):
            belief = self.empty(bank=self.bank)
            belief.put_all([self._entry(entry.trial) for entry in known], [entry.target for entry in known])
        cells = np.array([self.engine.cell_now(trial) for trial in trials])
        observed = belief.observed
        rates = rates_of(observed)
        if rates is not None:  # Its own draws are for decisions, and too sure of the best arm.
            return self.units.back(OwnRates(rates).draws(rng, cells, size))
        return self.units.back(observed.sample(rng, cells, size=size))

    def predictions(self, trial: Trial) -> Prediction:
        """Returns the prediction of f at a trial in reward units, without the trial's own imputed value."""
        belief, engine = self.belief, self.engine
        if trial.number in self.entries:
            belief = belief.copy()
            belief.drop(self._entry(trial), self.entries[trial.number].target)
        mean, std = belief.predict(np.array([engine.cell_now(trial)]))
        units = self.units
        if units.warp is None:
            return Prediction(float(mean[0]) * units.unit + units.center, float(std[0]) * units.unit)
        low, middle, high = (float(at) for at in units.back(np.array([mean[0] - std[0], mean[0], mean[0] + std[0]])))
        return Prediction(middle, 0.5 * (high - low))

    def copy(self, engine: Engine[Any]) -> TrainedPosterior:
        """Returns an independent copy."""
        fresh = {"engine": engine, "_belief": self.belief.copy(), "_entries": self._entries.copy()}
        fresh["shares"] = self.shares.copy()
        return independent(self, ("_batches",), fresh={**fresh, "_unmade": self._unmade[:]})


@final
class AnswersAlone(Answers):
    """A second belief, which has learned answers and no imputed values.

    Args:
        engine: the engine of the policy.
        belief: an empty belief.
        noise: the units of its targets, and the noise of answers with a standard deviation of their own.
        sides: sides of the domain, `(c + d,)`, the units of distances.
    """

    def __init__(self, engine: Engine[Any], belief: Belief[Any], noise: AnswerNoise, sides: Array) -> None:
        self._engine, self._belief, self._noise = engine, belief, noise
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._answers: dict[int, tuple[Trial, float]] = {}
        self._points: dict[bytes, Trial] = {}  # the earliest answered trial at each distinct row
        self._trials: list[Trial] = []  # these trials by number, whatever the order of the answers
        self.rows: Array = np.zeros((0, len(sides)))

    def add_arms(self, arms: Arms) -> bool:
        """Takes over more arms (see `State.add_arms`)."""
        return bool(self._belief.add_arms(arms))  # type: ignore[attr-defined]  # at points

    def update(self, answers: Mapping[int, tuple[Trial, float]]) -> None:
        """Replaces the answers by these trials with their targets."""
        belief, entry = self._belief, partial(self._noise.entry, self._engine)
        gone = [number for number in self._answers if number not in answers]
        for number in gone:
            trial, target = self._answers.pop(number)
            belief.drop(entry(trial), target)
        fresh = [answer for number, answer in answers.items() if number not in self._answers]
        for number, (trial, old) in self._answers.items():
            belief.revise(entry(trial), old, answers[number][1])
        self._answers = dict(answers)
        if fresh:
            belief.put_all([entry(trial) for trial, _ in fresh], [target for _, target in fresh])
        if gone:
            self._points, self._trials, self.rows = {}, [], self.rows[:0]
        for trial, _ in self._answers.values() if gone else fresh:
            self._add_point(trial)

    def _add_point(self, trial: Trial) -> None:
        key = row_of(trial).tobytes()
        known = self._points.get(key)
        if known is not None and known.number < trial.number:
            return
        if known is not None:
            self.rows = np.delete(self.rows, self._trials.index(known), axis=0)
            self._trials.remove(known)
        place = bisect(self._trials, trial.number, key=lambda other: other.number)
        self._points[key] = trial
        self._trials.insert(place, trial)
        self.rows = np.insert(self.rows, place, self.row(trial), axis=0)

    def row(self, trial: Trial) -> Array:
        """Returns (context, point) in units of the sides."""
        return np.asarray(row_of(trial) / self._sides)

    def means(self, which: IndexArray) -> Array:
        """Returns posterior means in reward units."""
        means = self._engine.means(self._belief, [self._trials[i] for i in which])
        return self._noise.units.back(means)

    def advance(self, round_: int) -> None:
        """Moves the belief to a round, if f drifts."""
        self._belief.advance(round_)

    def copy(self, engine: Engine[Any]) -> AnswersAlone:
        """Returns an independent copy."""
        return independent(self, ("_belief", "_answers", "_points", "_trials"), fresh={"_engine": engine})
