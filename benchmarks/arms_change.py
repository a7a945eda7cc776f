"""Arms that come and go: what a running study saves over a fresh start at each change, and what a change costs.

    python benchmarks/arms_change.py --seeds 3 --rounds 20000 --trials 50000 --contexts 500 2000 4000
    python benchmarks/arms_change.py --seeds 1 --rounds 4000   # a look

100 banners with two features, and a rate of clicks that is a smooth function of the features. Every 500 decisions one
banner is added and another is retired, at random. Regret is the rate of the best banner in use less that of the one
shown. The study has `nr.auto(arms, reward="bernoulli")`, once changed in place by `add_arms` and `retire_arm`, and once
made afresh at each change. "own posterior each" is Thompson sampling with a Beta(1, 1) posterior of each banner, which
knows no features. CPU is `process_time` of decisions, answers and changes together, of the last tenth over the first.
The lines after it are of one change of a study of 50,000 trials. The last ones are of 4 banners under contexts of 36
columns, with prompt answers and where silence means no: three banners are added, one after the other.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median

import bench
import numpy as np

import nilregret as nr

EVERY, ARMS = 500, 100


class World:
    """Banners, their rates, and which of them are in use; the same for all who play."""

    def __init__(self, seed: int, rounds: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self.points = rng.uniform(size=(ARMS + rounds // EVERY, 2))
        centres, widths = rng.uniform(size=(4, 2)), rng.uniform(0.15, 0.35, size=4)
        heights = rng.uniform(0.1, 0.3, size=4)
        far = ((self.points[:, None] - centres) ** 2).sum(axis=2)
        self.rates = 0.02 + (heights * np.exp(-0.5 * far / widths**2)).max(axis=1)
        self.clicks = rng.uniform(size=rounds)
        used = list(range(ARMS))
        self.gone = []
        for change in range(rounds // EVERY):
            self.gone.append(used.pop(int(rng.integers(len(used)))))
            used.append(ARMS + change)

    def used(self, changes: int) -> list[int]:
        return sorted(set(range(ARMS + changes)) - set(self.gone[:changes]))


class InPlace:
    """A study whose arms are changed while it runs."""

    def __init__(self, world, seed):
        self.world = world
        self.study = nr.Study(nr.auto(nr.Arms(world.points[:ARMS]), reward="bernoulli"), seed=seed)

    def change(self, number: int) -> None:
        self.study.add_arms(self.world.points[ARMS + number][None])
        self.study.retire_arm(self.world.gone[number])

    def ask(self) -> int:
        self.trial = self.study.ask()
        return self.trial.arm

    def tell(self, click: float) -> None:
        self.study.tell(self.trial, click)


class Afresh(InPlace):
    """A new study at each change, of the arms in use, that knows nothing."""

    def __init__(self, world, seed):
        self.world, self.seed = world, seed
        self.change(-1)

    def change(self, number: int) -> None:
        self.used = self.world.used(number + 1)
        policy = nr.auto(nr.Arms(self.world.points[self.used]), reward="bernoulli")
        self.study = nr.Study(policy, seed=self.seed + number + 1)

    def ask(self) -> int:
        return self.used[super().ask()]


class OwnPosteriors:
    """Thompson sampling with a Beta posterior of each arm."""

    def __init__(self, world, seed):
        self.world, self.rng = world, np.random.default_rng([seed, 2])
        self.counts = np.ones((2, len(world.points)))
        self.change(-1)

    def change(self, number: int) -> None:
        self.used = np.array(self.world.used(number + 1))

    def ask(self) -> int:
        self.arm = int(self.used[self.rng.beta(*self.counts[:, self.used]).argmax()])
        return self.arm

    def tell(self, click: float) -> None:
        self.counts[0 if click else 1, self.arm] += 1.0


PLAYERS = {"in place": InPlace, "afresh": Afresh, "own posterior each": OwnPosteriors}


def played(kind: str, seed: int, rounds: int) -> tuple[float, float]:
    """Returns the regret, and CPU of the last tenth over the first."""
    world = World(seed, rounds)
    player, regret, marks = PLAYERS[kind](world, seed), 0.0, [time.process_time()]
    best = world.rates[world.used(0)].max()
    for number in range(rounds):
        if number and number % EVERY == 0:
            changes = number // EVERY
            player.change(changes - 1)
            best = world.rates[world.used(changes)].max()
        arm = player.ask()
        player.tell(float(world.clicks[number] < world.rates[arm]))
        regret += best - world.rates[arm]
        if (number + 1) % (rounds // 10) == 0:
            marks.append(time.process_time())
    taken = np.diff(marks)
    return regret, float(taken[-1] / taken[0])


def cost_of_a_change(trials: int) -> None:
    """Prints what one change takes, over the CPU of a decision with its answer."""
    for name, reward, told in (("GP-UCB", None, float), ("clicks", "bernoulli", lambda p: float(p > 0.5))):
        rng = np.random.default_rng(3)
        arms = nr.Arms(rng.uniform(size=(ARMS, 2)))
        ucb = nr.gp_ucb(arms, nr.SquaredExponential(0.3), noise=0.1)
        study = nr.Study(ucb if reward is None else nr.auto(arms, reward=reward), seed=1)

        def pairs(count, study=study, told=told, rng=rng):
            return bench.play(study, count, lambda _: told(rng.random()))[1].mean()

        pairs(trials - 500)
        before = pairs(500)
        (added,), _ = bench.timed(partial(study.add_arms, rng.uniform(size=(1, 2))))
        change = added + bench.timed(study.ask)[0][0]
        after = pairs(500)
        print(
            f"{name}, {trials:,} trials: an arm added and the next decision take {change:.2f} s, as "
            f"{change / before:,.0f} pairs do; a pair after it over one before: {after / before:.2f}"
        )


def cost_under_contexts(answers: str, places: list[int]) -> None:
    """Prints what an added arm and the next decision take under contexts, over a decision with its answer."""
    countries, rng = nr.Choice(*range(30)), np.random.default_rng(0)
    context = nr.Space(
        device=nr.Choice("a", "b", "c"), country=countries, hour=nr.Float(0, 24), returning=nr.Choice(True, False)
    )
    policy = nr.auto(nr.Arms(range(4)), context=context, reward="bernoulli", answers=answers)
    study = bench.quiet(policy, seed=0)

    def decide():
        return study.ask(
            {"device": str(rng.choice(list("abc"))), "country": int(rng.integers(30)), "hour": 24.0 * rng.random(),
             "returning": bool(rng.integers(2))}
        )  # fmt: skip

    def pair():
        trial, clicked = decide(), float(rng.random() < 0.1)
        if clicked or answers == "prompt":
            study.tell(trial, clicked)

    for place in places:
        before, taken = median(bench.timed(pair, place - len(study.trials))[0][-200:]), []
        for _ in range(3):
            (seconds,), _ = bench.timed(lambda: (study.add_arms([[float(len(study.arms))]]), decide()))
            taken.append(seconds / before)
        shown = ", ".join(f"{each:.1f}" for each in taken)
        print(
            f"contexts, {answers}, {place:,} trials: an arm added and the next decision take {shown} pairs", flush=True
        )


@bench.command(__doc__)
def main(args):
    found = {kind: [played(kind, seed, args.rounds) for seed in range(args.seeds)] for kind in PLAYERS}
    ours = np.array([regret for regret, _ in found["in place"]])
    for kind, runs in found.items():
        others = np.array([regret for regret, _ in runs])
        print(
            f"{kind}: regret {others.mean():.0f}; in place over it {(ours / others).mean():.2f} "
            f"({', '.join(f'{ratio:.2f}' for ratio in ours / others)}); CPU of the last tenth over the first "
            f"{median(ratio for _, ratio in runs):.2f}"
        )
    if args.trials:
        cost_of_a_change(args.trials)
    for answers in ("prompt", "silent no") if args.contexts else ():
        cost_under_contexts(answers, args.contexts)
