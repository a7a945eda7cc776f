"""What came of an optimisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import gt, lt
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from .._utils.checks import Array, many
from .._utils.errors import MissingExtra, TrialError
from ..slots.objective import satisfying
from ..storage.record import Trial
from ..study.best import closest_of
from ..study.study import Study

if TYPE_CHECKING:
    import pandas as pd

STATES = ("failed", "abandoned", "pending")  # that are worth mentioning


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """What came of `maximize` or `minimize`, in the units and the direction of the objective.

    The best trial is the one of the best value that the objective *returned*, the earliest of several. Where the
    objective is noisy that value is partly luck: `result.study.best()` is then the better advice, the trial whose point
    has the best posterior mean.

    Under constraints it is the best of those that satisfied them all: at whose point the values told are at most 0 on
    average. What violated anything is never the best, however good; where nothing was feasible, there is no best.

    Attributes:
        study: the study, to look at (`predict`, `best`) or to go on with by `ask` and `tell`.
        trials: its trials when the run ended, those that failed and those left pending included.
        wanted: how many there were to be.
        stopped: why the run ended before that, or None.
    """

    study: Study
    trials: tuple[Trial, ...]
    wanted: int
    stopped: str | None = None

    @property
    def best_trial(self) -> Trial:
        """The trial of the best value that was returned, of those that satisfied all constraints; an error if none."""
        best = self._best()
        if best is None and self.feasible is False:
            satisfying(self.trials)  # which says what came closest
        if best is None:
            raise TrialError(
                f"No trial has a value yet, so there is no best one; it has {many(len(self.trials), 'trial')}. "
                "`result.history` says what became of each."
            )
        return best

    @property
    def feasible(self) -> bool | None:
        """Whether any answered trial satisfied all constraints; None where there are no constraints."""
        return bool(self._candidates()) if self._limited else None

    @property
    def infeasible(self) -> float | None:
        """Whether nothing can satisfy the constraints, as far as the run has seen: None, or how sure that is.

        As `study.infeasible()`: a number where the lower bound of some constraint is above 0 everywhere, the
        probability, at least, with which these bounds hold. 0 is a number: bounds that are not proved, as those of
        `auto`, which are two posterior standard deviations, say so without a promise.
        """
        return self.study.infeasible() if self._limited and self.study.policy.context is None else None

    @property
    def best_parameters(self) -> dict[str, Any] | None:
        """The named parameters of the best trial, a fresh dict; None where the domain has none."""
        return self.best_trial.parameters

    @property
    def best_point(self) -> Array:
        """The point of the best trial, `(d,)`: of a `Space` the encoded one."""
        return self.best_trial.point

    @property
    def best_value(self) -> float:
        """The best value that the objective returned, in its own units: the largest, or the smallest if minimised."""
        reward = self.best_trial.reward
        return float(reward) if reward is not None else float("nan")

    @property
    def history(self) -> list[dict[str, Any]]:
        """What happened, a dict for each trial in the order of asking, with the same entries everywhere.

        `number` (from 0), `state` ("observed", "failed", "abandoned" where the executor cancelled it, or "pending"
        where the run was stopped), `value` (or None), `reason` why it failed or was abandoned (or None), `seconds` from
        question to answer (or None), `parameters` (a dict, None where the domain has no named ones), `point` (a list of
        d numbers, as the kernel sees it). Under constraints, too:
        `constraints` (a list of m numbers, or None), `feasible` (True, False, or None).
        """
        rows = [_row(trial) for trial in self.trials]
        if not self._limited:
            return rows
        for row, trial in zip(rows, self.trials, strict=True):
            values = None if trial.constraints is None else trial.constraints.tolist()
            row |= {"constraints": values, "feasible": trial.feasible}
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """The history as a table, a row for each trial: a column "parameters.NAME" for each parameter.

        On domains without named parameters, "point.0", "point.1", ...; constraint values are "constraints.0", ...
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra(
                "`to_pandas` needs pandas, which is not installed: pip install pandas. `result.history` has the same "
                "as a list of dicts."
            ) from error
        rows = []
        for row in self.history:
            parameters, point = row.pop("parameters"), row.pop("point")
            prefix, entries = ("point", dict(enumerate(point))) if parameters is None else ("parameters", parameters)
            values = row.pop("constraints", None) or [None] * self.study.policy.constraint_count
            limits = {f"constraints.{j}": value for j, value in enumerate(values)}
            rows.append(row | limits | {f"{prefix}.{name}": value for name, value in entries.items()})
        return pd.DataFrame(rows)

    def plot(self, path: str | Path | None = None) -> Any:
        """All values, the highest told so far (the lowest of losses), and where trials failed; needs the extra `plot`.

        Args:
            path: of the picture (PNG, PDF or SVG), or None to save nothing.

        Returns:
            Matplotlib's figure, which a notebook shows.
        """
        from ..study import plots

        return plots.progress(self.study, path)

    def __repr__(self) -> str:
        states = [trial.state for trial in self.trials]
        counts = [many(len(states), "trial")] + [f"{states.count(s)} {s}" for s in STATES if s in states]
        lines = [f"Result of {self.study.name!r} ({self.study.goal}): {', '.join(counts)}"]
        best = self._best()
        if best is not None:
            lines += [f"best value: {briefly(best.reward)}, of trial {best.number}", f"best at: {_place(best)}"]
        else:
            lines += ["best value: none yet" if self.feasible is None else "best value: none, as nothing was feasible"]
        if self._limited:
            lines += [_feasibility(self.trials)]
            sure = self.infeasible
            lines += [] if sure is None else [_nowhere(sure)]
        lines += [f"stopped: {self.stopped}"] * (self.stopped is not None)
        return "\n  ".join(lines)

    @property
    def _limited(self) -> bool:
        return self.study.policy.constraint_count > 0

    def _candidates(self) -> Sequence[Trial]:
        """Of which the best is one."""
        if not self._limited:
            return self.trials
        try:
            return satisfying(self.trials)
        except TrialError:
            return []

    def _best(self) -> Trial | None:
        return best_of(self._candidates(), self.study.goal)


def _nowhere(sure: float) -> str:
    bounds = f"hold with probability at least {sure:.3g}" if sure else "are not proved"
    return f"nothing seems feasible: everywhere some lower bound is above 0; the bounds {bounds}"


def _feasibility(trials: Sequence[Trial]) -> str:
    """How many trials were feasible, and which came closest where none was."""
    told = [trial.feasible for trial in trials if trial.feasible is not None]
    closest = closest_of(trials)
    nearest = f"; closest: trial {closest.number}" if closest else ""
    return f"feasible: {sum(told)} of {many(len(told), 'trial')}{nearest}"


def best_of(trials: Sequence[Trial], goal: str) -> Trial | None:
    """The trial of the best value, the earliest of several; None where there is none."""
    better = gt if goal == "maximize" else lt
    best: Trial | None = None
    for trial in trials:
        if trial.reward is not None and (best is None or best.reward is None or better(trial.reward, best.reward)):
            best = trial
    return best


def briefly(value: object) -> str:
    """A value in a few characters."""
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _place(trial: Trial) -> str:
    if trial.settings is None:
        return f"[{', '.join(briefly(float(coordinate)) for coordinate in trial.point)}]"
    return ", ".join(f"{name}={briefly(value)}" for name, value in trial.settings)


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
