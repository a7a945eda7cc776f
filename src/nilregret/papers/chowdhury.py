"""Chowdhury and Gopalan (2017), section 6: figures 1 to 4.

| symbol | name | meaning | shape |
|---|---|---|---|
| R | `noise` | R^2 is 1% of the function's range; lambda = R^2 | reward units |
| B | `bounds` | of the norm of f, under every reading of the paper's "B^2 = f^T K f" | reward units |
| gamma_t | `gain` | "theoretical upper bounds": the rate with constant 1; 1 on sensors | nats |
| R_T | | cumulative regret | (replicates, T) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .._utils.checks import Array
from ..algorithms import expected_improvement, gp_ts, gp_ucb, igp_ucb, probability_of_improvement
from ..domains.domain import Arms, Box
from ..kernels import Kernel, Matern, SquaredExponential
from ..policy.policy import Policy
from ..simulation.environments import (
    ArmFunction,
    Environment,
    KnownFunction,
    Readings,
    RKHSFunction,
    SensorNetwork,
    gp_sample,
    hartmann3,
    light_cmu,
    literal_norm,
    range_noise,
    rkhs_fit,
    rkhs_posterior_mean,
    rosenbrock,
    sensor_network,
)
from ..study.curves import Curves
from .figure import Job, Paper, Result, Statement, kept_rounds
from .sensors import INTEL_LAB, compare_on_network, intel_temperatures
from .trials import World, compare, cumulative_regret
from .verdicts import below, coincide

PAPER = Paper("chowdhury", "Chowdhury and Gopalan 2017: IGP-UCB and GP-TS")

T, TRIALS, QUICK = 30_000, 25, (10, 2000)
SENSOR_T = 500  # the paper does not say
DELTA = 0.1
UNIT_INTERVAL = Box(np.zeros(1), np.ones(1))
PRINTED, NORM = "B² = f'Kf as printed", "B = norm of f in the RKHS"
OF_BOUND = ["IGP-UCB", "GP-TS", "GP-UCB"]  # whose width depends on B
IMPROVEMENTS = ["GP-EI", "GP-PI"]


def rules(
    arms: Arms, kernel: Kernel, noise: float, bounds: Mapping[str, float], gain: str | float = "rate"
) -> dict[str, Policy]:
    """The competitors; those that need B once for each reading of it, as "IGP-UCB, <reading>"."""
    ridge = noise**2  # "lambda = R^2"
    # Only with the best noisy reward as incumbent do EI and PI get stuck, as the paper shows them.
    policies = {
        "GP-EI": expected_improvement(arms, kernel, noise=noise, incumbent="reward"),
        "GP-PI": probability_of_improvement(arms, kernel, noise=noise, incumbent="reward", margin=0.0),
    }
    for reading, B in bounds.items():
        policies[f"IGP-UCB, {reading}"] = igp_ucb(
            arms, kernel, noise=noise, norm_bound=B, information_gain=gain, delta=DELTA, regularization=ridge
        )
        policies[f"GP-TS, {reading}"] = gp_ts(
            arms, kernel, noise=noise, norm_bound=B, information_gain=gain, delta=DELTA, regularization=ridge
        )
        policies[f"GP-UCB, {reading}"] = gp_ucb(  # beta~_t of section 3: 2 B^2 + 300 gamma ln^3(t / delta)
            arms, kernel, noise=noise, width="rkhs", norm_bound=B, information_gain=gain, delta=DELTA
        )
    return policies


def regret_panel(runs: Mapping[str, Array], reading: str, rounds: int, unit: str = "", log: str = "") -> Curves:
    """Cumulative regret with standard deviations, of the rules under one reading of B."""
    lines = {name: runs[f"{name}, {reading}"] for name in OF_BOUND} | {name: runs[name] for name in IMPROVEMENTS}
    return Curves(
        x=kept_rounds(rounds).astype(np.float64), lines=lines, title=reading, band="deviation", log=log,
        x_label="rounds", y_label=f"cumulative regret{f', {unit}' if unit else ''}",
    )  # fmt: skip


def norm_bounds(kernel: Kernel, arms: Arms, values: Array, noise: float) -> dict[str, float]:
    """B under both readings; the norm is that of the function's own interpolation with lambda = R^2."""
    norm = rkhs_fit(kernel, arms, values, regularization=noise**2).norm
    return {NORM: norm, PRINTED: literal_norm(kernel, arms, values)}


