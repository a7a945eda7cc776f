"""Results of evaluations: estimates, an interval, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .._utils.checks import many
from .._utils.numerals import numeral
from .diagnostics import PropensityCheck
from .estimators import Estimator
from .intervals import Interval
from .log import WAITING


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation:
    """The value of a policy, its mean reward for each decision, as estimated from the log of another.

    Attributes:
        estimator: name of the estimate that is `value`.
        value: the estimate, in the units of the rewards. NaN where the log says nothing.
        lower: lower end of the interval of the policy's value over the log.
        upper: upper end. The interval holds with probability 1 - delta, and does not depend on the estimator.
        delta: probability of an error.
        estimates: value by estimator: "snips", "dr", "ips", "switch", and "model", the reward model alone.
        effective_sample_size: number of the policy's own decisions that would say as much as the log.
        overlap: share of the policy's choices that the log's policy could have made. It is exact for a study, whose
            record knows the arms of each decision, and under a floor. Else it is the mean weight, an estimate.
        largest_weight: largest ratio of the policy's probability to the propensity.
        rows: number of decisions with propensity and reward, which the estimates use.
        left_out: number of other decisions, by reason.
        logged: mean reward on these rows, the value of the log's own policy.
        logged_interval: its interval.
        gain: interval of the policy's value less that of the log's own.
        reward_range: least and largest possible reward.
        check: of the log's propensities.
        cautions: sentences about what weakens or breaks the result.
        learned: number of rows from which a replayed policy learned, or None for other policies.
    """

    estimator: Estimator
    value: float
    lower: float
    upper: float
    delta: float
    estimates: Mapping[str, float]
    effective_sample_size: float
    overlap: float
    largest_weight: float
    rows: int
    left_out: Mapping[str, int]
    logged: float
    logged_interval: Interval
    gain: Interval
    reward_range: tuple[float, float]
    check: PropensityCheck
    cautions: tuple[str, ...]
    learned: int | None = None

    def __str__(self) -> str:
        sure = f"{numeral(100 * (1.0 - self.delta))}%"
        value = "not estimated" if math.isnan(self.value) else f"{numeral(self.value)} a decision"
        own = self.logged_interval
        said = [
            f"The policy's value is {value} ({sure} interval {numeral(self.lower)} to {numeral(self.upper)}); that of "
            f"the log is {numeral(self.logged)} ({numeral(own.lower)} to {numeral(own.upper)}). "
            f"{self._comparison()}{self._waiting()}",
            f"{many(self.rows, 'decision')} of the log say as much as {self.effective_sample_size:.0f} of the policy's "
            f"own; the largest weight is {numeral(self.largest_weight, 3)}.",
        ]
        if self.learned is not None:
            said.append(f"As it learned, it took in {many(self.learned, 'decision')}.")
        others = [f"{count} {reason}" for reason, count in self.left_out.items() if reason != WAITING]
        if others:
            said.append(f"Left out: {', '.join(others)}.")
        return "\n".join([*said, *(f"Caution: {each}" for each in self.cautions)])

    def __repr__(self) -> str:
        return (
            f"Evaluation(value={numeral(self.value)}, lower={numeral(self.lower)}, upper={numeral(self.upper)}, "
            f"estimator={self.estimator!r}, effective_sample_size={numeral(self.effective_sample_size)}, "
            f"rows={self.rows})"
        )

    def _comparison(self) -> str:
        if self.gain.lower > 0.0:
            return f"The policy's is higher, by {numeral(self.gain.lower, 3)} or more."
        if self.gain.upper < 0.0:
            return f"The policy's is lower, by {numeral(-self.gain.upper, 3)} or more."
        return "Which one is higher is not established."

    def _waiting(self) -> str:
        waiting = self.left_out.get(WAITING, 0)
        return f" Not counted yet: {many(waiting, 'decision')} {WAITING}." if waiting else ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON can write, None for NaN."""
        check = {str(name): [*interval] for name, interval in self.check.actions.items()}
        return {
            "estimator": self.estimator, "value": _plain(self.value), "lower": self.lower, "upper": self.upper,
            "delta": self.delta, "estimates": {name: _plain(value) for name, value in self.estimates.items()},
            "effective_sample_size": self.effective_sample_size, "overlap": self.overlap,
            "largest_weight": self.largest_weight, "rows": self.rows, "left_out": dict(self.left_out),
            "logged": self.logged, "logged_interval": [*self.logged_interval], "gain": [*self.gain],
            "reward_range": [*self.reward_range],
            "check": {"passed": self.check.passed, "uniform": [*self.check.uniform], "actions": check},
            "cautions": [*self.cautions], "learned": self.learned, "text": str(self),
        }  # fmt: skip

    def plot(self, path: str | Path | None = None) -> Any:
        """Returns a matplotlib figure of the estimates, their interval, and the value of the log's own policy.

        Args:
            path: of the picture, or None to save nothing.
        """
        from ..plots.several import values

        return values(
            {name: value for name, value in self.estimates.items() if name != "model"}, (self.lower, self.upper),
            chosen=self.estimator, logged=self.logged, logged_interval=self.logged_interval, delta=self.delta,
            path=path,
        )  # fmt: skip


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
