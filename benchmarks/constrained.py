"""Constraints with posteriors of their own, in the three worlds: how much is violated, and what it costs.

    python benchmarks/constrained.py
        [every-round|average|safe|certificates|wrong|degrees|slopes|machines|budgets|cost ...]
        --runs 4 --first-seed 0 [--rounds N] --side 121

- every-round: Shi & Eryilmaz's problem of section E.1 on `--side` x `--side` arms, T = 340: sum of the positive parts
  of g a round, the share of the last 100 rounds with g > .02, and the regret of the last 100, noiseless and noisy.
- average: a world in which the average binds, T = 1,200: contexts, late answers, changes that the policies are told.
- safe: random problems with one point known to be safe, T = 300: runs with a violation, and the regret; also that of
  the pessimistic rule, and of who knows everything and plays from the first round the best arm that steps over feasible
  neighbours lead to from the safe one: a feasible arm beyond that costs everybody who must not violate anything.
- certificates: runs with a violation by algorithm, certificate and noise of the constraint, where everything is as it
  was told, T = 40.
- wrong: what a wrong lengthscale, scale or noise costs, T = 40, with the check of `Safe` and without it: runs and
  rounds in violation, regret, and the runs whose expansion the check ends.
- degrees: a constraint of which nobody has said how large it is.
- slopes: `Safe(slope=)` where slope and noise bound are told rightly or wrongly, against `Safe(scale=)` with the right
  lengthscale, on a line and a square, T = 30. A refuted run plays `start` for the rest.
- machines: `Safe(slope=)` without a grid on the heater and the milling machine of the pages and on a machine of six
  parameters, T = 40: shares of the best safe reward, against no steps and random certified points.
- budgets: `auto` under `OnAverage` with the warp of rewards and without, T = 150, on arms and on a line.
- cost: the time of a run of E.1, T = 350, half the arms a side, by rule, over that of IGP-UCB on the reward alone. At
  the end the re-scored posterior is compared with one made afresh of the re-scored targets.
"""

from __future__ import annotations

import warnings
from functools import partial

import bench
import numpy as np
from constrained_parts import budgets, machines, slopes
from scipy.ndimage import label
from scipy.optimize import linprog

import nilregret as nr
from nilregret.environments import small_feasible_region
from nilregret.slots import safe_check
from nilregret.slots.envelope import ConstantWidth

NOISE = 0.1
SAME = 1e-8  # of the posteriors of `cost`


