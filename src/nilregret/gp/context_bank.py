"""Linear models of the rewards of arms under contexts, averaged by their predictions.

| symbol | name | meaning | shape |
|---|---|---|---|
| L_j | `_log_weights` | log weight of model j: its log density of each reward before it learned the reward | m |

`linear_model` has the models, each with its noise. Rewards are standardised by the first of them, and contexts too. As
long as these are few, all models are made afresh from them when their number reaches the next of `ANEW`. The models of
full size are then made one at a time, the likeliest first, each after `APART` observations more. Until then they have
no weight. So no observation costs much. The posterior is a function of the observations in their order, and the units
of rewards and columns make no difference.

As long as all rewards are equal there is no unit, and no noise to judge a prediction by. If two or more first rewards
are equal, their densities do not count in the log weights. The same holds for the reward that ends them.

An observation that is revised or forgotten later on takes back the density that it has by all others. So log weights
then depend on what was forgotten, too.

An observation of weight w is its likelihood to the power w: a row sqrt(w) z with the target sqrt(w) y, and w / 2 of
shape.

Predictions have the mean and the variance of the mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Rng
from ..domains.domain import Arms
from ..kernels import Kernel
from ..kernels.factorization import covariance_root, draws_of_root
from .arm_blocks import ArmBlocks
from .linear_model import Candidate, LinearModel, Standard, Waves, paired
from .protocol import Posterior
from .screening import Moments

ANEW = (1, 2, 3, 4, 6, 8, 12, 16, 24, 34, 50)  # numbers of observations at which units and features are learned
EARLY = ANEW[-1]
APART = 2  # observations between two models of full size
ROUNDING = 1e-9  # weight of an observation that is none but for rounding
LEAST = 1e-3  # weight below which a model has no say in predictions
NUMBERS = 7e5  # of the covariances of one model, which bound the number of waves
FEWEST_WAVES, MOST_WAVES = 16, 128
ROOM = 4  # times as many arms have room reserved, which takes address space and no memory


def waves_of(columns: int, count: int) -> int:
    """Returns the number of waves, each a cosine and a sine, of a model with so many columns and blocks."""
    return int(np.clip((math.sqrt(NUMBERS / count) - 1 - columns) / 2.0, FEWEST_WAVES, MOST_WAVES))


def without_unit(targets: Array) -> int:
    """Returns how many of the first targets `(n,)` came before there was a unit, with the one that made it known."""
    apart = np.flatnonzero(targets != targets[0])
    equal = int(apart[0]) if len(apart) else len(targets)
    return equal + 1 if equal > 1 else 0


def sized_by(arms: Arms) -> int:
    """Returns the number of arms that sets the number of waves: the first arms, doubled where more than twice came."""
    count = len(arms.founding)
    while len(arms) > 2 * count:
        count *= 2
    return count


def numbers_held(candidates: tuple[Candidate, ...], arms: Arms, columns: int) -> int:
    """Returns how many numbers the covariances of all models hold.

    Args:
        candidates: the models.
        arms: the arms.
        columns: number of columns of a context.
    """
    held = 0
    for one in candidates:
        own, count, by = (columns + arms.dimension, 1, 1) if one.shared else (columns, len(arms), sized_by(arms))
        held += count * (1 + own + (2 * waves_of(own, by) if one.waves else 0)) ** 2
    return held


class _Seen(NamedTuple):
    """An observation."""

    context: Array
    arm: int
    target: float
    weight: float = 1.0


@final
class ContextPosterior(Posterior):
    """The average of linear models of arms under contexts, with most methods of `AtPoints`.

    Args:
        kernel: prior covariance of the policy, on which nothing here depends.
        arms: the arms.
        columns: number of columns of a context.
        candidates: the models, of which the first leads.
        regularization: lambda of the policy, on which nothing here depends.
        heights: of the columns of levels that may come later (see `Standard`), `(columns,)`, or None.
    """

    OWNED = ("_early", "_late", "_log_weights")
    OWNED_EACH = ("_models",)
    LEARNED = (
        "count", "_early", "_is_early", "_late", "_since", "_center", "_unit", "_log_weights", "_models",
        "_of_contexts",
    )  # fmt: skip
    PARTS: ClassVar[dict[str, tuple[type, tuple[str, ...]]]] = {
        "model": (LinearModel, ()), "blocks": (ArmBlocks, ("_room", "_rough")), "waves": (Waves, ()),
        "standard": (Standard, ()), "seen": (_Seen, ()),
    }  # fmt: skip

    def __init__(
        self, kernel: Kernel, arms: Arms, columns: int, candidates: tuple[Candidate, ...], *, regularization: float,
        heights: Array | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.regularization = kernel, regularization
        self.count: float = 0  # sum of the weights of the observations
        self.candidates = candidates
        self._arms, self._columns, self._heights = arms, columns, heights
        self._early: list[_Seen] = []  # until models are of full size
        self._is_early = True
        self._late: list[int] = []  # candidates whose models are yet to be made in full size, the next one last
        self._since = 0  # observations since the first of these
        self._center, self._unit = 0.0, 0.0  # of targets. The unit is 0 as long as all are equal
        self._log_weights = np.full(len(candidates), -np.inf)  # of candidates with models
        self._models: dict[int, LinearModel] = {}  # by place among the candidates
        self._of_contexts: Standard | None = None
        self._sized_by, self._founding = sized_by(arms), len(arms.founding)
        self._of_arms = Standard(arms.founding.points)
        self._standard_arms = self._of_arms.to(arms.points)

    # -- observations --------------------------------------------------------------------------------------------

    def append(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Adds one observation of a row (context, point), or a share of one, beside earlier shares of it."""
        seen = _Seen(*self._split(point), target, weight)
        self.count += weight
        kept = seen
        if weight < 1.0 and (place := self._place(seen)) is not None and self._early[place].weight < 1.0:
            total = self._early[place].weight + weight
            self._early[place] = seen._replace(weight=1.0 if total > 1.0 - ROUNDING else total)
            if total <= 1.0 + ROUNDING:
                self._learn(seen)
                return
            kept = seen._replace(weight=total - 1.0)  # Shares of several alike observations fill one another up.
        if self._is_early:
            self._early.append(kept)
            if len(self._early) in ANEW:
                self._make()
                return
        self._learn(seen)
        if self._late:
            self._early.append(kept)
            self._since += 1
            if self._since % APART == 0:
                self._make_next()

    def extend(self, points: Any, targets: Any) -> None:
        """Adds observations of rows `(m, d)` with targets `(m,)`, in their order."""
        self.append_all(points, np.asarray(targets, dtype=float).tolist())

    def revise(self, point: Any, old: float, new: float) -> None:
        """Replaces the target of one observation."""
        self.revise_all([point], [old], [new])

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several observations."""
        for point, before, after in zip(points, old, new, strict=True):
            seen = _Seen(*self._split(point), before)
            if (place := self._place(seen)) is not None and self._early[place].weight == 1.0:
                self._early[place] = seen._replace(target=after)
            if not self._is_early:
                self._unlearn(seen)
                self._learn(seen._replace(target=after))
        if self._is_early:
            self._make_again()

    def forget(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Removes one observation, or a share of it."""
        seen = _Seen(*self._split(point), target, weight)
        self.count -= weight
        self._take(seen)
        if self._is_early:
            self._make_again()
        else:
            self._unlearn(seen)

    def _take(self, seen: _Seen) -> None:
        """Takes the weight of an observation, or of a share of one, from the early observations like it."""
        due = seen.weight
        while due > ROUNDING and (place := self._place(seen)) is not None:
            left = self._early[place].weight - due
            self._early[place : place + 1] = [seen._replace(weight=left)] if left > ROUNDING else []
            due = -left

    def _place(self, seen: _Seen) -> int | None:
        """Returns the place of an early observation like this one, of a share first if this is one, or None."""
        found = None
        for i, (context, arm, target, weight) in enumerate(self._early):
            if arm == seen.arm and target == seen.target and (context == seen.context).all():
                if (weight == 1.0) is (seen.weight == 1.0):
                    return i
                found = i if found is None else found
        return found

    def _split(self, row: Any) -> tuple[Array, int]:
        """Returns the context and the arm of a row."""
        row = np.asarray(row, dtype=float)
        return row[: self._columns], int(self._arms.index(row[None, self._columns :])[0])

    def learned(self) -> dict[str, Any]:
        """Returns all that observations have changed, by the names of attributes. The values are those in use."""
        return {name: vars(self)[name] for name in self.LEARNED}

    def take(self, learned: dict[str, Any]) -> None:
        """Takes over what a posterior of the same prior has learned, to the bit."""
        vars(self).update({name: learned[name] for name in self.LEARNED})
        for model in self._models.values():
            model.blocks.begin_again()

    def add_arms(self, arms: Arms) -> bool:
        """Takes over more arms, of which nothing is known, to the bit as if they had been there from the start.

        Returns False, and changes nothing, if waves must be fewer for so many arms. The posterior is then made anew.
        """
        by = sized_by(arms)
        if waves_of(self._columns, by) != waves_of(self._columns, self._sized_by):
            return False
        more, self._arms, self._sized_by = len(arms) - len(self._arms), arms, by
        self._standard_arms = self._of_arms.to(arms.points)
        for j, model in self._models.items():
            if not self.candidates[j].shared:
                model.blocks.grow(more)
        return True

    # -- models --------------------------------------------------------------------------------------------------

    def _make_again(self) -> None:
        """Makes all models as if the early observations had come as they are now."""
        early, first = self._early, max(each for each in (0, *ANEW) if each <= len(self._early))
        self._early = early[:first]
        self._make()
        self.count = sum(seen.weight for seen in self._early)
        for seen in early[first:]:
            self.count += seen.weight
            self._early.append(seen)
            self._learn(seen)

    def _make(self) -> None:
        """Learns units and features from the early observations, and makes all models afresh."""
        early, likeliest = self._early, np.argsort(self._log_weights, kind="stable").tolist()
        self._is_early = len(early) < EARLY
        self._log_weights = np.full(len(self.candidates), -np.inf)
        self._models = {}
        if not early:
            return
        contexts, _, targets, weights = (np.array(each) for each in zip(*early, strict=True))
        if not np.ptp(targets):
            self._center, self._unit = targets.item(0), 0.0  # An average of equal numbers may differ in the last digit.
        elif (weights != 1.0).any():
            self._center = float(np.average(targets, weights=weights))
            self._unit = math.sqrt(np.average((targets - self._center) ** 2, weights=weights))
        else:
            self._center, self._unit = float(targets.mean()), float(targets.std())
        self._of_contexts = Standard(contexts, self._heights)
        self._late = likeliest
        self._make_next()
        while self._is_early and self._late:
            self._make_next()

    def _features_of(self, j: int) -> Waves:
        """Returns the features of a candidate, of the size that the number of observations calls for."""
        one, kinds = self.candidates[j], [(each.shared, each.waves and each.length) for each in self.candidates]
        for i, model in self._models.items():
            if kinds[i] == kinds[j]:
                return model.features
        standard = self._standardised(np.array([seen.context for seen in self._early[:EARLY]]))
        rows = paired(standard, self._standard_arms[: self._founding]) if one.shared else standard
        pairs = waves_of(rows.shape[1], 1 if one.shared else self._sized_by) if one.waves else 0
        pairs = min(pairs, FEWEST_WAVES) if self._is_early else pairs
        return Waves(rows, pairs, one.length, key=kinds.index(kinds[j]))

    def _make_next(self) -> None:
        """Makes the next model from the early observations."""
        j = self._late.pop()
        one, early = self.candidates[j], self._early
        contexts, arms, targets, weights = (np.array(each) for each in zip(*early, strict=True))
        scaled = self._scaled(targets)
        features = self._features_of(j)
        Z = features(self._rows(one, contexts, arms))
        count, first, most = (1, 1, 1) if one.shared else (len(self._arms), self._founding, ROOM * self._sized_by)
        model = LinearModel(one, count, features, founding=first, most=most)
        densities = model.learn_first(np.zeros_like(arms) if one.shared else arms, Z, scaled, weights)
        self._log_weights[j] = float(densities[without_unit(scaled) :].sum()) - one.behind
        self._models[j] = model
        if not self._late and not self._is_early:
            self._early = []

    def _scaled(self, targets: Any) -> Any:
        """Returns targets in standard units."""
        return (targets - self._center) / (self._unit or 1.0)

    def _learn(self, seen: _Seen) -> None:
        known = self._unit > 0.0
        if not known and seen.target != self._center:
            # All targets were equal, so nothing that was learned of means depends on the unit.
            others = self.count - seen.weight
            self._unit = abs(seen.target - self._center) * math.sqrt(seen.weight * others) / self.count
        self._judge(seen, 1, known=known)

    def _unlearn(self, seen: _Seen) -> None:
        self._judge(seen, -1, known=self._unit > 0.0)

    def _judge(self, seen: _Seen, sign: int, *, known: bool) -> None:
        """Adds an observation to all models, or takes it away. Its density counts if the unit was known before."""
        context, arm, target, weight = seen
        scaled = self._scaled(target)
        found: dict[int, Array] = {}
        standard = self._standardised(context)
        for j, model in self._models.items():
            one, features = self.candidates[j], model.features
            if id(features) not in found:
                row = np.concatenate([standard, self._standard_arms[arm]]) if one.shared else standard
                found[id(features)] = features(row)
            change = model.learn if sign > 0 else model.unlearn
            density = change(0 if one.shared else arm, found[id(features)], scaled, weight)
            if known:
                self._log_weights[j] += sign * density

    def _standardised(self, contexts: Array) -> Array:
        return contexts if self._of_contexts is None else self._of_contexts.to(contexts)

    @property
    def weights(self) -> Array:
        """Weight of each candidate, `(m,)`, adding up to 1."""
        weights = np.exp(self._log_weights - self._log_weights.max())
        return np.asarray(weights / weights.sum())

    def _believed(self) -> list[tuple[float, Candidate, LinearModel]]:
        weights = self.weights
        weights = np.where(weights >= LEAST, weights, 0.0)
        weights /= weights.sum()
        return [(float(weights[j]), self.candidates[j], model) for j, model in self._models.items() if weights[j]]

    # -- predictions ---------------------------------------------------------------------------------------------

    def predict(self, points: Any = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f at rows `(n, d)`, each `(n,)`, as fresh arrays."""
        rows = np.asarray(points, dtype=float)
        unit = self._unit or 1.0
        if not self._models:
            return np.full(len(rows), self._center), np.full(len(rows), unit)
        contexts, arms = rows[:, : self._columns], self._arms_of(rows)
        alone = bool((contexts == contexts[:1]).all())
        mean = second = np.zeros(len(rows))
        for weight, one, model in self._believed():
            if alone and not one.shared:
                mu, variance = (each[arms] for each in model.predict(model.features(self._standardised(contexts[0]))))
            else:
                Z = model.features(self._rows(one, contexts, arms))
                mu, variance = model.predict_rows(np.zeros_like(arms) if one.shared else arms, Z)
            mean, second = mean + weight * mu, second + weight * (mu**2 + variance)
        std = np.sqrt(np.maximum(second - mean**2, 0.0))
        return mean * unit + self._center, std * unit

    def leading(self, rows: Array, factors: Array) -> Array | None:
        """Returns mean + factor * std at rows `(n, d)` of one context: exact where one may be the largest, `(n,)`.

        Elsewhere it is an approximation. None if `predict` is as quick.

        Args:
            rows: (context, arm).
            factors: a multiple of the standard deviation for each row, `(n,)`.
        """
        if not self._models:
            return None
        believed = [(weight, model) for weight, _, model in self._believed()]
        if any(one.shared for _, one, _ in self._believed()) or not any(model.blocks.large for _, model in believed):
            return None
        context, arms = self._standardised(rows[0, : self._columns]), self._arms_of(rows)
        features = [model.features(context) for _, model in believed]
        rough = [model.predict_roughly(z) for (_, model), z in zip(believed, features, strict=True)]
        weights = [weight for weight, _ in believed]
        scores, places = _mixed(weights, rough, arms).scores(factors)
        if places is None:
            return None
        exact = [model.predict(z, arms[places]) for (_, model), z in zip(believed, features, strict=True)]
        best = _mixed(weights, [Moments(mean, variance, np.zeros(len(places))) for mean, variance in exact])
        scores[places] = best.mean + factors[places] * np.sqrt(np.maximum(best.variance, 0.0))
        return np.asarray(scores * (self._unit or 1.0) + self._center)

    def _arms_of(self, rows: Array) -> IndexArray:
        points = rows[:, self._columns :]
        if len(points) == len(self._arms) and np.array_equal(points, self._arms.points):
            return np.arange(len(points))
        return self._arms.index(points)

    def _rows(self, one: Candidate, contexts: Array, arms: IndexArray) -> Array:
        standard = self._standardised(contexts)
        return np.hstack([standard, self._standard_arms[arms]]) if one.shared else standard

    def mean(self, points: Any) -> Array:
        """Returns the mean, `(n,)`."""
        return self.predict(points)[0]

    def means_of(self, points: Any) -> Array:
        """Returns the mean at points that mostly were observed, `(n,)`."""
        return self.mean(points)

    def covariance(self, points: Any) -> Array:
        """Returns the joint covariance of f, `(n, n)`."""
        rows, unit = np.asarray(points, dtype=float), self._unit or 1.0
        if not self._models:
            return np.eye(len(rows)) * unit**2
        contexts, arms = rows[:, : self._columns], self._arms_of(rows)
        means, found = [], np.zeros((len(rows), len(rows)))
        believed = self._believed()
        for weight, one, model in believed:
            Z, blocks = model.features(self._rows(one, contexts, arms)), np.zeros_like(arms) if one.shared else arms
            means.append(model.predict_rows(blocks, Z)[0])
            found += weight * model.covariance(blocks, Z)
        weights = np.array([weight for weight, _, _ in believed])
        apart = np.array(means) - weights @ np.array(means)
        return np.asarray(found + (weights[:, None] * apart).T @ apart) * unit**2

    def sample(self, rng: Rng, points: Any = None, *, size: int = 1) -> Array:
        """Returns joint samples of a normal distribution with this mean and covariance, `(size, n)`."""
        root = covariance_root(self.covariance(points))
        return self.mean(points) + draws_of_root(root, rng, size)

    def size_at(self, points: Array) -> float:  # noqa: ARG002
        """Returns the standard deviation of the first targets, the unit of differences."""
        return self._unit or 1.0

    @property
    def mean_norm(self) -> float:
        """Norm of the weights of the likeliest model, over their prior deviation."""
        if not self._models:
            return 0.0
        model = self._models[int(self._log_weights.argmax())]
        ratio = model.blocks.regularization / model.noise
        return float(np.sqrt(ratio * (model.blocks.mean**2).sum()))

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + q) of the likeliest model, over its observations."""
        return self._models[int(self._log_weights.argmax())].blocks.log_ratio if self._models else 0.0


def _mixed(weights: Sequence[float], each: Sequence[Moments], places: Any = slice(None)) -> Moments:
    """Returns the moments of a mixture at some places."""
    mean = second = error = np.zeros(len(each[0].mean[places]))
    for weight, one in zip(weights, each, strict=True):
        mu = one.mean[places]
        mean, second = mean + weight * mu, second + weight * (mu**2 + one.variance[places])
        error = error + weight * one.error[places]
    return Moments(mean, second - mean**2, error)
