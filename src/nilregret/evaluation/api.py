"""`nr.evaluate`: what another policy would have earned on a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final, overload

import numpy as np

from .._utils.checks import (
    LARGEST_REWARD,
    LARGEST_SEED,
    LEAST_DELTA,
    Array,
    IndexArray,
    integer,
    many,
    number,
    shown,
    span_of,
)
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import exact, numeral
from .._utils.tables import given_table
from ..errors import InvalidInput, warn
from ..policy.policy import Policy
from ..study.study import Study
from .diagnostics import PropensityCheck, cautions, check_of, covered
from .estimators import (
    ESTIMATORS,
    Estimator,
    Interval,
    RewardModel,
    effective_sample_size,
    estimates,
    gain_interval,
    mean_interval,
)
from .log import NO_PROPENSITIES, RECORD, ROUNDING, WAITING, Log, features_of, log_of_table, refuse_outside
from .slates import SLATE_ESTIMATORS, SlateEstimator, SlateEvaluation, evaluate_slates
from .studies import log_of_study
from .target import Target, target_of


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
        effective_sample_size: number of the policy's own decisions that would say as much as the log. With units, the
            number of its own units.
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
        units: number of units (visitors) of these rows, by which intervals are clustered, or None without units.
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
    units: int | None = None

    def __str__(self) -> str:
        sure = f"{numeral(100 * (1.0 - self.delta))}%"
        value = "not estimated" if math.isnan(self.value) else f"{numeral(self.value)} a decision"
        own = self.logged_interval
        said = [
            f"The policy's value is {value} ({sure} interval {numeral(self.lower)} to {numeral(self.upper)}); that of "
            f"the log is {numeral(self.logged)} ({numeral(own.lower)} to {numeral(own.upper)}). "
            f"{self._comparison()}{self._waiting()}",
            f"{many(self.rows, 'decision')} of {self._of[0]} say{'s' * (self.rows == 1)} as much as "
            f"{self.effective_sample_size:.0f}{self._of[1]} of the policy's own; the largest weight is "
            f"{numeral(self.largest_weight, 3)}.",
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

    @property
    def _of(self) -> tuple[str, str]:
        return ("the log", "") if self.units is None else (many(self.units, "unit"), " units")

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
            **({} if self.units is None else {"units": self.units}),
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


NUMBERS = 1 << 18  # predictions in memory at once
FLATTERED = (
    "The policy was chosen by means of the very log that it is evaluated on, which flatters it, and its interval is no "
    "guarantee. Evaluate it on decisions that come after it was chosen."
)
MODEL_ALONE = (
    "No row has a propensity, so the value is that of the reward model alone. The model may be wrong, and nothing "
    "bounds its error: the interval is the range of rewards."
)
UNWEIGHED = (
    "{} of {} with a reward {} no propensity. Such rows teach the reward model, and the other estimates leave them out."
)
UNREAD = "Columns {} of the log were not read. Contexts are named context, or context.NAME."


@overload
def evaluate(
    log: Any, policy: Any, *, estimator: Estimator = "snips", delta: float = 0.05,
    reward_range: tuple[float, float] = (0.0, 1.0), actions: Sequence[Any] | None = None, floor: float | None = None,
    default_reward: float | None = None, reward: str | None = None, most: float = 10.0, seed: int = 0,
) -> Evaluation: ...  # fmt: skip
@overload
def evaluate(
    log: Any, policy: Any, *, estimator: SlateEstimator, logging: Any = None, delta: float = 0.05,
    actions: Sequence[Any] | None = None, default_reward: float | None = None,
) -> SlateEvaluation: ...  # fmt: skip
def evaluate(
    log: Any,
    policy: Any,
    *,
    estimator: Estimator | SlateEstimator = "snips",
    logging: Any = None,
    delta: float = 0.05,
    reward_range: tuple[float, float] = (0.0, 1.0),
    actions: Sequence[Any] | None = None,
    floor: float | None = None,
    default_reward: float | None = None,
    reward: str | None = None,
    most: float = 10.0,
    seed: int = 0,
) -> Evaluation | SlateEvaluation:
    """Returns what a policy would have earned on a log of decisions that another policy made.

    The value is the mean reward for each decision, over the contexts of the log. All estimates are in the result. The
    interval bets on weighted rewards (`nilregret.evaluation.estimators`). It needs correct propensities, and neither
    bounded weights nor many rows. It holds for the mean over the log under drift, too.

    Args:
        log: a study on arms, a table (a data frame, or a mapping of columns), or the path of a file
            (docs/evaluation.md). Columns: context or context.NAME, action, propensity, reward. A missing reward
            is an empty cell.
        policy: "uniform", "best" of a study, an action, or a dictionary of probabilities by action. Or an array of
            choices `(n,)` or probabilities `(N,)` or `(n, N)`, where the n rows are those with a propensity. Or a
            function of the context that returns an action or probabilities `(N,)`. It gets a dict if columns name the
            context, such as context.age. Or a policy, which learns on the way (`nilregret.evaluation.target`).
        estimator: of `value`. "snips" is self-normalised inverse propensities, "ips" the plain ones. "dr" is doubly
            robust, with a cross-fitted ridge regression for each action. "switch" is "dr" without large weights. Of
            slates it is "slate", "cascade", "independent", "pi" or "wpi" (`nilregret.evaluation.slates`). The policy
            is then one of slates, and of the other arguments only `delta`, `actions` and `default_reward` count.
        logging: the policy of a log of slates, in the forms of `policy`. None for that of a study, or if the estimator
            needs the propensities alone.
        delta: probability with which the interval may miss the value.
        reward_range: least and largest possible reward, not only of those that came.
        actions: names of all actions, in the order of probabilities. None for the arms of a study, else those found.
        floor: lowest propensity that the log's policy can have by design, such as 0.1 / N. Intervals become narrower.
            None for that of a study's `nr.slots.Uniform` or `nr.slots.Shares`, if it has one.
        default_reward: stands in for missing rewards. None leaves their rows out.
        reward: another column in place of the reward, such as "metrics.purchase". None for the reward itself.
        most: largest weight that "switch" uses.
        seed: of a policy that learns.

    Raises:
        InvalidInput: a value of the log cannot be used, such as a propensity of 0, or the policy does not fit the log.

    >>> import nilregret as nr
    >>> context, action, reward = [[0.0], [1.0]] * 200, [0, 0, 1, 1] * 100, [1, 0, 0, 1] * 100
    >>> log = {"context": context, "action": action, "propensity": [0.5] * 400, "reward": reward}
    >>> answer = nr.evaluate(log, lambda context: int(context[0]))
    >>> round(answer.value, 2), bool(answer.lower < 1.0)
    (1.0, True)
    """
    number("delta", delta, low=LEAST_DELTA, high=1.0, open_high=True)
    if estimator in SLATE_ESTIMATORS:
        return evaluate_slates(
            log, policy, estimator=estimator, logging=logging, delta=delta, actions=actions,
            default_reward=default_reward,
        )  # fmt: skip
    if estimator not in ESTIMATORS:
        known = ", ".join(map(repr, (*ESTIMATORS, *SLATE_ESTIMATORS)))
        raise InvalidInput(f"`estimator` is {shown(estimator)}: it must be one of {known}.")
    number("most", most, low=0.0)
    bounds = span_of("reward_range", reward_range)
    found = _answered(_log(log, actions, reward, weighed=estimator != "model"), default_reward)
    if not found.weighed and (estimator != "model" or isinstance(policy, Policy)):
        raise InvalidInput(NO_PROPENSITIES, advice=RECORD, topic="no_propensities")
    refuse_outside(found, bounds)
    target = target_of(policy, found, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
    if found.weighed:
        least = _least(floor, found)
        result = _evaluated(found, target, estimator=estimator, delta=delta, bounds=bounds, least=least, most=most)
    else:
        result = _of_model(found, target, delta=delta, bounds=bounds)
    for sentence in result.cautions:
        warn(sentence)
    return result


def _log(log: Any, actions: Sequence[Any] | None, reward: str | None, *, weighed: bool) -> Log:
    if isinstance(log, Study):
        if actions is not None:
            raise InvalidInput("The actions of a study are its arms: leave out `actions`.")
        return log_of_study(log, reward)
    return log_of_table(given_table("log", log, also="a study, "), actions, reward, weighed=weighed)


def _answered(log: Log, default_reward: float | None) -> Log:
    """Returns the log with missing rewards filled in, if they mean something."""
    if default_reward is not None:
        fill = number("default_reward", default_reward, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        log = replace(log, rewards=np.where(np.isnan(log.rewards), fill, log.rewards))
    if np.isnan(log.rewards).all():
        raise InvalidInput("No decision of the log has a reward yet, so nothing can be evaluated.")
    return log


def _least(floor: float | None, log: Log) -> Array | None:
    """Returns the lowest propensity of each action by design, `(N,)`, or None."""
    if floor is None:
        known = log.least is not None and (log.least[log.taken] * (1.0 - 1e-9) <= log.propensities).all()
        return log.least if known else None
    floor = number("floor", floor, low=0.0, open_low=True, high=1.0)
    least = float(log.propensities.min())
    if least < floor * (1.0 - 1e-9):
        raise InvalidInput(
            f"`floor` is {exact(floor)}, and the log has a propensity of {exact(least)}: it must be the lowest that "
            "there can be, such as the rate of uniform decisions over the number of arms."
        )
    return np.full(len(log.actions), floor)


def _evaluated(
    log: Log, target: Target, *, estimator: Estimator, delta: float, bounds: tuple[float, float],
    least: Array | None, most: float,
) -> Evaluation:  # fmt: skip
    low, span = bounds[0], bounds[1] - bounds[0]
    weights = target.of(log.taken) / log.propensities
    told = ~np.isnan(log.rewards)
    used, w, check = log.only(told, "without a reward"), weights[told], check_of(log, 0.01)
    scaled = (used.rewards - low) / span
    log = log if least is None else replace(log, least=least)
    bound = None if least is None else target.largest(least)
    largest = bound if _has_mean_1(weights, target, log, bound) else None
    overlap = 1.0 if largest is not None else _overlap(target, log, bound)  # A floor under all choices leaves none out.
    interval = mean_interval(w, scaled, delta, largest=largest, units=used.units)
    own = mean_interval(np.ones(len(used)), scaled, delta, units=used.units)
    gain = gain_interval(w, scaled, delta, units=used.units)
    found = estimates(used.rewards, w, *_predicted(used, target.only(told)), most=most)
    effective = effective_sample_size(w, used.units)
    said = [*cautions(log, weights, check, effective, overlap), *([FLATTERED] if target.from_log else [])]
    if alone := len(used.unweighed or ()):
        total = many(len(used) + alone, "decision")
        said.append(UNWEIGHED.format(f"{alone:,}", total, "has" if alone == 1 else "have"))
    said += [UNREAD.format(", ".join(map(shown, log.unread)))] if log.unread else []
    return Evaluation(
        estimator=estimator, value=found[estimator], lower=low + span * interval.lower,
        upper=low + span * interval.upper, delta=delta, estimates=found, effective_sample_size=effective,
        overlap=min(float(weights.mean()), 1.0) if overlap is None else overlap, largest_weight=float(w.max()),
        rows=len(used), left_out=used.left_out, logged=float(used.rewards.mean()),
        logged_interval=Interval(low + span * own.lower, low + span * own.upper), reward_range=bounds, check=check,
        gain=Interval(span * gain.lower, span * gain.upper),
        cautions=tuple(said), learned=target.learned,
        units=None if used.units is None else len(np.unique(used.units)),
    )  # fmt: skip


def _of_model(log: Log, target: Target, *, delta: float, bounds: tuple[float, float]) -> Evaluation:
    """Returns the value of the reward model alone, of a log without propensities. Nothing bounds its error."""
    (low, high), told = bounds, ~np.isnan(log.rewards)
    used = log.only(told, "without a reward")
    own = mean_interval(np.ones(len(used)), (used.rewards - low) / (high - low), delta, units=used.units)
    logged = Interval(low + (high - low) * own.lower, low + (high - low) * own.upper)
    value = float(_predicted(used, target.only(told))[1].mean())
    return Evaluation(
        estimator="model", value=value, lower=low, upper=high, delta=delta, estimates={"model": value},
        effective_sample_size=0.0, overlap=0.0, largest_weight=0.0, rows=len(used), left_out=used.left_out,
        logged=float(used.rewards.mean()), logged_interval=logged, reward_range=bounds,
        check=PropensityCheck(Interval(0.0, 1.0), {}), gain=Interval(low - logged.upper, high - logged.lower),
        cautions=(MODEL_ALONE,), learned=None, units=None if used.units is None else len(np.unique(used.units)),
    )  # fmt: skip


def _has_mean_1(weights: Array, target: Target, log: Log, largest: float | None) -> bool:
    """Returns False if the log could not make all choices of the policy, so that a floor bounds nothing."""
    return covered(weights, units=log.units, largest=largest) and bool((_possible(target, log) > 1.0 - ROUNDING).all())


def _possible(target: Target, log: Log) -> Array:
    """Returns the share of the policy's choices in each row that are among the actions of then, `(n,)`."""
    return (
        np.ones(len(log)) if log.available is None else target.expected(log.available.astype(np.float64), slice(None))
    )