def every_round(runs: int, rounds: int, side: int) -> None:
    problem, arms, kernel = small_feasible_region, bench.square(side, high=6.0), nr.Matern(2.5, lengthscale=1.0)
    rewards, g = problem.reward(arms.points), problem.constraint(arms.points)[:, 0]
    best = rewards[g <= 0].max()
    print(f"every round: E.1, {side} x {side} arms, T = {rounds}, {runs} runs")
    print(f"{'rule':24s} {'g':10s} strong V a round   last 100: g > .02   regret of the last 100")
    for noisy in (False, True):
        std = NOISE if noisy else 0.0
        env = nr.Environment(
            problem.reward, domain=arms, noise=NOISE, constraints=problem.constraint, constraint_noise=std
        )
        plain = nr.gp_ucb(arms, kernel, noise=NOISE)
        policies = {
            f"EveryRound, width {width:g}": plain.using(
                constraints=nr.EveryRound(noise=std, regularization=NOISE**2 if noisy else 1e-4),
                confidence=ConstantWidth(value=width),
            )
            for width in (2.0, 1.0)
        }
        shi = nr.gp_ucb_noisy_constraints if noisy else nr.gp_ucb_noiseless_constraints
        policies[f"Algorithm {3 if noisy else 2}"] = shi(
            arms, kernel, noise=NOISE, norm_bound=1.0, epoch=20, epochs=max(rounds // 20, 1), regularization=NOISE**2
        )
        for name, policy in policies.items():
            played = [nr.simulate(policy, env, rounds, seed=seed).arms for seed in range(runs)]
            strong = [np.maximum(g[arm], 0).mean() for arm in played]
            late = [(g[arm[-100:]] > 0.02).mean() for arm in played]
            regret = [best - rewards[arm[-100:]].mean() for arm in played]
            shown = "   ".join(f"{np.mean(x):8.4f} +- {bench.error(x):.4f}" for x in (strong, late, regret))
            print(f"{name:24s} {'noisy' if noisy else 'exact':10s} {shown}", flush=True)


# -- on average ----------------------------------------------------------------------------------------------------

CONTEXTS, ACTIONS, DELAY = 12, 30, 10.0
STEPS = (0.01, 0.03)


class World:
    """Contexts and actions; reward and constraint change twice; answers come late. The average constraint binds."""

    def __init__(self, seed: int, rounds: int) -> None:
        self.rounds, self.changes = rounds, (rounds // 3, 2 * rounds // 3)
        rng = np.random.default_rng([seed, 77])
        z, x = np.linspace(0, 1, CONTEXTS), np.linspace(0, 1, ACTIONS)
        cells = np.array([[a, b] for a in z for b in x])
        root = bench.root(nr.SquaredExponential([0.2, 0.2]), cells)

        def draw() -> np.ndarray:
            return (root @ rng.standard_normal(len(root))).reshape(CONTEXTS, ACTIONS)

        self.f, self.g = [], []
        for _ in range(3):
            self.f.append(draw())
            while True:
                g = draw() - 0.4
                if (g.min(axis=1) < -0.1).all():
                    break
            self.g.append(g + 0.8)
        self.contexts = rng.integers(CONTEXTS, size=rounds)
        self.noise = NOISE * rng.standard_normal((2, rounds))
        self.delays = rng.geometric(1 / (1 + DELAY), size=rounds) - 1
        self.best = [_best_on_average(f, g) for f, g in zip(self.f, self.g, strict=True)]


def _best_on_average(f: np.ndarray, g: np.ndarray) -> float:
    """The largest average reward of a mixture that satisfies the constraint on average."""
    one_each = np.kron(np.eye(CONTEXTS), np.ones((1, ACTIONS)))
    found = linprog(
        -f.ravel() / CONTEXTS, A_ub=g.reshape(1, -1) / CONTEXTS, b_ub=[0.0], A_eq=one_each, b_eq=np.ones(CONTEXTS)
    )
    return float(-found.fun)


def _play(world: World, policy: nr.Policy) -> tuple[float, float]:
    """Regret against the best mixture, and [sum of g]^+ a round."""
    study = nr.Study(policy, seed=0)
    z = np.linspace(0, 1, CONTEXTS)
    regret = total = 0.0
    due: dict[int, list[tuple[int, float, float]]] = {}
    for t in range(world.rounds):
        trial = study.ask([z[world.contexts[t]]])
        period = int(np.searchsorted(world.changes, t, side="right"))
        f, g = (table[period][world.contexts[t], trial.arm] for table in (world.f, world.g))
        regret, total = regret + world.best[period] - f, total + g
        answer = (trial.number, f + world.noise[0, t], g + world.noise[1, t])
        due.setdefault(t + int(world.delays[t]), []).append(answer)
        for number, reward, value in due.pop(t, []):
            study.tell(number, reward, constraints=[value])
    return regret, max(total, 0.0) / world.rounds


def on_average(runs: int, rounds: int) -> None:
    worlds = [World(seed, rounds) for seed in range(runs)]
    arms, contexts = nr.Arms.grid(0, 1, ACTIONS), nr.Arms.grid(0, 1, CONTEXTS)
    kernel, memory = nr.SquaredExponential([0.2, 0.2]), nr.slots.RestartAt(worlds[0].changes)
    width = ConstantWidth(value=2.0)
    common = {"noise": NOISE, "context": contexts, "pending": "hallucinate", "memory": memory}
    plain = nr.gp_ucb(arms, kernel, **common).using(confidence=width)
    shi = nr.gp_ucb_noisy_constraints(
        arms, kernel, **common, norm_bound=1.0, epoch=20, epochs=max(rounds // 20, 1), regularization=NOISE**2
    )
    policies = {"Algorithm 3, S = 20": shi.using(confidence=width)}
    policies |= {f"OnAverage, step {step:g}": plain.using(constraints=nr.OnAverage(step=step)) for step in STEPS}
    print(f"on average: {CONTEXTS} contexts, {ACTIONS} actions, T = {rounds}, changes told, {runs} runs")
    print("rule                     regret                 V_T / T")
    for name, policy in policies.items():
        found = np.array([_play(world, policy) for world in worlds])
        shown = "   ".join(f"{np.mean(x):9.4f} +- {bench.error(x):.4f}" for x in found.T)
        print(f"{name:24s} {shown}", flush=True)


# -- safely --------------------------------------------------------------------------------------------------------


def safely(seeds: range, rounds: int) -> None:
    print(f"safely: delta = .05, T = {rounds}, {len(seeds)} runs, seeds from {seeds[0]}")
    print("problem              runs with a violation   regret            of the pessimistic rule   of who knows all")
    line = nr.Arms.grid(0, 1, 60)
    square = bench.square(15)
    for title, arms, kernel, shape in (
        ("60 arms on a line", line, nr.SquaredExponential(0.15), (60,)),
        ("15 x 15 arms", square, nr.SquaredExponential(0.3), (15, 15)),
    ):
        root = np.linalg.cholesky(kernel(arms.points, arms.points) + 1e-9 * np.eye(len(arms.points)))
        violated, regrets, pessimists, within = 0, [], [], []
        for seed in seeds:
            rng = np.random.default_rng([seed, 11])
            f, g = root @ rng.standard_normal(len(root)), root @ rng.standard_normal(len(root))
            while g.min() >= -0.8:
                g = root @ rng.standard_normal(len(root))
            start = int(rng.choice(np.flatnonzero(g < -0.5)))
            part = nr.Safe(start=arms.points[[start]], kernel=kernel, delta=0.05)
            policy = nr.gp_ucb(arms, kernel, noise=NOISE, constraints=part).using(confidence=ConstantWidth(value=2.0))
            best, played = f[g <= 0].max(), _safe_run(policy, f, g, (NOISE, NOISE), rng, rounds, seed)
            violated += bool((g[played] > 0).any())
            regrets.append(float(np.maximum(best - f[played], 0).sum()))
            pessimists.append(_pessimist(f, g, kernel(arms.points, arms.points), start, rounds, seed))
            areas = label((g <= 0).reshape(shape))[0].ravel()
            within.append(rounds * float(best - f[areas == areas[start]].max()))
        print(
            f"{title:20s} {violated:10d} of {len(seeds):<8d}  {np.mean(regrets):7.1f} +- {bench.error(regrets):<7.1f}"
            f"  {np.mean(pessimists):7.1f} +- {bench.error(pessimists):<14.1f}  {np.mean(within):7.1f}",
            flush=True,
        )


ALGORITHMS = ("gp_ucb", "igp_ucb", "gp_ts")
UNIT = 30.0  # standard deviation of f and g: real units are no standardised ones
OWN = 0.4  # noise of the constraint in the cells where it has its own, in these
NORM = 2.0  # of f and g, under their kernel, where the bounds of igp_ucb and gp_ts certify


def certificates(seeds: range, rounds: int) -> None:
    """Runs with a violation where all is as told, by algorithm, certificate and noise."""
    arms = nr.Arms.grid(0, 1, 40)
    kernel = UNIT**2 * nr.SquaredExponential(0.15)
    K = kernel(arms.points, arms.points) / UNIT**2
    root = np.linalg.cholesky(K + 1e-9 * np.eye(len(K)))
    print(f"certificates: 40 arms on a line, delta = .05, T = {rounds}, {len(seeds)} runs, seeds from {seeds[0]}")
    print("algorithm  certificate  noise of g   runs with a violation   regret            arms played")
    for algorithm in ALGORITHMS:
        for certificate in ("posterior", "bounds"):
            for own in (None, OWN):
                by_norm = certificate == "bounds" and algorithm != "gp_ucb"
                violated, regrets, places = 0, [], []
                for seed in seeds:
                    rng = np.random.default_rng([seed, 13])
                    f, g = (_of_norm(K, rng) if by_norm else root @ rng.standard_normal(len(K)) for _ in range(2))
                    while g.min() >= -0.8:
                        g = _of_norm(K, rng) if by_norm else root @ rng.standard_normal(len(K))
                    start = int(rng.choice(np.flatnonzero(g < -0.5)))
                    told = None if own is None else UNIT * own
                    part = nr.Safe(start=arms.points[[start]], kernel=kernel, noise=told, certificate=certificate)
                    policy = _policy(algorithm, certificate, arms, kernel, part)
                    noises = UNIT * NOISE, UNIT * (own or NOISE)
                    played = _safe_run(policy, UNIT * f, UNIT * g, noises, rng, rounds, seed)
                    violated += bool((g[played] > 0).any())
                    regrets.append(float(np.maximum(f[g <= 0].max() - f[played], 0).sum()))
                    places.append(len(set(played)))
                print(
                    f"{algorithm:10s} {certificate:12s} {own or NOISE:<10g} {violated:10d} of {len(seeds):<10d}"
                    f" {np.mean(regrets):7.1f} +- {bench.error(regrets):<7.1f} {np.mean(places):7.1f}",
                    flush=True,
                )


def _of_norm(K: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A function of norm `NORM` in the kernel's RKHS."""
    weights = np.zeros(len(K))
    weights[rng.choice(len(K), size=8, replace=False)] = rng.standard_normal(8)
    return NORM * (K @ weights) / np.sqrt(weights @ K @ weights)


def _policy(algorithm: str, certificate: str, arms: nr.Arms, kernel: nr.kernels.Kernel, part: nr.Safe) -> nr.Policy:
    common = {"noise": UNIT * NOISE, "delta": 0.05, "constraints": part}
    if algorithm == "gp_ucb":
        return nr.gp_ucb(arms, kernel, **common)
    if certificate == "posterior":
        return getattr(nr.algorithms, algorithm)(arms, kernel, norm_bound=NORM, **common)
    width = "dmm" if algorithm == "igp_ucb" else "amm"
    return getattr(nr.algorithms, algorithm)(arms, kernel, norm_bound=NORM, width=width, **common)


def _safe_run(policy, f, g, noises, rng, rounds, seed) -> list[int]:
    return _safe_played(nr.Study(policy, seed=seed), f, g, noises, rng, rounds)


def _safe_played(study, f, g, noises, rng, rounds) -> list[int]:
    played = []
    for _ in range(rounds):
        trial = study.ask()
        played.append(trial.arm)
        noise = noises * rng.standard_normal(2)
        study.tell(trial, f[trial.arm] + noise[0], constraints=[g[trial.arm] + noise[1]])
    return played


STATED = {
    "as they are": (1.0, 1.0, 1.0),
    "lengthscale x 1.5": (1.5, 1.0, 1.0), "lengthscale x 2": (2.0, 1.0, 1.0), "lengthscale x 0.5": (0.5, 1.0, 1.0),
    "scale x 0.5": (1.0, 0.5, 1.0), "scale x 2": (1.0, 2.0, 1.0), "noise x 0.5": (1.0, 1.0, 0.5),
}  # fmt: skip


def wrong(seeds: range, rounds: int) -> None:
    """Runs with a violation if lengthscale, scale or noise of the constraint are stated wrong."""
    print(f"wrong: delta = .05, T = {rounds}, {len(seeds)} runs, seeds from {seeds[0]}; in brackets without the check")
    print(
        "problem  stated             runs with a violation   rounds in violation   regret            ended by the check"
    )
    for title, arms, true in (("line", nr.Arms.grid(0, 1, 60), 0.15), ("square", bench.square(15), 0.3)):
        kernel = nr.SquaredExponential(true)
        root = np.linalg.cholesky(kernel(arms.points, arms.points) + 1e-9 * np.eye(len(arms.points)))
        for name, (length, scale, noise) in STATED.items():
            told = {"kernel": scale**2 * nr.SquaredExponential(length * true), "noise": noise * NOISE}
            alarm, safe_check.FALSE_ALARM = safe_check.FALSE_ALARM, 1e-300  # so small that nothing ends the expansion
            off = np.array([_wrong_run(arms, kernel, told, root, rounds, seed) for seed in seeds]).T
            safe_check.FALSE_ALARM = alarm
            on = np.array([_wrong_run(arms, kernel, told, root, rounds, seed) for seed in seeds]).T
            print(
                f"{title:8s} {name:18s} {np.sum(on[0] > 0):5d} ({np.sum(off[0] > 0)}) of {len(seeds):<10d}"
                f" {on[0].sum():6.0f} ({off[0].sum():.0f}) of {rounds * len(seeds):<10d}"
                f" {on[1].mean():6.1f} ({off[1].mean():.1f}) +- {bench.error(on[1]):<6.1f} {on[2].sum():6.0f}",
                flush=True,
            )


def _wrong_run(arms, kernel, told, root, rounds, seed) -> tuple[float, float, bool]:
    """Rounds in violation, regret, and whether the check ended the expansion."""
    rng = np.random.default_rng([seed, 15])
    f, g = root @ rng.standard_normal(len(root)), root @ rng.standard_normal(len(root))
    while g.min() >= -0.8:
        g = root @ rng.standard_normal(len(root))
    start = int(rng.choice(np.flatnonzero(g < -0.5)))
    part = nr.Safe(start=arms.points[[start]], delta=0.05, **told)
    policy = nr.gp_ucb(arms, kernel, noise=NOISE, constraints=part).using(confidence=ConstantWidth(value=2.0))
    study = nr.Study(policy, seed=seed)
    played = _safe_played(study, f, g, (NOISE, NOISE), rng, rounds)
    regret = float(np.maximum(f[g <= 0].max() - f[played], 0).sum())
    return float((g[played] > 0).sum()), regret, "contradiction" in study.remarks


def degrees(seeds: range) -> None:
    """A constraint in degrees, 9 p - 50, of which nobody has said how large it is."""
    arms, rounds = nr.Arms.grid(0, 10, 101), 60
    p = arms.points[:, 0]
    g = 9 * p - 50
    rewards = {"sin p": np.sin(p), "p / 10": p / 10, "unrelated": np.cos(3 * p)}
    print(f"degrees: g = 9 p - 50, T = {rounds}, {len(seeds)} runs, seeds from {seeds[0]}")
    print("scale       reward      too hot, the worst run   hot points played twice   regret")
    for scale in ("learned", 30.0):
        for name, f in rewards.items():
            part = nr.Safe(start=[2.0], scale=scale, noise=0.5)
            policy = nr.gp_ucb(arms, nr.kernel_for(arms), noise=NOISE, constraints=part)
            hot, again, regrets = [], [], []
            for seed in seeds:
                played = _safe_run(policy, f, g, (NOISE, 0.5), np.random.default_rng([seed, 14]), rounds, seed)
                too = [arm for arm in played if g[arm] > 0]
                hot.append(len(too))
                again.append(len(too) - len(set(too)))
                regrets.append(float((f[g <= 0].max() - f[played]).sum()))
            print(f"{scale!s:11s} {name:11s} {max(hot):10d} of {rounds:<12d} {sum(again):10d} {np.mean(regrets):22.1f}")


def _pessimist(f, g, K, start, rounds, seed) -> float:
    """Regret of the best upper bound among the arms whose upper bound of g is at most 0, of Theorem 1."""
    rng, total, best = np.random.default_rng([seed, 12]), 0.0, f[g <= 0].max()
    K, means = K.copy(), np.zeros((2, len(f)))
    for t in range(1, rounds + 1):
        std = np.sqrt(np.maximum(np.diag(K), 0.0))
        width = np.sqrt(2 * np.log(2 * len(f) * t**2 * np.pi**2 / (6 * 0.05)))  # both sides
        safe = means[1] + width * std <= 0.0
        safe[start] = True
        arm = int(np.where(safe, means[0] + 2.0 * std, -np.inf).argmax())
        total += max(best - f[arm], 0.0)
        told = np.array([f[arm], g[arm]]) + NOISE * rng.standard_normal(2)
        column, variance = K[:, arm].copy(), K[arm, arm] + NOISE**2
        means += np.outer((told - means[:, arm]) / variance, column)
        K -= np.outer(column, column) / variance
    return total


def policies(arms, rounds):
    common = {"noise": 0.1, "norm_bound": 1.0, "regularization": 0.01}
    epochs, kernel = {"epoch": 20, "epochs": max(1, rounds // 20)}, nr.Matern(2.5, lengthscale=1.0)
    return {
        "IGP-UCB, no constraints": nr.igp_ucb(arms, kernel, **common),
        "Algorithm 2, data kept": nr.gp_ucb_noiseless_constraints(arms, kernel, **common, **epochs),
        "Algorithm 2, fresh epochs": nr.gp_ucb_noiseless_constraints(arms, kernel, **common, **epochs, memory="fresh"),
        "Algorithm 3, data kept": nr.gp_ucb_noisy_constraints(arms, kernel, **common, **epochs, step=0.5),
    }


def same_as_afresh(policy, plain, env, rounds):
    """Whether re-scoring from epoch to epoch leaves the posterior of the last epoch's targets."""
    rng, study = np.random.default_rng(0), nr.Study(policy)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, env.expected(trial)[0] + 0.1 * rng.standard_normal(), constraints=env.constraint(trial))
    afresh = nr.Study(plain)
    for trial in study.trials:
        afresh.add(trial.point, policy.objective.target(trial, study.multipliers))
    return max(float(np.abs(a - b).max()) for a, b in zip(study.predict(), afresh.predict(), strict=True))


def cost(seeds, rounds, side):
    arms, problem = bench.square(side, high=6.0), small_feasible_region
    env = nr.Environment(problem.reward, domain=arms, noise=0.1, constraints=problem.constraint, best=problem.best)
    plain, kept, *_ = (rules := policies(arms, rounds)).values()
    taken = {name: np.zeros(len(seeds)) for name in rules}
    for i, seed in enumerate(seeds):
        for name, policy in rules.items():
            (taken[name][i],), _ = bench.timed(partial(nr.simulate, policy, env, rounds, seed=seed))
    for name, each in taken.items():
        over = np.median(each / taken["IGP-UCB, no constraints"])
        print(
            f"{name}: {np.median(each):.3f} s for {rounds} rounds (worst {max(each):.3f}), {over:.2f} times the first"
        )
    worst = same_as_afresh(kept, plain, env, rounds)
    print(f"re-scored posterior against one made afresh: {worst:.1e}, same: {'yes' if worst <= SAME else 'NO'}")


@bench.command(__doc__)
def main(given):
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    seeds = range(given.first_seed, given.first_seed + given.runs)
    parts = {
        "every-round": lambda: every_round(given.runs, given.rounds or 340, given.side),
        "average": lambda: on_average(given.runs, given.rounds or 1200),
        "safe": lambda: safely(seeds, given.rounds or 300),
        "certificates": lambda: certificates(seeds, given.rounds or 40),
        "wrong": lambda: wrong(seeds, given.rounds or 40),
        "degrees": lambda: degrees(seeds),
        "slopes": lambda: slopes.report(seeds, given.rounds or 30),
        "machines": lambda: machines.report(seeds, given.rounds or 40),
        "budgets": lambda: budgets.report(seeds, given.rounds or 150),
        "cost": lambda: cost(seeds, given.rounds or 350, given.side // 2 + 1),
    }
    for name in given.parts or parts:
        parts[name]()
