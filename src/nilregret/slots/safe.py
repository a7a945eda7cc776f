"""Constraints that no round may violate: only certified points are played.

| symbol | name | meaning | shape |
|---|---|---|---|
| delta | `delta` | probability that a run violates anything | scalar |
| P(g_j > 0) | `risk` | posterior probability of a violation, summed over the constraints | (n,) |
| U_j | `limit.upper` | upper bounds of g_j | (n,) |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, finite_array, flag, number, one_of, settle
from .._utils.copying import Copyable
from .._utils.dataclass import field, replace
from .._utils.numerals import numeral
from ..domains.coordinates import named_points
from ..domains.distances import Metric, Slope, check_numbers, has_names, packed
from ..domains.domain import Arms, Domain, among, keeping_limits, refuse_outside_limits
from ..domains.search.boxes import AcquisitionFunction, real_columns
from ..errors import InvalidInput, NoRegretError
from ..kernels import Kernel
from ..kernels.domains import prior_std
from ..serialize import LATER, description
from ..storage.record import Trial
from .base import Policy
from .constraints import ANCHORS, AROUND, Constraints, Mask, between, nearest, one_for, penalised, risk, violation
from .envelope import DualState, Envelope, Expected, checked_delta
from .safe_check import LikelihoodCheck, Model, deviation
from .scores import PointView, TableView
from .slopes import LOST, SlopeState, certified_point, cones_of, judged_by_slopes

PATIENCE = 16  # values at the points of `start`, after which a step away from them is overdue


@final
class SafetyState(Copyable, DualState):
    """Points played under each context, constraint values told there, and the part of delta not yet spent.

    Args:
        start: points `(k, d)` that are safe for sure.
        delta: probability that a run may violate a constraint.
        bounded: whether certificates come from bounds instead of posterior probabilities.
        learned: whether the scale of a constraint is learned.
        check: test of the stated models, or None if nothing is stated that a likelihood could test.
    """

    watches = True
    OWNED = ("_certified", "_sums", "_unsafe", "_check")
    OWNED_EACH = ("_values",)

    def __init__(
        self, start: Array, delta: float, *, bounded: bool, learned: bool, check: LikelihoodCheck | None = None
    ) -> None:
        self._start, self._delta, self._bounded, self._learned = start, delta, bounded, learned
        self._check = check
        self._certified: dict[tuple[bytes, bytes], tuple[int, Array, float]] = {}  # first trial, point, its risk
        self._values: dict[tuple[bytes, bytes], dict[int, Array]] = {}  # constraint values by trial
        self._sums: dict[tuple[bytes, bytes], Array] = {}  # sums of these values
        self._unsafe: dict[tuple[bytes, bytes], Array] = {}  # points where one of these sums is above 0
        self._first = 0  # first trial that counts
        self._contradiction: tuple[int, str] | None = None  # trial whose value contradicts the prior, and a sentence
        self._unsafe_trial: int | None = None  # the last trial of `start` that was asked although unsafe by its values

    @property
    def remaining_delta(self) -> float:
        """Part of delta that is not yet spent."""
        return max(self._delta - sum(risk for _, _, risk in self._certified.values()), 0.0)

    @property
    def closed(self) -> bool:
        """True if no new point is certified.

        The reason is a value that contradicts the prior, or a scale to be learned without any value yet.
        """
        return self._contradiction is not None or (self._learned and not self._values)

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings by kind: a contradicted prior, a scale that is never learned, an unsafe `start`."""
        said = {} if self._contradiction is None else {"contradiction": self._contradiction[1]}
        if self._is_stuck():
            said["stuck"] = (
                f"{PATIENCE} or more constraint values have been told at points of `start`, and with a `scale` that is "
                "learned no step away from them has been certified that would pay. Usually the next points are too far "
                "away for what values at `start` say of them. Give a `scale`, more points of `start`, or finer arms."
            )
        if self._unsafe_trial is not None:
            said["unsafe start"] = (
                f"Nothing that could be played was certified. So trial {self._unsafe_trial} is at the point of `start` "
                "whose constraint values are lowest, and they were above 0 on average. Usually the values do not lie "
                "at 0 where the limit is just met, or have the other sign. Look at them, and give a `start` that is "
                "safe."
            )
        return said

    def _is_stuck(self) -> bool:
        """Returns True if many values came from `start` alone, so that the scale is never learned."""
        if len(self._values) > len(self._start) or not self._learned:
            return False  # Several contexts take longer.
        if sum(map(len, self._values.values())) < PATIENCE:
            return False
        return bool(among(np.array([np.frombuffer(point) for _, point in self._values]), self._start).all())

    def average_at(self, context: Array | None, point: Array) -> Array | None:
        """Returns the average of the constraint values at a point, `(m,)`, or None before the first."""
        key = (_key(context), point.tobytes())
        return np.asarray(self._sums[key] / len(self._values[key])) if key in self._values else None

    def unsafe_points(self, context: Array | None) -> list[Array]:
        """Returns the points at which the values of some g_j are above 0 on average."""
        key = _key(context)
        return [point for (under, _), point in self._unsafe.items() if under == key]

    def certified_points(self, context: Array | None) -> list[Array]:
        """Returns the points played under a context that need no further certificate.

        Under bounds there are none.
        """
        if self._bounded:
            return []
        key = _key(context)
        return [point for (under, _), (_, point, _) in self._certified.items() if under == key]

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:
        """Spends the risk of a point when the point is asked for the first time."""
        key = (_key(trial.context), trial.point.tobytes())
        if key in self._unsafe and not trial.enqueued:
            self._unsafe_trial = trial.number
        if key in self._certified or self._bounded:
            return
        share = 0.0 if (self._start == trial.point).all(axis=1).any() else float(risk(limits())[0])
        self._certified[key] = (trial.number, trial.point, share)

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:
        """Records the constraint values of a trial, and the first value that contradicts its prediction."""
        if trial.number < self._first or trial.constraints is None:
            return
        key = (_key(trial.context), trial.point.tobytes())
        repeated = key in self._values
        if self._check is not None:
            self._check.record(trial, trial.constraints)
        if self._contradiction is None:
            if self._check is None or self._check.ends:
                said = deviation(trial, expected(), bounded=self._bounded, repeated=repeated)
            else:
                said = self._check.contradiction()
            self._contradiction = None if said is None else (trial.number, said)
        self._values.setdefault(key, {})[trial.number] = trial.constraints
        self._sums[key] = self._sums.get(key, 0.0) + trial.constraints
        if (self._sums[key] > 0.0).any():
            self._unsafe[key] = trial.point
        else:
            self._unsafe.pop(key, None)

    def forget_before(self, first: int) -> None:
        """Drops the points, values and risks of earlier trials."""
        self._first = first
        self._certified = {key: value for key, value in self._certified.items() if value[0] >= first}
        kept = {key: {n: values for n, values in told.items() if n >= first} for key, told in self._values.items()}
        self._values = {key: told for key, told in kept.items() if told}
        self._sums = {key: np.sum(list(told.values()), axis=0) for key, told in self._values.items()}
        self._unsafe = {key: np.frombuffer(key[1]) for key, total in self._sums.items() if (total > 0.0).any()}
        if self._contradiction is not None and self._contradiction[0] < first:
            self._contradiction = None
        if self._unsafe_trial is not None and self._unsafe_trial < first:
            self._unsafe_trial = None
        if self._check is not None:
            self._check.forget_before(first)


