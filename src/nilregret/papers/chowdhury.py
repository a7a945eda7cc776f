"""Chowdhury and Gopalan (2017), section 6: figures 1 to 4.

| symbol | name | meaning | shape |
|---|---|---|---|
| R | `noise` | R^2 is 1% of the function's range, and lambda = R^2 | reward units |
| B | `bounds` | bound of the norm of f, under every reading of the paper's "B^2 = f^T K f" | reward units |
| gamma_t | `gain` | "theoretical upper bounds": the rate with constant 1; 1 on sensors | nats |
| R_T | | cumulative regret | (replicates, T) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from .. import environments
from .._utils.checks import Array
from ..algorithms import expected_improvement, gp_ts, gp_ucb, igp_ucb, probability_of_improvement
from ..domains.domain import Arms, Box
from ..kernels import Kernel, Matern, SquaredExponential
from ..policy.policy import Policy
from ..study.curves import Curves
from .figure import Job, Paper, Result, Statement, World, below, coincide, compare, cumulative_regret, kept_rounds
from .srinivas import INTEL_LAB, compare_on_network, intel_temperatures

PAPER = Paper("chowdhury", "Chowdhury and Gopalan 2017: IGP-UCB and GP-TS")

T, TRIALS, QUICK = 30_000, 25, (10, 2000)
SENSOR_T = 500  # the paper does not say
DELTA = 0.1
UNIT_INTERVAL = Box(np.zeros(1), np.ones(1))
PRINTED, NORM = "B² = f'Kf as printed", "B = norm of f in the RKHS"
OF_BOUND = ["IGP-UCB", "GP-TS", "GP-UCB"]  # policies whose width depends on B
IMPROVEMENTS = ["GP-EI", "GP-PI"]


def rules(
    arms: Arms,
    kernel: Kernel,
    noise: float,
    bounds: Mapping[str, float],
    gain: Literal["greedy", "realised", "rate"] | float = "rate",
) -> dict[str, Policy]:
    """Returns the competitors. Those that need B are there once for each reading, as "IGP-UCB, <reading>"."""
    ridge = noise**2  # "lambda = R^2"
    # Only with the best noisy reward as incumbent do EI and PI get stuck, as the paper shows them.
    policies = {
        "GP-EI": expected_improvement(arms, kernel, noise=noise, incumbent="reward"),
        "GP-PI": probability_of_improvement(arms, kernel, noise=noise, incumbent="reward", margin=0.0),
    }
    for reading, B in bounds.items():
        for name, rule in (("IGP-UCB", igp_ucb), ("GP-TS", gp_ts)):
            policies[f"{name}, {reading}"] = rule(
                arms, kernel, noise=noise, norm_bound=B, information_gain=gain, delta=DELTA, regularization=ridge
            )
        policies[f"GP-UCB, {reading}"] = gp_ucb(  # beta~_t of section 3: 2 B^2 + 300 gamma ln^3(t / delta)
            arms, kernel, noise=noise, width="rkhs", norm_bound=B, information_gain=gain, delta=DELTA
        )
    return policies


def regret_panel(runs: Mapping[str, Array], reading: str, rounds: int, unit: str = "", log: str = "") -> Curves:
    """Returns a panel of cumulative regret with standard deviations, for one reading of B."""
    lines = {name: runs[f"{name}, {reading}"] for name in OF_BOUND} | {name: runs[name] for name in IMPROVEMENTS}
    return Curves(
        x=kept_rounds(rounds).astype(np.float64), lines=lines, title=reading, band="deviation", log=log,
        x_label="rounds", y_label=f"cumulative regret{f', {unit}' if unit else ''}",
    )  # fmt: skip


def norm_bounds(kernel: Kernel, arms: Arms, values: Array, noise: float) -> dict[str, float]:
    """Returns B under both readings. The norm is that of the interpolation of the function with lambda = R^2."""
    norm = environments.rkhs_fit(kernel, arms, values, regularization=noise**2).norm
    return {NORM: norm, PRINTED: environments.literal_norm(kernel, arms, values)}


# -- figures 1 to 3: functions ---------------------------------------------------------------------------------------

SE, MATERN = SquaredExponential(0.2), Matern(2.5, lengthscale=0.2)
Function = environments.RKHSFunction | environments.ArmFunction | environments.KnownFunction


def regrets(
    job: Job, kernel: Kernel, draw: Callable[[int], tuple[Arms, Function]],
    statements: Callable[[Curves], list[Statement]], *, log: str = "",
) -> Result:  # fmt: skip
    """Returns the cumulative regrets on the arms and the function that `draw` returns for each seed."""

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - The seed decides everything.
        arms, f = draw(seed)
        noise = environments.range_noise(f(arms.points))
        bounds = norm_bounds(kernel, arms, f(arms.points), noise)
        if isinstance(f, environments.RKHSFunction):
            bounds[NORM] = f.norm  # The norm is known exactly.
        return environments.Environment(f, domain=arms, noise=noise), rules(arms, kernel, noise, bounds)

    runs = compare(job, world, cumulative_regret)
    panels = tuple(regret_panel(runs, reading, job.rounds, log=log) for reading in (PRINTED, NORM))
    return Result(panels, tuple(statement for panel in panels for statement in statements(panel)))


def synthetic(
    job: Job, kernel: Kernel, draw: Callable[..., environments.RKHSFunction | environments.ArmFunction]
) -> Result:
    """Makes figures 1 and 2: 100 points uniform on [0, 1], 25 functions, T = 30,000."""

    def arms_and_function(seed: int) -> tuple[Arms, Function]:
        arms = UNIT_INTERVAL.sample(100, seed=seed)
        return arms, draw(kernel, arms, seed=seed)

    # With the norm, IGP-UCB ends a thousand times below GP-UCB.
    return regrets(job, kernel, arms_and_function, synthetic_statements, log="y")


def synthetic_statements(curves: Curves) -> list[Statement]:
    """Returns the statements of section 6 about figures 1 and 2."""
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


def benchmark(job: Job, function: environments.KnownFunction) -> Result:
    """Makes figure 3: 100 d points uniform on the domain, squared exponential kernel, all else as in figure 1."""

    def arms_and_function(seed: int) -> tuple[Arms, Function]:
        return function.domain.sample(100 * function.domain.dimension, seed=seed), function

    return regrets(job, SE, arms_and_function, benchmark_statements)


def benchmark_statements(curves: Curves) -> list[Statement]:
    """Returns the statements of section 6 about figure 3."""
    start = f"{curves.title}: "
    return [
        below(f'{start}"GP-EI/PI perform better than the rest".', curves, IMPROVEMENTS, OF_BOUND),
        below(
            f'{start}"IGP-UCB and GP-TS show competitive performance": below GP-UCB.',
            curves, ["IGP-UCB", "GP-TS"], ["GP-UCB"],
        ),
    ]  # fmt: skip


# Functions in the RKHS are posterior means of noisy draws. Azimi et al. (2012) maximise the functions of figure 3.
PAPER.declare(
    [
        ("1a", "functions in the RKHS, squared exponential kernel", synthetic, SE, environments.rkhs_posterior_mean),
        ("1b", "functions in the RKHS, Matérn kernel", synthetic, MATERN, environments.rkhs_posterior_mean),
        ("2a", "functions drawn from the GP, squared exponential kernel", synthetic, SE, environments.gp_sample),
        ("2b", "functions drawn from the GP, Matérn kernel", synthetic, MATERN, environments.gp_sample),
        ("3a", "Rosenbrock's function", benchmark, environments.rosenbrock),
        ("3b", "Hartmann's function in three dimensions", benchmark, environments.hartmann3),
    ],
    trials=TRIALS, rounds=T, quick=QUICK,
)  # fmt: skip


# -- figure 4: sensors -------------------------------------------------------------------------------------------------

RAW, STANDARDISED = "covariance, B² = f'Kf as printed", "correlation, B = 1"


def sensors(job: Job, train: environments.Readings, test: environments.Readings) -> tuple[Curves, Curves]:
    """Returns both panels of figure 4, with gamma_t = 1 ("found via cross-validation").

    R^2 is 5% of the average variance.
    """
    raw = environments.sensor_network(train, test)  # subtracts one mean of all readings
    own = environments.sensor_network(
        train, test, standardize=True, center="sensor"
    )  # makes the covariance the correlation
    units = (train.unit, "standard deviations")
    first, second = (
        sensor_panel(job, network, reading, unit)
        for network, reading, unit in zip((raw, own), (RAW, STANDARDISED), units, strict=True)
    )
    return first, second


def sensor_panel(job: Job, network: environments.SensorNetwork, reading: str, unit: str) -> Curves:
    """Returns a panel in which every held-out snapshot is a function, with the B of the reading."""
    arms, kernel = network.arms, network.kernel

    def policies(snapshot: Array) -> dict[str, Policy]:
        B = environments.literal_norm(kernel, arms, snapshot) if reading == RAW else 1.0
        return rules(arms, kernel, network.noise, {reading: B}, gain=1.0)

    runs = compare_on_network(job, network, policies, cumulative_regret, rounds=job.rounds)
    return regret_panel(runs, reading, job.rounds, unit)


def sensor_statements(panels: Sequence[Curves], said: str) -> list[Statement]:
    """Returns what section 6 says of GP-TS, for both parts of figure 4."""
    return [below(f"{one.title}: {said}.", one, ["GP-TS"], ["IGP-UCB", "GP-UCB", *IMPROVEMENTS]) for one in panels]


@PAPER.figure("4a", "temperatures of the Intel lab", trials=200, rounds=SENSOR_T, quick=(6, 200), data=INTEL_LAB)
def temperature(job: Job) -> Result:
    """Finds "the maximum reading of the sensors collected between 8 am to 9 am", with 5 days to learn, 2 to test."""
    readings, notes = intel_temperatures(job.data, days=7)
    days = np.unique(np.asarray(readings.day)).tolist()
    learn = len(days) - 2
    # Half-hourly data have two rows a day in one hour, too few for a covariance, so that three hours are taken.
    hours = (7.0, 10.5) if notes else (8.0, 9.0)
    train = readings.select(days=days[:learn], hours=hours)
    test = readings.select(days=days[learn:], hours=(8.0, 9.0))
    panels = sensors(job, train, test)
    statements = sensor_statements(panels, '"GP-TS outperforms all its competitors"')
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
    """Uses the paper's data, with 601 rows to learn from and 192 to test on."""
    train, test = environments.light_cmu(job.data)
    panels = sensors(job, train, test)
    statements = sensor_statements(panels, 'GP-TS is "found to perform better than the others"')
    statements += [
        below(f'{panel.title}: "IGP-UCB performing better than GP-EI/PI".', panel, ["IGP-UCB"], IMPROVEMENTS)
        for panel in panels
    ]
    return Result(panels, tuple(statements), (_size(train, test, job),))


def _size(train: environments.Readings, test: environments.Readings, job: Job) -> str:
    return (
        f"{len(train.sensors)} sensors, {len(train)} snapshots to learn from, {len(test)} to test on; T = {job.rounds} "
        "(the paper does not say). Left raw readings less their mean; right standardised sensor by sensor."
    )
