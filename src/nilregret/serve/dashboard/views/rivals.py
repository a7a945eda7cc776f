"""What other choices would have brought: the first one, kept, and the one that looks best now, from the start.

| symbol | name | meaning | shape |
|---|---|---|---|
| n | | answered trials that count, of the period in which the world is taken for the same | |
| m | `mean` | what a choice is believed to bring in the place of each of them | (n,) |
| s | `std` | how sure that is, a standard deviation | (n,) |
| e | `sampled` | variance of what it is off because the context of another trial stands for this one's | (n,) |

Of a policy with a posterior of the reward both come from it, under the contexts that there were; of others from the
rewards told at that very point.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...._utils.checks import Array, IndexArray
from ...._utils.errors import TrialError
from ....policy.policy import Policy
from ....storage.record import Trial
from ....study.direction import has_channels
from ....study.study import Study
from .maps import dear
from .pictures import spread_evenly

MOST_CONTEXTS = 48  # of trials evenly spread in time, which stand for those between them
MOST_UNDER_LIMITS = 16  # where the best choice of each is looked for among all trials
MOST_CANDIDATES = 24  # choices tried most often, of which the best under each context is looked for
FEWEST_REPEATS = 10  # answers beyond the first at their points from which the noise is worked out
WORK = 3e8  # multiplications that a posterior at contexts may take


class Rival(NamedTuple):
    """What a choice would have brought in the place of each answered trial; see the module's table."""

    name: str
    mean: Array
    std: Array
    sampled: Array

    @property
    def total(self) -> float:
        """In all."""
        return float(self.mean.sum())

    @property
    def error(self) -> float:
        """The standard deviation of that: the posterior's are of one function, and add up."""
        return math.hypot(float(self.std.sum()), math.sqrt(float(self.sampled.sum())))


def in_plays(rival: Rival | None, plays: IndexArray) -> Rival | None:
    """What it would have brought in the place of trials that were played so often, `(n,)`."""
    if rival is None:
        return None
    return Rival(rival.name, rival.mean * plays, rival.std * plays, rival.sampled * plays**2)


def has_beliefs(study: Study) -> bool:
    """Whether what is learned is the reward itself, so that a posterior says what other choices would have brought."""
    return isinstance(study.policy, Policy) and (not study.policy.constraint_count or has_channels(study.policy))


def counted_from(study: Study, asked: int) -> int:
    """The first trial of the period in which the world is taken for the same as now."""
    since = study.restarts[-1] if study.restarts else 0
    policy = study.policy
    return max(since, policy.memory.first_counted(since, asked)) if isinstance(policy, Policy) else since


def noise_of(study: Study, answered: Sequence[Trial]) -> float:
    """How far rewards scatter about the mean of their own point, a standard deviation.

    Where too few points were tried twice, or rewards are means of several plays, what the policy takes for granted; of
    one without that, all there is.
    """
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    known: dict[tuple[bytes, bytes], int] = {}
    group = np.array([known.setdefault(_place(trial), len(known)) for trial in answered], dtype=np.intp)
    counts = np.bincount(group)
    freedom = len(rewards) - len(counts)
    if freedom >= FEWEST_REPEATS and all(trial.plays is None for trial in answered):
        means = np.bincount(group, rewards) / counts
        return float(math.sqrt(float(((rewards - means[group]) ** 2).sum()) / freedom))
    if isinstance(study.policy, Policy):
        return study.policy.noise
    return float(rewards.std()) if len(rewards) else 0.0


def _place(trial: Trial) -> tuple[bytes, bytes]:
    return trial.point.tobytes(), b"" if trial.context is None else trial.context.tobytes()


def kept(study: Study, choice: Trial, answered: Sequence[Trial], name: str) -> Rival | None:
    """One choice in the place of every trial; None where nothing is known of it.

    Args:
        study: of the trials.
        choice: a trial at the point.
        answered: trials of the period.
        name: of the choice.
    """
    if not has_beliefs(study):
        return _averaged(study, choice, answered, name)
    if choice.context is None:
        mean, std = study.predict(choice.point[None])
        return _everywhere(name, float(mean[0]), float(std[0]), len(answered))
    stand_ins = _stand_ins(study, answered, MOST_CONTEXTS)
    found = [study.predict(choice.point[None], context=answered[i].context) for i in stand_ins.places]
    return stand_ins.rival(name, [float(mean[0]) for mean, _ in found], [float(std[0]) for _, std in found])