def _key(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()


SHARE = 0.2  # share of the remaining delta that one point may spend
MOST_GOALS, MOST_PLACES = 64, 128  # largest numbers of goals and of certified points in the choice of a step
INFORMS = 0.2  # prior deviations by which a reward must be able to move the goal, to be worth a step
NO_SCALE = (
    "`slope` and `scale` are missing: `Safe` certifies by how steep or how large the constraint is, and a unit would "
    "be a guess, of degrees, milliseconds or dollars a bad one. Give `slope`, the largest change of the constraint per "
    "unit of each parameter, with the largest error of a value as `noise`. Or give `scale`, a standard deviation of "
    "the constraint over the domain in its own units (about a quarter of its range), or a `kernel` of the constraint, "
    "or have it learned from small steps around `start` (`scale` 'learned')."
)


@final
@description(frozen=True, kw_only=True)
class Safe(Constraints):
    """No round may violate a constraint: only certified points are played, and those of `start`.

    With `slope`, a point is certified if an answer at x_i proves it: y_i + E + c sum_p slope_p |x_p - x_ip| <= 0. Here
    E is the noise bound, and c is `caution` (LoSBO: Fiedler, Menn, Kreiskoether & Trimpe 2024, with c = 1). If E is
    true, and no slope is more than c times as steep as told, no run violates anything. Only whole points of
    `enqueue` are played as they are. The model of the constraint only guides, so it may be learned. If two answers
    differ by more than the slopes as told and 2 E allow, they refute them.
    `ask` then raises an error with both trials and what would fit. Slopes told too small should be refuted before
    they do harm. So the first steps are short: c is up to 4, until answers lie far apart in units of E.

    Without `slope` a model certifies. With certificate="posterior", a point is certified if its violation probability
    sum_j P(g_j > 0) is at most a fifth of the remaining delta. Its first play spends that probability. From then on it
    stays certified: whether it violates a constraint no longer matters for further rounds. Each probability is
    conditional on the data at the choice of the point. Therefore a run of any length violates a constraint with
    probability at most delta. This holds for g_j that are samples of the Gaussian process with Gaussian noise of the
    stated variance (the setting of Srinivas et al. 2010, Theorem 1). With certificate="bounds", a point is certified if
    U_j <= 0 for all j, under the assumptions of the bounds of `confidence`. These hold at all points at once, so they
    certify less.

    Without `slope`, a point where the values of some g_j are above 0 on average is not certified, not even
    in `start`. If nothing else is left, the point of `start` with the lowest values is played, with a warning.

    Values that contradict the model end the expansion. With certificate="posterior", all values at the first 128
    places are tested together by a likelihood ratio against shorter lengthscales, larger scales and more noise (see
    `nilregret.slots.safe_check`). If all is as stated, it ends the expansion of a run with probability at most .05,
    apart from `delta`. Later values, values under a learned scale, and values under bounds are compared with their
    predictions one by one. A value contradicts the model if it lies 4 standard deviations off, or 6 at a point with
    earlier values. Under bounds these are standard deviations of the noise beyond them.

    The goal is the point that `EveryRound` would play. If the goal is certified, it is played. Otherwise `Safe` may
    take a step. It considers the goals that values at certified points can move, and takes the best of them. A step
    pays only if this goal is better than all certified points. It then plays the certified point that moves the
    constraints at this goal most. Turchetta et al. 2019, GoOSE, expand in the same way only where it may pay. If no
    step pays, it plays the best certified point. A point that certified steps cannot reach is never played, however
    good it is.

    Attributes:
        start: points `(k, d)`, or dictionaries of parameters, that satisfy all constraints for sure, in every context.
        slope: largest change of each g_j per unit of a parameter (per decade, if it is logarithmic), by name. Of a
            choice, the largest change between any two options, or a table `{"low": {"high": 8.0}}`. None, or
            `math.inf`, never changes a parameter. Without names, a number for all coordinates, or one for each. One
            for all constraints, or a tuple of m. Parameters of a context may be named, so that answers count under
            other contexts.
        noise: with `slope`, E: the largest error of a constraint value. Without, a standard deviation.
        independent: with `slope`, whether errors are independent with mean 0. Averages of repeated values then bound g
            more closely, but with probability `delta` at some point.
        caution: with `slope`, c: the factor of slopes in certificates after the short first steps. 1
            takes slopes as told, from the first step on.
        scale: standard deviation of each g_j over the domain, in its units, one for all or a tuple of m. The kernel (of
            the constraint or the policy) is brought to this scale. It is needed without `slope` and `kernel`. "learned"
            takes a large scale and a short lengthscale given the data (`nilregret.slots.constraints`). Then
            nothing is proved, and the first steps are small. "kernel" keeps the kernel's scale, for constraints in the
            units of the reward.
        certificate: "posterior", or "bounds" for proved bounds.
        delta: probability that a run may violate a constraint, for certificate="posterior". A cut of the memory begins
            again with all of delta. Under a window, first plays before the window count no more. Then delta holds for a
            period of that length.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> limits = nr.Safe(start=[[0.0]], slope=2.0, noise=0.1)
    >>> study = nr.Study(nr.gp_ucb(arms, kernel, noise=0.1, constraints=limits))
    >>> study.ask().point  # nothing else is certified yet
    array([0.])
    >>> _ = study.tell(study.trials[0], 0.0, constraints=[-1.0])
    >>> study.feasible([[0.1], [0.2]])  # -1 + 0.1 + 4 * 2 * 0.1 <= 0, for the first step is short
    array([1., 0.])
    """

    start: Sequence[Any]
    slope: Slope | None = field(default=None, metadata=LATER)
    scale: float | str | tuple[float | str, ...] | None = None
    certificate: Literal["posterior", "bounds"] = "posterior"
    delta: float = 0.05
    independent: bool = field(default=False, metadata=LATER)
    caution: float = field(default=1.5, metadata=LATER)

    certifies: ClassVar[bool] = True
    hallucinates: ClassVar[bool] = False  # A variance that counts missing rewards as observed certifies nothing.

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
            settle(self, start=tuple(map(tuple, points.tolist())))
        else:  # The policy encodes them, since it has the domain.
            settle(self, start=tuple(map(dict, named)))
        if self.scale is not None:
            settle(self, scale=self._each("scale", self.scale, _checked_scale))
        why = "It multiplies the slopes in certificates."
        settle(
            self,
            independent=flag("independent", self.independent),
            caution=number("caution", self.caution, low=1.0, high=LARGEST_REWARD, why=why),
        )
        if self.slope is not None:
            self._settle_slope()
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

    def _settle_slope(self) -> None:
        check_numbers(self.slope)
        slope = packed(self.slope)
        each = isinstance(slope, tuple) and self.count > 1 and not has_names(slope)
        settle(self, slope=self._each("slope", slope) if each else slope)
        if self.noise is None:
            raise InvalidInput(
                "`slope` is given, and `noise` is missing: it is the largest error of a constraint value, in its "
                "units. Give a bound that no error exceeds, such as four standard deviations of a sensor, or 0."
            )
        if self.certificate != "posterior" or any(self.learns(j) for j in range(self.count)):
            raise InvalidInput(
                "`slope` certifies by itself: leave `certificate` out, and `scale` or give a number. The scale only "
                "guides which certified point is played."
            )

    @property
    def fitted(self) -> bool:
        """True if kernels of the constraints may be learned, since slopes certify and kernels only guide."""
        return self.slope is not None

    def _slope(self, j: int) -> Slope:
        each = isinstance(self.slope, tuple) and self.count > 1 and not has_names(self.slope)
        return self.slope[j] if each else self.slope  # type: ignore[return-value,index]

    def metrics(self, domain: Domain, context: Domain | None) -> list[Metric]:
        """Returns the distance of each constraint.

        Raises:
            InvalidInput: `slope` is missing for a parameter, is 0, or names no parameter.
        """
        return [Metric(self._slope(j), domain, context) for j in range(self.count)]

    def within(self, domain: Domain) -> Safe:
        """Returns the constraints with the points of `start` encoded by the domain."""
        try:
            named = named_points(self.start) is not None
            points = domain.inside("start", self.start if named else np.array(self.start))
            refuse_outside_limits(domain, points, "A point of `start`")
        except InvalidInput as error:  # A study of `Safe` is not widened, so it has no such advice.
            kept = error if error.topic != "range" else error.advised("")
            raise kept.within("start").within("constraints") from error
        return replace(self, start=tuple(map(tuple, points.tolist())))

    def kernel_of(self, policy: Policy, j: int) -> Kernel:
        """Returns the kernel of constraint j, counted from 0, at the stated scale."""
        kernel, scale = super().kernel_of(policy, j), one_for(self.scale, j)
        if self.slope is not None and scale is None and self.kernel is None and policy.refit is None:
            reach = Metric(self._slope(j), policy.domain, policy.context).reach
            scale = reach / 4.0 if reach > 0.0 else None  # about a quarter of the range
        if not isinstance(scale, float):
            return kernel
        return (scale / prior_std(policy.domain, policy.context, kernel)) ** 2 * kernel

    def takes_ridge(self, policy: Policy) -> bool:
        """Returns True for bounds of a theorem that fixes lambda. A posterior certificate needs the stated noise."""
        return self.certificate == "bounds" and (policy.confidence.own_ridge or self.noise is None)

    def learns(self, j: int) -> bool:
        """Returns True if the scale of constraint j, counted from 0, is learned cautiously."""
        return bool(one_for(self.scale, j) == "learned")

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for policies in which nothing could be certified.

        Scales must be known, functions must stay the same, and the kernel must be given. No round may be forced, and
        bounds must be proved.
        """
        super().check(policy)
        if self.slope is not None:
            try:
                self.metrics(policy.domain, policy.context)
            except InvalidInput as error:
                raise error.within("constraints") from error
        elif self.scale is None and self.kernel is None:
            raise InvalidInput(
                NO_SCALE, advice="Such as `nr.Safe(start=points, scale=25.0, noise=0.5)`.", places=("constraints",)
            )
        if policy.explore.ever:
            raise InvalidInput(
                f"`{type(policy.explore).__name__}` forces rounds that nothing has certified, and `Safe` plays nothing "
                "else: leave `explore` out, or take `EveryRound`."
            )
        if policy.refit is not None and not self.fitted:
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

    def _check_bounds(self, policy: Policy) -> None:
        for j in range(self.count):
            bounds = policy.of_channel(j + 1)
            if self.learns(j) or bounds.valid_for == "none":
                raise InvalidInput(
                    f"`certificate` 'bounds' certifies by bounds that hold, and nothing is proved for those of "
                    f"constraint {j + 1} (`valid_for` is 'none'): `{type(bounds.confidence).__name__}` with lambda "
                    f"{numeral(bounds.regularization, 6)}, noise {numeral(bounds.noise, 6)}"
                    f"{' and a scale that is learned' if self.learns(j) else ''}. Usually the width is no theorem's, "
                    "lambda is not the theorem's, or the memory forgets. Take `certificate` 'posterior', or give the "
                    "policy a width that is proved.",
                    advice="Such as those of `gp_ucb`.",
                )

    def of_channel(self, policy: Policy, j: int) -> dict[str, Any]:
        """Returns the parts that constraint j, counted from 0, has of its own. Half of a noise bound is its std."""
        if self.slope is None:
            return super().of_channel(policy, j)
        noise = tuple(0.5 * one_for(self.noise, i) for i in range(self.count))
        return Constraints.of_channel(replace(self, noise=noise), policy, j)

    def begin(self, policy: Policy) -> DualState:
        """Returns a state without plays, with all of delta."""
        if self.slope is not None:
            noise = np.array([one_for(self.noise, j) for j in range(self.count)], dtype=np.float64)
            domain, metrics = policy.domain, self.metrics(policy.domain, policy.context)
            arms = domain.points if isinstance(domain, Arms) else None
            moving = [metric.weights[-domain.dimension :] > 0.0 for metric in metrics]
            return SlopeState(
                np.array(self.start), metrics, noise, delta=self.delta if self.independent else None,
                caution=self.caution, arms=arms,
                steps=arms is not None or bool((real_columns(domain) & np.all(moving, axis=0)).any()),
            )  # fmt: skip
        learned = any(self.learns(j) for j in range(self.count))
        bounded, check = self.certificate == "bounds", None
        if not bounded and not learned:
            stated = [policy.of_channel(j + 1) for j in range(self.count)]
            check = LikelihoodCheck([Model(each.kernel, each.noise, each.prior_mean) for each in stated])
        return SafetyState(np.array(self.start), self.delta, bounded=bounded, learned=learned, check=check)

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Returns the scores of the certified candidates, or singles out a step towards a goal."""
        if self.slope is not None:
            return judged_by_slopes(scores, view)
        limits = view.limits()
        safe, unsafe = self._safe(limits, view.points, view.dual_state, view.context)
        if not (safe & np.isfinite(scores)).any():
            return self._least_unsafe(scores, view)
        exempt = self._exempt(view.points, view.dual_state, view.context)
        hoped = np.where(~unsafe & (exempt | (violation(limits, view.limit_sizes) <= 0.0)), scores, -np.inf)
        certified = np.where(safe, scores, -np.inf)
        goal = int(hoped.argmax())
        if not np.isfinite(hoped[goal]) or safe[goal] or np.isneginf(self._accepted(view.dual_state)):
            return certified
        place = self._step(certified, np.where(safe, -np.inf, hoped), view)
        if place is None:
            return certified
        chosen = np.full(len(scores), -np.inf)
        chosen[place] = 0.0
        return chosen

    def _least_unsafe(self, scores: Array, view: TableView | PointView) -> Array:
        """Returns scores of the points of `start` that may be played, highest where values are lowest.

        Raises:
            NoRegretError: if no point of `start` may be played.
        """
        state = view.dual_state
        found = np.full(len(scores), -np.inf)
        for place in np.flatnonzero(self._in_start(view.points) & np.isfinite(scores)):
            told = state.average_at(view.context, view.points[place]) if isinstance(state, SafetyState) else None
            found[place] = 0.0 if told is None else -float((told / view.limit_sizes).max())
        if np.isneginf(found).all() and np.isfinite(scores).any():
            raise NoRegretError(
                "Nothing that may be played now is certified as safe, so there is nothing left: the points of `start` "
                "are not among it, or have failed. Let more be played, or begin again with another `start`.",
                advice=LOST,
                topic="lost",
            )
        return found

    def _step(self, certified: Array, hoped: Array, view: TableView | PointView) -> int | None:
        """Returns the certified point that moves the best reachable goal most, or None if no step pays.

        Args:
            certified: scores `(n,)`, -inf at points that are not certified.
            hoped: scores of the other points that may be feasible, `(n,)`, -inf elsewhere.
            view: the round.
        """
        limits = view.limits()
        goals = np.flatnonzero(hoped > certified.max(initial=-np.inf))
        places = np.flatnonzero(np.isfinite(certified))
        if not len(goals) or not len(places):
            return None
        doubt = self._doubt(limits)
        # These are nearly certified, and the likeliest to be reached.
        goals = goals[np.argsort(doubt[goals], kind="stable")[:MOST_GOALS]]
        spread = np.max([limit.std / size for limit, size in zip(limits, view.limit_sizes, strict=True)], axis=0)
        places = places[np.argsort(-spread[places], kind="stable")[:MOST_PLACES]]
        accepted = self._accepted(view.dual_state)
        open_ = np.array([self._doubt([limit])[goals] for limit in limits]) > accepted / len(limits)
        moves = (view.informs(places, goals) * open_[:, None, :]).max(axis=0)  # Certified constraints need no values.
        reached = np.where(moves.max(axis=0) >= INFORMS, hoped[goals], -np.inf)
        best = int(reached.argmax())
        return None if np.isneginf(reached[best]) else int(places[moves[:, best].argmax()])

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """Returns the acquisition function of the goal, as `EveryRound` does, with the bounds by slopes."""
        state = view.dual_state
        if isinstance(state, SlopeState):
            return penalised(surface, view, cones_of(state, view.context))
        return penalised(surface, view)

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """Returns the goal if it is certified, or the certified point around it that `judged` prefers."""
        if self.slope is not None:
            return certified_point(point, surface, view, self.judged)
        started = np.array(self.start)
        everywhere = np.concatenate([view.tried(), view.points])
        around = np.concatenate([nearest(at, everywhere, view, AROUND) for at in (point, *started[:ANCHORS])])
        anchors = np.concatenate([started, around])
        safe, _ = self._safe(view.limits(anchors), anchors, view.dual_state, view.context)
        paths = between(point, nearest(point, anchors[safe], view, ANCHORS), view)
        candidates = keeping_limits(view.domain, np.unique(np.concatenate([point[None], anchors, paths]), axis=0))
        here = view.at(candidates)
        return np.asarray(candidates[int(self.judged(surface.values(candidates), here).argmax())].copy())

    def _accepted(self, state: DualState) -> float:
        """Returns the largest accepted doubt, -inf if no new point is certified."""
        if not isinstance(state, SafetyState) or state.closed:
            return -math.inf
        return SHARE * state.remaining_delta if self.certificate == "posterior" else 0.0

    def _doubt(self, limits: Sequence[Envelope]) -> Array:
        """Returns sum_j P(g_j > 0), or max_j U_j, `(n,)`."""
        if self.certificate == "bounds":
            return np.asarray(np.max([limit.upper for limit in limits], axis=0))
        return risk(limits)

    def _safe(
        self, limits: Sequence[Envelope], points: Array, state: DualState, context: Array | None
    ) -> tuple[Mask, Mask]:
        """Returns a mask of the certified points, and one of the points that are unsafe by their own values."""
        unsafe = among(points, state.unsafe_points(context) if isinstance(state, SafetyState) else [])
        safe = self._exempt(points, state, context) | (self._doubt(limits) <= self._accepted(state))
        return safe & ~unsafe, unsafe

    def _in_start(self, points: Array) -> Mask:
        """Returns a mask `(n,)` of the points in `start`."""
        return among(points, self.start)

    def _exempt(self, points: Array, state: DualState, context: Array | None) -> Mask:
        """Returns a mask `(n,)` of the points that need no further certificate."""
        exempt = state.certified_points(context) if isinstance(state, SafetyState) else []
        return self._in_start(points) | among(points, exempt)

    def certain(self, limits: Sequence[Envelope], points: Array, state: DualState, context: Array | None) -> Array:
        """Returns 1.0 for points that are certified now and 0.0 for the others."""
        if isinstance(state, SlopeState):
            return state.certified(points, context).astype(np.float64)
        return self._safe(limits, points, state, context)[0].astype(np.float64)


def _checked_scale(scale: object) -> float | str:
    """Returns a valid standard deviation, or "learned" or "kernel"."""
    if isinstance(scale, str):
        why = "Or give a standard deviation of the constraint over the domain, in its units."
        return one_of("scale", scale, ["learned", "kernel"], advice=why)
    why = "It is a standard deviation of the constraint over the domain, in its units."
    return number("scale", scale, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)
