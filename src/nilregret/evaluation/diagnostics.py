"""Checks of a log, and sentences about what a result cannot say."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from .._utils.checks import Array, IndexArray, many, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import exact, numeral
from ..study.visits import error_of_mean, sum_of_squares, visits
from .estimators import Interval, bounded_interval
from .log import WAITING, Log

MOST_ACTIONS = 20  # whose weights are checked: the most frequent
FEW = 30  # effective rows below which a result is said to rest on few
LARGE_SHARE = 0.2  # of all weight in one row
COVERED = 0.95  # share of a policy's choices that the log should cover
UNLIKELY = 4.0  # standard errors
UNSEEN = 1e-4  # probability below which a possible choice is not missing by chance
BLOCKS, FEWEST = 10, 4  # most and fewest parts of the log whose levels are compared
ROWS = 50  # of each part, at least
TAKEN, SAID = 3, 10  # rows of an action that is there all the time, and effective rows, in each part
CREDIT = 0.2  # of the differences between the averages of actions: a smaller credit misleads nobody
UNIFORM = "`explore=nr.slots.Uniform(0.1)`"
FLOOR = f"Next time make some decisions at random: {UNIFORM}. A twentieth to a fifth of them is enough for most logs."
MORE = "They are few altogether: log more of them."
MISSING = (
    "There is a floor already, but only under arms that could be played: not under retired ones, those that `among` "
    "left out, and under contexts those that the same request had played (`count`). Evaluate decisions in which they "
    "could be."
)
WAIT = "Wait: {} do not count yet, because their answers are still waited for."
HIGHER = "There is a floor already: log more decisions, or raise it."


@final
@dataclass(frozen=True)
class PropensityCheck:
    """A check of the propensities of a log, without any policy (an A/A test).

    For each action the mean of its weights is taken, 1 / p in the rows that took it and 0 in the others. For the
    uniform policy the weights are 1 / (N p). If propensities are right and each action always had a chance, all means
    are 1. An interval above 1 shows that propensities are wrong. An interval below 1 says that an action had no chance
    in some rows, or that propensities are too high. Its upper end holds if no propensity was ever lower than the
    lowest one of the log.

    Attributes:
        uniform: interval for the uniform policy.
        actions: interval of each action, of the most frequent 20. Empty where not all could always be chosen.
    """

    uniform: Interval
    actions: dict[Any, Interval]

    @property
    def passed(self) -> bool:
        """True if no interval lies above 1."""
        return not self.wrong

    @property
    def wrong(self) -> list[Any]:
        """Actions whose interval lies above 1, and "uniform"."""
        named = {**self.actions, "uniform": self.uniform}
        return [name for name, interval in named.items() if interval.lower > 1.0]


def check_of(log: Log, delta: float) -> PropensityCheck:
    """Returns the check of a log's propensities.

    Args:
        log: its rows, also those without a reward.
        delta: probability that correct propensities do not pass.
    """
    frequent = np.bincount(log.taken, minlength=len(log.actions)).argsort(kind="stable")[::-1][:MOST_ACTIONS]
    share = delta / 2.0
    weights = 1.0 / (log.offered * log.propensities)
    uniform = bounded_interval(weights, 0, float(weights.max()), share, units=log.units)
    actions, largest = {}, 1.0 / float(log.propensities.min())
    for action in frequent if log.available is None else ():
        took = log.taken == action
        of_action = 1.0 / log.propensities[took]
        if log.units is not None:  # Each unit has a sum, which may be 0.
            of_action = np.where(took, 1.0 / log.propensities, 0.0)
        actions[log.actions[action]] = bounded_interval(
            of_action, len(log) - len(of_action), largest, share / len(frequent), units=log.units
        )
    return PropensityCheck(uniform, actions)


def covered(
    weights: Array, share: float = 1.0, *, units: IndexArray | None = None, largest: float | None = None
) -> bool:  # fmt: skip
    """Returns False if the log could make less than this share of the policy's choices, as a low mean weight shows.

    If a floor bounds weights by `largest`, a log of few rows may have none of the choices by chance.
    """
    if largest is not None and not weights.any():
        return bool((1.0 - 1.0 / largest) ** (len(weights) / visits(units)) > UNSEEN)
    return bool(weights.mean() + UNLIKELY * error_of_mean(weights, units) >= COVERED * share)


def cautions(
    log: Log, weights: Array, check: PropensityCheck, effective: float, overlap: float | None = None
) -> list[str]:  # fmt: skip
    """Returns sentences about what weakens or breaks a result.

    Args:
        log: all rows with a propensity.
        weights: of the policy, `(n,)`.
        check: of the propensities.
        effective: effective sample size of the rows with a reward, or of their units.
        overlap: share of the policy's choices that the log could have made, or None if the log does not tell.
    """
    missing = _silent(log) or _unequal(log)
    found = [_overlap(log, weights, effective, overlap), _wrong(check), missing, _drift(log, weights), _tide(log)]
    return [sentence for sentence in found if sentence is not None]


def _overlap(log: Log, weights: Array, effective: float, overlap: float | None) -> str | None:
    n, total = len(log), float(weights.sum())
    impossible = log.floored and (overlap is None or overlap < COVERED)
    if total == 0.0:
        advice = MISSING if impossible else _advice(log)
        return (
            f"None of the log's {many(n, 'decision')} is one that the policy makes, so the log says nothing of its "
            f"value: the estimate is that of the reward model, or missing. {advice}"
        )
    known = overlap is not None and overlap < COVERED
    if known or (overlap is None and not covered(weights, units=log.units)):
        share = f"{overlap:.0%}" if known else f"some {total / n:.0%}"
        makes, wrong = ("ever makes", "") if known else ("makes often enough", ", or its propensities are too high")
        advice = MISSING if log.floored else FLOOR
        return (
            f"Only {share} of the policy's choices are ones that the log's policy {makes}{wrong}. Of the others "
            f"nothing is known, and estimates leave them out. {advice}"
        )
    if (log.propensities > 1.0 - 1e-9).all() and log.offered.max() > 1:
        return (
            "Every propensity is 1: the log's policy left nothing to chance, so only what it did is known, and "
            f"whether it would have done the same again. {FLOOR}"
        )
    if effective < FEW or weights.max() > LARGE_SHARE * total:
        count = n if log.units is None else len(np.unique(log.units))
        advice = MORE if effective > count / 2 and log.left_out.get(WAITING, 0) < n else _advice(log)
        of = "" if log.units is None else f" of {many(count, 'unit')}"
        return (
            f"The estimate rests on few {'units' if of else 'decisions'}: the {many(n, 'row')}{of} say as much as "
            f"{effective:.0f} of the policy's own, and the largest weight is {numeral(weights.max(), 3)}, "
            f"{weights.max() / total:.0%} of all weight. {advice}"
        )
    return None


def _advice(log: Log) -> str:
    """Returns what gives the log more decisions of the policy."""
    waiting = log.left_out.get(WAITING, 0)
    return WAIT.format(many(waiting, "decision")) if waiting >= len(log) else HIGHER if log.floored else FLOOR


def _wrong(check: PropensityCheck) -> str | None:
    if check.passed:
        return None
    said = check.uniform if "uniform" in check.wrong else check.actions[check.wrong[0]]
    return (
        f"The propensities of the log are not right ({shown(check.wrong)}): the mean of inverse propensities lies "
        f"between {numeral(said.lower, 3)} and {numeral(said.upper, 3)} and should be 1. Usually they are not those of "
        "the actions taken, or decisions that went well were kept and others lost. No estimate holds."
    )


def _silent(log: Log) -> str | None:
    """Returns a caution if rewards are missing and all others are alike, so that a missing one may say something."""
    told = log.rewards[~np.isnan(log.rewards)]
    if len(told) == len(log) or len(told) < FEW or told.min() != told.max():
        return None
    return (
        f"All {many(len(told), 'reward')} are {exact(told[0])}, and {many(len(log) - len(told), 'decision')} have "
        "none. If one that is missing says something, such as no click, the estimate is wrong: give its value by "
        "`default_reward=`."
    )


def _unequal(log: Log) -> str | None:
    """Returns a caution if rewards are missing more often for some actions."""
    answered = ~np.isnan(log.rewards)
    if answered.all() or not answered.any():
        return None
    asked = np.bincount(log.taken, minlength=len(log.actions))
    told = np.bincount(log.taken[answered], minlength=len(log.actions))
    seen, share = asked > 0, answered.mean()
    expected = asked[seen] * share
    excess = ((told[seen] - expected) ** 2 / (expected * (1.0 - share))).sum()  # chi-square of one less than `seen`
    freedom = max(int(seen.sum()) - 1, 1)
    excess /= visits(log.units)  # Rewards of one unit may all be missing (Rao & Scott, 1981).
    if excess < freedom + UNLIKELY * np.sqrt(2.0 * freedom) + UNLIKELY:
        return None
    shares = told[seen] / asked[seen]
    names = np.flatnonzero(seen)
    low, high = names[shares.argmin()], names[shares.argmax()]
    return (
        f"Rewards are missing more often for some actions: {shares.max():.0%} of {shown(log.actions[high])} have one, "
        f"{shares.min():.0%} of {shown(log.actions[low])}. Where a missing reward says something, such as no click, "
        "the estimate is biased. Wait until all are in, or say what a missing one means by `default_reward=`."
    )


def _drift(log: Log, weights: Array) -> str | None:
    """Returns a caution if the policy's value differs between the halves of the log."""
    told = ~np.isnan(log.rewards)
    w, r, of = weights[told], log.rewards[told], None if log.units is None else log.units[told]
    halves = [slice(None, len(w) // 2), slice(len(w) // 2, None)]
    if len(w) < 2 * FEW or min(np.count_nonzero(w[half]) for half in halves) < FEW:
        return None
    values, variance = [], 0.0
    for half in halves:
        total = w[half].sum()
        values.append(float(w[half] @ r[half] / total))
        variance += sum_of_squares(w[half] * (r[half] - values[-1]), None if of is None else of[half]) / total**2
    rounding = 1e-9 * max(abs(value) for value in values)
    if abs(values[1] - values[0]) <= UNLIKELY * np.sqrt(variance) + rounding:
        return None
    return (
        f"What the policy earns changed on the way: {numeral(values[0], 3)} in the first half of the log, "
        f"{numeral(values[1], 3)} in the second. The estimate is the mean over the log, and no forecast: evaluate the "
        "last part by itself."
    )


def _tide(log: Log) -> str | None:
    """Returns a caution if an action was taken more, or less, while the level of all rewards was high.

    The level of a part of the log is what one mix of actions, that of the whole log, earns there by inverse
    propensities. So it does not move because actions did. It is of the actions that were there all the time.
    """
    told = ~np.isnan(log.rewards)
    taken, rewards, propensities = log.taken[told], log.rewards[told], log.propensities[told]
    n, count = len(taken), len(log.actions)
    parts = min(BLOCKS, n // ROWS)
    if parts < FEWEST:
        return None
    part = np.arange(n) * parts // n
    plays = np.bincount(part * count + taken, minlength=parts * count).reshape(parts, count).astype(float)
    always, total, sizes = plays.min(axis=0) >= TAKEN, plays.sum(axis=0), plays.sum(axis=1)
    weights: Array = np.where(always[taken], total[taken] / n / propensities, 0.0)
    units = None if log.units is None else log.units[told]
    sums, squares = np.bincount(part, weights), _products(weights, part, parts, units).diagonal()
    if count < 2 or (sums**2 < SAID * squares).any() or not squares.all():
        return None
    levels = np.bincount(part, weights * rewards) / sums
    errors = _products(weights * (rewards - levels[part]) / sums[part], part, parts, units)
    known = np.flatnonzero(total >= FEW)
    apart = plays[:, known] / total[known] - sizes[:, None] / n  # the parts in which an action was taken more
    credit, error = levels @ apart, np.sqrt(((errors @ apart) * apart).sum(axis=0))
    averages = np.bincount(taken, rewards, minlength=count)[known] / total[known]
    clear = np.abs(credit) > np.maximum(UNLIKELY * error, CREDIT * np.ptp(averages)) + 1e-9 * np.abs(levels).max()
    if not clear.any():
        return None
    found = int(np.where(clear, np.abs(credit), 0.0).argmax())
    high = levels > float(levels @ sizes) / n
    shares = [float(plays[at, known[found]].sum() / sizes[at].sum()) for at in (~high, high)]
    level = [numeral(float(levels[at] @ sizes[at] / sizes[at].sum()), 2) for at in (~high, high)]
    return (
        f"Shares and level moved together: {shown(log.actions[known[found]])} had {shares[0]:.0%} of the decisions "
        f"where the level of all rewards was {level[0]}, and {shares[1]:.0%} where it was {level[1]}. Its plain "
        f"average is {numeral(abs(credit[found]), 2)} too {'high' if credit[found] > 0.0 else 'low'} for that, and so "
        "is what a reward model makes of it. Estimates by inverse propensities are not affected. For the next run "
        '`world="tidal"` learns the level apart.'
    )


def _products(values: Array, part: IndexArray, parts: int, units: IndexArray | None) -> Array:
    """Returns the sums over units of the products of their sums in two parts of the log, `(parts, parts)`.

    Without units each row is one. Of residuals these are covariances of sums (Liang & Zeger, 1986).
    """
    if units is None:
        return np.diag(np.bincount(part, values**2))
    sums = np.bincount(units * parts + part, values, minlength=(int(units.max()) + 1) * parts).reshape(-1, parts)
    return np.asarray(sums.T @ sums)
