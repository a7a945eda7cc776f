"""Srinivas, Krause, Kakade and Seeger (2010): figures 1, 3 and 5.

| symbol | name | meaning | shape |
|---|---|---|---|
| gamma_T | `gain` | maximum information gain, nats | |
| R_T / t | | average regret | (replicates, T) |
| sigma^2 | `NOISE`**2 | noise variance | |
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from .. import environments
from .._utils.checks import Array, many
from ..algorithms import expected_improvement, gp_ucb, greedy_mean, greedy_variance, probability_of_improvement
from ..domains.domain import Arms, Box
from ..errors import MissingData
from ..gp.information_gain import GreedyDesign, Spectrum
from ..kernels import Empirical, Kernel, Linear, Matern, SquaredExponential
from ..policy.policy import Policy
from ..simulation.metrics import Run
from ..study.curves import Curves
from ..theory.rates import information_gain_rate
from .figure import Job, Paper, Result, Statement, World, average_regret, below, coincide, compare, kept_rounds

INTEL_LAB = ("intel_lab/intel_lab_30min.npz", "intel_lab/data.txt.gz", "intel_lab/data.txt")  # any one of these files
STAND_IN = (
    "The data stand in for the paper's: temperatures of the Intel lab averaged over half-hours, {motes} motes on 5 "
    "days. Where the original log (`intel_lab/data.txt`) lies in the data folder, it is used."
)


def intel_temperatures(data: Path | None, *, days: int) -> tuple[environments.Readings, tuple[str, ...]]:
    """Returns the first days of the Intel lab's log by the minute, or half-hourly means and a note about them."""
    try:
        log = environments.intel_lab_log(data)
    except MissingData:
        readings = environments.intel_lab(data)
        return readings, (STAND_IN.format(motes=len(readings.sensors)),)
    first = np.unique(np.asarray(log.day))[:days].tolist()
    return log.select(days=first).reporting(0.5).filled(), ()


def compare_on_network(
    job: Job,
    network: environments.SensorNetwork,
    rules: Callable[[Array], Mapping[str, Policy]],
    measure: Callable[[Run], Array],
    *,
    rounds: int,
) -> dict[str, Array]:
    """Returns measurements of policies on held-out snapshots, in a random order that is repeated if necessary.

    Trials of one snapshot differ in noise alone and become one replicate (`groups` of `compare`).

    Args:
        job: number of trials, and how they are run.
        network: network with the snapshots.
        rules: returns the policies for a snapshot `(N,)`.
        measure: returns the measurements of a run.
        rounds: number of rounds T.
    """
    order = np.random.default_rng([job.seed, len(network)]).permutation(len(network))
    rows = np.resize(order, job.trials).tolist()

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - A snapshot has nothing random.
        return network.environment(rows[trial]), rules(network.functions[rows[trial]])

    return compare(job, world, measure, rounds=rounds, groups=rows)


PAPER = Paper("srinivas", "Srinivas, Krause, Kakade and Seeger 2010: GP-UCB")

NOISE = 0.025**0.5  # "sigma^2 was set to 0.025"
MARGIN = 0.01  # margin of MPI in reward units. The paper gives none, and with 0 MPI equals "mean only".
HEURISTICS, NAIVE = ["GP-UCB", "EI", "MPI"], ["mean only", "variance only"]
DIMENSIONS = (1, 3)  # dimensions in figure 1
KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "squared exponential": SquaredExponential(0.2),
    "Matérn 5/2": Matern(2.5, lengthscale=0.2),
}


