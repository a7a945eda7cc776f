"""The result of an optimisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, final, overload

from .._utils.checks import Array, many
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral, percent, with_error
from .._utils.public import attributes_of_others
from ..domains.domain import D
from ..domains.options import worded
from ..errors import NoRegretError, TrialError, needs
from ..slots.objective import satisfying
from ..storage.record import Trial
from ..storage.trial import metric_names
from ..study.best import DRAWS, Certainty, at_full, closest_of, is_noisy, told_best, within_limits
from ..study.direction import best_label, check_one_objective, on_average
from ..study.formatting import mean_uses, metrics_text, trials_html, use_text
from ..study.function import answers_for_units, reached_ends
from ..study.pruning import pruned_of
from ..study.stored import portable
from ..study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from ..domains.domain import Arms, Box, Domain, Space

STATES = ("stopped", "failed", "abandoned", "pending")  # The states that a summary counts.


class BestParameters:
    """The named parameters of the best trial, a fresh dict, or None where the domain has none."""

    @overload
    def __get__(self, result: Result[Space], owner: type | None = None) -> dict[str, Any]: ...
    @overload
    def __get__(self, result: Result[Box], owner: type | None = None) -> None: ...
    @overload
    def __get__(self, result: Result[Arms] | Result[Domain], owner: type | None = None) -> dict[str, Any] | None: ...
    def __get__(self, result: Result[Any], owner: type | None = None) -> dict[str, Any] | None:
        """Returns the parameters of the best trial, by name."""
        parameters: dict[str, Any] | None = result.best_trial.parameters
        return parameters


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result(Generic[D]):
    """The result of `maximize` or `minimize`, in the units and the direction of the objective.

    The best trial has the best value that the objective *returned*, and is the earliest of several. That value is
    partly luck if the objective is noisy. It is if its answers have an entry "std" above 0, or if a point was evaluated
    twice with different values. Then the best trial is `result.study.best()`, the trial whose point has the best
    posterior mean. So `best_parameters`, `best_point` and `best_value` are always of one trial, of which
    `probability_best` and `expected_loss` speak. If the best posterior mean is of another trial, the text of the result
    also names it as recommended, as `nilregret show` does.

    Under constraints, the best trial is the best of those that satisfied them all. A point satisfies a constraint if
    the values told of the point are at most 0 on average. If no point was feasible, there is no best trial. Under
    `nr.OnAverage` the best trial is `result.study.best()`.

    Attributes:
        study: the study, for `predict` and `best`, or for further trials with `ask` and `tell`.
        trials: the trials when the run ended, with failed and pending ones.
        wanted: the number of trials that were wanted, or None.
        stopped: the reason why the run ended. The first word says which.

            - "trials": all trials are there. A finished run that is read again says this, too.
            - "seconds: ...": the time was over.
            - "enough: ...": further trials are not worth it (`nr.Enough`).
            - "callback: ...": a callback returned True.
            - "interrupted: ...": by Ctrl-C.
            - "refused: ...": no further trial is decided, such as with refuted slopes of `nr.Safe`.
            - "executor: ...": it broke.
            - "cancelled: ...": one evaluation after the other was cancelled.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 2) ** 2, nr.Space(x=nr.Int(0, 4)), trials=5, progress=False)
    >>> result.best_parameters, result.best_value
    ({'x': 2}, 0.0)
    >>> len(result.history), result.history[0]["state"]
    (5, 'observed')
    """

    if not TYPE_CHECKING:  # A type checker would take any name for an attribute.
        __getattr__ = attributes_of_others(
            best_params="`result.best_parameters` is the dict.", x="`result.best_point` is the point.",
            fun="`result.best_value` is the value.", best_trials="`result.front` has the trials of the front.",
        )  # fmt: skip

    study: Study[D]
    trials: tuple[Trial[D], ...]
    wanted: int | None
    stopped: str = "trials"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the trials, and the study with its record.

        A study in memory goes with the copy and then its own way. One in a storage is opened again.
        """
        return _restored, (portable(self.study), self.trials, self.wanted, self.stopped)

    @property
    def best_trial(self) -> Trial[D]:
        """The trial with the best value, or under noise that was seen the one with the best posterior mean.

        It is one of those that satisfied all constraints. An error if there is none.
        """
        check_one_objective(self.study.policy, "best_trial")
        best = self._best()
        if best is None and self.feasible is False:
            satisfying(self.trials)  # This raises an error that names the closest trial.
        if best is None:
            raise TrialError(
                f"No trial has a value yet, so there is no best one; it has {many(len(self.trials), 'trial')}. "
                "`result.history` says what became of each."
            )
        return best

    @property
    def front(self) -> list[Trial[D]]:
        """The trials that no other one beats in the posterior means: the best of each objective first.

        It is a property, and `Study.front()` a method with the same trials.
        """
        return self.study.front()

    def best(self, weights: Any = None) -> Trial[D]:
        """Returns the best trial, or that of several objectives for these weights (see `Study.best`).

        Args:
            weights: weight of each of several objectives, by name or in order.
        """
        several = self.study.policy.objective_count > 1
        return self.study.best(weights=weights) if several or weights is not None else self.best_trial

    @property
    def feasible(self) -> bool | None:
        """True if some answered trial satisfied all constraints. None without constraints."""
        return bool(self._candidates()) if self._constrained else None

    @property
    def infeasible(self) -> float | None:
        """The probability that no point can satisfy the constraints, as of `study.infeasible()`, or None.

        It is a number if the lower bound of some constraint is above 0 everywhere. These bounds hold with at least this
        probability. The number is 0 if nothing is proved about the bounds. Those of `auto` are two posterior standard
        deviations, without a proof.
        """
        return self.study.infeasible() if self._constrained and self.study.policy.context is None else None

    best_parameters = BestParameters()

    @property
    def best_point(self) -> Array:
        """The point of the best trial, `(d,)`. For a `Space` it is the encoded point."""
        return self.best_trial.point

    @property
    def best_value(self) -> float:
        """The value that the objective returned for the best trial, in its units.

        It is the largest value, or the smallest if minimised, unless the objective is seen to be noisy.
        """
        reward = self.best_trial.reward
        return float(reward) if reward is not None else float("nan")

    @property
    def probability_best(self) -> float:
        """Posterior probability that no point tried is better than that of the best trial. NaN without a posterior.

        It compares the objective without its noise, at the points of the answered trials that satisfied all
        constraints. It is 1 if one point was tried, or if fits found no noise (see `Study.certainty`).
        """
        return self._certainty.probability

    @property
    def expected_loss(self) -> float:
        """Expected shortfall of the best trial's point from the best point tried, in units of the objective.

        The expectation is over the joint posterior of the objective without its noise, at the points that
        `probability_best` compares. It is at least 0, also if the goal is to minimise. NaN without a posterior.
        """
        return self._certainty.loss

    @property
    def history(self) -> list[dict[str, Any]]:
        """The trials in the order of asking, a dict for each with the same entries.

        - `number`: from 0.
        - `state`: "observed", "failed", "stopped" (by the pruning rule), "abandoned" (its evaluation was cancelled), or
          "pending" (the run ended before its answer).
        - `value`: the value, or None. Of several objectives that of the first one.
        - `values`: the value of each objective by name, or None. Only if there are several.
        - `reason`: why the trial failed, was stopped or was abandoned, or None.
        - `seconds`: time from question to answer, or None.
        - `parameters`: a dict, or None if the domain has no named parameters.
        - `point`: a list of d numbers, as the kernel sees the point.
        - `std`: standard deviation of the noise of the value, or None. Only if some is known. Of several objectives it
          is `stds`, by name.
        - `metrics`: numbers that the objective returned beside the value, by name. Only if there are some.
        - `steps`: a list of (step, value), its curve. Only if some trial reported steps.
        - `enqueued`: True if `enqueue` named the point or some of its parameters. Only if it named some.
        - `constraints`: a list of m numbers, or None. Only if there are constraints.
        - `feasible`: True, False, or None. Only if there are constraints.
        """
        trials = self.trials
        rows = [_row(trial) for trial in trials]
        names = self.study.policy.objective_names
        if len(names) > 1:
            rows = [row | {"values": _by_name(names, each.values)} for row, each in zip(rows, trials, strict=True)]
        if any(trial.stds for trial in trials):
            found = [{"std": each.std} if len(names) == 1 else {"stds": _by_name(names, each.stds)} for each in trials]
            rows = [row | std for row, std in zip(rows, found, strict=True)]
        if any(trial.measured for trial in trials):
            rows = [row | {"metrics": trial.metrics} for row, trial in zip(rows, trials, strict=True)]
        if any(trial.curve for trial in trials):
            rows = [row | {"steps": trial.steps} for row, trial in zip(rows, trials, strict=True)]
        if any(trial.enqueued for trial in trials):
            rows = [row | {"enqueued": trial.enqueued} for row, trial in zip(rows, trials, strict=True)]
        if not self._constrained:
            return rows
        for row, trial in zip(rows, trials, strict=True):
            values = None if trial.constraints is None else trial.constraints.tolist()
            row |= {"constraints": values, "feasible": trial.feasible}
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """Returns the history as a table, with a row for each trial.

        There is a column "parameters.NAME" for each parameter. On domains without named parameters the columns are
        "point.0", "point.1", ... Constraint values are in "constraints.0", ..., and metrics in "metrics.NAME". Several
        objectives are in "values.NAME", and the standard deviations of their noise in "stds.NAME". If some trial
        reported steps, its last report is in "last_step" and "last_value".

        >>> import nilregret as nr
        >>> result = nr.minimize(lambda x: (x - 2) ** 2, nr.Space(x=nr.Int(0, 4)), trials=5, progress=False)
        >>> result.to_pandas().shape[0]
        5
        """
        with needs("`to_pandas`", "pandas", "export", instead="`result.history` has the same as a list of dicts."):
            import pandas as pd
        rows, named = [], metric_names(self.trials)
        names = self.study.policy.objective_names
        for row in self.history:
            parameters, point = row.pop("parameters"), row.pop("point")
            prefix, entries = ("point", dict(enumerate(point))) if parameters is None else ("parameters", parameters)
            values = row.pop("constraints", None) or [None] * self.study.policy.constraint_count
            limits = {f"constraints.{j}": value for j, value in enumerate(values)}
            for told in [each for each in ("values", "stds") if each in row]:
                each = row.pop(told) or dict.fromkeys(names)
                limits |= {f"{told}.{name}": value for name, value in each.items()}
            if (curve := row.pop("steps", None)) is not None:
                row["last_step"], row["last_value"] = curve[-1] if curve else (None, None)
            found = row.pop("metrics", {})
            metrics = {f"metrics.{name}": found.get(name) for name in named}
            rows.append(row | limits | metrics | {f"{prefix}.{name}": value for name, value in entries.items()})
        return pd.DataFrame(rows)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        of: str | int | None = None,
        range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
        label: str | None = None,
        interactive: bool = False,
    ) -> Any:
        """Returns the first picture to look at: history, importance and slices. Needs the extra `plot`.

        Of several objectives it is the front, with the volume over trials and the importance for each.

        The other pictures are in `nr.plots`. Each takes the result.

        Args:
            path: path of the picture (PNG, PDF or SVG, or HTML if interactive), or None to save nothing.
            of: None for the value, the number or text of a constraint, or the name of a metric.
            range: lowest and highest value that is possible, such as (0, 1) for an accuracy.
            label: of the values. By default "reward", or "loss" if the goal is to minimise, or the name in `of`.
            interactive: True for a figure of plotly, which needs the extra `interactive`.

        Returns:
            Matplotlib's figure, or plotly's, which a notebook shows.
        """
        from .. import plots

        return plots.overview(self, path, of=of, range=range, label=label, interactive=interactive)

    def __repr__(self) -> str:
        states = [trial.state for trial in self.trials]
        counts = [many(len(states), "trial")] + [f"{states.count(s)} {s}" for s in STATES if s in states]
        goals = self.study.goals
        goal = ", ".join(goals if len(set(goals)) > 1 else goals[:1])
        lines = [f"Result of {self.study.name!r} ({goal}): {', '.join(counts)}"]
        best = self._best()
        if len(self.study.goals) > 1:
            lines += self._front_lines()
        elif best is not None:
            other = self._recommended() or best
            by_mean = self._noisy or on_average(self.study.policy)
            word = "recommended" if by_mean else best_label(self.study.goals[0])
            lines += [f"best value: {briefly(best.reward)}, of trial {best.number} ({word})"]
            lines += [f"best at: {_place(best)}"]
            lines += [f"metrics there: {metrics_text(best.measured)}"] * bool(best.measured)
            mean = self._mean(best)
            lines += [f"posterior mean there: {mean}"] * (mean is not None and mean.split()[0] != briefly(best.reward))
            lines += _doubts(self._certainty, noisy=self._noisy)
            if other.number != best.number:
                said = f"best posterior mean {self._mean(other) or ''}".rstrip()
                lines += [f"recommended if noisy: trial {other.number}, {said}, told {briefly(other.reward)}"]
                lines += [f"recommended at: {_place(other)}"]
        else:
            lines += ["best value: none yet" if self.feasible is None else "best value: none, as nothing was feasible"]
        if self._constrained:
            uses = mean_uses(self.study.policy, self.study.about, self.trials)
            lines += [f"mean use of {use_text(each)}" for each in uses] or [_feasibility(self.trials)]
            probability = self.infeasible
            lines += [] if probability is None else [_infeasibility(probability)]
        found = pruned_of(self.trials, 1.0 if goals[0] == "maximize" else -1.0)
        lines += [f"pruning: {found}"] * bool(found.stopped or found.spared)
        lines += [f"stopped: {self.stopped}"] * (self.stopped != "trials")
        lines += [f"note: {said}" for said in reached_ends(self.study)]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        best, names = self._best(), self.study.policy.objective_names
        front = self.front if len(names) > 1 else [] if best is None else [best]
        return trials_html(self.trials, caption=repr(self), best=front, about=self.study.about, names=names)

    def _front_lines(self) -> list[str]:
        """Returns a line about the front, and one about each trial that is the best of an objective."""
        found, names = self.study.front_values(), self.study.policy.objective_names
        if not found.trials:
            return ["front: no trial yet" if self.feasible is None else "front: no trial, as nothing was feasible"]
        lines = [f"front: {many(len(found.trials), 'trial')}, hypervolume {briefly(found.hypervolume)}"]
        lines += [f"front {found.note}"] * bool(found.note)
        leads = dict[int, list[str]]()
        for name, goal, means in zip(names, self.study.goals, found.mean.T, strict=True):
            leads.setdefault(int(means.argmax() if goal == "maximize" else means.argmin()), []).append(name)
        for i, led in leads.items():
            trial = found.trials[i]
            told = ", ".join(f"{name} {briefly(value)}" for name, value in zip(names, trial.values or (), strict=True))
            lines.append(f"best {', '.join(led)}: trial {trial.number} (told {told}) at {_place(trial)}")
        return lines

    def _mean(self, trial: Trial[D]) -> str | None:
        """Returns the posterior mean of a trial and its standard deviation, or None if none is known."""
        if self.study.replica.query(answers_for_units):
            return None
        try:
            mean, std = self.study.predict(trial.point[None])
        except NoRegretError:  # The policy has no posterior, or only one under a context.
            return None
        return with_error(float(mean[0]), float(std[0]))

    @property
    def _constrained(self) -> bool:
        return self.study.policy.constraint_count > 0

    def _candidates(self) -> Sequence[Trial[D]]:
        """Returns the trials that may be the best."""
        trials = within_limits(self.study.policy, at_full(self.study.policy, self.trials))
        if not self._constrained:
            return trials
        try:
            return satisfying(trials)
        except TrialError:
            return []

    def _best(self) -> Trial[D] | None:
        if len(self.study.goals) > 1:
            return None
        best = told_best(self._candidates(), self.study.goals[0])
        return (self._recommended() or best) if self._noisy or on_average(self.study.policy) else best

    def _recommended(self) -> Trial[D] | None:
        """Returns the best trial by posterior mean, or None if none is known."""
        try:
            return self.study.best()
        except TrialError:  # No answer counts, or no point is expected to satisfy the constraints.
            return None

    @property
    def _certainty(self) -> Certainty:
        """The certainty of the best trial."""
        found = self.study.certainty(self.best_trial)
        return Certainty(math.nan, math.nan) if found is None else found

    @property
    def _noisy(self) -> bool:
        """True if noise was told, or some point was evaluated twice with different values."""
        return is_noisy(at_full(self.study.policy, self.trials))


