"""What other choices would have brought: the first one, kept, and the one that looks best now, from the start.

| symbol | name | meaning | shape |
|---|---|---|---|
| n | | answered trials that count, of the period in which the world is taken for the same | |
| m | `mean` | what a choice is believed to bring in the place of each of them | (n,) |
| s | `std` | how sure that is, a standard deviation | (n,) |

Of a policy with a posterior of the reward both come from it, under the contexts that there were; of others from the
rewards told at that very point.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....checks import Array, IndexArray
from ....errors import TrialError
from ....policy.policy import Policy
from ....record import Trial
from ....study.goal import has_channels
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

    @property
    def total(self) -> float:
        """In all."""
        return float(self.mean.sum())


def in_plays(rival: Rival | None, plays: IndexArray) -> Rival | None:
    """What it would have brought in the place of trials that were played so often, `(n,)`."""
    return None if rival is None else Rival(rival.name, rival.mean * plays, rival.std * plays)


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
        return Rival(name, np.full(len(answered), mean[0]), np.full(len(answered), std[0]))
    places, standing = _standing(study, answered, MOST_CONTEXTS)
    found = [study.predict(choice.point[None], context=answered[i].context) for i in places]
    return Rival(
        name, np.array([mean[0] for mean, _ in found])[standing], np.array([std[0] for _, std in found])[standing]
    )


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
    places, standing = _standing(study, answered, MOST_UNDER_LIMITS if limited else MOST_CONTEXTS)
    tried = Counter(trial.point.tobytes() for trial in answered).most_common(MOST_CANDIDATES)
    candidates = np.array([np.frombuffer(key) for key, _ in tried])
    means, stds = [], []
    for i in places:
        context = answered[i].context
        points = study.best(context=context).point[None] if limited else candidates
        mean, std = study.predict(points, context=context)
        at = int(mean.argmax() if study.goal == "maximize" else mean.argmin())
        means.append(mean[at])
        stds.append(std[at])
    return Rival(name, np.array(means)[standing], np.array(stds)[standing])


def _standing(study: Study, answered: Sequence[Trial], most: int) -> tuple[list[int], IndexArray]:
    """Trials whose contexts stand for the others, and which of them stands for each."""
    per_context = float(len(answered)) ** 2 * MOST_CANDIDATES
    affordable = max(4, int(WORK / max(per_context, 1.0))) if dear(study) else most
    places = spread_evenly(len(answered), min(most, affordable))
    borders = (places[1:] + places[:-1]) / 2.0
    return places.tolist(), np.searchsorted(borders, np.arange(len(answered))).astype(np.intp)


def _averaged(study: Study, choice: Trial, answered: Sequence[Trial], name: str) -> Rival | None:
    """By the rewards told at this very point."""
    point = choice.point.tobytes()
    there = [trial.reward for trial in answered if trial.point.tobytes() == point]
    told = np.array(there, dtype=np.float64)
    if not len(told):
        return None
    error = noise_of(study, answered) / math.sqrt(len(told))
    return Rival(name, np.full(len(answered), told.mean()), np.full(len(answered), error))