# -- figures 1 and 2: synthetic functions ------------------------------------------------------------------------------


def synthetic(job: Job, kernel: Kernel, draw: Callable[..., RKHSFunction | ArmFunction]) -> Result:
    """100 points uniform on [0, 1], 25 functions, T = 30,000."""

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - all is in the seed
        arms = UNIT_INTERVAL.sample(100, seed=seed)
        f = draw(kernel, arms, seed=seed)
        noise = range_noise(f(arms.points))
        bounds = norm_bounds(kernel, arms, f(arms.points), noise)
        if isinstance(f, RKHSFunction):
            bounds[NORM] = f.norm  # known exactly
        return Environment(f, domain=arms, noise=noise), rules(arms, kernel, noise, bounds)

    runs = compare(job, world, cumulative_regret)
    # With the norm, IGP-UCB ends a thousand times below GP-UCB.
    panels = tuple(regret_panel(runs, reading, job.rounds, log="y") for reading in (PRINTED, NORM))
    return Result(panels, tuple(statement for panel in panels for statement in synthetic_statements(panel)))


def synthetic_statements(curves: Curves) -> list[Statement]:
    """What section 6 says about figures 1 and 2."""
    others = ["GP-TS", "GP-UCB", *IMPROVEMENTS]
    start = f"{curves.title}: "
    return [
        below(f'{start}"IGP-UCB performs the best in the pool of competitors".', curves, ["IGP-UCB"], others),
        below(
            f'{start}"GP-TS also fares reasonably well compared to GP-UCB and GP-EI/GP-PI": below them.',
            curves, ["GP-TS"], others[1:],
        ),
        coincide(f'{start}"GP-EI and PI ... are not separately distinguishable".', curves, IMPROVEMENTS),
    ]  # fmt: skip


SE, MATERN = SquaredExponential(0.2), Matern(2.5, lengthscale=0.2)


@PAPER.figure("1a", "functions in the RKHS, squared exponential kernel", trials=TRIALS, rounds=T, quick=QUICK)
def rkhs_se(job: Job) -> Result:
    """Posterior means of noisy draws, l = 0.2."""
    return synthetic(job, SE, rkhs_posterior_mean)


@PAPER.figure("1b", "functions in the RKHS, Matérn kernel", trials=TRIALS, rounds=T, quick=QUICK)
def rkhs_matern(job: Job) -> Result:
    """Posterior means of noisy draws, nu = 2.5, l = 0.2."""
    return synthetic(job, MATERN, rkhs_posterior_mean)


@PAPER.figure("2a", "functions drawn from the GP, squared exponential kernel", trials=TRIALS, rounds=T, quick=QUICK)
def gp_se(job: Job) -> Result:
    """Draws from GP(0, K), l = 0.2."""
    return synthetic(job, SE, gp_sample)


@PAPER.figure("2b", "functions drawn from the GP, Matérn kernel", trials=TRIALS, rounds=T, quick=QUICK)
def gp_matern(job: Job) -> Result:
    """Draws from GP(0, K), nu = 2.5, l = 0.2."""
    return synthetic(job, MATERN, gp_sample)


# -- figure 3: benchmark functions -------------------------------------------------------------------------------------


def benchmark(job: Job, function: KnownFunction) -> Result:
    """100 d points uniform on the domain, squared exponential kernel, all else as in figures 1 and 2."""

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - all is in the seed
        arms = function.domain.sample(100 * function.domain.dimension, seed=seed)
        noise = range_noise(function(arms.points))
        bounds = norm_bounds(SE, arms, function(arms.points), noise)
        return Environment(function, domain=arms, noise=noise), rules(arms, SE, noise, bounds)

    runs = compare(job, world, cumulative_regret)
    panels = tuple(regret_panel(runs, reading, job.rounds) for reading in (PRINTED, NORM))
    return Result(panels, tuple(statement for panel in panels for statement in benchmark_statements(panel)))


def benchmark_statements(curves: Curves) -> list[Statement]:
    """What section 6 says about figure 3."""
    start = f"{curves.title}: "
    return [
        below(f'{start}"GP-EI/PI perform better than the rest".', curves, IMPROVEMENTS, OF_BOUND),
        below(
            f'{start}"IGP-UCB and GP-TS show competitive performance": below GP-UCB.',
            curves, ["IGP-UCB", "GP-TS"], ["GP-UCB"],
        ),
    ]  # fmt: skip


