"""A certificate by slopes: the points that are safe whatever the constraint is, if it is no steeper than stated.

| symbol | name | meaning | shape |
|---|---|---|---|
| E_j | `noise` | bound of the noise: abs(y - g_j(x)) <= E_j | (m,) |
| d_j | `metrics` | distance of two points in units of g_j (`nilregret.domains.distances`) | |
| u_j, l_j | `high`, `low` | bounds of g_j at a place with answers: least y + E_j, largest y - E_j | (k, m) |
| c_j | `factors` | factor of the slopes in certificates, at least `caution` | (m,) |
| U_j, L_j | `upper`, `lower` | bounds everywhere: min_i u_ij + c_j d_j(x_i, x), max_i l_ij - d_j(x_i, x) | (n, m) |

A point is certified if U_j <= 0 for all j (LoSBO: Fiedler, Menn, Kreiskoether & Trimpe 2024, with c = 1). This holds
for certain if E_j is true, and no slope is more than c_j times as steep as stated. If two answers differ by more than
d_j + 2 E_j, the slopes as stated, or E_j, are not true. So slopes that are stated too small by at most c_j do no harm,
and most others are refuted before they do.

On boxes and spaces a search looks for the point that is played, with these bounds at n points:

| symbol | name | meaning | shape |
|---|---|---|---|
| L_j, U_j | `lower`, `upper` | bounds of g_j by slopes | (n, m) |
| l_j | `limit.lower` | lower bounds of g_j in its posterior | (n,) |
| E_j | `noise` | bound of the noise of g_j | (m,) |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.copying import Copyable
from .._utils.numerals import numeral
from ..domains.distances import UP, Metric
from ..domains.domain import Box, Space, among, distinct, keeping_limits
from ..domains.search.boxes import AcquisitionFunction, coarse, leaders
from ..domains.search.cones import CertifiedSearch, Cones, allowed
from ..errors import NoRegretError
from ..storage.record import Trial
from ..theory.fronts import LEAST_STD, log_distribution
from .constraints import admitted, between
from .envelope import DualState, Envelope, Expected
from .scores import PointView, TableView

FIRST, TESTED = 4.0, 2.0  # factor of the slopes for the first step, and how slowly it falls, in noise bounds
PATIENCE = 8  # values at the points of `start`, after which something else should be certified
MOST_GOALS, MOST_PLACES = 64, 256  # largest numbers of goals and of certified points in the choice of a step
HORIZON = 3.0  # rounds within which a step must pay: what the goal gains in them, against what the step costs
FINE = 0.02  # share of the size of a constraint that a step is expected to gain at least
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
LOST = (
    "If a point of `start` lost only its measurement, `study.tell(number, reward, constraints=..., revise=True)` tells "
    "it, or `study.enqueue(point)` plays the point again. An objective that raises "
    "`concurrent.futures.CancelledError` has its trial abandoned, not failed."
)
ANEW = "Make a policy with larger ones, and a new study that takes over these trials: `new.add_from(old)`."
SLACK = 1e-9  # excess of a difference over its bound that rounding may cause, as a share of all that is summed

Mask = npt.NDArray[np.bool_]


class Refutation(NamedTuple):
    """Two answers that contradict slopes and noise bound.

    Attributes:
        trials: numbers of the two, the later one first.
        what: a sentence with numbers.
    """

    trials: tuple[int, int]
    what: str


class _Place(NamedTuple):
    """The answers at one (context, point) row.

    Attributes:
        row: `(D,)`.
        high: least y + E, `(m,)`.
        low: largest y - E, `(m,)`.
        high_by: number of the trial of each `high`, `(m,)`.
        low_by: number of the trial of each `low`, `(m,)`.
        total: sum of the values, `(m,)`.
        values: number of values.
        order: number of places with answers before this one, and 1.
    """

    row: Array
    high: Array
    low: Array
    high_by: npt.NDArray[np.intp]
    low_by: npt.NDArray[np.intp]
    total: Array
    values: int
    order: int


@final
class SlopeState(Copyable, DualState):
    """The bounds of constraints at the places with answers, and two answers that contradict each other.

    Args:
        start: points `(k, d)` that are stated to be safe.
        metrics: distance of each constraint.
        noise: E of each constraint, `(m,)`.
        delta: probability that averages of independent noise are further off, or None for bounds of single values.
        caution: factor of the slopes in certificates.
        arms: points `(n, d)` that may be played, or None if there are infinitely many.
        steps: whether steps may be as short as wanted, or there are arms to compare.
    """

    OWNED = ("_open", "_places", "_told")

    def __init__(
        self, start: Array, metrics: Sequence[Metric], noise: Array, *, delta: float | None, caution: float,
        arms: Array | None = None, steps: bool = True,
    ) -> None:  # fmt: skip
        self.start, self.metrics, self.noise, self._delta = start, tuple(metrics), noise, delta
        self.caution, self.arms, self.steps = caution, arms, steps
        self._told: list[tuple[int, Array, Array]] = []  # trial, row, values
        self._places: dict[bytes, _Place] = {}
        self._open: dict[int, Array] = {}  # rows of trials whose values are awaited
        self._first = 0
        self._table: tuple[Array, Array, Array] | None = None
        self._tested = np.zeros(len(noise))  # D_j: largest distance of two answered places
        self._refuting: tuple[int, _Place, _Place, float] | None = None  # the first pair that contradicts

    # -- answers -------------------------------------------------------------------------------------------------

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:  # noqa: ARG002
        """Records that the values of a trial are awaited."""
        self._open[trial.number] = self.rows(trial.point[None], trial.context)[0]

    def left(self, trial: Trial) -> None:
        """Records that no values of a trial are awaited any more."""
        self._open.pop(trial.number, None)

    def open_points(self, context: Array | None) -> Array:
        """Returns the points under a context whose values are awaited, `(k, d)`."""
        rows = np.array(list(self._open.values())).reshape(-1, self.metrics[0].weights.size)
        before = 0 if context is None else len(context)
        return rows[(rows[:, :before] == context).all(axis=1) if before else slice(None), before:]

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:  # noqa: ARG002
        """Records the constraint values of a trial, and whether they contradict earlier ones."""
        self.left(trial)
        if trial.number < self._first or trial.constraints is None:
            return
        row = self.rows(trial.point[None], trial.context)[0]
        self._told.append((trial.number, row, trial.constraints))
        self._take(trial.number, row, trial.constraints)

    def forget_before(self, first: int) -> None:
        """Drops the values of earlier trials."""
        kept = [told for told in self._told if told[0] >= first]
        self._first = first
        if len(kept) < len(self._told):
            self._told, self._places, self._table, self._refuting = [], {}, None, None
            self._tested = np.zeros(len(self.noise))
            for told in kept:
                self._told.append(told)
                self._take(*told)

    def _take(self, number: int, row: Array, values: Array) -> None:
        key, by = row.tobytes(), np.full(len(values), number)
        high, low, old = values + self.noise, values - self.noise, self._places.get(key)
        place = _Place(row, high, low, by, by, values, 1, len(self._places) + 1)
        if old is not None:
            place = _Place(
                row, np.minimum(old.high, high), np.maximum(old.low, low), np.where(high < old.high, by, old.high_by),
                np.where(low > old.low, by, old.low_by), old.total + values, old.values + 1, old.order,
            )  # fmt: skip
        self._places[key] = place if self._delta is None else self._averaged(place, self._delta)
        self._table = None
        if self._refuting is None:
            self._check(self._places[key])

    def _averaged(self, place: _Place, delta: float) -> _Place:
        """Returns the place with the bounds of the average of its values, if they are narrower.

        Azuma and Hoeffding: P(abs(average - g) >= E sqrt(2 log(2 / p) / n)) <= p. All places and counts share delta:
        p = delta / m (6 / pi^2)^2 / (k n)^2 at the k-th place.
        """
        half, average = self.noise * self._share(place, delta), place.total / place.values
        return place._replace(high=np.minimum(place.high, average + half), low=np.maximum(place.low, average - half))

    def _share(self, place: _Place, delta: float) -> float:
        """Returns how far the average of a place may be off, as a share of E."""
        p = delta / len(self.noise) * (6.0 / math.pi**2) ** 2 / (place.order * place.values) ** 2
        return math.sqrt(2.0 * math.log(2.0 / p) / place.values)

    def _check(self, place: _Place) -> None:
        """Finds the answers that contradict those of a place most."""
        rows, high, low = self.table
        worst, found, tested = 0.0, None, self._tested.copy()
        for j, metric in enumerate(self.metrics):
            far = metric(place.row[None], rows)[0]
            tested[j] = max(float(tested[j]), float(far[np.isfinite(far)].max(initial=0.0)))
            sizes = metric.reach + np.abs(high[:, j]) + np.abs(place.low[j]) + 2.0 * self.noise[j]
            allowed = far + SLACK * sizes
            for sign, excess in ((1, place.low[j] - high[:, j] - allowed), (-1, low[:, j] - place.high[j] - allowed)):
                if len(excess) and float(excess.max()) > worst:
                    i = int(excess.argmax())
                    other = list(self._places.values())[i]
                    above, below = (place, other) if sign > 0 else (other, place)
                    worst, found = float(excess[i]), (j, above, below, float(far[i]))
        self._tested, self._refuting = tested, found

    @property
    def refuted(self) -> Refutation | None:
        """The contradiction of two answers, with numbers that fit all answers until now, or None."""
        return None if self._refuting is None else self._refutation(*self._refuting)

    def factors(self, context: Array | None) -> Array:
        """Returns c_j, the factor of the slopes in certificates under a context, `(m,)`.

        First steps are short. If slopes are the same everywhere, answers at distance D_j that do not refute them show
        that they are about 1 + 2 E_j / D_j times as steep at most. Arms that are too coarse for a short step are
        certified by `caution`.
        """
        usual = np.full(len(self.noise), self.caution)
        if self.caution == 1.0 or not self.steps:
            return usual
        with np.errstate(divide="ignore", invalid="ignore"):
            tested = 1.0 + np.where(self._tested > 0.0, TESTED * self.noise / self._tested, np.inf)
        short = np.asarray(np.maximum(usual, np.minimum(tested, FIRST)))
        if self.arms is None or (short == usual).all():
            return short
        others = self.arms[~among(self.arms, [*self.start, *self.table[0][:, -self.start.shape[1] :]])]
        return short if (self.cones(context, short).upper(others) <= 0.0).all(axis=1).any() else usual

    def _refutation(self, j: int, above: _Place, below: _Place, far: float) -> Refutation:
        first, second, noise = int(above.low_by[j]), int(below.high_by[j]), float(self.noise[j])
        gap, (factor, wider) = float(above.low[j] - below.high[j]), self.fitting(j)
        said = f"`slope` allows {numeral(far / UP)} between their points"
        said = (
            f"their values of constraint {j + 1} differ by {numeral(gap + 2.0 * noise)}, and {said}, the noise bound "
            f"{numeral(2.0 * noise)} more"
            if self._delta is None
            else f"constraint {j + 1} differs by {numeral(gap)} or more by the values told there, and {said}"
        )
        steeper = (
            "No slope fits all answers so far"
            if math.isinf(factor)
            else f"Slopes {numeral(_up(factor), 3)} times as steep fit all answers so far"
        )
        return Refutation(
            (max(first, second), min(first, second)),
            f"Trials {min(first, second)} and {max(first, second)} refute the certificate: {said}. So nothing is "
            "certified any more, and no further trial is asked. Usually a slope is too small for the units of its "
            "parameter, `noise` is a standard deviation and no bound (four of them are one), or the constraint has "
            f"changed. {steeper}, or a `noise` of {numeral(_up(wider), 3)}. These are the least that fit, so tell "
            "more.",
        )

    def fitting(self, j: int) -> tuple[float, float]:
        """Returns a factor of the slopes, and a noise bound, that fit all values of constraint j.

        Both are the least ones. Averages need a larger noise bound, since it counts less in them.
        """
        rows, high, low = self.table
        factor, excess = 1.0, 0.0
        for i in range(len(rows)):
            far = self.metrics[j](rows[i : i + 1], rows)[0]
            gap = low[i, j] - high[:, j]
            excess = max(excess, float((gap - far).max()))
            apart = (far > 0.0) & np.isfinite(far)
            ratio = np.divide(gap, far, out=np.where(gap > 0.0, np.inf, 0.0), where=apart)
            factor = max(factor, float(np.where(np.isinf(far), 0.0, ratio).max()))
        shares = [1.0] if self._delta is None else [self._share(place, self._delta) for place in self._places.values()]
        return factor, float(self.noise[j]) + 0.5 * excess / min(1.0, *shares)

    # -- bounds --------------------------------------------------------------------------------------------------

    @property
    def table(self) -> tuple[Array, Array, Array]:
        """Rows `(k, D)` of the places with answers, and the bounds there, `(k, m)` each."""
        if self._table is None:
            places, m = list(self._places.values()), len(self.noise)
            rows = np.array([place.row for place in places]).reshape(-1, self.metrics[0].weights.size)
            high, low = (np.array([each[i] for each in places]).reshape(-1, m) for i in (1, 2))
            self._table = rows, high, low
        return self._table

    def rows(self, points: Array, context: Array | None) -> Array:
        """Returns (context, point) rows `(n, D)`."""
        return points if context is None else np.hstack([np.repeat(context[None], len(points), axis=0), points])

    def stated(self, context: Array | None) -> Array:
        """Returns the points of `start` `(k, d)` that no answer shows to be above 0. They hold under every context."""
        rows, (places, _, low) = self.rows(self.start, context), self.table
        above = np.zeros(len(rows), dtype=bool)
        for j, metric in enumerate(self.metrics if len(places) else ()):
            above |= (low[:, j] - metric(rows, places)).max(axis=1) > 0.0
        return self.start[~above]

    def cones(self, context: Array | None, factors: Array | None = None) -> Cones:
        """Returns the bounds of all points under a context. The factors are those of now unless given."""
        stated, (places, high, low) = self.stated(context), self.table
        rows, zeros = self.rows(stated, context), np.zeros((len(stated), len(self.noise)))
        return Cones(
            metrics=self.metrics, places=np.concatenate([places, rows]), ceilings=np.concatenate([high, zeros]),
            floors=np.concatenate([low, zeros - np.inf]), factors=self.factors(context) if factors is None else factors,
            context=context, stated=stated,
        )  # fmt: skip

    def bounds(self, points: Array, context: Array | None) -> tuple[Array, Array]:
        """Returns L and U at points `(n, d)` under a context, each `(n, m)` (see `Cones.bounds`)."""
        return self.cones(context).bounds(points)

    def certified(self, points: Array, context: Array | None) -> Mask:
        """Returns a mask `(n,)` of the certified points."""
        if self._refuting is not None:
            return np.zeros(len(points), dtype=bool)
        return self.cones(context).holds(points)

    def proofs(self, point: Array, context: Array | None) -> tuple[str, ...]:
        """Returns the proof that each constraint holds at a point, in words. Without one, `start` states it."""
        return tuple(self._proof(point, context, j) for j in range(len(self.metrics)))

    def _proof(self, point: Array, context: Array | None, j: int) -> str:
        row, (rows, high, _) = self.rows(point[None], context), self.table
        factor = float(self.factors(context)[j])
        upper = high[:, j] + factor * self.metrics[j](row, rows)[0] if len(rows) else np.array([math.inf])
        i, stated = int(upper.argmin()), bool((point == self.start).all(axis=1).any())
        if upper[i] > 0.0:
            return "stated by `start`" if stated else "not certified"
        place, noise = list(self._places.values())[i], float(self.noise[j])
        alone = float(place.high[j] - noise) if self._delta is None else None
        told = f"at most {numeral(float(place.high[j]))} there" if alone is None else f"told {numeral(alone)}"
        added = f" + {numeral(noise)} (noise)" if alone is not None and noise else ""
        terms = self.metrics[j].terms(row[0], place.row)
        if terms:
            terms = f" + {terms}" if factor == 1.0 else f" + {numeral(factor, 3)} x ({terms})"
        total = f" = {numeral(float(upper[i]))}" if added or terms else ""
        return f"by trial {int(place.high_by[j])}: {told}{added}{terms}{total} <= 0"

    # -- remarks -------------------------------------------------------------------------------------------------

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings by kind: refuted slopes, an unsafe `start`, or one too close to the limit for the noise."""
        if (refuted := self.refuted) is not None:
            return {"refuted": str(self._refusal(refuted))}
        said = {}
        unsafe = [place for place in self._places.values() if self._is_start(place) and (place.low > 0.0).any()]
        if unsafe:
            said["unsafe start"] = self._of_start(unsafe[0])
        if len(self._told) >= PATIENCE and all(map(self._is_start, self._places.values())):
            said |= self._of_margin()
            contexts = {place.row[: -self.start.shape[1]].tobytes() for place in self._places.values()}
            if self.metrics[0].fixed[: -self.start.shape[1]].any() and len(contexts) >= PATIENCE:
                said["contexts"] = (
                    f"Constraint values were told under {len(contexts)} contexts, and nothing but `start` is "
                    "certified in a new one. An answer counts only in contexts with the same values of what `slope` "
                    "does not name. Name the parameters of the context in `slope`, too."
                )
        return said

    def _of_margin(self) -> dict[str, str]:
        """Returns a warning if the values at `start` leave no room for any other point."""
        margin = max(float((-place.high).min()) for place in self._places.values())
        nearest = self._nearest_arm()
        if margin > 0.0 and margin >= nearest:
            return {}
        noise = numeral(float(self.noise.max()))
        room = (
            f"the nearest other arm is {numeral(nearest)} away by `slope`{self._with_caution()}, which is more. Take "
            "finer arms, or a `start` further from the limit"
            if margin > 0.0
            else "so nothing else is certified. Give a `start` further from the limit"
        )
        return {
            "stuck": f"{len(self._told)} values have been told at points of `start`. With the noise bound {noise} they "
            f"leave a margin of {numeral(max(margin, 0.0))}, and {room}. A smaller noise bound, if it is true, "
            f"certifies more{', and `independent=True` if the errors are' if self._delta is None else ''}."
        }

    def _with_caution(self) -> str:
        return f" (with `caution` {numeral(self.caution)})" if self.caution > 1.0 else ""

    def _nearest_arm(self) -> float:
        """Returns the least distance from a point of `start` to another arm, by the largest of the constraints.

        It is 0 on other domains and under contexts, where it is not known.
        """
        if self.arms is None or self.arms.shape[1] < self.metrics[0].weights.size:
            return 0.0
        others = self.arms[~among(self.arms, self.start)]
        if not len(others):
            return 0.0
        far = np.max([metric(others, self.start) for metric in self.metrics], axis=0)
        return self.caution * float(far.min())

    def _is_start(self, place: _Place) -> bool:
        return bool((place.row[-self.start.shape[1] :] == self.start).all(axis=1).any())

    def _of_start(self, place: _Place) -> str:
        j = int(place.low.argmax())
        value, under = float(place.low[j] + self.noise[j]), len(place.row) > self.start.shape[1]
        return (
            f"A point of `start` violates constraint {j + 1}: trial {int(place.low_by[j])} told {numeral(value)} "
            f"there, which is above 0 by more than the noise bound {numeral(float(self.noise[j]))}. So it is not "
            f"played again{' in contexts for which this value counts' if under else ''}. Usually the values do not lie "
            "at 0 where the limit is just met, or have the other sign."
        )

    def refuse(self) -> None:
        """Raises `NoRegretError` if slopes or noise bound are refuted."""
        if (refuted := self.refuted) is not None:
            raise self._refusal(refuted)

    def _refusal(self, refuted: Refutation) -> NoRegretError:
        return NoRegretError(refuted.what, advice=ANEW, topic="refuted")

    def refuse_empty(self) -> None:
        """Raises `NoRegretError`, since nothing that may be played is certified."""
        if unsafe := self.remarks.get("unsafe start"):
            raise NoRegretError(f"{unsafe} No other point is certified, so there is nothing left to play.")
        raise NoRegretError(
            "Nothing that may be played now is certified as safe: the points of `start` are not among it, or have "
            "failed. Let more be played, or begin again with another `start`.",
            advice=LOST,
            topic="lost",
        )


