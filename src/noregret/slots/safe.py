"""Constraints that no round may violate: only what is certified is played.

| symbol | name | meaning | shape |
|---|---|---|---|
| delta | `delta` | probability that a run violates anything | scalar |
| P(g_j > 0) | `risk` | posterior probability of a violation, summed over the constraints | (n,) |
| U_j | `limit.upper` | upper bounds of g_j | (n,) |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ..checks import Array, finite_array, one_of, settle
from ..errors import InvalidInput
from ..record import Trial
from ..serialize import described
from .base import Combination
from .books import Books
from .borders import ANCHORS, AROUND, Mask, between, nearest, penalised, risk, violation
from .constraints import Constraints
from .envelope import Envelope, checked_delta
from .view import PointView, Surface, TableView

SHARE = 0.2  # of the probability left to violate something that one point may take
MOST_GOALS, MOST_PLACES = 64, 128  # of a step towards what is not certified
INFORMS = 0.2  # prior deviations by which an answer must be able to move the goal, to be worth one


@final
@described
@dataclass(frozen=True, kw_only=True)
class Safe(Constraints):
    """No round may violate anything: only what is certified is played, besides `start`.

    With certificate="posterior" a point is certified where its probability to violate something, sum_j P(g_j > 0), is
    at most a fifth of what is left of delta; playing it for the first time takes its own probability off. It is settled
    then: whether it violates is no matter of further rounds. As each of these probabilities is one given what was known
    when the point was chosen, a run violates something with probability at most delta, whatever its length, for g_j
    that are samples of the Gaussian process and Gaussian noise of the variance that lambda says (the world of Srinivas
    et al. 2010, Theorem 1). With certificate="bounds" it is certified where U_j <= 0 for all j, by the bounds of
    `confidence` and under their assumptions; these hold at all points at once, so less is certified.

    The goal is what `EveryRound` would play. Where it is certified it is played; else the certified point whose answer
    moves the constraints most at the best of the goals that answers within can reach at all, if one of these is better
    than what is certified (Turchetta et al. 2019, GoOSE, expand likewise only where it may pay); else the best
    certified one. What cannot be reached by certified steps is never played, however good.

    Attributes:
        start: points `(k, d)` that satisfy all constraints, whatever the context, for sure.
        certificate: "posterior" or "bounds".
        delta: probability that a run may violate anything; of certificate="posterior". A cut of the memory begins anew,
            and under a window what was first played before it counts no more: delta is then for as long as that.
    """

    start: tuple[tuple[float, ...], ...]
    certificate: str = "posterior"
    delta: float = 0.05

    hallucinates: ClassVar[bool] = False  # a variance that counts answers that are not there certifies nothing

    def __post_init__(self) -> None:
        super().__post_init__()
        points = finite_array("start", self.start)
        points = points[None] if points.ndim == 1 else points
        if points.ndim != 2 or not points.size:
            raise InvalidInput(
                f"`start` has shape {points.shape}: it must be points `(k, d)` that satisfy all constraints for sure. "
                "Without one nothing can be played safely."
            )
        object.__setattr__(self, "start", tuple(map(tuple, points.tolist())))
        settle(
            self,
            certificate=one_of("certificate", self.certificate, ["posterior", "bounds"]),
            delta=checked_delta(self.delta),
        )

    def check(self, policy: Combination) -> None:
        """Points of the domain to start from, functions that stay, a kernel that is given, and no forced rounds."""
        super().check(policy)
        policy.domain.inside("start", np.array(self.start))
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

    def begin(self) -> Books:
        """Nothing settled, nothing risked."""
        return _Risk(self)

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Certified ones, by score or by what they say about a goal."""
        limits = view.limits()
        settled = self._settled(view.points, view.books, view.context)
        safe = settled | (self._doubt(limits) <= self._accepted(view.books))
        hoped = np.where(settled | (violation(limits, view.limit_sizes) <= 0.0), scores, -np.inf)
        certified = np.where(safe, scores, -np.inf)
        goal = int(hoped.argmax())
        if not np.isfinite(hoped[goal]) or safe[goal]:
            return certified
        place = self._step(certified, np.where(safe, -np.inf, hoped), view)
        if place is None:
            return certified
        chosen = np.full(len(scores), -np.inf)
        chosen[place] = 0.0
        return chosen

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

    def on_points(self, surface: Surface, view: PointView) -> Surface:
        """The goal: as of `EveryRound`."""
        return penalised(surface, view)

    def placed(self, point: Array, surface: Surface, view: PointView) -> Array:
        """The goal if it is certified; else one of the certified points around, judged as arms are."""
        started = view.domain.inside("start", np.array(self.start))
        everywhere = np.concatenate([view.tried(), view.points])
        around = np.concatenate([nearest(at, everywhere, view, AROUND) for at in (point, *started[:ANCHORS])])
        anchors = np.concatenate([started, around])
        safe = self._settled(anchors, view.books, view.context)
        safe |= self._doubt(view.limits(anchors)) <= self._accepted(view.books)
        paths = between(point, nearest(point, anchors[safe], view, ANCHORS), view)
        candidates = np.unique(np.concatenate([point[None], anchors, paths]), axis=0)
        here = view.at(candidates)
        return np.asarray(candidates[int(self.judged(surface.values(candidates), here).argmax())].copy())

    def _accepted(self, books: Books) -> float:
        """How large a doubt may be."""
        return SHARE * books.left if isinstance(books, _Risk) and self.certificate == "posterior" else 0.0

    def _doubt(self, limits: Sequence[Envelope]) -> Array:
        """Sum_j P(g_j > 0), or max_j U_j, `(n,)`."""
        if self.certificate == "bounds":
            return np.asarray(np.max([limit.upper for limit in limits], axis=0))
        return risk(limits)

    def _settled(self, points: Array, books: Books, context: Array | None) -> Mask:
        """Which points need no certificate (any more), `(n,)`."""
        known = [np.array(point) for point in self.start]
        if isinstance(books, _Risk):
            known += books.settled_under(context)
        settled = np.zeros(len(points), dtype=bool)
        for point in known:
            settled |= (points == point).all(axis=1)
        return settled

    def certain(self, limits: Sequence[Envelope], points: Array, books: Books, context: Array | None) -> Array:
        """Whether a point is certified, or settled, now: 1.0 or 0.0."""
        safe = self._settled(points, books, context) | (self._doubt(limits) <= self._accepted(books))
        return np.asarray(safe.astype(np.float64))


@final
class _Risk(Books):
    """Which points were played under which contexts, and what is left of delta."""

    def __init__(self, world: Safe) -> None:
        self._world = world
        self._settled: dict[tuple[bytes, bytes], tuple[int, Array, float]] = {}  # first trial, point, its risk

    @property
    def left(self) -> float:
        """What is left of delta."""
        return max(self._world.delta - sum(risk for _, _, risk in self._settled.values()), 0.0)

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
        if key in self._settled or self._world.certificate == "bounds":
            return
        started = any((trial.point == np.array(point)).all() for point in self._world.start)
        share = 0.0 if started else float(risk(limits())[0])
        self._settled[key] = (trial.number, trial.point, share)

    def forget_before(self, first: int) -> None:
        """What was played before counts no more, nor does what it risked."""
        self._settled = {key: value for key, value in self._settled.items() if value[0] >= first}

    def copy(self) -> _Risk:
        """An independent copy."""
        other = _Risk(self._world)
        other._settled = self._settled.copy()
        return other


def _key(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()