def _restored(
    study: Callable[[], Study[Any]], trials: tuple[Trial, ...], wanted: int | None, stopped: str
) -> Result[Any]:
    return Result(study=study(), trials=trials, wanted=wanted, stopped=stopped)


def _doubts(certainty: Certainty, *, noisy: bool) -> list[str]:
    """Returns lines on how sure the best trial is, none if that is trivial."""
    lines = ["values are noisy: the best trial has the best posterior mean"] * noisy
    if certainty.probability < 1.0:
        chance = percent(max(certainty.probability, 1.0 / DRAWS))  # None of the draws is not never.
        loss = numeral(certainty.loss, 2)
        lines.append(f"best of the points tried with probability {chance}, expected loss {loss}")
    return lines


def _infeasibility(probability: float) -> str:
    bounds = f"hold with probability at least {numeral(probability, 3)}" if probability else "are not proved"
    return f"nothing seems feasible: everywhere some lower bound is above 0; the bounds {bounds}"


def _feasibility(trials: Sequence[Trial]) -> str:
    """Returns how many trials were feasible, and the closest one if none was."""
    known = [trial.feasible for trial in trials if trial.feasible is not None]
    closest = closest_of(trials)
    nearest = f"; closest: trial {closest.number}" if closest else ""
    return f"feasible: {sum(known)} of {many(len(known), 'trial')}{nearest}"


def briefly(value: object) -> str:
    """Returns a value in a few characters."""
    return numeral(value) if isinstance(value, float) else worded(value) if callable(value) else repr(value)


def _place(trial: Trial) -> str:
    if trial.settings is None:
        return f"[{', '.join(briefly(float(coordinate)) for coordinate in trial.point)}]"
    return ", ".join(f"{name}={briefly(value)}" for name, value in trial.settings)


def _by_name(names: Sequence[str], values: Sequence[float | None] | None) -> dict[str, float | None] | None:
    return None if values is None else dict(zip(names, values, strict=True))


def _row(trial: Trial) -> dict[str, Any]:
    gone = None if trial.abandoned is None else trial.abandoned.reason
    return {
        "number": trial.number,
        "state": trial.state,
        "value": trial.reward,
        "reason": gone if trial.state == "abandoned" else trial.reason,
        "seconds": None if trial.told_at is None else trial.told_at - trial.asked_at,
        "parameters": trial.parameters,
        "point": trial.point.tolist(),
    }