@PAPER.figure(
    "1", "regret bounds of three kernels, and the measured information gain behind them", rounds=10_000, quick=(1, 300)
)
def rates(job: Job) -> Result:
    """Draws the table of figure 1: d sqrt(T), sqrt(T (log T)^{d+1}), T^{(nu + d (d + 1)) / (2 nu + d (d + 1))}."""
    T = np.logspace(1, 8, 141)
    tables = [_table_of_bounds(T, d) for d in DIMENSIONS]
    measured = _measured_gains(job.rounds)
    steepness = {
        f"{name} (d = {d}) {_exponent(line[0], T):.2f}": _exponent(line[0], T)
        for d, table in zip(DIMENSIONS, tables, strict=True)
        for name, line in table.lines.items()
    }
    growth = {name: _growth(line[0], measured.x) for name, line in measured.lines.items()}
    return Result(
        (*tables, measured),
        (
            Statement(
                "Sublinear regret for all three kernels: R_T / T falls; its exponent of T at T = 10^8.",
                ", ".join(steepness),
                all(exponent < 0.0 for exponent in steepness.values()),
            ),
            Statement(
                "Theorem 5: gamma_T grows no faster than its rate. The greedy bound over the rate, on a grid, does not "
                "grow after T = 100: its largest growth from one T to a later one.",
                ", ".join(f"{name} {100 * (ratio - 1):.2g}%" for name, ratio in growth.items()),
                all(ratio <= 1.0 + 1e-9 for ratio in growth.values()),
            ),
        ),
    )


def _table_of_bounds(T: Array, d: int) -> Curves:
    lines = {name: np.array([[regret_bound(kernel, d, t) / t for t in T]]) for name, kernel in KERNELS.items()}
    return Curves(
        x=T, lines=lines, x_label="T", y_label="bound of R_T / T up to a constant", band="none", log="xy",
        title=f"bound of the average regret, {many(d, 'dimension')}",
    )  # fmt: skip


def regret_bound(kernel: Kernel, d: int, t: float) -> float:
    """Returns the regret bound of figure 1 at T = t: sqrt(T beta_T gamma_T) up to polylog factors."""
    if kernel.rank(d) is not None:
        return float(d * np.sqrt(t))  # Here gamma_T = d log T, and beta_T grows with d as well.
    if kernel.smoothness is not None and np.isfinite(kernel.smoothness):
        nu = kernel.smoothness
        return float(t ** ((nu + d * (d + 1)) / (2.0 * nu + d * (d + 1))))
    return float(np.sqrt(t * information_gain_rate(kernel, d, t)))  # (log T)^{d+1}


def _measured_gains(rounds: int) -> Curves:
    """Returns the greedy bound (section 5.1) over the rate of Theorem 5, d = 2, noise variance 0.025."""
    arms = Box(np.zeros(2), np.ones(2)).grid(20)
    T = np.unique(np.geomspace(2, max(rounds, 10), 61).round()).astype(np.intp)
    lines = {}
    for name, kernel in KERNELS.items():
        design = GreedyDesign(kernel, arms, NOISE**2)
        lines[name] = np.array([[design.bound(int(t)) / information_gain_rate(kernel, 2, t) for t in T]])
    return Curves(
        x=T.astype(np.float64), lines=lines, x_label="T", y_label="greedy bound of gamma_T / its rate", band="none",
        log="xy", title="information gain over its rate, 2 dimensions",
    )  # fmt: skip


def _exponent(line: Array, x: Array) -> float:
    """Returns the power of x that the line follows at its end."""
    return float(np.log(line[-1] / line[-2]) / np.log(x[-1] / x[-2]))


def _growth(line: Array, x: Array) -> float:
    """Returns the largest line[j] / line[i], i <= j, from x = 100 on, which is 1 if the line never grows."""
    late = line[x >= min(100.0, x[-1])]
    return float((late / np.minimum.accumulate(late)).max())


