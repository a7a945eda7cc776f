"""Estimated rewards of one choice in the place of every trial, such as the first choice or the best choice of now.

| symbol | name | meaning | shape |
|---|---|---|---|
| n | | answered trials since the last change of the reward function | |
| m | `mean` | expected reward of the choice in the place of each trial | (n,) |
| s | `std` | standard deviation of that expectation | (n,) |
| e | `sampled` | variance of the error of taking the context of another trial for this one's | (n,) |

If the policy has a posterior of the reward, the estimates come from this posterior, under the contexts of the trials.
Otherwise they come from the rewards told at the very point of the choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from ...._utils.checks import Array, IndexArray
from ....domains.domain import Arms
from ....errors import InvalidInput, TrialError
from ....plots.source import function_of
from ....plots.ticks import spread_evenly
from ....policy.engines import Units
from ....policy.policy import Policy
from ....policy.state import State
from ....storage.record import Trial
from ....study.best import has_budget, place_of, uses_at, within_limits
from ....study.direction import has_channels, signs_of, told_envelope
from ....study.front import best_shares
from ....study.study import Study

MOST_CONTEXTS = 48  # contexts with predictions of their own, evenly spread in time
MOST_UNDER_LIMITS = 16  # contexts under constraints, where `study.best` searches all trials for each context
MOST_CANDIDATES = 24  # choices of the highest posterior medians under a context, among which the best one is chosen
FEWEST_REPEATS = 10  # repeated rewards at the same points that suffice to estimate the noise
FEWEST_FITTED = 20  # rewards of a fit that tells their noise from f: of 12 at a rate of 1/4, it often finds no noise
WORK = 3e8  # multiplications for all predictions


def is_expensive(study: Study) -> bool:
    """Returns True if the cost of a prediction grows with the number of rewards, which it does not on arms."""
    policy = study.policy
    contexts = getattr(policy, "context", None)
    return not (isinstance(policy.domain, Arms) and (contexts is None or isinstance(contexts, Arms)))


class Alternative(NamedTuple):
    """Expected rewards of a choice in the place of each answered trial (see the table of the module)."""

    name: str
    mean: Array
    std: Array
    sampled: Array

    @property
    def total(self) -> float:
        """Sum of the expected rewards."""
        return float(self.mean.sum())

    @property
    def error(self) -> float:
        """Standard deviation of the total. Deviations of the posterior add up, because they are of one function."""
        return math.hypot(float(self.std.sum()), math.sqrt(float(self.sampled.sum())))


def in_plays(choice: Alternative | None, plays: IndexArray, doubt: float) -> Alternative | None:
    """Returns the choice in the place of trials with these numbers of plays, `(n,)`. Deviations count `doubt` times."""
    if choice is None:
        return None
    return Alternative(choice.name, choice.mean * plays, doubt * choice.std * plays, choice.sampled * plays**2)


def has_posterior(study: Study) -> bool:
    """Returns True if the policy has a posterior of the reward itself."""
    return isinstance(study.policy, Policy) and (not study.policy.constraint_count or has_channels(study.policy))


def noise_of(study: Study, answered: Sequence[Trial]) -> float:
    """Returns the standard deviation of rewards about the mean at their point.

    If few points were repeated, or if rewards are means of plays, this is the noise of the policy, or the fitted one.
    Of few rewards it is at least their standard deviation. For a policy without a noise, and for models of arms, which
    learn theirs by themselves, this is the standard deviation of all rewards.
    """
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    repeats, fitted = _noise_of_repeats(answered, rewards), fitted_noise(study)
    if repeats is not None:
        return repeats
    if fitted is not None:
        return max(math.sqrt(fitted[0]) * fitted[1].unit, _noise_of_few(study, rewards))
    if isinstance(study.policy, Policy) and not _by_models(study):
        return study.policy.noise
    return float(rewards.std()) if len(rewards) else 0.0


def doubt_of(study: Study, answered: Sequence[Trial]) -> float:
    """Returns the factor by which deviations of the posterior count: the noise of repeats over the fitted one.

    It is at least 1, and 1 where nothing is fitted. A fit to few rewards takes part of their noise for f. Its noise is
    then too small, and so are its deviations. Repeats of a point tell the noise without the model. Few rewards without
    repeats may be noise alone.
    """
    fitted = fitted_noise(study)
    if fitted is None or any(trial.std is not None for trial in answered):
        return 1.0
    variance, units = fitted
    sign = 1.0 if study.goals[0] == "maximize" else -1.0
    rewards = np.array(units.scaled_all([sign * (trial.reward or 0.0) for trial in answered]), dtype=np.float64)
    repeats = _noise_of_repeats(answered, rewards)
    return max(1.0, (_noise_of_few(study, rewards) if repeats is None else repeats) / math.sqrt(variance))


def fitted_noise(study: Study) -> tuple[float, Units] | None:
    """Returns the fitted variance of the noise in units of the posterior, and these units, or None without a fit."""
    policy = study.policy
    if not isinstance(policy, Policy) or policy.fitting is None:
        return None
    posterior = study.replica.query(lambda state: cast(State, state).settled().reward.posterior)
    return None if posterior.known is not None or posterior.models is not None else (posterior.ridge, posterior.units)


def _by_models(study: Study) -> bool:
    """Returns whether models of arms learn the rewards and their noise."""
    return bool(study.replica.query(lambda state: cast(State, state).reward.posterior.models is not None))


def _noise_of_repeats(answered: Sequence[Trial], rewards: Array) -> float | None:
    """Returns the standard deviation of rewards `(n,)` about the means of their points, or None without repeats."""
    known: dict[tuple[bytes, bytes], int] = {}
    group = np.array([known.setdefault(place_of(trial), len(known)) for trial in answered], dtype=np.intp)
    counts = np.bincount(group)
    freedom = len(rewards) - len(counts)
    if freedom >= FEWEST_REPEATS and all(trial.plays is None for trial in answered):
        means = np.bincount(group, rewards) / counts
        return math.sqrt(float(((rewards - means[group]) ** 2).sum()) / freedom)
    return None


def _noise_of_few(study: Study, rewards: Array) -> float:
    """Returns the standard deviation of rewards `(n,)` too few for a fit to tell noise from f, or 0."""
    told = getattr(getattr(study.policy, "fitting", None), "noise", None) == "given"
    return 0.0 if told or not 1 < len(rewards) < FEWEST_FITTED else float(rewards.std(ddof=1))


def if_kept(study: Study, choice: Trial, answered: Sequence[Trial], name: str) -> Alternative | None:
    """Returns the estimates for one choice, or None if nothing is known of it.

    Args:
        study: the study of the trials.
        choice: a trial at the point of the choice.
        answered: answered trials that count.
        name: name of the choice.
    """
    if not has_posterior(study):
        return _from_rewards(study, choice, answered, name)
    if choice.context is None:
        mean, std = _predict(study, choice.point[None])
        return _everywhere(name, float(mean[0]), float(std[0]), len(answered))
    representatives = _representatives(study, answered, MOST_CONTEXTS)
    found = [_predict(study, choice.point[None], answered[i].context) for i in representatives.places]
    return representatives.alternative(name, [float(mean[0]) for mean, _ in found], [float(std[0]) for _, std in found])


def _predict(study: Study, points: Array, context: Array | None = None) -> tuple[Array, Array]:
    """Returns mean and deviation of f at points `(n, d)` by the answers alone, `(n,)` each, in the units told."""
    seen = study.inputs.context(context)
    found = study.replica.query(lambda state: cast(State, state).settled().answered().envelope(points, seen))
    told = told_envelope(found, study.goals[0])
    return told.mean, told.std


def _everywhere(name: str, mean: float, std: float, count: int) -> Alternative:
    """Returns a choice with the same estimate in the place of every trial."""
    return Alternative(name, np.full(count, mean), np.full(count, std), np.zeros(count))


def best_now(study: Study, answered: Sequence[Trial], name: str) -> Alternative | None:
    """Returns the choice that now looks best, with contexts the best one under each context, or None if none does."""
    try:
        if has_budget(study.policy):
            return _best_mix(study, answered, name)
        if study.policy.context is None:
            return if_kept(study, study.best(), answered, name)
        return _best_by_context(study, answered, name)
    except (InvalidInput, TrialError):  # No units yet, no trial within the constraints, or no reward since the restart.
        return None


def _best_mix(study: Study, answered: Sequence[Trial], name: str) -> Alternative:
    """Returns the mix of the points tried that earns most while the budgets hold on average over all contexts."""
    representatives = _representatives(study, answered, MOST_UNDER_LIMITS)
    contexts = [answered[i].context for i in representatives.places]
    tried = np.unique(np.array([trial.point for trial in within_limits(study.policy, answered)]), axis=0)
    means, stds = np.stack([_predict(study, tried, context) for context in contexts], axis=1)
    uses = study.replica.query(lambda state: np.stack([uses_at(state, tried, each) for each in contexts], axis=1))
    weights = np.bincount(representatives.of_each) / len(answered)
    shares = best_shares(signs_of(study.goals)[0] * means, uses, weights)
    return representatives.alternative(name, *((shares * of).sum(axis=1).tolist() for of in (means, stds)))


def _best_by_context(study: Study, answered: Sequence[Trial], name: str) -> Alternative | None:
    limited = bool(study.policy.constraint_count)
    representatives = _representatives(study, answered, MOST_UNDER_LIMITS if limited else MOST_CONTEXTS)
    function, sign = function_of(study), 1.0 if study.goals[0] == "maximize" else -1.0
    tried = np.unique(np.array([trial.point for trial in answered]), axis=0)
    means, stds = [], []
    for i in representatives.places:
        context = answered[i].context
        if limited:
            points = study.best(context=context).point[None]
        else:  # Medians are quick, and their order is that of the means, or nearly so if rewards are warped.
            medians = sign * function.median(tried, np.repeat(np.asarray(context)[None], len(tried), axis=0))
            points = tried[np.argsort(-medians, kind="stable")[:MOST_CANDIDATES]]
        mean, std = _predict(study, points, context)
        at = int((sign * mean).argmax())
        means.append(float(mean[at]))
        stds.append(float(std[at]))
    return representatives.alternative(name, means, stds)


class _Representatives(NamedTuple):
    """Trials whose contexts represent those of all answered trials.

    Attributes:
        places: indices of the representatives among the answered trials.
        of_each: index of the representative of each answered trial, `(n,)`.
        exact: True if each representative has the very contexts of its trials.
    """

    places: list[int]
    of_each: IndexArray
    exact: bool

    def alternative(self, name: str, means: list[float], stds: list[float]) -> Alternative:
        """Returns the estimates for all trials from those for the representatives.

        A representative of w trials, itself among them, counts w times. If rewards differ between contexts with
        variance s^2, the sum of these w trials has an error with variance w (w - 1) s^2.
        """
        others = np.bincount(self.of_each)[self.of_each] - np.ones(len(self.of_each))
        apart = 0.0 if self.exact else float(np.var(means, ddof=1))
        return Alternative(name, np.array(means)[self.of_each], np.array(stds)[self.of_each], apart * others)


def _representatives(study: Study, answered: Sequence[Trial], most: int) -> _Representatives:
    """Returns one trial for each context, or trials evenly spread in time if there are too many contexts."""
    per_context = float(len(answered)) ** 2 * MOST_CANDIDATES
    affordable = max(4, int(WORK / max(per_context, 1.0))) if is_expensive(study) else most
    most, first = min(most, affordable), dict[bytes, int]()
    keys = [b"" if trial.context is None else trial.context.tobytes() for trial in answered]
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    if len(first) <= most:
        order = {key: place for place, key in enumerate(first)}
        return _Representatives(list(first.values()), np.array([order[key] for key in keys], dtype=np.intp), exact=True)
    places = spread_evenly(len(answered), most)
    borders = (places[1:] + places[:-1]) / 2.0
    of_each = np.searchsorted(borders, np.arange(len(answered))).astype(np.intp)
    return _Representatives(places.tolist(), of_each, exact=False)


def _from_rewards(study: Study, choice: Trial, answered: Sequence[Trial], name: str) -> Alternative | None:
    """Returns the mean of the rewards told at the point of the choice."""
    point = choice.point.tobytes()
    there = [trial.reward for trial in answered if trial.point.tobytes() == point]
    told = np.array(there, dtype=np.float64)
    if not len(told):
        return None
    error = noise_of(study, answered) / math.sqrt(len(told))
    return _everywhere(name, float(told.mean()), error, len(answered))