def _up(value: float) -> float:
    """Returns the next number of three digits, but for rounding."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2) if 0.0 < value < math.inf else 1.0
    return math.ceil(value / unit * (1.0 - SLACK)) * unit if math.isfinite(value) else value


def judged_by_slopes(scores: Array, view: TableView | PointView) -> Array:
    """Returns the scores of the certified candidates, or singles out a step towards a goal.

    A goal is a better point that is not certified and safe as the model expects. A step is a certified point whose
    answer is expected to bring the upper bound at the goal down. GoOSE (Turchetta, Berkenkamp & Krause 2019) expands in
    the same way, only where it may raise the best safe reward. Here a step must be worth what it costs, too.

    Args:
        scores: scores `(n,)`, -inf where a candidate may not be played.
        view: the round, with a `SlopeState`.
    """
    state = view.dual_state
    if not isinstance(state, SlopeState):
        raise TypeError("The state of a certificate by slopes is a `SlopeState`.")
    state.refuse()
    state.towards = None
    lower, upper = state.bounds(view.points, view.context)
    safe = allowed(lower, upper) & np.isfinite(scores)
    if not safe.any():
        if np.isfinite(scores).any():
            state.refuse_empty()
        return np.full(len(scores), -np.inf)
    certified = np.where(safe, scores, -np.inf)
    possible = ~safe & (lower <= 0.0).all(axis=1) & np.isfinite(upper).all(axis=1) & (scores > certified.max())
    if possible.any():
        goals = np.flatnonzero(possible & admitted(view.limits()))
        goals = goals[np.argsort(-scores[goals], kind="stable")[:MOST_GOALS]]
        step = _step(goals, np.flatnonzero(safe), scores, upper, view, state) if len(goals) else None
        if step is not None:
            chosen = np.full(len(scores), -np.inf)
            chosen[step[0]], state.towards = 0.0, view.points[step[1]].copy()
            return chosen
    return certified


def _step(
    goals: npt.NDArray[np.intp], places: npt.NDArray[np.intp], scores: Array, upper: Array,
    view: TableView | PointView, state: SlopeState,
) -> tuple[int, int] | None:  # fmt: skip
    """Returns the certified point of the step that is worth most, and its goal, or None if no step pays.

    A step that closes a share of the gap at a goal is worth that share of what the goal is better by. Values that are
    awaited count as the model expects them.
    """
    limits, sizes, best = view.limits(), view.limit_sizes, float(scores[places].max())
    mean, std = (np.array([getattr(limit, name) for limit in limits]).T for name in ("mean", "std"))
    told = mean + state.noise  # u_j after an answer there, as expected
    hope = ((upper[places] - told[places] + std[places]) / sizes).max(axis=1)
    places = places[np.argsort(-hope, kind="stable")[:MOST_PLACES]]
    rows = state.rows(view.points, view.context)
    awaited = np.flatnonzero(among(view.points, state.open_points(view.context)))
    gap, gain = np.zeros(len(goals)), np.zeros((len(places), len(goals)))
    for j, (metric, factor) in enumerate(zip(state.metrics, state.factors(view.context), strict=True)):
        ahead = told[awaited, j][:, None] + factor * metric(rows[awaited], rows[goals])
        above = np.minimum(upper[goals, j], ahead.min(axis=0, initial=np.inf))
        open_ = np.maximum(above, 0.0) / sizes[j]
        # U at the goal falls from `above` to u_j + d_j. Below 0 it need not fall.
        fall = above - told[places, j][:, None] - factor * metric(rows[places], rows[goals])
        near = metric(rows[places], rows[awaited]).min(axis=1, initial=np.inf)  # what awaited values leave to learn
        gain += np.minimum(_expected(fall / sizes[j], np.minimum(std[places, j], near)[:, None] / sizes[j]), open_)
        gap += open_
    share = np.where(gain >= FINE, np.minimum(gain / np.maximum(gap, FINE), 1.0), 0.0)
    worth = HORIZON * share * (scores[goals] - best) - (best - scores[places])[:, None]
    place, goal = np.unravel_index(worth.argmax(), worth.shape)
    pays = share[place, goal] > 0.0 and worth[place, goal] > 0.0
    return (int(places[place]), int(goals[goal])) if pays else None


def _expected(mean: Array, std: Array) -> Array:
    """Returns E[max(X, 0)] of a normal X, 0 where its mean is -inf."""
    finite, std = np.isfinite(mean), np.maximum(std, LEAST_STD)
    mean = np.where(finite, mean, 0.0)
    z = mean / std
    found = mean * np.exp(log_distribution(z)) + std * DENSITY * np.exp(-0.5 * z * z)
    return np.asarray(np.where(finite, found, 0.0))


GOALS = 4  # goals towards which ways lead: the point that was found, and the best candidates apart from it
STARTS = 8  # certified points from which each ascent starts
STEPS = 20  # steps of each ascent
Judged = Callable[[Array, PointView], Array]

LEADING = 64  # certified points on the border that are compared, by score and by what they tell of the goal


def cones_of(state: SlopeState, context: Array | None) -> Cones:
    """Returns the bounds of a state under a context, by the largest factor for all constraints."""
    factors = state.factors(context)
    return state.cones(context, np.full_like(factors, factors.max()))


def certified_point(point: Array, surface: AcquisitionFunction, view: PointView, judged: Judged) -> Array:
    """Returns the goal if it is certified, or else the certified point that `judged` prefers, `(d,)`.

    Args:
        point: the goal, where the search of the whole domain ended, `(d,)`.
        surface: score, less a penalty where constraints are violated for sure.
        view: the round.
        judged: scores of the points of a view, -inf where they are not to be played.
    """
    state: SlopeState = view.dual_state  # type: ignore[assignment]
    state.refuse()
    domain, cones = cast("Box | Space", view.domain), cones_of(state, view.context)
    search = CertifiedSearch(domain, cones)
    if search.good(point[None])[0]:
        return point
    others = leaders(view.points, view.of_candidates(surface), GOALS - 1, domain)
    goals = np.concatenate([point[None], others[~search.good(others)]])
    centres = search.centres(surface, goals)
    border = distinct(np.concatenate([centres, search.border(centres, goals), search.kept(view.points)]))
    nearer = informing(view, state, cones, goals[0])
    best, telling = _leading(surface, border), _leading(nearer, border)
    best, ends = _ascended(search, surface, best), _ascended(search, nearer, telling)
    ways = between(point, np.concatenate([best[-1:], ends[-1:]]), view)
    candidates = np.concatenate([goals, search.places, state.open_points(view.context), best, ends, ways])
    candidates = keeping_limits(domain, distinct(candidates))  # Others would be moved after they were certified.
    here = view.at(candidates)
    return np.asarray(candidates[int(judged(surface.values(candidates), here).argmax())].copy())


def _leading(surface: AcquisitionFunction, points: Array) -> Array:
    """Returns the best points by a surface, the best first, of those with a finite value."""
    values = surface.values(points)
    points, values = points[np.isfinite(values)], values[np.isfinite(values)]
    return points[np.argsort(-coarse(values), kind="stable")[:LEADING]] if len(points) else points


def _ascended(search: CertifiedSearch, surface: AcquisitionFunction, ranked: Array) -> Array:
    """Returns ranked certified points, and the ends of ascents from the first ones, the best end last."""
    if not len(ranked):
        return ranked
    at, values = search.ascend(surface, ranked[:STARTS], steps=STEPS)
    return np.concatenate([ranked, at[np.argsort(values, kind="stable")]])


def informing(view: PointView, state: SlopeState, cones: Cones, goal: Array) -> AcquisitionFunction:
    """Returns how low an answer may bring the upper bounds at a goal, in prior deviations: -(mu - sigma + E + d).

    Of several constraints the largest bound counts.
    """
    sizes = view.limit_sizes[:, None]

    def bounds(points: Array, limits: list[Envelope]) -> Array:
        means = np.array([limit.mean - limit.std for limit in limits])
        return np.asarray((means + state.noise[:, None] + cones.between(points, goal[None])[:, 0].T) / sizes)

    def both(points: Array) -> tuple[Array, Array]:
        found = view.limit_slopes(points)
        upper = bounds(points, [limit for limit, _, _ in found])
        rises = cones.factors[:, None] * np.array([metric.weights[cones.before :] for metric in state.metrics])
        slopes = [
            (by_mean - by_std + np.sign(points - goal) * rise) / size
            for (_, by_mean, by_std), rise, size in zip(found, rises, sizes, strict=True)
        ]
        worst, rows = upper.argmax(axis=0), np.arange(len(points))
        return -upper[worst, rows], -np.array(slopes)[worst, rows]

    return AcquisitionFunction(lambda points: -bounds(points, view.limits(points)).max(axis=0), both)
