"""What unanswered trials should count as: regret where answers are late, and where silence means no.

    python benchmarks/late.py --seeds 40 --first 1000 --jobs 1 --rounds 400
    python benchmarks/late.py --jobs 2

Functions are drawn from the prior on 200 arms and scaled; all policies have the same width, 2, and differ in nothing
but `pending`, unless they are named. Three worlds: delays that have nothing to do with the reward (Poisson of mean 10,
rewards in [0, 1] with noise 0.1, T = 200); conversions, where the only answer is a yes, after a geometric delay of mean
5, with probability f <= 0.6 (T = 400); and the same with mean 10 and f <= 1. Censoring has each of several windows
there: the best of them in hindsight, one a third as long, and a third of twice the mean delay. Printed are mean
cumulative regrets (standard error) and ratios of means with 95% intervals of a paired bootstrap over seeds, beside the
figure to reach; then how often `pending="auto"` is wrong about its world after t rounds. Settings were chosen on seeds
below 1000; the default is held out. First comes what `nr.auto` costs where silence means no (`--seeds 0`: that alone).
"""

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import bench
import numpy as np
from bench import ratio

import nilregret as nr
from nilregret.environments.delays import Delay, FixedDelay, GeometricDelay, HeavyTailedDelay, PoissonDelay

ARMS = nr.Arms.grid(0.0, 1.0, 200)
KERNEL = nr.SquaredExponential(0.1, scale=0.0625)
LOOKS = (50, 100, 200, 400)


class TwoSpeeds(Delay):
    """At once with this probability, else so many questions later."""

    def __init__(self, at_once, later):
        self.at_once, self.later = at_once, later

    def draw(self, rng, point, reward):  # noqa: ARG002 - depends on neither
        return 0.0 if rng.uniform() < self.at_once else self.later


@dataclass(frozen=True)
class World:
    """How rewards come about, and which of them are told.

    Attributes:
        noise: standard deviation of rewards around f; None for a yes (1) with probability f, a no (0) otherwise.
        silent: whether a no is never told.
        lost: the share of answers that are lost, whatever they are.
        low: the least value of f.
    """

    delay: Delay
    top: float = 1.0
    low: float = 0.0
    noise: float | None = None
    silent: bool = False
    lost: float = 0.0


INDEPENDENT = World(PoissonDelay(10.0), noise=0.1)
QUICK, SLOW = World(GeometricDelay(5.0), top=0.6, silent=True), World(GeometricDelay(10.0), silent=True)
WINDOWS = {QUICK: (5, 7, 10, 15, 21, 30, 45), SLOW: (10, 15, 21, 30, 45, 60, 90)}
JUDGED = {  # worlds in which silence is judged, and whether it means no there
    "conversions, delays of mean 5, f <= 0.6": (QUICK, True),
    "conversions, delays of mean 10, f <= 1": (SLOW, True),
    "Poisson delays of mean 10": (INDEPENDENT, False),
    "geometric delays of mean 10": (World(GeometricDelay(10.0), noise=0.1), False),
    "always 20 later": (World(FixedDelay(20), noise=0.1), False),
    "heavy tails, P(d >= a) = 1 / (1 + a / 3)": (World(HeavyTailedDelay(3.0), noise=0.1), False),
    "yes and no are told, geometric delays of mean 10": (World(GeometricDelay(10.0)), False),
    "yes and no are told, 3 of 10 are lost": (World(GeometricDelay(5.0), lost=0.3), False),
    "the same yes always, 9 of 10 at once, 1 in 10 150 later": (World(TwoSpeeds(0.9, 150), noise=0.02, low=0.9), False),
    "the same yes always, 1 in 25 at once, the others 150 later": (
        World(TwoSpeeds(0.04, 150), noise=0.02, low=0.9),
        False,
    ),
    "values are told, 3 of 10 are lost": (World(GeometricDelay(5.0), noise=0.1, lost=0.3), False),
}