@PAPER.figure(
    "3", "spectra of four kernels of equal trace, and their bounds of the information gain", rounds=50, quick=(1, 50)
)
def spectra(job: Job) -> Result:
    """Draws spectral decay (left) and the bound of eq. 8 (right) of four kernels."""
    kernels = equal_traces()
    T = np.arange(1, job.rounds + 1)
    of = {
        name: Spectrum.of(kernel, Arms(np.arange(float(len(kernel.covariance)))), NOISE**2)
        for name, kernel in kernels.items()
    }
    count = min(20, *(len(kernel.covariance) for kernel in kernels.values()))
    leading = {name: np.sort(np.linalg.eigvalsh(kernel.covariance))[::-1][:count] for name, kernel in kernels.items()}
    left = Curves(
        x=np.arange(1.0, count + 1.0), lines={name: values[None] for name, values in leading.items()},
        x_label="rank", y_label="eigenvalues", band="none", title="spectral decay", marks=True,
    )  # fmt: skip
    right = Curves(
        x=T.astype(np.float64), lines={name: np.array([[spec.bound(int(t)) for t in T]]) for name, spec in of.items()},
        x_label="T", y_label="bound on gamma_T, nats", band="none", title="information gain bound (eq. 8)",
    )  # fmt: skip
    carrying = {name: _carrying(kernel.covariance) for name, kernel in kernels.items()}
    ends = {name: float(line[0, -1]) for name, line in right.lines.items()}
    return Result(
        (left, right),
        (
            Statement(
                "The spectra decay in the order linear, squared exponential, Matérn, independent: how many eigenvalues "
                "carry 90% of the trace.",
                ", ".join(f"{name} {number}" for name, number in carrying.items()),
                _ascending(carrying),
            ),
            Statement(
                f'"The more rapidly the spectrum decays, the slower the growth of gamma_T": bounds at T = {job.rounds} '
                "in the same order.",
                ", ".join(f"{name} {value:.3g}" for name, value in ends.items()),
                _ascending(ends),
            ),
        ),
        ("The paper gives no points, lengthscale or noise: ours are 100 uniform points of [0, 1]^2, 0.2 and 0.025.",),
    )


def equal_traces(arms: int = 100) -> dict[str, Empirical]:
    """Returns four kernels as matrices over the same number of arms with average variance 1, fastest decay first."""
    rng = np.random.default_rng(3)
    plane = rng.uniform(0.0, 1.0, (arms, 2))
    matrices = {
        "linear (d = 4)": Linear()(*[rng.standard_normal((arms, 4))] * 2),
        "squared exponential": SquaredExponential(0.2)(plane, plane),
        "Matérn 5/2": Matern(2.5, lengthscale=0.2)(plane, plane),
        "independent": np.eye(arms),
    }
    return {name: Empirical(matrix * (arms / np.trace(matrix))) for name, matrix in matrices.items()}


def _carrying(matrix: Array) -> int:
    """Returns the number of leading eigenvalues that add up to 90% of the trace."""
    share = np.cumsum(np.sort(np.linalg.eigvalsh(matrix))[::-1]) / np.trace(matrix)
    return int(np.searchsorted(share, 0.9)) + 1


def _ascending(values: Mapping[str, float]) -> bool:
    listed = list(values.values())
    return all(a < b for a, b in itertools.pairwise(listed))


def rules(arms: Arms, kernel: Kernel, noise: float) -> dict[str, Policy]:
    """Returns the rules of figure 5, delta = 0.1."""
    return {
        "GP-UCB": gp_ucb(arms, kernel, noise=noise, scale=0.2),  # "scaling beta_t down by a factor 5"
        "EI": expected_improvement(arms, kernel, noise=noise, incumbent="mean"),
        "MPI": probability_of_improvement(arms, kernel, noise=noise, incumbent="mean", margin=MARGIN),
        "mean only": greedy_mean(arms, kernel, noise=noise),
        "variance only": greedy_variance(arms, kernel, noise=noise),
    }


def average_regret_panel(runs: Mapping[str, Array], rounds: int, unit: str = "") -> Curves:
    """Returns a panel of the mean average regret against the rounds, as in figure 5."""
    label = f"mean average regret{f', {unit}' if unit else ''}"
    return Curves(x=kept_rounds(rounds).astype(np.float64), lines=runs, x_label="iterations", y_label=label)


