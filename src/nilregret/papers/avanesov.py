"""Avanesov, "How to gamble with non-stationary X-armed bandits and have no regrets": figures 1, 2 and 3.

| symbol | name | meaning | shape |
|---|---|---|---|
| T | `rounds`, `horizons` | number of rounds | |
| K | `periods` | stationary periods, of equal length | |
| xi, D, theta_n | the defaults of `gp_ucb_cpd` | sqrt(3), 0.02, 2.6 n^{-6/7}, all stated in section 4 | |
| p, c | likewise | power of log T in beta_t and constant of the detector's ridge: not stated, or not as printed | |
| R_T | | cumulative regret against each period's own maximum | (trials, ...) |
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._utils.checks import Array, many
from .._utils.process_setting import one_thread
from ..algorithms import gp_ucb_cpd
from ..domains.domain import Arms
from ..environments import Environment, even_changes, gp_sample
from ..kernels import Matern
from ..policy.policy import Policy
from ..simulation.metrics import Run, detections
from ..simulation.runner import simulate
from ..study.curves import Curves, Interval, interval
from .figure import (
    INDISTINGUISHABLE,
    Job,
    Paper,
    PowerFit,
    Result,
    Statement,
    above,
    fit_power,
    in_trials,
    kept_rounds,
    together,
)

PAPER = Paper("avanesov", "Avanesov: GP-UCB-CPD, a world that changes abruptly")

TRIALS = 64  # "repeated 64 times"
NOISE = 0.05  # "its standard deviation is 0.05"
KERNEL = Matern(2.5, lengthscale=1.0)
ARMS = Arms.grid(0.0, 5.0, 1000)  # "[0, 5] is discretized into 1000 evenly spaced points"
HORIZONS = (900, 1275, 1650, 2025, 2400)  # figure 1
PERIODS = tuple(range(3, 10))  # figure 2
LEVEL = 0.15  # allowed relative difference from the paper's fitted curve
ALARMS = 0.12  # "low probability of false positive decision"
MARGINAL = 0.2  # "only marginally better"

CPD, ORACLE, NEVER, UCB = "GP-UCB-CPD", "GP-UCB-Oracle", "GP-UCB-NO-Detector", "GP-UCB"
NOTE = (
    "Not in the paper: the constant of the detector's ridge, here 2. Not as printed: log^3 T in beta_t (eq. 3.7 has "
    "log^4 T), and the detector's distance averaged over [0, 5], not integrated."
)
PRINTED = {  # the paper's fits, 95% intervals of the exponents
    "T": PowerFit(1.86, Interval(0.74, 0.64, 0.84)),
    "K": PowerFit(502.0, Interval(0.282, 0.21, 0.35)),
}
THEOREM = {"T": 11 / 14, "K": 3 / 14}  # Theorem 3.1: T^{11/14} K^{3/14}, alpha = 5/2 and d = 1


def rule(rounds: int, **choices: Any) -> Policy:
    """Returns GP-UCB-CPD with the settings of section 4 for T = `rounds`."""
    return gp_ucb_cpd(ARMS, KERNEL, noise=NOISE, horizon=rounds, **choices)


def world(seed: int, rounds: int, periods: int) -> Environment:
    """Returns an environment of functions "drawn independently from GP(0, k_0)", change points "evenly spaced".

    The first functions of a seed are the same for every number of periods, so that comparisons are in pairs.
    """
    functions = [gp_sample(KERNEL, ARMS, seed=[seed, period]) for period in range(periods)]
    return Environment(functions, domain=ARMS, noise=NOISE, change_points=even_changes(rounds, periods))


def with_seeds(job: Job, one: Callable[[int], dict[str, Array]]) -> dict[str, Array]:
    """Returns the results of `one(seed)` by name, stacked over the seeds of the trials."""

    def limited(trial: int) -> dict[str, Array]:
        with one_thread:  # makes the environment the same on every machine and in every process
            return one(job.seed_of(trial))

    return in_trials(job, limited)


# -- figures 1 and 2: how the regret grows -----------------------------------------------------------------------------


@PAPER.figure(
    "1", "regret against the horizon, K = 3 periods", trials=TRIALS, rounds=HORIZONS[-1], quick=(8, HORIZONS[-1])
)
def growth_with_horizon(job: Job) -> Result:
    """T = 900, ..., 2400 (the same shares of another number of rounds), K = 3."""
    horizons = sorted({max(3, horizon * job.rounds // HORIZONS[-1]) for horizon in HORIZONS})
    return growth(job, "T", [(rounds, 3) for rounds in horizons], horizons)


@PAPER.figure("2", "regret against the number of periods, T = 2700", trials=TRIALS, rounds=2700, quick=(6, 2700))
def growth_with_changes(job: Job) -> Result:
    """K = 3, ..., 9, T = 2700."""
    numbers = [periods for periods in PERIODS if periods <= job.rounds]
    return growth(job, "K", [(job.rounds, periods) for periods in numbers], numbers)


def growth(job: Job, symbol: str, settings: Sequence[tuple[int, int]], along: Sequence[int]) -> Result:
    """Returns R_T of GP-UCB-CPD for each (T, K), and the power law through the means."""

    def one(seed: int) -> dict[str, Array]:
        return {CPD: np.array([final_regret(seed, rounds, periods) for rounds, periods in settings])}

    values = with_seeds(job, one)[CPD]
    x = np.array(along, dtype=np.float64)
    fit, printed = fit_power(x, values), PRINTED[symbol]
    curves = Curves(
        x=x,
        lines={
            CPD: values,
            f"fit: {fit.words(symbol)}": fit(x)[None],
            f"paper: {printed.words(symbol)}": printed(x)[None],
        },
        x_label=symbol, y_label="cumulative regret R_T", log="xy", marks=True,
    )  # fmt: skip
    return Result((curves,), growth_statements(fit, x, values, symbol), (NOTE,))


def final_regret(seed: int, rounds: int, periods: int) -> float:
    """Returns R_T of one run."""
    return float(simulate(rule(rounds), world(seed, rounds, periods), rounds, seed=seed).regret.sum())


def growth_statements(fit: PowerFit, x: Array, values: Array, symbol: str) -> tuple[Statement, ...]:
    """Returns the statements of section 4 about figures 1 and 2."""
    printed, theorem = PRINTED[symbol], THEOREM[symbol]
    fitted = f"{fit.words(symbol)}, exponent {fit.exponent}"
    off = values.mean(axis=0) / printed(x) - 1.0
    levels = ", ".join(f"{number:g}: {100.0 * share:+.0f}%" for number, share in zip(x, off, strict=True))
    low, high = printed.exponent.low, printed.exponent.high
    return (
        Statement(
            f'The dependence on {symbol} is "sub-linear": the interval of the exponent is below 1.',
            fitted, fit.exponent.high < 1.0,
        ),
        Statement(
            f"The fitted exponent lies in the paper's 95% interval, ({low:g}, {high:g}).",
            fitted, low <= fit.exponent.mean <= high,
        ),
        Statement(
            f"The fitted curve {printed.words(symbol)}: means within {100 * LEVEL:g}% of it, at each {symbol}.",
            levels, bool((np.abs(off) <= LEVEL).all()),
        ),
        Statement(
            f"By Theorem 3.1, no faster than {symbol}^{theorem:.3f}: the interval of the exponent reaches down to it.",
            fitted, fit.exponent.low <= theorem,
        ),
    )  # fmt: skip


# -- figure 3: the comparison ------------------------------------------------------------------------------------------


@PAPER.figure("3", "with a detector, with an oracle, without either", trials=TRIALS, rounds=1200, quick=(12, 1200))
def comparison(job: Job) -> Result:
    """T = 1200, K = 4: a change "every 300 points"."""
    changes = even_changes(job.rounds, 4)
    kept = kept_rounds(job.rounds)
    policies = {
        ORACLE: rule(job.rounds, detector="oracle", change_points=changes),
        CPD: rule(job.rounds),
        UCB: rule(job.rounds, detector="never", exploration=0.0),
        NEVER: rule(job.rounds, detector="never"),
    }

    def one(seed: int) -> dict[str, Array]:
        env = world(seed, job.rounds, 4)
        runs = {name: simulate(policy, env, job.rounds, seed=seed) for name, policy in policies.items()}
        found = detections(runs[CPD].restarts, changes, job.rounds)
        return {
            **{name: run.cumulative_regret[kept - 1] for name, run in runs.items()},
            "restarted": restarted(runs[CPD], changes)[kept - 1],
            "alarm": np.array(any(restart < changes[0] for restart in runs[CPD].restarts)),
            "delays": found.delays,
            "false alarms": np.array(found.false_alarms),
        }

    measured = with_seeds(job, one)
    x = kept.astype(np.float64)
    regret = Curves(
        x=x, lines={name: measured[name] for name in policies}, x_label="rounds", y_label="cumulative regret"
    )
    noticed = Curves(
        x=x, lines={CPD: measured["restarted"]}, x_label="rounds", y_label="share of runs",
        title="restarted since the last change", band="none",
    )  # fmt: skip
    statements = (*before_the_change(regret, measured["alarm"], changes[0]), *after_it(regret, changes))
    return Result((regret, noticed), statements, (NOTE, found_in_words(measured)))


def restarted(run: Run, changes: Sequence[int]) -> Array:
    """Returns 1 for rounds after a restart since the last change (or since the start), else 0, `(T,)`."""
    rounds = np.arange(len(run.regret))
    starts = np.array([0, *changes])[np.searchsorted(changes, rounds, side="right")]
    restarts = np.array(run.restarts, dtype=np.intp)
    return np.asarray(
        np.searchsorted(restarts, rounds, side="right") > np.searchsorted(restarts, starts, side="left"),
        dtype=np.float64,
    )


def found_in_words(measured: dict[str, Array]) -> str:
    """Returns a text on detected changes, delays and false alarms."""
    delays = measured["delays"].ravel()
    found = np.isfinite(delays)
    delay = f", after {np.median(delays[found]):.0f} rounds (median)" if found.any() else ""
    return (
        f"{CPD} noticed {found.sum()} of {many(len(found), 'change')}{delay}, and restarted "
        f"{measured['false alarms'].sum():.0f} more times in {many(len(measured['alarm']), 'run')}."
    )


def before_the_change(curves: Curves, alarm: Array, change: int) -> tuple[Statement, ...]:
    """Returns the statements of section 4 about the rounds before the first change point."""
    at = {name: values[:, _last_before(curves, change)] for name, values in curves.lines.items()}
    gaps = {name: interval(at[name] - at[UCB]) for name in (ORACLE, CPD, NEVER)}
    apart = abs(float(at[CPD].mean() - at[ORACLE].mean())) / float(curves.mean(ORACLE)[-1])
    return (
        Statement(
            '"Before the first change-point GP-UCB performs best".',
            f"{_means(at)}; " + ", ".join(f"{name} - {UCB} = {gap}" for name, gap in gaps.items()),
            together(above(gap) for gap in gaps.values()),
        ),
        Statement(
            '"GP-UCB-Oracle and GP-UCB-CPD accumulate approximately equal regret during this period": within '
            f"{100 * INDISTINGUISHABLE:g}% of where the oracle ends.",
            f"{CPD} - {ORACLE} = {interval(at[CPD] - at[ORACLE])}, {100 * apart:.2g}%", apart <= INDISTINGUISHABLE,
        ),
        Statement(
            f'"Low probability of false positive decision": in at most {100 * ALARMS:g}% of the runs.',
            f"{alarm.sum():.0f} of {many(len(alarm), 'run')}", float(alarm.mean()) <= ALARMS,
        ),
    )  # fmt: skip


def after_it(curves: Curves, changes: Sequence[int]) -> tuple[Statement, ...]:
    """Returns the statements of section 4 about the rounds after the first change point."""
    cuts = [_last_before(curves, change) for change in (*changes, int(curves.x[-1]) + 1)]
    by_period = {
        name: np.diff(values[:, cuts], prepend=0.0, axis=1) for name, values in curves.lines.items()
    }  # (trials, K)
    late = interval(by_period[CPD][:, 1:].mean(axis=1) - by_period[ORACLE][:, 1:].mean(axis=1))
    worse = interval(by_period[UCB][:, 1:].mean(axis=1) - by_period[UCB][:, 0])
    order = [ORACLE, CPD, UCB, NEVER]
    ends = {name: curves.lines[name][:, -1] for name in order}
    steps = {f"{upper} - {lower}": interval(ends[upper] - ends[lower]) for lower, upper in itertools.pairwise(order)}
    lead, second, margin = steps.values()
    share = margin.mean / float(ends[NEVER].mean())
    return (
        Statement(
            "After a change GP-UCB-CPD performs \"notably worse, than GP-UCB-Oracle for some period of time\": regret "
            "of a later period, on average.",
            f"{CPD} - {ORACLE} = {late}", above(late),
        ),
        Statement(
            "GP-UCB's performance \"greatly deteriorates afterwards\": regret of a later period, on average, less that "
            "of the first.",
            f"{worse}, the first {by_period[UCB][:, 0].mean():.3g}", above(worse),
        ),
        Statement(
            '"The lowest average regret is achieved by GP-UCB-Oracle. ... The second best is GP-UCB-CPD."',
            f"{_means(ends)}; " + ", ".join(f"{pair} = {gap}" for pair, gap in list(steps.items())[:2]),
            together([above(lead), above(second)]),
        ),
        Statement(
            "GP-UCB performs \"only marginally better than GP-UCB-NO-Detector\": by less than a fifth of the height.",
            f"{NEVER} - {UCB} = {margin}, {100 * share:.2g}%", 0.0 < share < MARGINAL,
        ),
    )  # fmt: skip


def _last_before(curves: Curves, round_: int) -> int:
    """Returns the last index of the curves with at most `round_` rounds."""
    return max(int(np.searchsorted(curves.x, round_, side="right")) - 1, 0)


def _means(values: dict[str, Array]) -> str:
    return ", ".join(f"{name} {each.mean():.3g}" for name, each in values.items())