def _overlap(target: Target, log: Log, largest: float | None) -> float | None:
    """Returns the share of the policy's choices that the log could have made by what its record knows, or None.

    A row with propensity 1 could only have been what it was. In other rows each arm of then had a chance, unless it was
    left out (`Study.ask(among=...)`). The record does not know that, and the weights show it.
    """
    if not log.recorded:
        return None
    sure, chosen = log.propensities > 1.0 - ROUNDING, target.of(log.taken)
    found = float(np.where(sure, chosen, _possible(target, log)).mean())
    return found if covered(chosen / log.propensities, found, units=log.units, largest=largest) else None


def _together(log: Log, more: Log | None) -> IndexArray | None:
    """Returns the units of the rows of a log and of further rows, or None if the log has none."""
    if log.units is None or more is None:
        return log.units
    return np.concatenate([log.units, -1 - np.arange(len(more)) if more.units is None else more.units])


def _predicted(log: Log, target: Target) -> tuple[Array, Array]:
    """Returns the predicted rewards of the actions taken and of the policy, each `(n,)`."""
    n, logs = len(log), [log] if log.unweighed is None else [log, log.unweighed]
    contexts = None if log.contexts is None else [each.context(row) for each in logs for row in range(len(each))]
    model = RewardModel(
        features_of(log.contexts if len(logs) == 1 else contexts, sum(len(each) for each in logs)),
        np.concatenate([each.taken for each in logs]), np.concatenate([each.rewards for each in logs]),
        len(log.actions), _together(log, log.unweighed),
    )  # fmt: skip
    taken, expected = np.empty(n), np.empty(n)
    step = max(NUMBERS // len(log.actions), 1)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        predicted = model.predict(rows)
        taken[rows] = predicted[np.arange(len(predicted)), log.taken[rows]]
        expected[rows] = target.expected(predicted, rows)
    return taken, expected
