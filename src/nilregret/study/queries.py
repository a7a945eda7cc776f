"""Queries of a study: its trials, predictions, bounds and best trial. They change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen, integer, shown
from .._utils.public import attributes_of_others
from ..domains.domain import Arms, D, Space
from ..errors import InvalidInput, TrialError
from ..kernels import Kernel
from ..policy.availability import Available, Some, available
from ..policy.policy import Policy
from ..policy.state import State
from ..slots.constraints import OnAverage
from ..slots.envelope import Envelope
from ..slots.memory import Evidence
from ..slots.no_worse import Standing
from ..slots.objective import satisfying
from ..slots.refit import Lengthscales, Refitted
from ..storage.changes import ARM_KINDS, StudyChange
from ..storage.trial import Trial
from .best import Certainty, at_full, best_trial, certainty, has_budget
from .cautions import of_deadlines
from .definition import RULE
from .direction import AnyPolicy, AnyState, Goal, as_given, check_one_objective, has_channels, negated, told_envelope
from .inputs import DRAWS, Inputs, PlacesOfTrials
from .lessons import places_of
from .queue import Enqueued
from .replica import Replica
from .slates import left_for
from .spaces import Arm

if TYPE_CHECKING:
    import pandas as pd

    from ..storage import Storage
    from .explanation import Explanation, PosteriorBand
    from .front import Front, Mix
    from .importance import Importance
    from .pruning import Pruned

R = TypeVar("R")


class FitRecord(NamedTuple):
    """Hyperparameters that came into force with a trial.

    Attributes:
        trial: number of the first trial that was decided with them.
        channel: 0 for the reward, j for output j: objectives first, then constraints.
        kernel: in the units of the points, for standardised rewards.
        noise: standard deviation of the noise, reward units.
        mean: prior mean of the process, reward units.
        unit: reward units of one unit of the kernel.
        warp: transformation of rewards (of minus the losses) before the fit, as plain values, or None.
    """

    trial: int
    channel: int
    kernel: Kernel
    noise: float
    mean: float
    unit: float
    warp: dict[str, Any] | None


def fits_of(trials: Iterable[Trial], goals: Sequence[Goal]) -> list[FitRecord]:
    """Returns all fits on record, by trial and channel. Those of an objective that is minimised are of losses."""
    found = []
    for trial in trials:
        for channel, _, values in trial.fits or ():
            kernel, ridge, scale, _ = Refitted.of(values)
            mean, unit = scale.mean, scale.std
            mean = negated(mean) if "minimize" in goals[channel : channel + 1] else mean
            found.append(FitRecord(trial.number, channel, kernel, math.sqrt(ridge) * unit, mean, unit, values["warp"]))
    return found


def multiplier_history(policy: AnyPolicy, state: AnyState, trials: Sequence[Trial]) -> tuple[IndexArray, Array]:
    """Returns the trials that were asked for, and the multipliers of each decision.

    Args:
        policy: of the study.
        state: after all these trials.
        trials: by number.

    Returns:
        Numbers `(n,)` and multipliers `(n, m)`. m is 0 if the policy has no multipliers.
    """
    first = [trial.as_corrected() if trial.corrected else trial for trial in trials]
    asked = [trial for trial in first if trial.asked_order != trial.told_order]
    numbers = np.array([trial.number for trial in asked], dtype=np.intp)
    if isinstance(policy, Policy) and policy.constraints is not None and policy.constraints.on_average:
        return numbers, _on_average(cast(OnAverage, policy.constraints), first, asked)
    steps = state.price_steps
    if not steps or not np.isfinite(steps[0][1]).all():  # The multipliers of ADMM belong to other constraints.
        return numbers, np.zeros((len(numbers), 0))
    since = np.array([rounds for rounds, _ in steps])
    return numbers, np.array([values for _, values in steps])[np.searchsorted(since, numbers, side="right") - 1]


def _on_average(world: OnAverage, trials: Sequence[Trial], asked: Sequence[Trial]) -> Array:
    """Returns phi_j <- clip(phi_j + step g_j, 0, most) at the start of each epoch (see `OnAverage`), `(n, m)`."""
    epochs = np.array([trial.number // world.epoch for trial in asked], dtype=np.int64)
    steps = np.flatnonzero(np.diff(epochs, prepend=0))  # Decisions that follow a step.
    sums = world.step / world.epoch * _told(world.count, trials, asked, steps)
    values = np.zeros((len(steps) + 1, world.count))
    for j in range(world.count):
        values[1:, j] = list(_walk(sums[:, j].tolist(), world.most))
    return values[np.searchsorted(steps, np.arange(len(asked)), side="right")]


def _told(count: int, trials: Sequence[Trial], asked: Sequence[Trial], steps: IndexArray) -> Array:
    """Returns the sums of constraint values told between two steps, `(len(steps), count)`."""
    limited = [trial for trial in trials if trial.constraints is not None]
    orders = [trial.told_order if trial.constraints_order is None else trial.constraints_order for trial in limited]
    # Each value counts from the next decision on. Values for the same decision are summed by number.
    places = np.searchsorted(np.array([trial.asked_order for trial in asked]), np.array(orders, dtype=np.int64))
    by_place = np.argsort(places, kind="stable")
    sums = np.zeros((len(steps) + 1, count))  # The last row is for values after the last step.
    told = [trial.constraints for trial in limited if trial.constraints is not None]
    g = np.concatenate([np.zeros(0), *told]).reshape(-1, count)
    np.add.at(sums, np.searchsorted(steps, places[by_place]), g[by_place])  # In order, to round as the state does.
    return sums[:-1]


def _walk(sums: list[float], most: float) -> Iterator[float]:
    price = 0.0
    for total in sums:
        price = min(max(price + total, 0.0), most)
        yield price


class Queries(Generic[D]):
    """The queries of a study. Each first reads what other processes recorded."""

    if not TYPE_CHECKING:  # A type checker would take any name for an attribute.
        __getattr__ = attributes_of_others(
            **dict.fromkeys(
                ("best_value", "best_params", "best_parameters", "best_point", "best_trial"),
                "`study.best()` is the best trial, with `reward`, `parameters` and `point`.",
            ),
            best_trials="`study.front()` has the trials of the front.",
            optimize="`nr.run(study, objective, trials=...)` does so.",
        )

    goals: tuple[Goal, ...]
    seed: int
    about: dict[str, Any]
    replica: Replica

    @property
    def goal(self) -> Goal | tuple[Goal, ...]:
        """The goal as given: a word, or a tuple with one for each of several objectives."""
        return as_given(self.goals)

    @property
    def policy(self) -> AnyPolicy:
        """The policy as given, on all arms of now: also those added since, and the retired ones."""
        return self.replica.policy

    @property
    def inputs(self) -> Inputs:
        """Checks of rewards, constraint values, contexts and points."""
        return self.replica.inputs

    @property
    def arms(self) -> list[Arm]:
        """The arms by number, with their names, and which are retired (see `nilregret.study.spaces.Arm`).

        Raises:
            InvalidInput: the policy plays no `Arms`.
        """
        with self.replica.lock:
            self.replica.sync()
            return self.replica.roster.listed()

    @property
    def changes(self) -> Sequence[StudyChange]:
        """The changes on record that are no events of trials (see `nilregret.storage.record.StudyChange`)."""
        with self.replica.lock:
            self.replica.sync()
            return self.replica.record.changes

    @property
    def arm_changes(self) -> Sequence[StudyChange]:
        """The changes of arms on record, in order."""
        return tuple(change for change in self.changes if change.kind in ARM_KINDS)

    @property
    def enqueued(self) -> list[Enqueued]:
        """The points that wait to be tried first, in order (see `Study.enqueue`)."""
        with self.replica.lock:
            self.replica.sync()
            return self.replica.queue.listed(self.policy.domain)

    def offered(self, among: Some | None, exclude: Some | None) -> Available:
        """Returns the points that a decision may play, for programs that serve studies (see `Study.ask`).

        Raises:
            InvalidInput: nothing is left to play.
        """
        found = self.replica.checked(lambda: available(self.policy.domain, among, exclude))
        with self.replica.lock:
            return found._replace(points=frozen(self.inputs.points.of(found.points, self.replica.trials)))

    @property
    def trials(self) -> Sequence[Trial[D]]:
        """All trials by number, those of other processes included."""
        with self.replica.lock:
            self.replica.sync()
            return self.replica.trials

    @property
    def fits(self) -> list[FitRecord]:
        """Hyperparameters that were fitted, in the order in which they came into force.

        Each names the first trial that was decided with them (see `nilregret.study.queries.FitRecord`).
        """
        with self.replica.lock:
            self.replica.sync()
            return fits_of(self.replica.record, self.goals)

    @property
    def storage(self) -> Storage | None:
        """The storage of the record, or None if the record is in memory alone."""
        return None if self.replica.handle is None else self.replica.handle.storage

    def _repr_html_(self) -> str:
        from .formatting import study_html

        return study_html(self.policy, self.goals, self.trials, caption=repr(self), about=self.about)

    def to_pandas(self) -> pd.DataFrame:
        """Returns all trials as a table, a row each: columns "parameters.NAME" or "point.0", "reward", and so on.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([3.0], 0.5)
        >>> study.to_pandas()[["number", "state", "reward"]].values.tolist()
        [[0, 'observed', 0.5]]
        """
        from . import export

        return export.to_pandas(self.policy, self.trials, self.replica.roster.columns)

    def export(self, path: str | Path) -> Path:
        """Writes all trials to a file and returns its path.

        Args:
            path: of a file that ends in .csv, .jsonl (an object each), .parquet or .arrow. If it is there, it is
                replaced.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([3.0], 0.5)
        >>> _ = study.export("trials.csv")
        >>> from pathlib import Path
        >>> len(Path("trials.csv").read_text().splitlines())  # the names of the columns, and a trial
        2
        """
        from . import export

        return export.write(self.policy, self.trials, path, extra=self.replica.roster.columns)

    def predict(
        self,
        points: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        context: npt.ArrayLike | None = None,
        channel: int = 0,
    ) -> tuple[Array, Array]:
        """Returns the posterior mean and standard deviation of the reward at n points, each `(n,)`.

        Noise is not included. If the goal is to minimise, the numbers are those of the loss. Under multipliers, the
        posterior is that of the reward minus the charge for violations (the loss plus the charge).

        If rewards are warped (`nr.auto`, `nr.slots.Refit`), the posterior of the warped reward is normal. The numbers
        are those of the reward behind it. Its posterior is skew, so draw the band from `bounds`.

        Args:
            points: `(n, d)`, a dict of parameters, a list of dicts, or a table. None for all arms.
            context: context of the prediction, if the policy has contexts.
            channel: see `bounds`.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([3.0], 0.5)
        >>> mean, std = study.predict([[3.0], [9.0]])
        >>> mean.round(2), std.round(2)
        (array([0.5 , 0.01]), array([0.1, 1. ]))
        """
        envelope = self._envelope(points, context, channel)
        return envelope.mean, envelope.std

    def bounds(
        self,
        points: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        context: npt.ArrayLike | None = None,
        channel: int = 0,
    ) -> tuple[Array, Array]:
        """Returns the policy's lower and upper confidence bounds in the next round at n points, each `(n,)`.

        If rewards are warped, the bounds are quantiles of the posterior, mapped back to reward units.

        Args:
            points: see `predict`.
            context: see `predict`.
            channel: 0 for the reward. j, from 1, for constraint j in its own units, if the policy was made with
                `constraints=nr.EveryRound(...)` or a similar rule. Of k objectives, 0 to k - 1 are the objectives.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([3.0], 0.5)
        >>> lower, upper = study.bounds([[3.0]])
        >>> bool(lower[0] < 0.5 < upper[0])
        True
        """
        envelope = self._envelope(points, context, channel)
        return envelope.lower, envelope.upper

    def band(self, points: Any, *, context: Any = None, channel: int = 0) -> PosteriorBand:
        """Returns the posterior mean at points `(n, d)` with a band to draw. The band states what is proved for it.

        Args:
            points: see `predict`.
            context: see `predict`.
            channel: see `bounds`.
        """
        from .explanation import band_of

        return band_of(self._envelope(points, context, channel), constraint=channel >= len(self.goals))

    def feasible(
        self, points: npt.ArrayLike | Mapping[str, Any] | None = None, *, context: npt.ArrayLike | None = None
    ) -> Array:
        """Returns how sure it is that each of n points satisfies all constraints, `(n,)`.

        With `nr.EveryRound` and `nr.OnAverage`, the posterior probability that all g_j <= 0. With `nr.Safe`, 1.0 at
        certified points and at the points of `start`, else 0.0. It is also 0.0 where the values told are above 0: with
        `slope` by more than the noise bound, otherwise on average. Answers that refute the slopes make it 0.0
        everywhere.

        Args:
            points: see `predict`. Parameters copied from a trial, which have 12 digits, are exactly its point.
            context: see `predict`.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 1, 5)
        >>> limits = nr.Safe(start=[[0.0]], scale=1.0, noise=0.1)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(0.3), noise=0.1, constraints=limits))
        >>> study.feasible()
        array([1., 0., 0., 0., 0.])
        """
        seen = self._seen(context)

        def read(state: AnyState) -> Array:
            domain = self.policy.domain
            if points is None or not isinstance(domain, Space):
                return state.certain(points, seen)
            return state.certain(self.inputs.points.of(domain.inside("points", points), self.replica.trials), seen)

        return self.replica.query(read)

    def infeasible(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None) -> float | None:
        """Returns how sure it is that no point satisfies all constraints, or None if some point may.

        A number says that at every arm the lower bound of some constraint is above 0. On a continuous domain, at every
        candidate of the search and every point tried. The number is the least probability that all these bounds hold.
        It is 0 if nothing is proved for them.

        Args:
            context: see `predict`.
        """
        seen = self.inputs.context(context)
        return self.replica.query(lambda state: state.infeasible(seen))

    def front(self) -> list[Trial[D]]:
        """Returns the front of several objectives: the answered trials that no other one beats in the posterior means.

        A trial beats another one if it is at least as good in every objective, and better in one. Means are compared
        since under noise values told by chance would hide good trials. `front_values().left_out` names the trials that
        no other one beats as told, and that are not on the front. Where fits have found no noise, the values told are
        compared. `nr.auto(..., noise=0)` says that there is none. Trials that violate a constraint are left out. Of
        several trials at one point, the earliest is returned. With one objective, the front is the best trial.

        Returns:
            The best trial of each objective first, in the order of the objectives. Then the others by the first one.

        >>> import nilregret as nr
        >>> policy = nr.auto(nr.Space(x=nr.Float(0, 1)), objectives=("loss", "size"))
        >>> study = nr.Study(policy, goal="minimize")
        >>> for x, values in ((0.2, (0.9, 1.0)), (0.5, (0.5, 2.0)), (0.6, (0.7, 3.0)), (0.9, (0.1, 4.0))):
        ...     _ = study.add({"x": x}, values)
        >>> [trial.values for trial in study.front()]
        [(0.1, 4.0), (0.9, 1.0), (0.5, 2.0)]
        """
        return self.front_values().trials if len(self.goals) > 1 else [self.best()]

    def front_values(self, reference: Any = None) -> Front:
        """Returns the front with posterior means, bounds and its volume (see `nilregret.study.front.Front`).

        Args:
            reference: the worst value of each objective that counts, in the units told, in order or by name. None for
                that of the policy, or else one that follows from the answers.

        Raises:
            InvalidInput: the study has one objective, or the reference is no number for each.
        """
        from .front import front_of

        if len(self.goals) == 1:
            raise InvalidInput(
                "This study has one objective, and no front.", advice="`best()` is its best trial.", topic="one"
            )
        return self.replica.query(
            lambda state: front_of(self.policy, self.goals, state, self._in_use(), reference=reference)
        )

    def hypervolume(self, reference: Any = None) -> float:
        """Returns the volume between the front and a reference point, the product of the units of the objectives.

        Volumes can be compared only if the reference is the same.

        Args:
            reference: see `front_values`.
        """
        return self.front_values(reference).hypervolume

    def best(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None, weights: Any = None) -> Trial[D]:
        """Returns the answered trial with the best posterior mean: the highest, or the lowest if the goal is minimise.

        The mean is that of `predict`, also if rewards are warped. Of several trials at one point, the earliest is
        returned. After a restart of the memory, only the trials since then are compared. With `context`, trials of all
        contexts are compared by the posterior mean of their points under that context.

        Under constraints, the trial is one whose constraint values told at its point are at most 0 on average.
        The reward alone is then compared, without the penalty that is learned with it. With `context`, the points must
        also satisfy the constraints there in the posterior mean. Under multipliers, or if no point does, the trials of
        exactly that context are compared. Left out are trials of retired arms, and points that do not keep the limits
        of the space.

        Under `nr.OnAverage` it is the best single point: the one to play every time. The posterior mean of each
        constraint there is at most 0, and no single value told counts. Several points may earn more together (`mix`).

        Several objectives have no best trial, but a front (`front`). With `weights`, the trial of the front is returned
        whose weighted sum of shortfalls is least. A shortfall is the distance to the best mean on the front, divided by
        the range of the means on the front.

        Args:
            context: context of the comparison, if the policy has contexts.
            weights: weight of each of several objectives, by name or in order. One that is not named has none.

        Raises:
            TrialError: no trial has been answered, none satisfies the constraints, or there are several objectives.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> for point, reward in ((1.0, 0.2), (3.0, 0.9), (8.0, 0.4)):
        ...     _ = study.add([point], reward)
        >>> study.best().point
        array([3.])
        """
        if weights is not None and len(self.goals) > 1:
            from .front import weighted_best

            found = self.front_values()
            if not found.trials and self.policy.constraint_count:
                satisfying(self._in_use())  # This raises an error that names the closest trial.
            self.inputs.context(context)  # This raises an error, since there are no contexts.
            return weighted_best(found, self.goals, self.policy.objective_names, weights)
        check_one_objective(self.policy, "best")
        if weights is not None:
            raise InvalidInput("`weights` are for several objectives, and this study has one: leave them out.")

        seen = None if context is None else self._seen(context)
        key = "best", b"" if seen is None else seen.tobytes()
        return self.replica.kept(key, lambda: self.replica.query(partial(self._best, seen)))

    def _best(self, context: Array | None, state: AnyState) -> Trial:
        """Returns the best answered trial in a state of this study."""
        replica, policy, goal = self.replica, self.policy, self.goals[0]
        if isinstance(state, State):
            trials = replica.firsts.of(policy, state, replica.record, replica.roster)
            few, seen = self._at_full(trials, context)
            broken = None if seen is None else replica.firsts.broken(seen)
            with suppress(TrialError):  # The error counts all trials.
                return replica.firsts.first(best_trial(policy, goal, state, few, seen, broken))
        every, seen = self._compared(context)
        return best_trial(policy, goal, state, every, seen)

    def mix(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None) -> Mix:
        """Returns the points tried that earn most together while each budget of `nr.OnAverage` holds on average.

        Rounds above the limit are offset by rounds below it. Rewards and constraint values are posterior means.

        Args:
            context: of all rounds, if the policy has contexts.

        Returns:
            `trials`, `shares`, `reward` and `use` (see `nilregret.study.front.Mix`).

        Raises:
            InvalidInput: the policy has no `nr.OnAverage`.
            TrialError: no trial has been answered, no mix keeps the budgets, or there are several objectives.

        >>> import nilregret as nr
        >>> arms, budget = nr.Arms.grid(0, 1, 2), nr.OnAverage(noise=0.01)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(0.1), noise=0.01, constraints=budget))
        >>> for x, reward, use in ((0.0, 1.0, -1.0), (1.0, 3.0, 1.0)):
        ...     _ = study.add([x], reward, constraints=[use])
        >>> mix = study.mix()
        >>> mix.shares.round(2), round(mix.reward, 2)
        (array([0.5, 0.5]), 2.0)
        """
        from .front import mix_of

        check_one_objective(self.policy, "mix")
        if not has_budget(self.policy):
            raise InvalidInput(
                "Only a budget that holds on average is kept by a mix of points, and this policy has none.",
                advice="`best()` is the point to play every time.", topic="one",
            )  # fmt: skip
        trials, seen = self._compared(self._seen(context))
        key = "mix", b"" if seen is None else seen.tobytes()

        read = partial(mix_of, self.policy, self.goals[0], trials, seen)
        return self.replica.kept(key, lambda: self.replica.query(read))

    def certainty(
        self, trial: Trial[D] | int | None = None, *, context: npt.ArrayLike | Mapping[str, Any] | None = None
    ) -> Certainty | None:
        """Returns how sure it is that no other point tried is better: a probability and an expected loss.

        Both are over the joint posterior of f at the points of all trials that `best` compares. Points that were never
        tried do not count, and neither does the noise of a further answer. If fits have learned that there is no noise
        worth mentioning, the trial with the best value has the probability 1 and the loss 0. Otherwise 8,192 joint
        draws are made, the same ones each time. If units visit again (`ask(unit=)`), draws are spread further, by as
        much as the correlation of their answers asks for (`nilregret.study.visits`).

        Args:
            trial: a trial or its number. None for `best()`.
            context: context of the comparison, if the policy has contexts.

        Returns:
            `probability` in [0, 1] and `loss` in reward units, at least 0 for either goal. None if the policy is a
            script, which has no posterior.

        Raises:
            TrialError: no trial has been answered, or none satisfies the constraints.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([1.0], 0.0), study.add([9.0], 5.0)
        >>> certainty = study.certainty(1)
        >>> round(certainty.probability, 2), round(certainty.loss, 2)
        (1.0, 0.0)
        """
        check_one_objective(self.policy, "certainty")
        trials, seen = self._compared(None if context is None else self._seen(context))

        def read(state: AnyState) -> Certainty | None:
            of = None if trial is None else self.replica.roster.moved(self.replica.record.require(trial))
            return certainty(self.policy, self.goals[0], state, trials, seen, seed=self.seed, of=of)

        return self.replica.query(read)

    def importance(self, of: str | int | None = None) -> Importance:
        """Returns the importance of each parameter: Sobol indices of the model, with its 90% intervals.

        The first-order index is the share of the objective's variation over the space that the parameter causes alone.
        The total index includes its interactions. The space is uniform, on the scale of each parameter. Under limits
        its permitted part is uniform, and the total is what no function of the other parameters explains, at least the
        first order. Values worse than the worst told count as it. A second pair of indices says which parameters decide
        whether a point is among the best tenth, with ties. `nr.plots.importance` draws both.

        >>> import nilregret as nr
        >>> space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
        >>> result = nr.minimize(lambda x, y: 3 * x + y, space, trials=20, progress=False)
        >>> print(result.study.importance().value.total.round(1))
        [0.9 0.1]

        Args:
            of: name of an objective, text of a constraint, or number of either, from 0. Or the name of a metric, of
                which a model is fitted that is not on record. None for the first objective.

        Returns:
            `names`, `value`, `best`, `explained`, `interactions` and `to_pandas()` (see
            `nilregret.study.importance.Importance`).

        Raises:
            InvalidInput: fewer than two trials told the number, only one thing varies, or there is no posterior.
        """
        from .importance import importance
        from .quantities import quantity

        return importance(quantity(self, of))

    def pruned(self) -> Pruned:
        """Returns how many trials were stopped, and what the trials that ran on say of the stops.

        A pruning rule with `explore=0.1` lets a tenth of the trials run on that it would stop. They show how many of
        the stops would have been better.

        Returns:
            `stopped`, `spared`, `finished`, `missed`. As text, a sentence (see `nilregret.study.pruning.Pruned`).

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))))
        >>> trial = study.ask()
        >>> _ = study.report(trial, 1, 0.5), study.stop(trial)
        >>> print(study.pruned())
        1 trial was stopped. None ran on, so what stopping misses is not known (see `explore`).
        """
        from .pruning import pruned_of

        return pruned_of(self.trials, 1.0 if self.goals[0] == "maximize" else -1.0)

    @property
    def valid_for(self) -> str:
        """The claim that is proved for the bounds of the next round, of the reward and of all constraints together.

        "f" is for all points and rounds, "played" for the points played. "none" means that one of them has no proof.
        """
        return self.replica.query(lambda state: state.proved)

    @property
    def width(self) -> float:
        """Factor of the standard deviation in the bounds of the next round, or NaN if the bounds have no such factor.

        Bounds of warped rewards (`nr.auto`) have none: they are quantiles of a skew posterior.
        """
        return self.replica.query(lambda state: state.width(now=self._window_clock()))

    @property
    def information_gain(self) -> float:
        """Realised information gain of the answered trials, 1/2 log det(I + K / lambda), nats."""
        return self.replica.query(lambda state: state.information_gain)

    @property
    def shortfall(self) -> float:
        """Rho of a `Sketch`, or 0 if the posterior is exact: deviations are right to a factor of about 1 + rho / 2."""
        return self.replica.query(lambda state: state.shortfall if isinstance(state, State) else 0.0)

    @property
    def minimum(self) -> float | None:
        """Value imputed to unanswered trials in the next round, reward units, or None if they are not censored.

        If the policy was made with `minimum=None`, it is the smallest reward told so far, and the prior mean before the
        first. If the goal is to minimise, it is the largest loss.
        """
        least = self.replica.query(lambda state: state.minimum)
        return least if least is None or self.goals[0] == "maximize" else negated(least)

    @property
    def restarts(self) -> list[int]:
        """Rounds, from 0, at which the memory was cut: earlier trials no longer count (see `restart_reasons`)."""
        return [restart.round for restart in self.replica.query(lambda state: state.restarts)]

    @property
    def restart_reasons(self) -> list[str]:
        """Reasons why the memory was cut, in words, one for each of `restarts`."""
        return [restart.reason for restart in self.replica.query(lambda state: state.restarts)]

    @property
    def evidence(self) -> Evidence | None:
        """Evidence for a change of the reward function after each answer, natural logs, and the threshold of a cut.

        None if the policy's memory computes no such number (`memory="adaptive"` does). See `plots.evidence`.
        """
        return self.replica.query(lambda state: state.evidence)

    @property
    def multipliers(self) -> Array:
        """Price of violating each constraint in the next round, `(m,)`, reward units. Empty without prices."""
        return self.replica.query(lambda state: state.multipliers.copy())

    @property
    def last_multipliers(self) -> Array:
        """Multipliers of the last decision, `(m,)`. Before any decision, the initial ones."""
        return self._as_decided(lambda state: state.multipliers.copy())

    def multiplier_history(self) -> tuple[IndexArray, Array]:
        """Returns the multipliers of each decision: numbers of the trials asked for `(n,)`, and multipliers `(n, m)`.

        m is 0 if the policy does not price violations. The history is computed from the record, which takes some
        microseconds a trial. Corrected answers count as if they had been told first (`explain` shows the multipliers
        that one trial was decided with).
        """
        with self.replica.lock:
            state, trials = self.replica.current(), self.replica.trials[:]
        return multiplier_history(self.policy, state, trials)

    @property
    def remarks(self) -> Mapping[str, str]:
        """Sentences, by kind, about answers that contradict the policy, or that come too late for a true belief."""
        replica, about = self.replica, self.about
        found = replica.query(lambda state: state.remarks)
        if RULE not in about:
            return found
        read = partial(replica.query, lambda state: of_deadlines(state, about, replica.trials))
        return {**found, **replica.kept("deadlines", read)}

    @property
    def saturated(self) -> bool:
        """True if a multiplier or penalty of the last decision was clipped at 1e6."""
        return self._as_decided(lambda state: state.saturated)

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """Guesses of the norm bound, (rounds so far, guess): the first guess and every doubling.

        Empty if the norm bound was given (see `igp_ucb(guess_norm=True)`).
        """
        return self.replica.query(lambda state: state.norm_bounds)

    @property
    def lengthscales(self) -> Lengthscales | None:
        """Candidate lengthscales, weighted by their predictions, or None if the policy has one kernel.

        Policies made with `refit=nr.slots.LengthscaleBank(...)` and `nr.algorithms.lb_gp_ucb` have candidates.
        """
        return self.replica.query(lambda state: state.lengthscales)

    def budgets(self, *, context: Any = None) -> list[Standing]:
        """Returns the budget of each `nr.NoWorse` before the next decision.

        If one does not bear another arm (`bears` is False), the next decision is the control.

        Args:
            context: of the decision, if the policy has contexts.

        >>> import nilregret as nr
        >>> keep = nr.NoWorse(0, by=0.1)
        >>> study = nr.Study(nr.auto(nr.Arms(range(3)), reward="bernoulli", constraints=keep))
        >>> (budget,) = study.budgets()
        >>> budget.bears, budget.bound, budget.limit
        (False, 0.0, 0.9)
        """
        if not isinstance(self.policy, Policy) or self.policy.guards is None:
            return []
        seen = self.inputs.context(context)
        return self.replica.query(lambda state: [budget.standing(seen) for budget in cast(State, state).rounds.budgets])

    def probabilities(
        self, context: Any = None, *, among: Some | None = None, exclude: Some | None = None
    ) -> Array | None:
        """Returns the probability of each arm to be the next decision, given all that is known, `(N,)`.

        None if the policy draws by a law that a part of it does not say (`nilregret.slots.Score.law`). No random number
        of the trial is used. `Trial.propensity` records the entry of the arm that was taken. Of joint draws both are
        approximations, and they differ by some .001. Hyperparameters are those in force, so a fit that the decision
        itself would make is not in it.

        Args:
            context: of the decision, if the policy has contexts.
            among: as `ask` takes it. On a box or space there is a probability of each of these points.
            exclude: as `ask` takes it.

        Raises:
            InvalidInput: the domain is continuous and `among` is None, or the policy is a script.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.irgp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> study.probabilities().round(2)
        array([0.09, 0.09, 0.09, 0.09, 0.09, 0.09, 0.09, 0.09, 0.09, 0.09, 0.09])
        """
        offered = None if among is None and exclude is None else self.offered(among, exclude)
        if not isinstance(self.policy, Policy) or (offered is None and not isinstance(self.policy.domain, Arms)):
            raise InvalidInput(
                "Only finitely many choices have probabilities, and this policy has infinitely many, or is a script.",
                advice="On a box or space, pass the points that may be played as `among`.",
            )
        seen, now = self.inputs.context(context), self.replica.now()

        def read(state: AnyState) -> Array | None:
            left = self.replica.roster.playable(offered)
            return state.distribution(seen, now=now, available=left) if isinstance(state, State) else None

        return self.replica.query(read)

    def explain(
        self, trial: Trial | int, *, among: Some | None = None, exclude: Some | None = None, draws: int = DRAWS
    ) -> Explanation:
        """Returns why a trial was chosen: score, bounds, runner-up, pending and forgotten trials, and probability.

        The explanation replays the record up to the moment before the trial. Nothing of it is stored. It is exact on
        the machine and with the libraries that decided (see the page on studies).

        Args:
            trial: as `ask` returned it, or its number.
            among: as it was passed to `ask`. The record does not hold it.
            exclude: as it was passed to `ask`.
            draws: number of draws that estimate the propensity if the policy draws (Thompson sampling). Random numbers
                are keyed by (seed, trial number). 0 estimates none.

        Raises:
            TrialError: there is no such trial, or `add` recorded it.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([3.0], 0.5)
        >>> why = study.explain(study.ask())
        >>> why.repeated, why.propensity is not None
        (True, True)
        """
        from .explain import MOST_DRAWS, explanation

        if isinstance(trial, Mapping | list | np.ndarray):
            raise InvalidInput(
                f"`trial` is {shown(trial)}, which is a point: a trial is explained, as asked, or by its number.",
                advice="`study.feasible(point)` says whether the constraints allow a point, and `study.predict` and "
                "`study.bounds` what is believed of it.",
            )
        draws = integer("draws", draws, low=0, high=MOST_DRAWS)
        replica = self.replica
        with replica.lock:
            replica.sync()
            number, trials = replica.record.require(trial).number, replica.record[:]
            roster, entry = replica.roster.as_of(trials[number].asked_order - 1), replica.queue.tried.get(number)
            if roster.spaces is not None:
                trials = [roster.moved(each) for each in trials[: number + 1]]
        offered = None if among is None and exclude is None else available(roster.policy.domain, among, exclude)
        if offered is not None:
            known = PlacesOfTrials(roster.policy.domain)  # The point that was played counts first.
            points = known.of(offered.points, [trials[number], *trials[:number]])
            offered = offered._replace(points=frozen(points))
        if trials[number].place:
            offered = left_for(roster, offered, [t for t in places_of(trials, trials[number]) if t.number < number])
        return explanation(
            roster.policy, self.goals, trials, number, seed=self.seed, about=self.about,
            available=roster.playable(offered), draws=draws, entry=entry,
        )  # fmt: skip

    # -- helpers -------------------------------------------------------------------------------------------------

    def _seen(self, context: Any) -> Array | None:
        """Returns a context, checked. It is that of a trial, if these are exactly its parameters."""
        with self.replica.lock:
            self.replica.sync()
            return self.inputs.context(context, self.replica.trials)

    def _as_decided(self, read: Callable[[AnyState], R]) -> R:
        """Returns a function's result for the state as the last decision of any process left it."""
        with self.replica.lock:
            self.replica.sync()
            return read(self.replica.state)

    def _in_use(self) -> Sequence[Trial]:
        """Returns all trials but those of retired arms."""
        trials, retired = self.replica.trials, self.replica.roster.retired
        return [trial for trial in trials if trial.arm not in retired] if retired else trials

    def _compared(self, context: Array | None) -> tuple[Sequence[Trial], Array | None]:
        """Returns the trials of which one is the best, and the context of the comparison."""
        with self.replica.lock:
            self.replica.sync()
            return self._at_full(self._in_use(), context)

    def _at_full(self, trials: Sequence[Trial], context: Array | None) -> tuple[Sequence[Trial], Array | None]:
        """Returns those of some trials that are compared, and the context of the comparison.

        With `fidelity`, these are the trials at the full setting. Before the first of them all are compared there.
        """
        full = self.inputs.full
        if context is not None or full is None:
            return trials, context
        found = at_full(self.policy, trials)
        return (trials, full) if found is trials else (found, None)

    def _envelope(self, points: Any, context: Any, channel: int = 0) -> Envelope:
        most = self.policy.output_count - 1 if has_channels(self.policy) else 0
        if type(channel) is not int or (channel and most):  # Policies without channels raise a clearer error.
            several = "an objective or " * (len(self.goals) > 1)
            why = f"It is 0 for the reward, or the number of {several}a constraint, from 1."
            channel = integer("channel", channel, low=0, high=most or None, why=why)
        seen = self.inputs.context(context)
        if channel:
            found = self.replica.query(lambda state: state.limit(channel, points, seen))
            return told_envelope(found, self.goals[channel]) if channel < len(self.goals) else found
        found = self.replica.query(lambda state: state.envelope(points, seen, now=self._window_clock()))
        return told_envelope(found, self.goals[0])

    def _window_clock(self) -> float:
        """Returns the time if a width depends on it, else infinity."""
        window = self.policy.window
        return self.replica.now() if window is not None and window.in_time else math.inf


for _each in vars(Queries).values():
    if isfunction(_each):  # The errors of Python name the class that users know.
        _each.__qualname__ = f"Study.{_each.__name__}"
