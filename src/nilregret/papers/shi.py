"""Shi and Eryilmaz (2022), appendix E: figures 1 to 9.

| symbol | name | meaning | shape |
|---|---|---|---|
| T, L, S | `rounds`, `epochs`, `epoch` | T = L S | |
| R_t / t | `average regret` | negative if points that violate beat the best feasible point | (trials, T) |
| V_t / t | `average violation` | norm of the positive part of the average of g | (trials, T) |

The hyperparameters that the paper does not give are ours: lengthscale 1, lambda = 0.01, B = 1, R = 0.1, delta = 0.1,
realised information gain, data kept from epoch to epoch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import numeral
from ..algorithms import gp_ucb_noiseless_constraints, gp_ucb_noisy_constraints
from ..algorithms.baselines import admmbo, bandit_oco
from ..domains.domain import Box
from ..environments import ConstrainedProblem, data_rates, small_feasible_region
from ..kernels import Matern
from ..policy.policy import Policy
from ..simulation.metrics import violation
from ..simulation.runner import simulate
from ..study.curves import Boxes, Curves, Interval, interval
from ..study.direction import AnyPolicy
from .figure import Job, Paper, Result, Statement, above, compare, in_trials, together

PAPER = Paper("shi", "Shi and Eryilmaz 2022: long-term constraints")

T, TRIALS, QUICK = 350, 100, (3, 120)
NOISE = 0.1  # "N(0, 0.01)"
EPOCH = 20  # "S = 20"
EPOCHS = (10, 20, 34, 68, 170)  # the lengths S of figure 1; the paper names none but 20
T1, TRIALS_1 = 340, 20
STEP = 0.5  # "mu = 0.5"
SHOWN = 100  # rounds in the figures of means
LAST = 20  # last rounds, in which the utility must not change
TWO, THREE, OCO, ADMMBO = "Algorithm 2", "Algorithm 3", "OCO", "ADMMBO"


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """An experiment of the paper.

    Attributes:
        problem: reward, constraint and domain.
        noisy: True if constraint values are noisy.
        steps: steps eta of OCO without noise (the least violation of 0.01, 0.03, 0.05, 0.1 and 0.3) and with noise ("a
            smaller stepsize" in E.1).
        stop: number of rounds of ADMMBO that the paper shows.
        budgets: budgets of the steps of ADMMBO.
    """

    problem: ConstrainedProblem
    noisy: bool
    steps: tuple[float, float]
    stop: int
    budgets: tuple[tuple[int, int], tuple[int, int]]

    def constraint_noise(self) -> float | Callable[[np.random.Generator, tuple[int, int]], Array]:
        """Returns the noise of constraint values: N(0, 0.01) in E.1.2, Unif([-0.2, 0.2]) in E.2.2."""
        if not self.noisy:
            return 0.0
        return NOISE if self.problem is small_feasible_region else _uniform


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.uniform(-0.2, 0.2, shape)


def test_problem(*, noisy: bool) -> Setting:
    """Returns the setting of E.1."""
    budgets = ((10, 50), (5, 5))
    return Setting(problem=small_feasible_region, noisy=noisy, steps=(0.1, 0.05), stop=90, budgets=budgets)


def allocation(*, noisy: bool, problem: ConstrainedProblem | None = None) -> Setting:
    """Returns the setting of E.2, with our utilities or others (`data_rates(a, b)`)."""
    rates = data_rates() if problem is None else problem
    return Setting(problem=rates, noisy=noisy, steps=(0.03, 0.03), stop=50, budgets=((20, 20), (2, 2)))


def ours(domain: Box, *, noisy: bool, epoch: int, rounds: int) -> Policy:
    """Returns Algorithm 2, or Algorithm 3 for noisy constraints."""
    common: dict[str, Any] = {"noise": NOISE, "norm_bound": 1.0, "regularization": NOISE**2}
    common |= {"epoch": epoch, "epochs": max(1, rounds // epoch)}
    kernel = Matern(2.5, lengthscale=1.0)
    if noisy:
        return gp_ucb_noisy_constraints(domain, kernel, step=STEP, **common)
    return gp_ucb_noiseless_constraints(domain, kernel, penalty="exp", **common)


def play(policy: AnyPolicy, setting: Setting, rounds: int, *, seed: int, every: int = 1) -> Array:
    """Returns average regret, violation and utility after each round, `(3, rounds)`.

    Only each `every`-th trial counts as a round.
    """
    env = setting.problem.environment(noise=NOISE, constraint_noise=setting.constraint_noise())
    run = simulate(policy, env, every * rounds, seed=seed)
    regret, g = run.regret[::every], run.constraints[::every]
    t = np.arange(1, rounds + 1)
    average = np.cumsum(regret) / t
    return np.stack([average, violation(g) / t, setting.problem.best - average])


def runs(job: Job, setting: Setting, *, horizon: int, stop: int, also_noiseless: bool = False) -> dict[str, Array]:
    """Returns the results of all methods, `(trials, 3, rounds)` each.

    Ours and OCO play `horizon` rounds, ADMMBO plays `stop` rounds.
    """
    domain, noisy = setting.problem.domain, setting.noisy
    mine = THREE if noisy else TWO
    first, more = setting.budgets
    oco, bo = bandit_oco(domain, step=setting.steps[noisy]), admmbo(domain, first=first, more=more)
    policy = ours(domain, noisy=noisy, epoch=EPOCH, rounds=job.rounds)

    def one(trial: int) -> dict[str, Array]:
        seed = job.seed_of(trial)
        made = {
            mine: play(policy, setting, horizon, seed=seed),
            OCO: play(oco, setting, horizon, seed=seed, every=3),  # The probes of OCO cost no rounds.
            ADMMBO: play(bo, setting, stop, seed=seed),
        }
        if also_noiseless:
            quiet = replace(setting, noisy=False)
            made[TWO] = play(ours(domain, noisy=False, epoch=EPOCH, rounds=job.rounds), quiet, horizon, seed=seed)
        return made

    return in_trials(job, one)


# -- figure 1 ----------------------------------------------------------------------------------------------------------


@PAPER.figure(
    "1", "regret against violation of Algorithm 2, by S (T = L S)", trials=TRIALS_1, rounds=T1, quick=(3, 136)
)
def tradeoff(job: Job) -> Result:
    """Mean regret and CV of Algorithm 2 "with different L and S", T = 340."""
    setting = test_problem(noisy=False)
    env = setting.problem.environment(noise=NOISE)
    lengths = [S for S in EPOCHS if job.rounds >= S] or [max(1, job.rounds // 2), job.rounds]
    policies = {str(S): ours(setting.problem.domain, noisy=False, epoch=S, rounds=job.rounds) for S in lengths}
    ends = compare(
        job,
        lambda trial, seed: (env, policies),  # noqa: ARG005 - Trials differ in noise and first points.
        lambda run: np.array([run.average_regret[-1], run.violation[-1] / job.rounds]),
    )
    x = np.array(lengths, dtype=np.float64)
    lines = {
        "average regret": np.stack([ends[str(S)][:, 0] for S in lengths], axis=1),
        "average violation": np.stack([ends[str(S)][:, 1] for S in lengths], axis=1),
    }
    panel = Curves(
        x=x, lines=lines, x_label="rounds of an epoch, S", y_label=f"at T = {job.rounds}", log="x", marks=True
    )
    traded = [S for S in lengths if S <= 68]
    return Result(
        (panel,),
        (
            _monotone('"More frequent multiplier-updates can help reduce the CV": it grows with S up to 68.',
                      {S: ends[str(S)][:, 1] for S in traded}, grows=True),
            _monotone('"Regret-CV tradeoff happens": the regret falls as S grows up to 68.',
                      {S: ends[str(S)][:, 0] for S in traded}, grows=False),
        ),
        ("The paper's choices of (L, S) are in its picture only; these are ours.",),
    )  # fmt: skip


def _monotone(text: str, values: Mapping[int, Array], *, grows: bool) -> Statement:
    sign = 1.0 if grows else -1.0
    numbers = list(values)
    steps = [interval(sign * (values[b] - values[a])) for a, b in itertools.pairwise(numbers)]
    measured = ", ".join(f"S = {S}: {numeral(float(each.mean()), 3)}" for S, each in values.items())
    smallest = min(steps, key=lambda step: step.low, default=Interval(0.0, 0.0, 0.0))
    return Statement(text, f"{measured}; smallest step {smallest}", together(above(step) for step in steps))


# -- figures 2, 4, 6, 8: boxes -----------------------------------------------------------------------------------------


def boxes(made: Mapping[str, Array], names: list[str], *, which: int, label: str) -> list[Boxes]:
    """Returns a panel for each method, with a box for every 20 rounds, or every 5 rounds of ADMMBO."""
    panels = []
    for name in names:
        rounds = made[name].shape[-1]
        every = 5 if name == ADMMBO else 20
        at = list(range(every, rounds + 1, every)) or [rounds]
        panels.append(
            Boxes(boxes={str(t): made[name][:, which, t - 1] for t in at}, y_label=label, title=name, x_label="rounds")
        )
    return panels


def boxed(job: Job, setting: Setting) -> Result:
    """Makes box plots of regret (utility in E.2) above, and of violation below."""
    utility = setting.problem is not small_feasible_region
    stop = min(setting.stop, job.rounds)
    made = runs(job, setting, horizon=job.rounds, stop=stop, also_noiseless=setting.noisy)
    mine = THREE if setting.noisy else TWO
    names = [mine, OCO, ADMMBO]
    top, label = (2, "average utility") if utility else (0, "average regret")
    panels = [*boxes(made, names, which=top, label=label), *boxes(made, names, which=1, label="average violation")]
    V = {name: made[name][:, 1] for name in made}
    statements = [_falls(f'"The ... CV of {mine} [is] sublinear": its average falls from t = 100 to T.', V[mine])]
    if utility:
        statements.append(_stays(f'{mine}: its expected utility "converges to a certain value".', made[mine][:, 2]))
        statements += [
            _above(f'{name} has "higher utility values".', made[name][:, 2, -1] - made[mine][:, 2, -1])
            for name in (ADMMBO, OCO)
        ]
        statements += [
            _above(f'The time-averaged CV of {name} is "away from 0": it ends above that of {mine}.',
                   V[name][:, -1] - V[mine][:, -1])
            for name in (ADMMBO, OCO)
        ]  # fmt: skip
    else:
        text = f'"The regret ... of {mine} [is] sublinear": its average falls too, or ends at or below 0.'
        statements.append(_falls(text, made[mine][:, 0], enough=0.0))
        stuck = "reduction ... is much smaller" if setting.noisy else "almost linear after few iterations"
        statements += [
            _above(f'{name}: "{stuck}": its average CV ends above {limit:g}.',
                   V[name][:, -1] - limit, limit)
            for name, limit in ((OCO, 0.2), (ADMMBO, 0.4))
        ]  # fmt: skip
    if setting.noisy:
        statements.append(_slower(V))
    return Result(tuple(panels), tuple(statements), notes(setting, stop))


def notes(setting: Setting, stop: int) -> tuple[str, ...]:
    """Returns differences from the paper."""
    said = [
        "OCO is shown the values at its two probes for nothing: only its actions count.",
        f"ADMMBO asks for its best point after it has stopped; {stop} rounds are shown.",
    ]
    if setting.problem is not small_feasible_region:
        said.append(f"The utilities' constants are ours: {setting.problem!r}, maximum {setting.problem.best:.4f}.")
    return tuple(said)


def _early(values: Array) -> int:
    """Returns the index of t = 100, or of a third of the run if that is smaller."""
    return int(min(SHOWN, max(1, values.shape[-1] // 3)) - 1)


def _falls(text: str, values: Array, *, enough: float = -math.inf) -> Statement:
    early = values[:, _early(values)]
    drop = interval(early - values[:, -1])
    first, last = numeral(float(early.mean()), 3), numeral(float(values[:, -1].mean()), 3)
    measured = f"{first} at {_early(values) + 1}, {last} at the end"
    low_enough = interval(values[:, -1]).high <= enough
    return Statement(text, f"{measured}; drop {drop}", True if low_enough else above(drop))


def _stays(text: str, values: Array) -> Statement:
    before = values[:, -1 - min(LAST, values.shape[1] - 1)]
    change = float((values[:, -1] - before).mean())
    end = float(values[:, -1].mean())
    return Statement(
        text, f"{numeral(end, 3)} at the end, {change:+.3g} in the last {LAST} rounds", abs(change) <= 0.01 * abs(end)
    )


def _above(text: str, difference: Array, base: float = 0.0) -> Statement:
    gap = interval(difference)
    measured = f"mean {numeral(gap.mean + base, 3)}; difference {gap}" if base else f"difference {gap}"
    return Statement(text, measured, above(gap))


def _slower(V: Mapping[str, Array]) -> Statement:
    """Returns the comparison of Algorithm 3 with Algorithm 2 at the end of every epoch."""
    ends = range(EPOCH - 1, V[THREE].shape[1], EPOCH) or [V[THREE].shape[1] - 1]
    means = {name: V[name].mean(axis=0) for name in (TWO, THREE)}
    closest = min(ends, key=lambda t: float(means[THREE][t] - means[TWO][t]))

    def against(t: int) -> str:
        return f"{numeral(float(means[THREE][t]), 3)} against {numeral(float(means[TWO][t]), 3)}"

    return Statement(
        '"The convergence of the time-averaged CV ... is slower than ... Algorithm 2": it is larger after every epoch.',
        f"at the end {against(-1)}; closest at t = {closest + 1}: {against(closest)}",
        bool(means[THREE][closest] > means[TWO][closest]),
    )


# -- figures 3, 5, 7, 9: means -----------------------------------------------------------------------------------------

SAID = {  # by E.2 and noise of the constraint
    (False, False): 'Its "time-averaged values tend to 0 in the whole process"',
    (False, True): '"Algorithm 3 has the best performance among these three methods"',
    (True, False): '"The efficiency of our algorithm for satisfying the long-term constraint"',
    (True, True): '"Only our method can let the time-averaged CV approach zero"',
}


def means(job: Job, setting: Setting) -> Result:
    """Makes the curves of the first 100 rounds of all methods."""
    utility = setting.problem is not small_feasible_region
    shown = min(SHOWN, job.rounds)
    made = runs(job, setting, horizon=shown, stop=shown)
    mine = THREE if setting.noisy else TWO
    x = np.arange(1.0, shown + 1.0)
    top, label = (2, "average utility") if utility else (0, "average regret")
    panels = tuple(
        Curves(x=x, lines={name: values[:, which] for name, values in made.items()}, x_label="rounds", y_label=y_label)
        for which, y_label in ((top, label), (1, "average violation"))
    )
    V = {name: values[:, 1] for name, values in made.items()}
    said = SAID[utility, setting.noisy]
    statements = [
        _above(f"{said}: the CV of {name} ends above that of {mine}.", V[name][:, -1] - V[mine][:, -1])
        for name in (OCO, ADMMBO)
    ]
    if not utility:
        worse = said if setting.noisy else 'ADMMBO\'s metrics "are also worse than our method"'
        regret = made[ADMMBO][:, 0, -1] - made[mine][:, 0, -1]
        statements.append(_above(f"{worse}: the regret of ADMMBO ends above that of {mine}.", regret))
        statements.append(_levels_off(V[OCO], "OCO, as in figure 3" if setting.noisy else "OCO"))
    elif setting.noisy:
        statements.append(_rises_and_falls(V[mine]))
    return Result(panels, tuple(statements), notes(setting, shown))


def _levels_off(violations: Array, name: str) -> Statement:
    half = violations[:, violations.shape[1] // 2 :].mean(axis=0)
    return Statement(
        f'{name}: "its performance metrics almost never change after few iterations": by less than 15% of the '
        "violation in the second half.",
        f"average violation {numeral(float(half[0]), 3)} to {numeral(float(half[-1]), 3)}",
        bool(abs(half[-1] - half[0]) <= 0.15 * half[0]),
    )


def _rises_and_falls(violations: Array) -> Statement:
    means = violations.mean(axis=0)
    peak = int(means.argmax())
    rise, fall = (interval(violations[:, peak] - violations[:, end]) for end in (0, -1))
    return Statement(
        '"The time-averaged CV of our method first increases and then decreases".',
        f"{numeral(float(means[0]), 3)} at first, largest at t = {peak + 1}: {numeral(float(means[peak]), 3)}, "
        f"{numeral(float(means[-1]), 3)} at the end",
        together([above(rise), above(fall)]),
    )


# -- figures 2 to 9 ----------------------------------------------------------------------------------------------------

# Algorithm 2 (psi = exp) or 3 (mu = 0.5) with S = 20, OCO and ADMMBO. The noise is N(0, 0.01) or Unif([-0.2, 0.2]).
PAPER.declare(
    [
        ("2", "E.1, noiseless constraints: box plots", boxed, test_problem(noisy=False)),
        ("3", "E.1, noiseless constraints: means", means, test_problem(noisy=False)),
        ("4", "E.1, noisy constraints: box plots", boxed, test_problem(noisy=True)),
        ("5", "E.1, noisy constraints: means", means, test_problem(noisy=True)),
        ("6", "data rates, noiseless electricity cost: box plots", boxed, allocation(noisy=False)),
        ("7", "data rates, noiseless electricity cost: means", means, allocation(noisy=False)),
        ("8", "data rates, noisy electricity cost: box plots", boxed, allocation(noisy=True)),
        ("9", "data rates, noisy electricity cost: means", means, allocation(noisy=True)),
    ],
    trials=TRIALS, rounds=T, quick=QUICK,
)  # fmt: skip
