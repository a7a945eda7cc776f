"""Checks of a score within a decision."""

from __future__ import annotations

from typing import Any, cast, final

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Arms, enclosing_box
from ..domains.search.acquisition import AcquisitionFunction
from ..policy.policy import Policy
from ..slots.acquisition import PointView, TableView
from ..slots.envelope import Bounds
from ..slots.explore import NoExploration
from ..slots.scores import PointwiseScore, Score
from .base import promise
from .driver import Driver

STEP = 1e-5  # step of differences, relative to the sides of the domain
POINTS = 8  # points of the checks
MOST_KINKS = 0.4  # fraction of the points at which a gradient may be wrong, because a score may have kinks


@final
class _CheckedScore(Score):
    """A score that checks the results of another score in a decision."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self.name = type(score).__name__
        self.in_rewards = score.in_rewards  # type: ignore[misc]  # as of the class

    @property
    def own_width(self) -> float | None:
        """The width of draws of the checked score."""
        return self._score.own_width

    def on_table(self, view: TableView) -> Array:
        """Checks that scores are finite, one for each arm, in an array of their own."""
        n = len(view.envelope().mean)
        scores = self._score.on_table(view)
        _check_scores(self.name, scores, n)
        kept = scores.copy()
        scores[:] = -1.0
        promise(
            np.isfinite(view.envelope().mean).all() and (view.envelope().mean != -1.0).any(),
            f"`{self.name}.on_table` gives an array that is not its own: the engine writes into it. Give a copy.",
        )
        return kept

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Checks that scores are finite, and that gradients agree with differences."""
        surface = self._score.on_points(view)
        _check_scores(self.name, surface.values(view.points), len(view.points))
        if not isinstance(view.domain, Arms):  # Arms are all compared.
            _check_slopes(self.name, surface, view)
        return surface

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        return self._score.placed(point, surface, view)


def check_score(driver: Driver, rounds: int) -> None:
    """Checks shape, values and gradients of the scores after some rounds."""
    policy = driver.policy
    state: Any = driver.play(driver.study(), 0, rounds).replica.state
    checked = _with(policy, score=_CheckedScore(policy.score), explore=NoExploration())
    state.policy = state.memory.policy = checked
    context = driver.context(rounds)
    state.decide(context, now=float(rounds))
    bounds = state.bounds(now=float(rounds))
    if hasattr(policy.score, "partials") and getattr(bounds, "pointwise", False):
        _check_partials(cast(PointwiseScore, policy.score), bounds)


def _with(policy: Policy, **parts: object) -> Policy:
    """Returns the policy with parts that need not be described classes."""
    other = object.__new__(Policy)
    other.__dict__.update(policy.__dict__)
    other.__dict__.update(parts)
    return other


def _check_scores(name: str, scores: Any, n: int) -> None:
    promise(
        isinstance(scores, np.ndarray) and scores.shape == (n,) and scores.dtype == np.float64,
        f"`{name}` gives scores {getattr(scores, 'shape', scores)!r} of {n} points: an array `({n},)` of floats is "
        "due.",
    )
    promise(
        not np.isnan(scores).any() and not np.isposinf(scores).any(),
        f"`{name}` gives scores that are NaN or infinite. Usually a standard deviation of 0 is divided by.",
    )


def _check_slopes(name: str, surface: AcquisitionFunction, view: PointView) -> None:
    box = enclosing_box(view.domain)
    sides = np.where(box.upper > box.lower, box.upper - box.lower, 1.0)
    inner = np.random.default_rng(3).uniform(0.05, 0.95, (POINTS, box.dimension))
    points = box.lower + inner * (box.upper - box.lower)
    values, gradients = surface.slopes(points)
    here = surface.values(points)
    _check_scores(name, values, POINTS)
    promise(
        np.allclose(values, here, rtol=1e-6, atol=1e-8),
        f"`{name}`: `slopes` gives other values than `values`: {values} and {here}.",
    )
    promise(
        gradients.shape == points.shape and np.isfinite(gradients).all(),
        f"`{name}`: the gradients of {POINTS} points have shape {gradients.shape}, or are not finite; {points.shape} "
        "is due.",
    )
    differences = np.zeros(points.shape)
    for j, side in enumerate(sides):
        shift = np.zeros(box.dimension)
        shift[j] = STEP * side
        differences[:, j] = (surface.values(points + shift) - surface.values(points - shift)) / (2.0 * STEP * side)
    size = np.abs(differences * sides).max(axis=1) + 1e-3 * (np.ptp(here) + 1e-9)
    off = (np.abs(gradients - differences) * sides).max(axis=1) > 0.02 * size + 1e-5
    promise(
        off.mean() <= MOST_KINKS,
        f"`{name}`: at {int(off.sum())} of {POINTS} points the gradient is not that of the score: "
        f"{gradients[off][:1]} by `slopes` and {differences[off][:1]} by differences. Usually `partials` is wrong, or "
        "the bounds depend on more than mean and std (then set `pointwise = False` in its `Bounds`).",
    )


def _check_partials(score: PointwiseScore, bounds: Bounds) -> None:
    """Checks the derivatives in mean and std by differences of the score."""
    name = type(score).__name__
    mean, std = np.linspace(-1.3, 1.6, POINTS), np.linspace(0.2, 1.1, POINTS)

    def at(mean: Array, std: Array) -> Array:
        return score(bounds(mean.copy(), std.copy()), 0.3)

    _check_scores(name, at(mean, std), POINTS)
    given = score.partials(bounds(mean.copy(), std.copy()), 0.3)
    if given is None:
        return
    step = 1e-6
    found = (
        (at(mean + step, std) - at(mean - step, std)) / (2.0 * step),
        (at(mean, std + step) - at(mean, std - step)) / (2.0 * step),
    )
    for what, partial, difference in zip(("mean", "standard deviation"), given, found, strict=True):
        promise(
            np.shape(partial) == (POINTS,),
            f"`{name}.partials` gives derivatives in the {what} of shape {np.shape(partial)}: ({POINTS},) is due.",
        )
        off = np.abs(partial - difference) > 1e-4 * (1.0 + np.abs(difference))
        promise(
            off.mean() <= MOST_KINKS,
            f"`{name}.partials`: the derivative in the {what} is {partial}, and by differences {difference}.",
        )