@PAPER.figure("3a", "Rosenbrock's function", trials=TRIALS, rounds=T, quick=QUICK)
def rosenbrock_regret(job: Job) -> Result:
    """As Azimi et al. (2012) maximise it."""
    return benchmark(job, rosenbrock)


@PAPER.figure("3b", "Hartmann's function in three dimensions", trials=TRIALS, rounds=T, quick=QUICK)
def hartmann_regret(job: Job) -> Result:
    """As Azimi et al. (2012) maximise it."""
    return benchmark(job, hartmann3)


# -- figure 4: sensors -------------------------------------------------------------------------------------------------

RAW, STANDARDISED = "covariance, B² = f'Kf as printed", "correlation, B = 1"


def sensors(job: Job, train: Readings, test: Readings) -> tuple[Curves, Curves]:
    """gamma_t = 1 ("found via cross-validation"), R^2 5% of the average variance."""
    raw = sensor_network(train, test)  # one mean of all readings is subtracted
    own = sensor_network(train, test, standardize=True, center="sensor")  # the covariance is then the correlation
    units = (train.unit, "standard deviations")
    first, second = (
        sensor_panel(job, network, reading, unit)
        for network, reading, unit in zip((raw, own), (RAW, STANDARDISED), units, strict=True)
    )
    return first, second


def sensor_panel(job: Job, network: SensorNetwork, reading: str, unit: str) -> Curves:
    """Every held-out snapshot is a function; B is that of the reading."""
    arms, kernel = network.arms, network.kernel

    def policies(snapshot: Array) -> dict[str, Policy]:
        B = literal_norm(kernel, arms, snapshot) if reading == RAW else 1.0
        return rules(arms, kernel, network.noise, {reading: B}, gain=1.0)

    runs = compare_on_network(job, network, policies, cumulative_regret, rounds=job.rounds)
    return regret_panel(runs, reading, job.rounds, unit)


def sensor_statements(curves: Curves) -> list[Statement]:
    """What section 6 says about both parts of figure 4."""
    start, rivals = f"{curves.title}: ", ["IGP-UCB", "GP-UCB", *IMPROVEMENTS]
    return [below(f'{start}"GP-TS outperforms all its competitors".', curves, ["GP-TS"], rivals)]


@PAPER.figure("4a", "temperatures of the Intel lab", trials=200, rounds=SENSOR_T, quick=(6, 200), data=INTEL_LAB)
def temperature(job: Job) -> Result:
    """Learn "the maximum reading of the sensors collected between 8 am to 9 am", 5 days to learn, 2 days to test."""
    readings, notes = intel_temperatures(job.data, days=7)
    days = np.unique(np.asarray(readings.day)).tolist()
    learn = len(days) - 2
    # Three hours of each day are averaged over where only half-hours are at hand: two rows a day make no covariance.
    hours = (7.0, 10.5) if notes else (8.0, 9.0)
    train = readings.select(days=days[:learn], hours=hours)
    test = readings.select(days=days[learn:], hours=(8.0, 9.0))
    panels = sensors(job, train, test)
    statements = [statement for panel in panels for statement in sensor_statements(panel)]
    statements += [
        coincide(f'{panel.title}: "IGP-UCB and GP-UCB performs the same".', panel, ["IGP-UCB", "GP-UCB"])
        for panel in panels
    ]
    return Result(panels, tuple(statements), (*notes, _size(train, test, job)))


@PAPER.figure(
    "4b", "light in the CMU Intelligent Workplace", trials=192, rounds=SENSOR_T, quick=(6, 200),
    data=("light_cmu/light_cmu.npz",),
)  # fmt: skip
def light(job: Job) -> Result:
    """601 rows to learn from, 192 to test on: the paper's data."""
    train, test = light_cmu(job.data)
    panels = sensors(job, train, test)
    statements = [statement for panel in panels for statement in sensor_statements(panel)]
    statements += [
        below(f'{panel.title}: "IGP-UCB performing better than GP-EI/PI".', panel, ["IGP-UCB"], IMPROVEMENTS)
        for panel in panels
    ]
    return Result(panels, tuple(statements), (_size(train, test, job),))


def _size(train: Readings, test: Readings, job: Job) -> str:
    return (
        f"{len(train.sensors)} sensors, {len(train)} snapshots to learn from, {len(test)} to test on; T = {job.rounds} "
        "(the paper does not say). Left raw readings less their mean; right standardised sensor by sensor."
    )