def _everywhere(name: str, mean: float, std: float, count: int) -> Rival:
    """A choice that brings the same in the place of every trial."""
    return Rival(name, np.full(count, mean), np.full(count, std), np.zeros(count))


def best_now(study: Study, answered: Sequence[Trial], name: str) -> Rival | None:
    """What looks best now, from the start; with contexts the best of the choices tried under each; None for none."""
    if study.policy.context is None:
        try:
            return kept(study, study.best(), answered, name)
        except TrialError:  # nothing satisfies the constraints, or nothing is answered since the restart
            return None
    try:
        return _best_by_context(study, answered, name)
    except TrialError:
        return None


def _best_by_context(study: Study, answered: Sequence[Trial], name: str) -> Rival | None:
    limited = bool(study.policy.constraint_count)
    stand_ins = _stand_ins(study, answered, MOST_UNDER_LIMITS if limited else MOST_CONTEXTS)
    tried = Counter(trial.point.tobytes() for trial in answered).most_common(MOST_CANDIDATES)
    candidates = np.array([np.frombuffer(key) for key, _ in tried])
    means, stds = [], []
    for i in stand_ins.places:
        context = answered[i].context
        points = study.best(context=context).point[None] if limited else candidates
        mean, std = study.predict(points, context=context)
        at = int(mean.argmax() if study.goal == "maximize" else mean.argmin())
        means.append(float(mean[at]))
        stds.append(float(std[at]))
    return stand_ins.rival(name, means, stds)


class _StandIns(NamedTuple):
    """Trials whose contexts stand for those of others.

    Attributes:
        places: of these among the answered ones.
        standing: which of them stands for each of the answered ones, `(n,)`.
        exact: whether each stands for its own context alone.
    """

    places: list[int]
    standing: IndexArray
    exact: bool

    def rival(self, name: str, means: list[float], stds: list[float]) -> Rival:
        """What a choice would have brought, from what it would have in the places of those.

        One that stands for w trials, itself among them, says w times what it is for itself, and the others differ from
        context to context by s^2: the sum is off by w (w - 1) s^2.
        """
        others = np.bincount(self.standing)[self.standing] - np.ones(len(self.standing))
        apart = 0.0 if self.exact else float(np.var(means, ddof=1))
        return Rival(name, np.array(means)[self.standing], np.array(stds)[self.standing], apart * others)


def _stand_ins(study: Study, answered: Sequence[Trial], most: int) -> _StandIns:
    """One for each context; where there are more than are looked at, trials evenly spread in time."""
    per_context = float(len(answered)) ** 2 * MOST_CANDIDATES
    affordable = max(4, int(WORK / max(per_context, 1.0))) if dear(study) else most
    most, first = min(most, affordable), dict[bytes, int]()
    keys = [b"" if trial.context is None else trial.context.tobytes() for trial in answered]
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    if len(first) <= most:
        order = {key: place for place, key in enumerate(first)}
        return _StandIns(list(first.values()), np.array([order[key] for key in keys], dtype=np.intp), exact=True)
    places = spread_evenly(len(answered), most)
    borders = (places[1:] + places[:-1]) / 2.0
    standing = np.searchsorted(borders, np.arange(len(answered))).astype(np.intp)
    return _StandIns(places.tolist(), standing, exact=False)


def _averaged(study: Study, choice: Trial, answered: Sequence[Trial], name: str) -> Rival | None:
    """By the rewards told at this very point."""
    point = choice.point.tobytes()
    there = [trial.reward for trial in answered if trial.point.tobytes() == point]
    told = np.array(there, dtype=np.float64)
    if not len(told):
        return None
    error = noise_of(study, answered) / math.sqrt(len(told))
    return _everywhere(name, float(told.mean()), error, len(answered))
