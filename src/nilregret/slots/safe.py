"""Constraints that no round may violate: only what is certified is played.

| symbol | name | meaning | shape |
|---|---|---|---|
| delta | `delta` | probability that a run violates anything | scalar |
| P(g_j > 0) | `risk` | posterior probability of a violation, summed over the constraints | (n,) |
| U_j | `limit.upper` | upper bounds of g_j | (n,) |
| z_j | `_deviation` | how far a value lies from what was expected of it, in standard deviations | scalar |
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from .._utils.checks import LARGEST_REWARD, Array, finite_array, number, one_of, settle
from .._utils.errors import InvalidInput, NoRegretError, NoRegretWarning
from .._utils.serialize import described
from ..domains.coordinates import named_points
from ..domains.domain import Domain
from ..domains.search.acquisition import AcquisitionFunction
from ..kernels import Kernel
from ..kernels.domains import prior_std
from ..storage.record import Trial
from .acquisition import PointView, TableView
from .base import Combination
from .constraint_state import DualState, Expected
from .constraints import Constraints, one_for
from .envelope import Envelope, checked_delta
from .feasibility import ANCHORS, AROUND, LEAST_STD, Mask, between, nearest, penalised, risk, violation

SHARE = 0.2  # of the probability left to violate something that one point may take
MOST_GOALS, MOST_PLACES = 64, 128  # of a step towards what is not certified
INFORMS = 0.2  # prior deviations by which an answer must be able to move the goal, to be worth one
CONTRADICTS = 4.0  # deviations from what was expected: at 1 of 16,000 points, if the prior is right
PATIENCE = 16  # values at the points of `start`, after which a step is overdue
REPEATED = 6.0  # likewise of a point that was told before, of which there may be many: 1 of 500 million values
NO_SCALE = (
    "`scale` is missing: `Safe` certifies by how large the constraint is, and a unit variance would be a guess, of "
    "degrees, milliseconds or dollars a bad one. Give `scale`, a standard deviation of the constraint over the domain "
    "in its own units (about a quarter of its range), or a `kernel` of the constraint, or have it learned from small "
    "steps around `start` (`scale` 'learned')."
)


@final
@described
@dataclass(frozen=True, kw_only=True)
class Safe(Constraints):
    """No round may violate anything: only what is certified is played, besides `start`.

    With certificate="posterior" a point is certified where its probability to violate something, sum_j P(g_j > 0), is
    at most a fifth of what is left of delta; playing it for the first time takes its own probability off. It is settled
    then: whether it violates is no matter of further rounds. As each of these probabilities is one given what was known
    when the point was chosen, a run violates something with probability at most delta, whatever its length, for g_j
    that are samples of the Gaussian process and Gaussian noise of the variance told (the world of Srinivas et al. 2010,
    Theorem 1). With certificate="bounds" it is certified where U_j <= 0 for all j, by the bounds of `confidence` and
    under their assumptions; these hold at all points at once, so less is certified.

    A point at which the values told of some g_j are above 0 on average is certified no more, whatever the kernel, nor
    is one of `start`. Where nothing else is left, that of `start` is played whose values are lowest, and a warning says
    so. A value that lies more than 4 standard deviations from what was expected of it contradicts the prior (of a point
    told before, more than 6; of bounds, so much of the noise beyond them): from then on nothing new is certified.

    The goal is what `EveryRound` would play. Where it is certified it is played; else the certified point whose answer
    moves the constraints most at the best of the goals that answers within can reach at all, if one of these is better
    than what is certified (Turchetta et al. 2019, GoOSE, expand likewise only where it may pay); else the best
    certified one. What cannot be reached by certified steps is never played, however good.

    Attributes:
        start: points `(k, d)`, or dictionaries of parameters, that satisfy all constraints, whatever the context, for
            sure.
        scale: a standard deviation of each g_j over the domain, in its units: the kernel (the constraint's or the
            policy's) is brought to it; one for all or a tuple of m. Needed unless `kernel` is given. "learned": a large
            one, and a short lengthscale, given what was told (`nilregret.slots.sizes`); then nothing is proved, and the
            first steps are small. "kernel": as the kernel has it, for constraints in the units of the reward.
        certificate: "posterior" or "bounds"; the latter is for bounds of which something is proved.
        delta: probability that a run may violate anything; of certificate="posterior". A cut of the memory begins anew,
            and under a window what was first played before it counts no more: delta is then for as long as that.
    """

    start: tuple[tuple[float, ...], ...]
    scale: float | str | tuple[float | str, ...] | None = None
    certificate: str = "posterior"
    delta: float = 0.05

    hallucinates: ClassVar[bool] = False  # a variance that counts answers that are not there certifies nothing
    BEFORE: ClassVar[Mapping[str, object]] = {"scale": "kernel"}  # what descriptions meant that do not say

    def __post_init__(self) -> None:
        super().__post_init__()
        named = named_points(self.start)
        if named is None:
            points = finite_array("start", self.start)
            points = points[None] if points.ndim == 1 else points
            if points.ndim != 2 or not points.size:
                raise InvalidInput(
                    f"`start` has shape {points.shape}: it must be points `(k, d)` that satisfy all constraints for "
                    "sure, or dictionaries of parameters. Without one nothing can be played safely."
                )
            object.__setattr__(self, "start", tuple(map(tuple, points.tolist())))
        else:  # encoded by the policy, which has the domain
            object.__setattr__(self, "start", tuple(map(dict, named)))
        if self.scale is not None:
            sizes = [_checked_scale(scale) for scale in self._listed("scale", self.scale)]
            object.__setattr__(self, "scale", tuple(sizes) if isinstance(self.scale, tuple | list) else sizes[0])
        if any(self.learns(j) and one_for(self.prior_mean, j) for j in range(self.count)):
            raise InvalidInput(
                "`scale` 'learned' is learned from how far the values told lie from the border, and a `prior_mean` "
                "says where the constraint lies although nobody has looked: leave it out, or give `scale`."
            )
        settle(
            self,
            certificate=one_of("certificate", self.certificate, ["posterior", "bounds"]),
            delta=checked_delta(self.delta),
        )

    def within(self, domain: Domain) -> Safe:
        """The points of `start` as the domain has them: encoded, and to the last digit."""
        try:
            points = domain.inside("start", self.start)
        except InvalidInput as error:
            raise error.within("start").within("constraints") from error
        return replace(self, start=tuple(map(tuple, points.tolist())))

    def kernel_of(self, policy: Combination, j: int) -> Kernel:
        """Of constraint j, counted from 0: brought to the scale that was told."""
        kernel, scale = super().kernel_of(policy, j), one_for(self.scale, j)
        if not isinstance(scale, float):
            return kernel
        return (scale / prior_std(policy.domain, policy.context, kernel)) ** 2 * kernel

    def takes_ridge(self, policy: Combination) -> bool:
        """For bounds by a theorem that has one of its own; a posterior is one of the noise told."""
        return self.certificate == "bounds" and (policy.confidence.own_ridge or self.noise is None)

    def learns(self, j: int) -> bool:
        """Whether the size of constraint j, counted from 0, is learned with caution."""
        return bool(one_for(self.scale, j) == "learned")

    def check(self, policy: Combination) -> None:
        """Sizes that are known, functions that stay, a kernel that is given, no forced rounds, bounds that hold."""
        super().check(policy)
        if self.scale is None and self.kernel is None:
            raise InvalidInput(
                NO_SCALE,
                advice="Such as `nr.Safe(start=points, scale=25.0, noise=0.5)`.",
                places=("constraints",),
            )
        if policy.explore.ever:
            raise InvalidInput(
                f"`{type(policy.explore).__name__}` forces rounds that nothing has certified, and `Safe` plays nothing "
                "else: leave `explore` out, or take `EveryRound`."
            )
        if policy.refit is not None:
            raise InvalidInput(
                "`Safe` certifies by a kernel that is given; one that is learned certifies nothing. Leave `refit` out, "
                "or take `EveryRound`."
            )
        if policy.memory.drift() is not None:
            raise InvalidInput(
                f"Under `{type(policy.memory).__name__}` what was certified may have drifted by the next round: `Safe` "
                "takes restarts and windows, or take `EveryRound`."
            )
        if self.noise is None and getattr(policy.confidence, "noise", 0.0) is None:
            raise InvalidInput(
                "`Safe` certifies by the noise of the constraint values, and nobody has told it (`noise` 'unknown'): "
                "give it, in the units of the constraint.",
                advice="Such as `nr.Safe(start=points, scale=25.0, noise=0.5)`.",
            )
        if self.certificate == "bounds":
            self._check_bounds(policy)

    def _check_bounds(self, policy: Combination) -> None:
        for j in range(self.count):
            bounds = policy.of_channel(j + 1)
            if self.learns(j) or bounds.valid_for == "none":
                refusal = InvalidInput(
                    f"`certificate` 'bounds' certifies by bounds that hold, and nothing is proved for those of "
                    f"constraint {j + 1} (`valid_for` is 'none'): `{type(bounds.confidence).__name__}` with lambda "
                    f"{bounds.regularization:.6g}, noise {bounds.noise:.6g}"
                    f"{' and a scale that is learned' if self.learns(j) else ''}. Usually the width is no theorem's, "
                    "lambda is not the theorem's, or the memory forgets. Take `certificate` 'posterior', or give the "
                    "policy a width that is proved.",
                    advice="Such as those of `gp_ucb`.",
                )
                if self.scale != "kernel":
                    raise refusal
                warnings.warn(NoRegretWarning(refusal.what), stacklevel=2)  # a stored study opens all the same

    def begin(self) -> DualState:
        """Nothing settled, nothing risked."""
        return _Risk(self)

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Certified ones, by score or by what they say about a goal."""
        limits = view.limits()
        safe, unsafe = self._safe(limits, view.points, view.books, view.context)
        if not (safe & np.isfinite(scores)).any():
            return self._least_unsafe(scores, view)
        settled = self._settled(view.points, view.books, view.context)
        hoped = np.where(~unsafe & (settled | (violation(limits, view.limit_sizes) <= 0.0)), scores, -np.inf)
        certified = np.where(safe, scores, -np.inf)
        goal = int(hoped.argmax())
        if not np.isfinite(hoped[goal]) or safe[goal] or np.isneginf(self._accepted(view.books)):
            return certified
        place = self._step(certified, np.where(safe, -np.inf, hoped), view)
        if place is None:
            return certified
        chosen = np.full(len(scores), -np.inf)
        chosen[place] = 0.0
        return chosen

    def _least_unsafe(self, scores: Array, view: TableView | PointView) -> Array:
        """Of the points of `start` that may be played, the one whose values are lowest; errors where there is none."""
        books = view.books
        found = np.full(len(scores), -np.inf)
        for place in np.flatnonzero(self._started(view.points) & np.isfinite(scores)):
            told = books.told(view.context, view.points[place]) if isinstance(books, _Risk) else None
            found[place] = 0.0 if told is None else -float((told / view.limit_sizes).max())
        if np.isneginf(found).all() and np.isfinite(scores).any():
            raise NoRegretError(
                "Nothing that may be played now is certified as safe, so there is nothing left: the points of `start` "
                "are not among it, or have failed. Let more be played, or begin again with another `start`."
            )
        return found

    def _step(self, certified: Array, hoped: Array, view: TableView | PointView) -> int | None:
        """The certified point whose answer moves the best of the goals within reach most; None where none is worth it.

        Args:
            certified: scores `(n,)`, -inf where nothing is certified.
            hoped: scores of the others that may satisfy all constraints, likewise.
            view: of the round.
        """
        limits = view.limits()
        goals = np.flatnonzero(hoped > certified.max(initial=-np.inf))
        places = np.flatnonzero(np.isfinite(certified))
        if not len(goals) or not len(places):
            return None
        doubt = self._doubt(limits)
        goals = goals[np.argsort(doubt[goals], kind="stable")[:MOST_GOALS]]  # nearly certified: within reach, if any
        spread = np.max([limit.std / size for limit, size in zip(limits, view.limit_sizes, strict=True)], axis=0)
        places = places[np.argsort(-spread[places], kind="stable")[:MOST_PLACES]]
        open_ = np.array([self._doubt([limit])[goals] for limit in limits]) > self._accepted(view.books) / len(limits)
        moves = (view.informs(places, goals) * open_[:, None, :]).max(axis=0)  # what is certified needs no answers
        reached = np.where(moves.max(axis=0) >= INFORMS, hoped[goals], -np.inf)
        best = int(reached.argmax())
        return None if np.isneginf(reached[best]) else int(places[moves[:, best].argmax()])

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """The goal: as of `EveryRound`."""
        return penalised(surface, view)

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """The goal if it is certified; else one of the certified points around, judged as arms are."""
        started = np.array(self.start)
        everywhere = np.concatenate([view.tried(), view.points])
        around = np.concatenate([nearest(at, everywhere, view, AROUND) for at in (point, *started[:ANCHORS])])
        anchors = np.concatenate([started, around])
        safe, _ = self._safe(view.limits(anchors), anchors, view.books, view.context)
        paths = between(point, nearest(point, anchors[safe], view, ANCHORS), view)
        candidates = np.unique(np.concatenate([point[None], anchors, paths]), axis=0)
        here = view.at(candidates)
        return np.asarray(candidates[int(self.judged(surface.values(candidates), here).argmax())].copy())

    def _accepted(self, books: DualState) -> float:
        """How large a doubt may be; -inf where nothing new is certified."""
        if not isinstance(books, _Risk) or books.closed:
            return -math.inf
        return SHARE * books.left if self.certificate == "posterior" else 0.0

    def _doubt(self, limits: Sequence[Envelope]) -> Array:
        """Sum_j P(g_j > 0), or max_j U_j, `(n,)`."""
        if self.certificate == "bounds":
            return np.asarray(np.max([limit.upper for limit in limits], axis=0))
        return risk(limits)

    def _safe(
        self, limits: Sequence[Envelope], points: Array, books: DualState, context: Array | None
    ) -> tuple[Mask, Mask]:
        """Which points are certified, or settled; and which are neither as what was told there says otherwise."""
        unsafe = _among(points, books.unsafe_under(context) if isinstance(books, _Risk) else [])
        safe = self._settled(points, books, context) | (self._doubt(limits) <= self._accepted(books))
        return safe & ~unsafe, unsafe

    def _started(self, points: Array) -> Mask:
        """Which of some points are those of `start`, `(n,)`."""
        return _among(points, self.start)

    def _settled(self, points: Array, books: DualState, context: Array | None) -> Mask:
        """Which points need no certificate (any more), `(n,)`."""
        settled = books.settled_under(context) if isinstance(books, _Risk) else []
        return self._started(points) | _among(points, settled)

    def certain(self, limits: Sequence[Envelope], points: Array, books: DualState, context: Array | None) -> Array:
        """Whether a point is certified, or settled, now: 1.0 or 0.0."""
        return self._safe(limits, points, books, context)[0].astype(np.float64)


@final
class _Risk(DualState):
    """Which points were played under which contexts, what was told there, and what is left of delta."""

    def __init__(self, world: Safe) -> None:
        self._world = world
        self._settled: dict[tuple[bytes, bytes], tuple[int, Array, float]] = {}  # first trial, point, its risk
        self._told: dict[tuple[bytes, bytes], dict[int, Array]] = {}  # constraint values by trial
        self._sums: dict[tuple[bytes, bytes], Array] = {}  # of them
        self._unsafe: dict[tuple[bytes, bytes], Array] = {}  # points where one of these is above 0
        self._first = 0  # trial that counts
        self._contradiction: tuple[int, str] | None = None  # trial whose value contradicts the prior, and how
        self._played: int | None = None  # the last trial that was asked for although what was told says it is unsafe

    @property
    def left(self) -> float:
        """What is left of delta."""
        return max(self._world.delta - sum(risk for _, _, risk in self._settled.values()), 0.0)

    @property
    def closed(self) -> bool:
        """Whether nothing new is certified: the prior is contradicted, or what is to be learned of it has not begun."""
        begun = self._told or not any(map(self._world.learns, range(self._world.count)))
        return self._contradiction is not None or not begun

    @property
    def remarks(self) -> Mapping[str, str]:
        """What contradicts what was told, and that nothing safe is left."""
        said = {} if self._contradiction is None else {"contradiction": self._contradiction[1]}
        if self._stuck():
            said["stuck"] = (
                f"{PATIENCE} or more constraint values have been told at points of `start`, and with a `scale` that is "
                "learned no step away from them has been certified that would pay. Usually the next points are too far "
                "away for what values at `start` say of them. Give a `scale`, more points of `start`, or finer arms."
            )
        if self._played is not None:
            said["unsafe start"] = (
                f"All points of `start` are unsafe by the constraint values told there (above 0 on average), and no "
                f"other point is certified: trial {self._played} is at the one whose values are lowest. Usually the "
                "constraint values do not lie at 0 where they are just met, or have the other sign. Look at them, and "
                "give a `start` that is safe."
            )
        return said

    def _stuck(self) -> bool:
        """Whether a scale that is to be learned never is, as nothing but `start` is played."""
        world, told = self._world, self._told
        if len(told) > len(world.start) or not any(map(world.learns, range(world.count))):
            return False  # under contexts it takes longer
        if sum(map(len, told.values())) < PATIENCE:
            return False
        return bool(_among(np.array([np.frombuffer(point) for _, point in told]), world.start).all())

    def told(self, context: Array | None, point: Array) -> Array | None:
        """Average of the values told at a point, `(m,)`; None before the first."""
        key = (_key(context), point.tobytes())
        return np.asarray(self._sums[key] / len(self._told[key])) if key in self._told else None

    def unsafe_under(self, context: Array | None) -> list[Array]:
        """The points at which some g_j > 0 is more likely than not by the values told there alone."""
        key = _key(context)
        return [point for (under, _), point in self._unsafe.items() if under == key]

    def settled_under(self, context: Array | None) -> list[Array]:
        """The points that were played under a context, where that needed a certificate."""
        if self._world.certificate == "bounds":
            return []
        key = _key(context)
        return [point for (under, _), (_, point, _) in self._settled.items() if under == key]

    watches = True

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:
        """The first time that a point is played takes its risk off."""
        key = (_key(trial.context), trial.point.tobytes())
        if key in self._unsafe:
            self._played = trial.number
        if key in self._settled or self._world.certificate == "bounds":
            return
        started = any((trial.point == np.array(point)).all() for point in self._world.start)
        share = 0.0 if started else float(risk(limits())[0])
        self._settled[key] = (trial.number, trial.point, share)

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:
        """What was told at a point, and whether it contradicts what was expected."""
        if trial.number < self._first or trial.constraints is None:
            return
        key = (_key(trial.context), trial.point.tobytes())
        repeated = key in self._told
        for j, each in enumerate(expected() if self._contradiction is None else []):
            far = _deviation(each, bounded=self._world.certificate == "bounds")
            if far > (REPEATED if repeated else CONTRADICTS):
                self._contradiction = trial.number, _contradiction(trial, j, each, far, repeated=repeated)
                break
        self._told.setdefault(key, {})[trial.number] = trial.constraints
        self._sums[key] = self._sums.get(key, 0.0) + trial.constraints
        if (self._sums[key] > 0.0).any():
            self._unsafe[key] = trial.point
        else:
            self._unsafe.pop(key, None)

    def forget_before(self, first: int) -> None:
        """What was played before counts no more, nor does what it risked or what was told."""
        self._first = first
        self._settled = {key: value for key, value in self._settled.items() if value[0] >= first}
        kept = {key: {n: values for n, values in told.items() if n >= first} for key, told in self._told.items()}
        self._told = {key: told for key, told in kept.items() if told}
        self._sums = {key: np.sum(list(told.values()), axis=0) for key, told in self._told.items()}
        self._unsafe = {key: np.frombuffer(key[1]) for key, total in self._sums.items() if (total > 0.0).any()}
        if self._contradiction is not None and self._contradiction[0] < first:
            self._contradiction = None

    def copy(self) -> _Risk:
        """An independent copy."""
        other = _Risk(self._world)
        other.__dict__.update(self.__dict__)
        other._settled = self._settled.copy()
        other._told = {key: told.copy() for key, told in self._told.items()}
        other._sums, other._unsafe = self._sums.copy(), self._unsafe.copy()
        return other


def _deviation(each: Expected, *, bounded: bool) -> float:
    """How many standard deviations a value lies from what was expected; of bounds, beyond them, in noise alone."""
    seen, y = each.seen, each.value
    if bounded:
        return max(y - float(seen.upper[0]), float(seen.lower[0]) - y, 0.0) / max(each.noise, LEAST_STD)
    return abs(y - float(seen.mean[0])) / max(math.hypot(float(seen.std[0]), each.noise), LEAST_STD)


def _contradiction(trial: Trial, j: int, each: Expected, far: float, *, repeated: bool) -> str:
    mean, std = float(each.seen.mean[0]), math.hypot(float(each.seen.std[0]), each.noise)
    if repeated:
        cause = "`noise` is too small: the point was told before. Or something changes from trial to trial"
    elif abs(each.value - each.center) > CONTRADICTS * math.hypot(each.prior, each.noise):
        cause = f"`scale` is too small for the units of the constraint: it is {each.prior:.3g}"
    else:
        cause = "the kernel's lengthscale is too long: the constraint changes faster than it expects"
    return (
        f"Constraint value {each.value:.4g} of trial {trial.number} (g_{j + 1}) contradicts the prior: expected was "
        f"{mean:.4g} +- {std:.3g}, {far:.1f} standard deviations away. So `Safe` certifies nothing new, and plays what "
        f"it has certified before. Usually {cause}. Make a policy with another one, or with `scale` 'learned', and "
        "`add` these trials to its study."
    )


def _among(points: Array, known: Iterable[ArrayLike]) -> Mask:
    """Which of some points are one of others, `(n,)`."""
    found = np.zeros(len(points), dtype=bool)
    for point in known:
        found |= (points == point).all(axis=1)
    return found


def _key(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()


def _checked_scale(scale: object) -> float | str:
    """A standard deviation, or a word."""
    if isinstance(scale, str):
        why = "Or give a standard deviation of the constraint over the domain, in its units."
        return one_of("scale", scale, ["learned", "kernel"], advice=why)
    why = "It is a standard deviation of the constraint over the domain, in its units."
    return number("scale", scale, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)