def policy_in(world, pending):
    """The same in all respects but one; a policy is taken as it is."""
    if isinstance(pending, nr.Policy):
        return pending
    noise = 0.5 if world.noise is None else world.noise
    return replace(
        nr.gp_bucb(ARMS, KERNEL, noise=noise, beta=2.0, prior_mean=0.5 * world.top), algorithm="equal", pending=pending
    )


def run(world, pending, rounds, seed):
    """Cumulative regret of one run, and whether silence is believed to mean no after each of `LOOKS`."""
    values = nr.environments.gp_sample(nr.SquaredExponential(0.1), ARMS, seed=seed).values
    f = world.low + (world.top - world.low) * (values - values.min()) / (values.max() - values.min())
    rng = np.random.default_rng([seed, 1])
    noise, lost = rng.uniform(size=rounds) if world.noise is None else rng.normal(size=rounds), rng.uniform(size=rounds)
    delays = [world.delay.draw(rng, ARMS.points[0], 0.0) for _ in range(rounds)]
    study, due, regret, believed = nr.Study(policy_in(world, pending), seed=seed), {}, 0.0, []
    for t in range(rounds):
        arm = int(study.ask().arm)
        regret += f.max() - f[arm]
        reward = float(noise[t] < f[arm]) if world.noise is None else f[arm] + world.noise * noise[t]
        if not (world.silent and reward == 0.0) and lost[t] >= world.lost and delays[t] < rounds:
            due.setdefault(t + int(delays[t]), []).append((t, reward))
        for number, told in due.pop(t, []):
            study.tell(number, told)
        if t + 1 in LOOKS:
            waits = study.replica.current().reward.data.pending.waits
            believed.append(None if waits is None else waits.evident)
    return regret, believed


def regrets_of(pool, world, rules, rounds, seeds):
    """By name, `(seeds,)`."""
    jobs = {name: pool.map(partial(run, world, part, rounds), seeds) for name, part in rules.items()}
    found = {name: np.array([regret for regret, _ in results]) for name, results in jobs.items()}
    for name, regrets in found.items():
        print(f"  {name:32} {regrets.mean():6.1f} ({bench.error(regrets):.1f})", flush=True)
    return found


def independent(pool, rounds, seeds):
    """Delays that have nothing to do with rewards."""
    print(f"delays independent of the reward, Poisson of mean 10, T = {rounds}, {len(seeds)} seeds from {seeds[0]}")
    rules = {
        "ignored": nr.slots.Ignored(),
        "hallucinated": nr.slots.Hallucinated(),
        "auto": nr.slots.LateOrNever(),
        "censored, window 20": nr.slots.Censored(minimum=0.0, window=20),
        "imputed": nr.slots.Imputed(),
    }
    rules |= {
        f"gp_ucb_sdf(width={width!r})": nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, window=20, width=width)
        for width in ("censored", "tight")
    }
    found = regrets_of(pool, INDEPENDENT, rules, rounds, seeds)
    censored, paper, tight = found["censored, window 20"], *list(found.values())[-2:]
    for name in ("hallucinated", "auto"):
        print(f"  {name} over censored: {ratio(found[name], censored)} (to reach: at most 0.5)")
    print(f"  tight over the paper's width, both proved for rho_m f: {ratio(tight, paper)}")