@PAPER.figure("5a", "average regret on functions drawn from the prior", trials=30, rounds=1000, quick=(12, 300))
def synthetic(job: Job) -> Result:
    """Takes a squared exponential kernel, l = 0.2, on "[0, 1] uniformly discretized into 1000 points", delta = 0.1."""
    kernel, arms = SquaredExponential(0.2), Arms.grid(0.0, 1.0, 1000)

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - The seed decides everything.
        env = environments.Environment(environments.gp_sample(kernel, arms, seed=seed), domain=arms, noise=NOISE)
        unscaled = {"GP-UCB, Theorem 1": gp_ucb(arms, kernel, noise=NOISE)}
        return env, rules(arms, kernel, NOISE) | unscaled

    curves = average_regret_panel(compare(job, world, average_regret), job.rounds)
    clear, equal = "clearly outperform the others", "On synthetic and traffic data MPI does equally well"
    return Result(
        (curves,),
        (
            below(f"GP-UCB, EI and MPI \"{clear}\": mean only, variance only.", curves, HEURISTICS, NAIVE),
            coincide(f'"{equal}": GP-UCB, EI and MPI end within 5% of the height.', curves, HEURISTICS),
            below(
                "beta_t \"as recommended by Theorem 1 leads to competitive performance\": below the naive rules.",
                curves, ["GP-UCB, Theorem 1"], NAIVE,
            ),
            below(
                '"The algorithm is improved by scaling beta_t down by a factor 5."',
                curves, ["GP-UCB"], ["GP-UCB, Theorem 1"],
            ),
        ),
    )  # fmt: skip


@PAPER.figure(
    "5b", "average regret on temperatures (Intel lab)", trials=2000, rounds=50, quick=(80, 50), data=INTEL_LAB
)
def temperature(job: Job) -> Result:
    """Takes two thirds of the data for the covariance, the others as tests, "2000 choices of the objective"."""
    readings, notes = intel_temperatures(job.data, days=5)
    curves, note = _sensors(job, readings, lowest=False)
    return Result(
        (curves,),
        (
            below(
                'GP-UCB and EI "clearly outperform the others": MPI, mean only, variance only.',
                curves, ["GP-UCB", "EI"], ["MPI", *NAIVE],
            ),
            coincide(
                'They "do not exhibit significant difference between each other": they end within 5% of the height.',
                curves, ["GP-UCB", "EI"],
            ),
        ),
        (*notes, note),
    )  # fmt: skip


@PAPER.figure(
    "5c", "average regret on traffic speeds (slowest sensor)", trials=900, rounds=207, quick=(40, 100),
    data=("metr_la_week/metr_la_week.npz",),
)  # fmt: skip
def traffic(job: Job) -> Result:
    """Finds "the point of minimum speed" on working days from 6 to 11 AM in 900 runs."""
    rush_hours = environments.metr_la(job.data).select(days=environments.METR_LA_WORKING_DAYS, hours=(6, 11))
    curves, note = _sensors(job, rush_hours, lowest=True)
    stand_in = (
        "The data stand in for the paper's I-880 South (357 sensors, one month), which is not to be had: METR-LA, "
        f"{len(rush_hours.sensors)} sensors, one week."
    )
    return Result(
        (curves,),
        (
            below("GP-UCB, EI and MPI clearly outperform mean only and variance only.", curves, HEURISTICS, NAIVE),
            coincide(
                '"On synthetic and traffic data MPI does equally well": the three end within 5% of the height.',
                curves, HEURISTICS,
            ),
        ),
        (stand_in, note),
    )  # fmt: skip


def _sensors(job: Job, readings: environments.Readings, *, lowest: bool) -> tuple[Curves, str]:
    network = environments.sensor_network(
        *readings.split(), lowest=lowest
    )  # two thirds for the covariance, one global mean
    rounds = min(job.rounds, len(network.arms))  # T = number of sensors
    policies = rules(network.arms, network.kernel, network.noise)
    runs = compare_on_network(job, network, lambda snapshot: policies, average_regret, rounds=rounds)  # noqa: ARG005
    note = (
        f"{len(network.arms)} sensors, T = {rounds}, noise variance {network.noise**2:.3g} (5% of the average), "
        f"{min(job.trials, len(network))} held-out snapshots; the training data's mean is subtracted."
    )
    return average_regret_panel(runs, rounds, readings.unit), note