def conversions(pool, title, world, rounds, seeds):
    """The only answer is a yes."""
    print(f"{title}, T = {rounds}, {len(seeds)} seeds from {seeds[0]}")
    print("  if every no were told, too:")
    for name, delay in (("at once", FixedDelay(0)), ("as late as a yes", world.delay)):
        regrets_of(pool, replace(world, silent=False, delay=delay), {name: nr.slots.Hallucinated()}, rounds, seeds)
    print("  as it is:")
    short = max(round(2.0 * world.delay.mean / 3.0), 1)  # a third of what docs/late-answers.md advises
    windows = {f"censored, window {m}": nr.slots.Censored(minimum=0.0, window=m) for m in (short, *WINDOWS[world])}
    rules = {
        "ignored": nr.slots.Ignored(),
        "hallucinated": nr.slots.Hallucinated(),
        **windows,
        "imputed": nr.slots.Imputed(),
        "imputed, law known": nr.slots.Imputed(delay=world.delay),
        "auto": nr.slots.LateOrNever(),
    }
    found = regrets_of(pool, world, rules, rounds, seeds)
    best = min(windows, key=lambda name: found[name].mean())
    third = f"censored, window {max(round(windows[best].window / 3), 1)}"
    if third not in found:
        rule = nr.slots.Censored(minimum=0.0, window=max(round(windows[best].window / 3), 1))
        found |= regrets_of(pool, world, {third: rule}, rounds, seeds)
    for name in ("imputed", "auto"):
        print(f"  {name} over {best}, the best in hindsight: {ratio(found[name], found[best])} (to reach: at most 1.1)")
        print(f"  {name} over {third}, a third of it: {ratio(found[name], found[third])} (to reach: at most 0.7)")
        shortest = found[f"censored, window {short}"]
        print(f"  {name} over window {short}, a third of twice the mean delay: {ratio(found[name], shortest)}")


def judged(pool, rounds, seeds):
    """How often "auto" is wrong about its world."""
    looks = [t for t in LOOKS if t <= rounds]
    print("share of runs in which auto is wrong about its world after", *looks, "rounds:")
    for name, (world, is_no) in JUDGED.items():
        results = pool.map(partial(run, world, nr.slots.LateOrNever(), rounds), seeds)
        wrong = np.array([[believed is not is_no for believed in each] for _, each in results]).reshape(len(seeds), -1)
        kind = "silence is a no" if is_no else "silence is no no"
        print(f"  {name} ({kind}):", *(f"{share:.2f}" for share in wrong.mean(axis=0)), flush=True)


def cost(rounds):
    """What an ask and a tell take where silence means no, however many are silent, on 100 arms."""
    arms, part = nr.Arms.grid(0.0, 1.0, 100), max(rounds // 10, 1)
    print(f"processor time of an ask and a tell, ms, by rounds so far, 100 arms, {rounds} rounds")
    for reward in (None, "bernoulli"):
        for answers in ("prompt", "silent no"):
            study, rng = nr.Study(nr.auto(arms, answers=answers, reward=reward)), np.random.default_rng(0)
            due, took = {}, []
            for t in range(rounds):
                if t % part == 0:
                    start = time.process_time()
                trial = study.ask()
                yes = rng.random() < 0.05 + 0.3 * np.exp(-(((trial.point[0] - 0.7) / 0.2) ** 2))
                if answers == "prompt":
                    due.setdefault(t, []).append((trial, float(yes)))
                elif yes:
                    due.setdefault(t + int(rng.geometric(0.1)), []).append((trial, 1.0))
                for told, value in due.pop(t, []):
                    study.tell(told, value)
                if (t + 1) % part == 0:
                    took.append((time.process_time() - start) * 1e3 / part)
            given = "" if reward is None else f", reward={reward!r}"
            shown = ", ".join(f"{t}: {each:.2f}" for t, each in zip(range(part, rounds + 1, part), took, strict=False))
            print(f"  auto(answers={answers!r}{given}) {shown}", flush=True)


@bench.command(__doc__)
def main(options):
    rounds, seeds = options.rounds, range(options.first, options.first + options.seeds)
    cost(5 * rounds // 2)
    if not seeds:
        return
    with ProcessPoolExecutor(options.jobs) as pool:
        independent(pool, rounds // 2, seeds)
        conversions(pool, "conversions, delays of mean 5, f <= 0.6", QUICK, rounds, seeds)
        conversions(pool, "conversions, delays of mean 10, f <= 1", SLOW, rounds, seeds)
        judged(pool, rounds, seeds)
